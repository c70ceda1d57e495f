"""The functions whose types are known: what each takes and gives.

A line is names, arguments and result. An argument is a kind (``?``: may be missing, ``*``: any number of them):
``text`` takes every type (Spark casts it), ``int``, ``double``, ``number``: numbers and texts, ``day``: INT, ``date`` and
``time``: dates, timestamps and texts, ``truth``: BOOLEAN, ``bytes``: BINARY and texts, ``any``: everything,
``pattern``: a text that is a regular expression of Java. A result is a type, or ``first``: that of the first argument,
``common``: what all ``same`` arguments have in common.
"""

from dataclasses import dataclass
from typing import Final

from rejoin.plan.sql.nested import is_nested

_LINES: Final = """
    upper ucase lower lcase initcap                             | text                          | STRING
    trim ltrim rtrim btrim                                      | text text?                    | STRING
    length len char_length character_length                     | any                           | INT
    octet_length bit_length                                     | any                           | INT
    ascii                                                       | text                          | INT
    make_valid_utf8                                             | text                          | STRING
    base64 md5 sha sha1                                         | bytes                         | STRING
    unbase64 unhex                                              | text                          | BINARY
    crc32                                                       | bytes                         | BIGINT
    sha2                                                        | bytes int                     | STRING
    hash                                                        | any any*                      | INT
    xxhash64                                                    | any any*                      | BIGINT
    right repeat                                                | text int                      | STRING
    replace                                                     | text text text?               | STRING
    translate                                                   | text text text                | STRING
    instr                                                       | text text                     | INT
    locate position                                             | text text int?                | INT
    split_part substring_index                                  | text text int                 | STRING
    levenshtein                                                 | text text int?                | INT
    regexp_replace                                              | text pattern text int?        | STRING
    regexp_extract                                              | text pattern int?             | STRING
    regexp_substr                                               | text pattern                  | STRING
    regexp_instr                                                | text pattern int?             | INT
    regexp_count                                                | text pattern                  | INT
    regexp_like regexp rlike                                    | text pattern                  | BOOLEAN
    isnull isnotnull                                            | any                           | BOOLEAN
    isnan                                                       | double                        | BOOLEAN
    coalesce                                                    | same same*                    | common
    greatest least                                              | same same same*               | common
    nvl ifnull                                                  | same same                     | common
    nvl2                                                        | any same same                 | common
    if                                                          | truth same same               | common
    nullif                                                      | first first                   | first
    equal_null                                                  | first first                   | BOOLEAN
    sqrt cbrt exp expm1 ln log10 log2 log1p degrees radians     | double                        | DOUBLE
    sin cos tan asin acos atan sinh cosh tanh sign signum rint  | double                        | DOUBLE
    pow power atan2 hypot                                       | double double                 | DOUBLE
    year quarter month day dayofmonth dayofweek dayofyear       | date                          | INT
    weekofyear weekday                                          | date                          | INT
    hour minute second                                          | time                          | INT
    date_add date_sub dateadd                                   | date day                      | DATE
    datediff date_diff                                          | date date                     | INT
    add_months                                                  | date int                      | DATE
    last_day                                                    | date                          | DATE
    next_day trunc                                              | date text                     | DATE
    months_between                                              | time time truth?              | DOUBLE
    date_format                                                 | time text                     | STRING
    to_date                                                     | any any?                      | DATE
    make_date                                                   | int int int                   | DATE
    from_utc_timestamp to_utc_timestamp                         | time text                     | TIMESTAMP
    from_unixtime                                               | int text?                     | STRING
"""


@dataclass(frozen=True)
class Signature:
    """``least``: how many arguments there must be; the last kind is repeated where ``endless``."""

    kinds: tuple[str, ...]
    result: str
    least: int
    endless: bool

    def kind(self, index: int) -> str:
        return self.kinds[min(index, len(self.kinds) - 1)]

    def counts(self, given: int) -> bool:
        return self.least <= given and (self.endless or given <= len(self.kinds))

    @property
    def expected(self) -> str:
        """How many arguments there may be, in words."""
        if self.endless:
            return f"at least {self.least}"
        return str(self.least) if self.least == len(self.kinds) else f"{self.least} to {len(self.kinds)}"


def _signatures() -> dict[str, Signature]:
    found: dict[str, Signature] = {}
    for line in _LINES.strip().splitlines():
        names, arguments, result = (part.split() for part in line.split("|"))
        least = sum(not a.endswith(("?", "*")) for a in arguments)
        signature = Signature(tuple(a.rstrip("?*") for a in arguments), result[0], least, arguments[-1].endswith("*"))
        found |= dict.fromkeys(names, signature)
    return found


FUNCTIONS: Final = _signatures()

_TIMES: Final = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "STRING")
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE", "STRING")
_ACCEPTED: Final = {
    "int": _NUMBERS,
    "double": _NUMBERS,
    "day": ("TINYINT", "SMALLINT", "INT"),
    "date": _TIMES,
    "time": _TIMES,
    "truth": ("BOOLEAN",),
    "bytes": ("BINARY", "STRING"),
}
CONVERTED: Final = {"int": "INT", "double": "DOUBLE", "date": "DATE", "time": "TIMESTAMP"}
"""What a constant text is cast to where an argument of a kind is expected."""


def accepts(kind: str, given: str) -> bool:
    """Whether an argument of a kind may be of a type."""
    if is_nested(given):
        return kind in ("any", "same", "first")
    return kind not in _ACCEPTED or given == "VOID" or given.partition("(")[0] in _ACCEPTED[kind]


def left_to_spark(kind: str, given: str) -> bool:
    """Whether it depends on the function if an argument that is not accepted is cast."""
    return kind in ("day", "bytes") or (kind == "truth" and given == "STRING")


def named(kind: str) -> str:
    """A kind in words."""
    return ", ".join(_ACCEPTED.get(kind, ("a single value",)))
