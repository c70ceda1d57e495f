"""SQL expressions: the user's text stays, columns are resolved, functions are checked, types are known or None."""

import re

import pytest

from rejoin.declare.declarations import Place
from rejoin.errors import Problem
from rejoin.plan.model.problems import Problems
from rejoin.plan.sql import functions, types
from rejoin.plan.sql.expressions import Expression, Scope, Side, column, expression, select_item

COLUMNS = {
    "id": "BIGINT",
    "n": "INT",
    "d": "DOUBLE",
    "f": "FLOAT",
    "total": "DECIMAL(10,2)",
    "name": "STRING",
    "raw": "BINARY",
    "day": "DATE",
    "at": "TIMESTAMP",
    "flag": "BOOLEAN",
    "user": "STRING",
}
ONE = Scope({"": Side("orders", COLUMNS)})
BOTH = Scope({"left": Side("orders", COLUMNS), "right": Side("customers", {"cid": "BIGINT", "name": "STRING", "city": "STRING"})})


def resolved(text: object, scope: Scope = ONE) -> tuple[Expression | None, tuple[Problem, ...]]:
    problems = Problems()
    made = expression(text, scope, problems.at(Place("f.py", 1)))
    return made, problems.in_order()


def sql(text: str, scope: Scope = ONE) -> str:
    made, found = resolved(text, scope)
    assert made is not None, found
    return made.sql


def refused(text: object, scope: Scope = ONE) -> tuple[str, str]:
    made, found = resolved(text, scope)
    assert made is None
    return found[0].code, found[0].message


# --- the user's text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id", ".`id`"),
        ("ID + 1", ".`id` + 1"),
        ("`id`+`n`", ".`id`+.`n`"),
        ("not(id=1)", "not(.`id`=1)"),
        ("date_add(day, 1)", "date_add(.`day`, 1)"),
        ("datediff(day, at)", "datediff(.`day`, .`at`)"),
        ("NVL(name, 'id')", "NVL(.`name`, 'id')"),
        ("'é漢😀 id' || name", "'é漢😀 id' || .`name`"),
        ('concat("name", name)', 'concat("name", .`name`)'),
        (
            "case when id in (1, 2) and (n > 1) then name else 'id' end",
            "case when .`id` in (1, 2) and (.`n` > 1) then .`name` else 'id' end",
        ),
        ("CAST(day AS date)", "CAST(.`day` AS date)"),
        ("id::string", ".`id`::string"),
        ("name LIKE ANY ('a%', 'b%')", ".`name` LIKE ANY ('a%', 'b%')"),
        ("substring(name from 1 for 2)", "substring(.`name` from 1 for 2)"),
        ("extract(year from day)", "extract(year from .`day`)"),
        ("at - interval 1 hour", ".`at` - interval 1 hour"),
        (r"name = 'it\'s' and r'\d' <> name", r".`name` = 'it\'s' and r'\d' <> .`name`"),
        ("user", ".`user`"),
        ("left(name, 2)", "left(.`name`, 2)"),
        ("if(flag, -n, n)\n  * 2", "if(.`flag`, -.`n`, .`n`)\n  * 2"),
    ],
)
def test_only_the_column_tokens_are_replaced(text: str, expected: str) -> None:
    assert sql(text) == expected


def test_qualified_columns_are_resolved_to_their_side_without_regard_to_case() -> None:
    assert sql("LEFT.Name || right . `name` || left(city, 1)", BOTH) == "left.`name` || right.`name` || left(right.`city`, 1)"


@pytest.mark.parametrize("name", sorted(functions.ALLOWED))
def test_no_column_hides_in_the_arguments_of_an_allowed_function(name: str) -> None:
    for count in (1, 2, 3, 4):
        names = ["id", "n", "name", "day"][:count]
        made, found = resolved(f"{name}({', '.join(names)})")
        assert made is not None or found
        assert made is None or {ref.column for ref in made.refs} == set(names)


def test_a_column_is_replaced_by_the_expression_that_makes_it_in_parentheses() -> None:
    made, _ = resolved("-n * 2")
    by, _ = resolved("id + 1")
    assert made is not None
    assert by is not None
    assert made.replace(lambda ref: by).sql == "-(.`id` + 1) * 2"
    assert made.replace(lambda ref: column("l", "x", None)).sql == "-l.`x` * 2"


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "scope", "code", "message"),
    [
        ("totl", ONE, "UNKNOWN_COLUMN", "unknown column 'totl' of orders; did you mean 'total'?"),
        ("left.cid", BOTH, "UNKNOWN_COLUMN", "unknown column 'cid' of orders; did you mean 'id'?"),
        ("zzz", BOTH, "UNKNOWN_COLUMN", "unknown column 'zzz' of orders or customers"),
        ("left.id", ONE, "UNKNOWN_COLUMN", "left.id: columns are written without a qualifier here"),
        ("orders.id", BOTH, "UNKNOWN_COLUMN", "orders.id: the only qualifiers are left. and right."),
        ("name", BOTH, "AMBIGUOUS_COLUMN", "ambiguous column 'name': both sides have it; write left.name or right.name"),
        ("a.b.c", BOTH, "UNKNOWN_COLUMN", "a.b.c: the only qualifiers are left. and right.; did you mean 'at'?"),
    ],
)
def test_a_column_that_cannot_be_resolved_says_why(text: str, scope: Scope, code: str, message: str) -> None:
    assert refused(text, scope) == (code, message)


def test_a_missing_column_of_a_relation_with_a_mistake_is_no_second_mistake() -> None:
    assert resolved("gone", Scope({"": Side("orders", COLUMNS, complete=False)})) == (None, ())


# --- functions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rand()", "rand() is not allowed: it gives another result each time"),
        ("`rand`() + id", "rand() is not allowed: it gives another result each time"),
        ("uuid()", "uuid() is not allowed: it gives another result each time"),
        ("now()", "now() is not allowed: it gives another result each time"),
        ("current_date", "current_date is not allowed: it gives another result each time"),
        ("current_timestamp()", "current_timestamp() is not allowed: it gives another result each time"),
        ("day < Current_Date", "Current_Date is not allowed: it gives another result each time"),
        ("localtimestamp", "localtimestamp is not allowed: it gives another result each time"),
        ("session_user", "session_user is not allowed: it depends on the session, not on the row"),
        ("unix_timestamp()", "unix_timestamp() without an argument is not allowed: it gives another result each time"),
        ("input_file_name()", "input_file_name() is not allowed: it gives another result each time"),
        ("reflect('a', 'b')", "reflect() is not allowed: it runs code that rejoin cannot check"),
        ("sum(id)", "sum() is not allowed: it is an aggregate over many rows"),
        ("any(flag)", "any() is not allowed: it is an aggregate over many rows"),
        ("explode(split(name, ','))", "explode() is not allowed: it makes several rows of one"),
        ("row_number() over (order by id)", "row_number() is not allowed: it is a window function over many rows"),
        ("sum(id) over ()", "a window function reads many rows; an expression may read one row only"),
        ("transform(split(name, ','), x -> x)", "transform() is not allowed: it takes a lambda"),
        ("(select 1)", "a subquery may not stand in an expression; write a join"),
        ("id in (select 1)", "a subquery may not stand in an expression; write a join"),
        ("tools.twice(id)", "twice() is not allowed: functions of a catalog or schema are not known to rejoin"),
        ("uper(name)", f"uper() is not allowed: {functions.UNKNOWN}; did you mean 'upper'?"),
        ("cast('now' as date)", "beside dates Spark reads 'now', 'today', 'tomorrow' and 'yesterday' as the present time"),
        ("day > ' Today'", "beside dates Spark reads 'now', 'today', 'tomorrow' and 'yesterday' as the present time"),
    ],
)
def test_what_is_not_a_deterministic_function_of_one_row_is_forbidden(text: str, message: str) -> None:
    _, found = resolved(text)
    assert ("FORBIDDEN_FUNCTION", message) in [(p.code, p.message) for p in found]


@pytest.mark.parametrize(
    "text",
    [
        "to_date(concat('to', 'day'))",
        "CAST('to' || 'day' AS DATE)",
        "CAST('to' 'day' AS DATE)",
        "day > lower('NOW')",
        "coalesce(day, substring('today', 1, 5))",
        "CAST(r'today' AS DATE)",
        "day > CAST(lower('TO') || name || '' AS DATE) OR day = CAST('to' || 'day' AS DATE)",
        "CAST(CAST(X'746F646179' AS STRING) AS DATE)",
        "CAST(string(X'746F646179') AS DATE)",
        r"CAST('to\u0064ay' AS DATE)",
        "CAST('\x01today' AS DATE)",
        "CASE WHEN name = 'x' THEN to_timestamp(trim('now ')) END",
        "CAST(date_format(DATE '2024-01-01', \"'to''day'\") AS DATE)",
        "CAST(reverse('yadot') AS TIMESTAMP)",
    ],
)
def test_fault_look_the_present_time_is_not_computed_from_texts(text: str) -> None:
    made, found = resolved(text)
    assert made is None
    assert [(p.code, "the present time" in p.message) for p in found] == [("FORBIDDEN_FUNCTION", True)]


@pytest.mark.parametrize(
    "text",
    [
        "to_date(name)",
        "to_date(concat(name, '-01'))",
        "to_date(name || '-01')",
        "to_date(name || '-' || '01' || '-01')",
        "to_date(lower(name) || '-01') = day AND raw = X'00'",
        "to_date('2024-01-01') < day",
        "to_timestamp('2024-01-01 00:00:00') < at",
        r"CASE WHEN name RLIKE '^\\d+$' THEN to_date(substring(name, 1, 10), 'yyyy-MM-dd') END",
        "date_format(day, 'yyyy')",
        "day BETWEEN '2024-01-01' AND DATE '2024-12-31'",
        "date_add(DATE '2024-01-01', n)",
        "concat('to', 'day') = name",
    ],
)
def test_fault_look_texts_of_rows_and_literals_may_become_dates(text: str) -> None:
    assert resolved(text)[0] is not None, resolved(text)[1]


def test_fault_look_a_column_that_is_a_constant_text_becomes_no_date() -> None:
    constant = Scope({"": Side("orders", {**COLUMNS, "word": "STRING"}, constant=frozenset({"word"}))})
    assert resolved("CAST(word AS DATE)", constant)[0] is None
    assert resolved("upper(word)", constant)[0] is not None
    assert resolved("CAST(name AS DATE)", constant)[0] is not None


def test_now_is_a_text_like_any_other_where_no_date_is_near() -> None:
    assert sql("name = 'now'") == ".`name` = 'now'"


def test_an_allowed_function_is_never_given_a_reason_against_it() -> None:
    assert [name for name in functions.ALLOWED if functions.refusal(name)] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a text with one SQL expression is expected"),
        (3, "a text with one SQL expression is expected"),
        ("id, n", "one SQL expression over columns is expected, not a list or a query"),
        ("id from orders", "one SQL expression over columns is expected, not a list or a query"),
        ("distinct id", "one SQL expression over columns is expected, not a list or a query"),
        ("id; n", "one expression is expected, without a semicolon"),
        ("id as x", "an expression without AS is expected here, and no star"),
        ("*", "an expression without AS is expected here, and no star"),
        ("id -- key", "comments are not allowed in an expression; write them in Python"),
        ("id /* key */ + 1", "comments are not allowed in an expression; write them in Python"),
        ("id +", "not valid SQL: an operand is missing"),
        ("name = 'abc", "not valid SQL: a quote or comment is not closed"),
        ("id = ?", "parameters and variables are not allowed; format the value into the text"),
        ("id = ${x}", "parameters and variables are not allowed; format the value into the text"),
        ("{{x}}", "parameters and variables are not allowed; format the value into the text"),
        ("date_trunc(day, at)", "in 'date_trunc(day, at)' the word day may be a column or a keyword; rename the column in a select before"),
        ("unix_timestamp(", "not valid SQL: Expecting )"),
    ],
)
def test_what_is_not_one_expression_says_why(text: object, message: str) -> None:
    assert refused(text) == ("BAD_EXPRESSION", message)


# --- select items ----------------------------------------------------------------------------------------------------


def test_stars_expand_to_the_columns_of_their_side_in_order() -> None:
    problems = Problems()
    made = select_item("right.*", BOTH, problems.at(Place("f.py", 1)))
    assert [(name, part.sql if part else None) for name, part in made] == [
        ("cid", "right.`cid`"),
        ("name", "right.`name`"),
        ("city", "right.`city`"),
    ]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("left.name AS customer", "customer", "left.`name`"),
        ("City", "city", "right.`city`"),
        ("id + 1 x", "x", "left.`id` + 1"),
        ("case when flag then 1 end AS `x`", "x", "case when left.`flag` then 1 end"),
    ],
)
def test_a_select_item_has_the_name_after_as_or_that_of_its_column(text: str, name: str, expected: str) -> None:
    [(found, made)] = select_item(text, BOTH, Problems().at(Place("f.py", 1)))
    assert made is not None
    assert (found, made.sql) == (name, expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id + 1", "the column id + 1 needs a name: write id + 1 AS name"),
        ("*", "* is not possible here; write left.* or right.*"),
        ("left.* AS x", "a star stands alone: *, left.* or right.*"),
        ("id AS 'x'", "the name after AS must be a plain column name"),
        ("cast(id as smallint) AS x", f"type SMALLINT is not supported; allowed: {types.ALLOWED}"),
        ("split(left.name, ',') AS x", f"type ARRAY is not supported; allowed: {types.ALLOWED}"),
    ],
)
def test_a_select_item_that_cannot_be_a_column_says_why(text: str, message: str) -> None:
    problems = Problems()
    made = select_item(text, BOTH, problems.at(Place("f.py", 1)))
    assert [part for _, part in made if part is not None] == []
    assert [p.message for p in problems.in_order()] == [message]


# --- types -----------------------------------------------------------------------------------------------------------

# What Spark 4.1 gives these expressions (compared once with its own schemas); None where the rules stay silent.
TYPES = """
    id                                      BIGINT
    n + 1                                   INT
    n * id                                  BIGINT
    n / 2                                   DOUBLE
    d - n                                   DOUBLE
    f + d                                   DOUBLE
    f + n                                   None
    total + 1                               None
    day + 1                                 None
    2147483647                              INT
    2147483648                              BIGINT
    -2147483648                             None
    1.5                                     None
    1e3                                     DOUBLE
    'a'                                     STRING
    true                                    BOOLEAN
    -n                                      INT
    (id)                                    BIGINT
    id = n and not flag                     BOOLEAN
    name like 'a%' or name is null          BOOLEAN
    n between 1 and 2                       BOOLEAN
    upper(name)                             STRING
    upper(raw)                              None
    substr(name, 1, 2)                      STRING
    substr(raw, 1, 2)                       None
    concat(name, 'x')                       STRING
    concat(name, n)                         None
    name || 'x'                             STRING
    length(name)                            INT
    year(day)                               INT
    to_date(name)                           DATE
    coalesce(name, '')                      STRING
    nvl(id, 0)                              BIGINT
    coalesce(name, n)                       None
    coalesce(total, 0)                      None
    if(flag, n, null)                       INT
    case when flag then n else id end       BIGINT
    nullif(n, id)                           INT
    cast(name as int)                       INT
    cast(name as decimal)                   DECIMAL(10,0)
    cast(name as numeric(12, 3))            DECIMAL(12,3)
    cast(name as timestamp)                 TIMESTAMP
    cast(name as timestamp_ntz)             TIMESTAMP_NTZ
    name::long                              BIGINT
    to_timestamp(name)                      TIMESTAMP
    date '2020-01-01'                       DATE
    md5(name)                               None
"""


@pytest.mark.parametrize("line", TYPES.strip().splitlines())
def test_a_type_is_inferred_only_where_it_is_certain(line: str) -> None:
    text, expected = re.split(r"\s{2,}", line.strip())
    made, _ = resolved(text)
    assert made is not None
    assert str(made.type) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("bigint", "BIGINT"),
        ("Integer", "INT"),
        ("LONG", "BIGINT"),
        ("decimal( 10 , 2 )", "DECIMAL(10,2)"),
        ("NUMERIC", "DECIMAL(10,0)"),
        ("DECIMAL(39,2)", None),
        ("DECIMAL(2,3)", None),
        ("timestamp_ltz", "TIMESTAMP"),
        ("TINYINT", None),
        ("array< int >", "ARRAY<INT>"),
        ("STRUCT<City STRING, `codes`:array<dec(5, 1)>>", "STRUCT<City: STRING, codes: ARRAY<DECIMAL(5,1)>>"),
        ("map<string,struct<a:long>>", "MAP<STRING, STRUCT<a: BIGINT>>"),
        ("ARRAY<" * 8 + "INT" + ">" * 8, "ARRAY<" * 8 + "INT" + ">" * 8),
        ("ARRAY<" * 9 + "INT" + ">" * 9, None),
        ("ARRAY<SMALLINT>", None),
        ("ARRAY<INT, INT>", None),
        ("MAP<INT, STRING>", None),
        ("STRUCT<a: INT, A: INT>", None),
        ("STRUCT<a>", None),
        ("ARRAY<>", None),
        ("VARCHAR(10)", None),
    ],
)
def test_a_declared_type_has_one_canonical_spelling(written: str, expected: str | None) -> None:
    assert types.canonical(written) == expected


# --- values that no table holds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "NULL",
        "(NULL)",
        "CASE WHEN flag THEN NULL END",
        "if(flag, NULL, NULL)",
        "coalesce(NULL, NULL)",
        "nullif(NULL, 1)",
        "nvl(NULL, (NULL))",
    ],
)
def test_fault_a11_a_column_of_nothing_but_null_needs_a_type(text: str) -> None:
    code, message = refused(text)
    assert code == "BAD_EXPRESSION" and message.startswith("NULL alone has no type; write CAST(NULL AS STRING)")
    assert resolved(f"CAST({text} AS DECIMAL(3,1))")[0] is not None
    assert resolved("CASE WHEN flag THEN NULL ELSE id END")[0] is not None


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("CAST(raw AS STRING)", "make_valid_utf8(CAST(.`raw` AS STRING))"),
        ("string(raw)", "make_valid_utf8(string(.`raw`))"),
        ("raw::STRING || '!'", "make_valid_utf8(.`raw`::STRING || '!')"),
        ("CASE WHEN flag THEN name ELSE CAST(unhex('ff') AS STRING) END", None),
        ("CAST(unbase64(name) AS STRING)", None),
        ("CAST(X'ff' AS STRING)", None),
        ("CAST(CAST(name AS BINARY) AS STRING)", None),
        ("CAST(id AS STRING)", "CAST(.`id` AS STRING)"),
        ("upper(name)", "upper(.`name`)"),
        ("length(raw)", "length(.`raw`)"),
        ("raw", ".`raw`"),
    ],
)
def test_fault_a11_text_that_is_made_of_bytes_is_made_valid(text: str, made: str | None) -> None:
    start = text if made is None else made
    found = sql(text)
    assert found == made if made is not None else found.startswith("make_valid_utf8(") and found != start
