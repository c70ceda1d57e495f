"""SQL types: the names a schema may use, and the type of an expression where it is certain.

``infer`` knows few rules on purpose: a wrong type would give an output column or a foreign key another type than Spark
gives it, an unknown one (None) only makes the user write a CAST. tests/unit/test_expressions.py lists what is known.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot import exp

from rejoin.plan.sql import nested

ALLOWED: Final = "BOOLEAN, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, ARRAY<...>, STRUCT<name: ...>, MAP<STRING, ...>"
BOOLEAN, INT, BIGINT, DOUBLE, STRING, DATE = "BOOLEAN", "INT", "BIGINT", "DOUBLE", "STRING", "DATE"
BINARY, VOID = "BINARY", "VOID"

_NAMES = "BOOLEAN INT BIGINT FLOAT DOUBLE STRING BINARY DATE TIMESTAMP TIMESTAMP_NTZ"
_SAME_NAME: Final = frozenset(_NAMES.split())
_ALIASES: Final = {"INTEGER": INT, "LONG": BIGINT, "REAL": "FLOAT", "TIMESTAMP_LTZ": "TIMESTAMP"}
_DECIMAL: Final = re.compile(r"(?:DECIMAL|DEC|NUMERIC)(?:\((\d+)(?:,(\d+))?\))?")
_TEXT_WITH_LENGTH: Final = re.compile(r"(?:VARCHAR|CHAR|CHARACTER)(?:\(\d+\))?")


def canonical(text: str) -> str | None:
    """The one spelling of a type, as in ``model.Column.type``; None if it is not an allowed type.

    ``INTEGER``, ``LONG``, ``REAL``, ``DEC``, ``NUMERIC``, ``TIMESTAMP_LTZ`` are other names of allowed types.
    """
    if nested.is_nested(text):
        return nested.canonical(text, canonical)
    name = re.sub(r"\s+", "", text).upper()
    if match := _DECIMAL.fullmatch(name):
        precision, scale = int(match[1] or 10), int(match[2] or 0)
        return f"DECIMAL({precision},{scale})" if 1 <= precision <= 38 and scale <= precision else None
    return name if name in _SAME_NAME else _ALIASES.get(name)


def refused(text: str) -> str:
    """What to say about a type that is not allowed."""
    if _TEXT_WITH_LENGTH.fullmatch(re.sub(r"\s+", "", text).upper()):
        return f"type {text} is not supported, because engines disagree on its padding and length checks; write STRING"
    if text == VOID:
        return f"NULL alone has no type; write CAST(NULL AS STRING), or another of: {ALLOWED}"
    if nested.is_nested(text):
        return (
            f"type {text} is not supported; it may be {nested.MOST_DEEP} deep, of named fields, maps by STRING, and these types: {ALLOWED}"
        )
    return f"type {text} is not supported; allowed: {ALLOWED}"


# --- inference -------------------------------------------------------------------------------------------------------

_OF_DATA_TYPE: Final = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.INT: INT,
    exp.DType.BIGINT: BIGINT,
    exp.DType.FLOAT: "FLOAT",
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.TEXT: STRING,
    exp.DType.BINARY: BINARY,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: "TIMESTAMP",
    exp.DType.TIMESTAMPTZ: "TIMESTAMP",
    exp.DType.TIMESTAMPLTZ: "TIMESTAMP",
    exp.DType.TIMESTAMPNTZ: "TIMESTAMP_NTZ",
}
_CONDITIONS: Final = (exp.Predicate, exp.And, exp.Or, exp.Not, exp.Boolean)
_STRING_IF_ARGUMENT_IS: Final = (exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.Replace, exp.Initcap)
_CHOICES: Final = (exp.Coalesce, exp.If, exp.Case, exp.Nullif)
_BYTES: Final = (exp.Unhex, exp.FromBase64, exp.ToBinary, exp.Encode, exp.HexString)
_FIXED: Final[Mapping[type[exp.Expr], str]] = {
    exp.Length: INT,
    exp.Year: INT,
    exp.Month: INT,
    exp.Day: INT,
    exp.TsOrDsToDate: DATE,
}

_LEAST: Final = (str(2**31), str(2**63))  # -2147483648 is one literal for Spark, a negated one for sqlglot

ColumnType = Callable[[exp.Column], str | None]


def infer(node: exp.Expr, column: ColumnType) -> str | None:
    """The type that Spark gives an expression, or None where these rules are not certain.

    Args:
        node: the expression as parsed with the Spark dialect.
        column: the type of a column of the expression.
    """
    if isinstance(node, exp.Column):
        return column(node)
    if isinstance(node, exp.Cast):
        return data_type(node.args["to"])
    if isinstance(node, exp.Literal):
        return _literal(node)
    if isinstance(node, _CONDITIONS):
        return BOOLEAN
    if isinstance(node, (exp.Paren, exp.Neg)):
        return None if node.name in _LEAST else infer(node.this, column)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        return _arithmetic(node, column)
    if isinstance(node, _STRING_IF_ARGUMENT_IS):
        return STRING if infer(node.this, column) == STRING else None
    if isinstance(node, (exp.Concat, exp.DPipe)):
        parts = node.expressions or [node.this, node.expression]
        return STRING if all(infer(p, column) == STRING for p in parts) else None
    if isinstance(node, _CHOICES):
        return _common(node, column)
    return _FIXED.get(type(node))


def unsupported(node: exp.Expr) -> str | None:
    """The type of an expression as written, where it certainly is one that no column may have."""
    node = node.unnest()
    if _is_void(node):
        return VOID
    if isinstance(node, exp.Cast) and data_type(node.args["to"]) is None:
        return str(node.args["to"].sql("spark"))
    return "ARRAY" if isinstance(node, (exp.Array, exp.RegexpSplit)) else "INTERVAL" if isinstance(node, exp.Interval) else None


def holds_bytes(node: exp.Expr, column: ColumnType) -> bool:
    """Whether something in an expression is BINARY: a text that is made of it may hold bytes that are no UTF-8."""
    return any(
        isinstance(n, _BYTES)
        or (isinstance(n, exp.Column) and BINARY in (column(n) or ""))
        or (isinstance(n, exp.Cast) and data_type(n.args["to"]) == BINARY)
        or (isinstance(n, exp.Anonymous) and n.name.lower() in ("binary", "try_to_binary"))
        for n in node.walk()
    )


def _is_void(node: exp.Expr) -> bool:
    """Whether an expression is nothing but NULL, whatever its row."""
    node = node.unnest()
    return isinstance(node, exp.Null) or (isinstance(node, _CHOICES) and all(map(_is_void, _choices(node))))


def is_about_time(name: str | None) -> bool:
    return name is not None and name.startswith(("DATE", "TIMESTAMP"))


def holds_time(name: str | None) -> bool:
    """Whether a type is one of dates or times, or is made of one."""
    return name is not None and re.search(r"\b(DATE|TIMESTAMP)", name) is not None


def data_type(node: exp.DataType) -> str | None:
    """The canonical name of a type written in a CAST; None if it is not an allowed type."""
    if node.this == exp.DType.DECIMAL:
        parameters = [int(p.name) for p in node.expressions]
        return canonical(f"DECIMAL({','.join(map(str, parameters))})" if parameters else "DECIMAL")
    return _OF_DATA_TYPE.get(node.this)


def _literal(node: exp.Literal) -> str | None:
    if node.is_string:
        return STRING
    if node.name.isdigit():
        return INT if int(node.name) < 2**31 else BIGINT if int(node.name) < 2**63 else None
    return DOUBLE if re.fullmatch(r"[\d.]+[eE][+-]?\d+", node.name) else None


def _arithmetic(node: exp.Binary, column: ColumnType) -> str | None:
    sides = {infer(node.left, column), infer(node.right, column)}
    if sides <= {INT, BIGINT}:
        return DOUBLE if isinstance(node, exp.Div) else BIGINT if BIGINT in sides else INT
    return DOUBLE if DOUBLE in sides and sides <= {INT, BIGINT, "FLOAT", DOUBLE} else None


def _common(node: exp.Expr, column: ColumnType) -> str | None:
    """The type of a choice between values, where all values that are not NULL have the same type (or INT and BIGINT)."""
    types = {infer(value, column) for value in _choices(node) if not isinstance(value, exp.Null)}
    if types == {INT, BIGINT}:
        return BIGINT
    return types.pop() if len(types) == 1 else None


def _choices(node: exp.Expr) -> Sequence[exp.Expr]:
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    if isinstance(node, exp.Nullif):
        return [node.this]
    branches = [branch.args["true"] for branch in node.args["ifs"]] if isinstance(node, exp.Case) else [node.args["true"]]
    default = node.args.get("default" if isinstance(node, exp.Case) else "false")
    return [*branches, *([default] if default is not None else [])]
