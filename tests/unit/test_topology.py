"""Every mistake a user can write down is reported with its code, its sentence and the user's own line, all at once."""

import builtins
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rejoin
from rejoin import Topology, snapshot
from rejoin.errors import TopologyError, TopologyFileError
from rejoin.plan.check.compile import compile
from rejoin.plan.check.topology_file import load
from rejoin.plan.model import problems

HEAD = """\
from rejoin import Topology, debezium, snapshot

shop = Topology("shop")
orders = shop.table("orders", key="order_id", schema="order_id BIGINT, customer_id BIGINT, code INT, note STRING", source=snapshot("o/"))
customers = shop.table("customers", key="customer_id", schema="customer_id BIGINT, name STRING, Note STRING", source=snapshot("c/"))
rates = shop.table("rates", key=["day", "code"], schema="day DATE, code INT, rate DOUBLE", source=snapshot("r/"))
"""
GOOD = 'good = orders.select(["order_id", "customer_id"]).join(customers, "customer_id").named("good")\n'


def write(folder: Path, text: str, name: str = "shop.py") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def found_in(folder: Path, text: str) -> list[tuple[str, str, str]]:
    """(code, message, the user's line) of every problem of a file."""
    path = write(folder, text)
    with pytest.raises(TopologyError) as caught:
        load(path)
    lines = text.splitlines()
    assert {problem.file for problem in caught.value.problems} == {path}
    return [(problem.code, problem.message, lines[problem.line - 1].strip()) for problem in caught.value.problems]


CASES = [
    # --- columns and expressions
    ("UNKNOWN_COLUMN", 'x = orders.filter("cod = 1").named("x")', "filter 'cod = 1': unknown column 'cod' of orders; did you mean 'code'?"),
    (
        "UNKNOWN_COLUMN",
        'x = orders.join(customers, "custmer_id", ["left.*"]).named("x")',
        "foreign_key 'custmer_id': unknown column 'custmer_id' of orders; did you mean 'customer_id'?",
    ),
    (
        "UNKNOWN_COLUMN",
        'x = orders.join(customers, "right.customer_id", ["left.*"]).named("x")',
        "foreign_key 'right.customer_id': right.customer_id: a foreign key reads only the left row, as column or left.column",
    ),
    (
        "AMBIGUOUS_COLUMN",
        'x = orders.join(customers, "customer_id", ["left.*", "upper(note) AS n"]).named("x")',
        "select: 'upper(note) AS n': ambiguous column 'note': both sides have it; write left.note or right.note",
    ),
    (
        "AMBIGUOUS_COLUMN",
        'x = orders.join(customers, "customer_id").named("x")',
        (
            "join: ambiguous column 'Note': both orders and customers have it; "
            "give select=[...] and rename one, such as 'right.Note AS Note_2'"
        ),
    ),
    (
        "FORBIDDEN_FUNCTION",
        'x = orders.filter("rand() < 1").named("x")',
        "filter 'rand() < 1': rand() is not allowed: it gives another result each time",
    ),
    ("BAD_EXPRESSION", 'x = orders.filter("code +").named("x")', "filter 'code +': not valid SQL: an operand is missing"),
    ("BAD_EXPRESSION", 'x = orders.filter("code").named("x")', "filter 'code': a filter must be BOOLEAN, this is INT"),
    (
        "BAD_EXPRESSION",
        'x = orders.select(["*", "code + 1"]).named("x")',
        "select: 'code + 1': the column code + 1 needs a name: write code + 1 AS name",
    ),
    # --- names
    ("DUPLICATE_NAME", 'x = orders.filter("code = 1").named("customers")', "the name 'customers' is taken already at {file}:5"),
    (
        "DUPLICATE_NAME",
        'x = orders.select(["*", "code AS NOTE"]).named("x")',
        "select: two output columns are named 'NOTE'; rename one with AS",
    ),
    (
        "DUPLICATE_NAME",
        't = shop.table("t", "a", "a INT, A STRING", snapshot("t/"))',
        "table 't': column 'A' stands twice in the schema (names are compared without regard to case)",
    ),
    (
        "UNSAFE_NAME",
        'x = orders.filter("code = 1").named("Big__Orders")',
        (
            "output name 'Big__Orders' is not safe; expected a lower-case letter, then lower-case letters, digits and single "
            "underscores, at most 63 ('__' is reserved for rejoin)"
        ),
    ),
    (
        "UNSAFE_NAME",
        'x = orders.select(["*", "code AS _run"]).named("x")',
        "select: 'code AS _run': column name '_run' starts with an underscore, which is reserved for rejoin's own columns",
    ),
    (
        "UNSAFE_NAME",
        'x = orders.select(["*", "code AS `a b`"]).named("x")',
        "select: 'code AS `a b`': column name 'a b' is not safe; expected a letter, then letters, digits and underscores",
    ),
    ("UNKNOWN_RELATION", 'x = shop.relation("order").named("x")', "no table or output is named 'order'; did you mean 'orders'?"),
    # --- foreign keys and keys
    (
        "FK_TYPE",
        'x = orders.join(customers, "note", ["left.*"]).named("x")',
        (
            "foreign_key 'note': the type is STRING, the key column 'customer_id' of customers is BIGINT; "
            "write CAST(... AS BIGINT) if no value changes by it"
        ),
    ),
    (
        "FK_TYPE",
        'x = orders.join(customers, "factorial(code)", ["left.*"]).named("x")',
        "foreign_key 'factorial(code)': the type is not certain, the key column 'customer_id' of customers is BIGINT; write CAST(... AS BIGINT)",
    ),
    (
        "FK_COUNT",
        'x = orders.join(rates, "code", ["left.*"]).named("x")',
        "foreign_key has 1 expression(s), but the key of rates has 2: day, code; give a list in that order",
    ),
    (
        "KEY_LOST",
        'x = orders.select(["code", "order_id + 0 AS order_id"]).named("x")',
        "select: the key column 'order_id' of orders is lost; add 'order_id' (AS another name is fine)",
    ),
    (
        "KEY_LOST",
        'x = orders.join(customers, "customer_id", ["right.name"]).named("x")',
        "select: the key column 'order_id' of orders is lost; add 'left.order_id' (AS another name is fine)",
    ),
    # --- tables
    (
        "BAD_SCHEMA",
        't = shop.table("t", "a", "a SMALLINT", snapshot("t/"))',
        (
            "table 't': schema: column 'a': type SMALLINT is not supported; "
            "allowed: BOOLEAN, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, ARRAY<...>, STRUCT<name: ...>, "
            "MAP<STRING, ...>"
        ),
    ),
    (
        "BAD_SCHEMA",
        't = shop.table("t", "a", "a VARCHAR(10)", snapshot("t/"))',
        (
            "table 't': schema: column 'a': type VARCHAR(10) is not supported, "
            "because engines disagree on its padding and length checks; write STRING"
        ),
    ),
    (
        "BAD_SCHEMA",
        't = shop.table("t", "a", "a INT NOT NULL", snapshot("t/"))',
        "table 't': schema: column 'a': only a name and a type are possible, not 'INT NOT NULL'",
    ),
    ("BAD_SCHEMA", 't = shop.table("t", "b", "a INT", snapshot("t/"))', "table 't': key: the schema has no column 'b'"),
    (
        "BAD_SCHEMA",
        't = shop.table("t", "a", "a DOUBLE", snapshot("t/"))',
        "table 't': key: column 'a' is DOUBLE, and rounded numbers cannot be keys; use DECIMAL or BIGINT",
    ),
    (
        "BAD_OPTION",
        't = shop.table("t", "a", "a INT, b INT", snapshot("t/"), optional=["c"])',
        "table 't': optional: the schema has no column 'c'",
    ),
    (
        "BAD_OPTION",
        't = shop.table("t", "a", "a INT, b INT", snapshot("t/"), optional="A")',
        "table 't': optional: 'A' is a key column, and every row needs its key",
    ),
    (
        "BAD_OPTION",
        't = shop.table("t", "a", "a INT, b INT", snapshot("t/"), optional=[1])',
        "table 't': optional must be a column name or a list of column names",
    ),
    (
        "BAD_OPTION",
        't = shop.table("t", "a", "a INT", "t/")',
        "table 't': source must be snapshot(...), debezium(...), changes(...) or feed(...)",
    ),
    (
        "BAD_OPTION",
        't = shop.table("t", "a", "a INT", snapshot("t/", max_delete_share=3))',
        "table 't': max_delete_share is 3; expected a share from 0 to 1",
    ),
    (
        "BAD_OPTION",
        't = shop.table("t", "a", "a INT", debezium("t/", on_bad_record="skip"))',
        "table 't': on_bad_record is 'skip'; expected 'quarantine' or 'fail'",
    ),
    (
        "BAD_OPTION",
        't = shop.table("t", "a", "a INT, at TIMESTAMP", debezium("t/", units={"at": "s"}))',
        "table 't': units['at'] is 's'; expected one of 'ms', 'us', 'ns'",
    ),
    (
        "BAD_OPTION",
        't = shop.table("t", "a", "a INT, at TIMESTAMP", debezium("t/", units={"att": "ms"}))',
        "table 't': units['att']: the schema has no such column; did you mean 'at'?",
    ),
    ("BAD_OPTION", 't = shop.table("t", "a", "a INT", snapshot(""))', "table 't': path must be a text that is not empty, or kafka(topic)"),
    (
        "BAD_OPTION",
        'x = orders.join("customers", "customer_id").named("x")',
        "join: the right side must be a relation: a table, a join, or topology.relation(name)",
    ),
    (
        "BAD_OPTION",
        'x = orders.select([]).named("x")',
        "select: a list of texts is expected, such as ['left.*', 'right.name AS customer_name']",
    ),
    # --- types
    (
        "BAD_EXPRESSION",
        'x = orders.filter("code > > 3").named("x")',
        "filter 'code > > 3': not valid SQL: an operand is missing before '>'",
    ),
    (
        "BAD_TYPE",
        'x = orders.select(["*", "CASE WHEN note THEN 1 END AS y"]).named("x")',
        "select: 'CASE WHEN note THEN 1 END AS y': a condition of CASE must be BOOLEAN, this is STRING",
    ),
    (
        "BAD_TYPE",
        """x = orders.filter("code = 'abc'").named('x')""",
        "filter \"code = 'abc'\": the text 'abc' cannot be cast to BIGINT, which it is compared or used as",
    ),
    (
        "BAD_TYPE",
        """x = orders.filter("note RLIKE '(a'").named('x')""",
        "filter \"note RLIKE '(a'\": the pattern '(a' is broken: a parenthesis is not closed",
    ),
    (
        "BAD_TYPE",
        'x = rates.select(["*", "day * rate AS y"]).named("x")',
        "select: 'day * rate AS y': * is not possible between DATE and DOUBLE",
    ),
    # --- the whole
    (
        "UNUSED",
        'x = orders.join(customers, "customer_id", ["left.*"])',
        "this join is never used: name it with .named(...) to make it an output",
    ),
    ("UNUSED", 'x = orders.filter("code = 1")', "this filter is never used: name it with .named(...) to make it an output"),
    (
        "OTHER_TOPOLOGY",
        'x = orders.join(Topology("other").table("t", "a", "a INT", snapshot("t/")), "code").named("x")',
        "join: the right side belongs to topology 'other'; both sides must be of 'shop'",
    ),
    ("CYCLE", 'x = shop.relation("x").filter("code = 1").named("x")', "a relation cannot be made of itself: 'x' reads 'x'"),
]


@pytest.mark.parametrize(("code", "line", "message"), CASES, ids=[f"{code}: {line}" for code, line, _ in CASES])
def test_a_mistake_is_reported_with_the_users_own_line(tmp_path: Path, code: str, line: str, message: str) -> None:
    expected = message.replace("{file}", str(tmp_path / "shop.py"))
    assert found_in(tmp_path, HEAD + GOOD + line + "\n") == [(code, expected, line)]


def test_every_code_has_a_case() -> None:
    codes = {value for name, value in vars(problems).items() if name.isupper() and name == value}
    assert codes == {code for code, _, _ in CASES} | {"EMPTY_TOPOLOGY"}


def test_a_topology_without_outputs_is_empty(tmp_path: Path) -> None:
    message = "topology 'shop' makes nothing: name at least one relation with .named(...)"
    assert found_in(tmp_path, HEAD) == [("EMPTY_TOPOLOGY", message, 'shop = Topology("shop")')]


def test_all_mistakes_of_a_file_are_reported_at_once_in_the_order_of_their_lines(tmp_path: Path) -> None:
    text = HEAD + (
        "(\n"
        '    orders.filter("cod = 1")\n'
        '    .left_join(customers, foreign_key="custmer_id", select=["left.*", "right.nam", "rand() AS r"])\n'
        '    .join(rates, foreign_key=["code"])\n'
        '    .named("Bad")\n'
        ")\n"
    )
    assert [(code, line[:12]) for code, _, line in found_in(tmp_path, text)] == [
        ("UNKNOWN_COLUMN", "orders.filte"),
        ("UNKNOWN_COLUMN", ".left_join(c"),
        ("UNKNOWN_COLUMN", ".left_join(c"),
        ("FORBIDDEN_FUNCTION", ".left_join(c"),
        ("FK_COUNT", ".join(rates,"),
        ("UNSAFE_NAME", '.named("Bad"'),
    ]


def test_a_mistake_in_a_table_hides_nothing_else_and_causes_no_second_report(tmp_path: Path) -> None:
    text = HEAD + (
        't = shop.table("t", "id", "id BIGINT, x TINYINT", snapshot("t/"))\n'
        't.filter("x = 1").join(customers, "x", ["left.*", "right.nme AS y"]).join(rates, ["y", "x"], ["left.*"]).named("z")\n'
    )
    assert [code for code, _, _ in found_in(tmp_path, text)] == ["BAD_SCHEMA", "UNKNOWN_COLUMN"]


def test_a_cycle_names_every_output_on_it_and_is_reported_once(tmp_path: Path) -> None:
    text = HEAD + (
        'a = orders.join(shop.relation("b"), "order_id", ["left.*"]).named("a")\n'
        'b = orders.join(shop.relation("c"), "order_id", ["left.*"]).named("b")\n'
        'c = shop.relation("a").filter("code = 1").named("c")\n'
        'd = orders.join(a, "order_id", ["left.*"]).named("d")\n'
    )
    [(code, message, line)] = found_in(tmp_path, text)
    assert (code, message) == ("CYCLE", "a relation cannot be made of itself: 'b' reads 'c' reads 'a' reads 'b'")
    assert line.startswith("a = ")


def test_a_bad_source_option_has_the_line_of_the_source(tmp_path: Path) -> None:
    text = HEAD + GOOD + 't = shop.table(\n    "t", "a", "a INT",\n    snapshot("t/", max_bad_share="all"),\n)\n'
    [(_, message, line)] = found_in(tmp_path, text)
    assert message == "table 't': max_bad_share is 'all'; expected a share from 0 to 1"
    assert line.startswith("snapshot(")


def test_a_helper_function_is_the_users_line_too(tmp_path: Path) -> None:
    text = HEAD + GOOD + 'def only(condition):\n    return orders.filter(condition).named("x")\nonly("cod = 1")\n'
    [(_, _, line)] = found_in(tmp_path, text)
    assert line == 'return orders.filter(condition).named("x")'


def test_relations_are_immutable() -> None:
    orders = Topology("shop").table("orders", "id", "id INT", snapshot("o/"))
    with pytest.raises(AttributeError):
        orders.declaration = None  # type: ignore[assignment,misc]


def test_importing_rejoin_and_compiling_imports_neither_spark_nor_airflow() -> None:
    code = "import sys, rejoin, rejoin.plan.check.topology_file, rejoin.plan.explain; print([m for m in ('pyspark', 'airflow', 'duckdb') if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(Path(rejoin.__file__).parents[1])}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert out.stdout.strip() == "[]"


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_file_with_one_topology_is_compiled(tmp_path: Path) -> None:
    assert [node.name for node in load(write(tmp_path, HEAD + GOOD + "same = shop\n")).nodes] == ["good"]


def test_a_file_can_import_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, HEAD, "neighbour_tables.py")
    assert load(write(tmp_path, "from neighbour_tables import *\n" + GOOD)).topology == "shop"


def test_one_of_several_topologies_is_chosen_by_its_name_or_variable(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + GOOD + 'second = Topology("depot")\nsecond.table("t", "a", "a INT", snapshot("t/")).named("u")\n')
    assert load(f"{path}:shop").topology == "shop"
    assert load(f"{path}:depot").topology == "depot"
    assert load(f"{path}:second").topology == "depot"
    with pytest.raises(TopologyFileError, match="holds several topologies: depot, shop"):
        load(path)
    with pytest.raises(TopologyFileError, match=r"holds no topology 'shops'\n  expected: one of depot, shop"):
        load(f"{path}:shops")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "holds no topology"),
        ("x = 1\n\nx.y\n", r"shop.py:3 failed: AttributeError: 'int' object has no attribute 'y'"),
        ("x = (\n", r"shop.py:1 failed: SyntaxError: '\(' was never closed"),
        ("import sys\nsys.exit(3)\n", "shop.py:2 failed: SystemExit: 3"),
        ("import no_such_module_here\n", "shop.py:1 failed: ModuleNotFoundError: No module named 'no_such_module_here'"),
    ],
)
def test_a_file_that_does_not_run_says_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TopologyFileError, match=message):
        load(write(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TopologyFileError, match=r"nowhere.py' does not exist"):
        load(str(tmp_path / "nowhere.py"))


def test_a_topology_made_in_python_compiles_without_a_file() -> None:
    shop = Topology("shop")
    shop.table("orders", ["id"], "id BIGINT", snapshot("o/")).named("copy")
    assert compile(shop).node("copy").published


def test_a_topology_of_an_example_in_the_installed_package_knows_its_own_file() -> None:
    file = str(Path(rejoin.__file__).parent / "deployed" / "dags" / "shop.py")
    made: dict[str, Topology] = {}
    exec(builtins.compile("from rejoin import Topology\nshop = Topology('shop')\n", file, "exec"), made)
    assert made["shop"].place.file == file
