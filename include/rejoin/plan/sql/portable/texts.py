"""Functions of texts. Both engines count characters by code points."""

from collections.abc import Sequence
from typing import Final

from rejoin.plan.sql.portable.casts import cast
from rejoin.plan.sql.portable.printed import NULL, Made, as_type, guarded, quoted, unproven
from rejoin.plan.sql.typing import patterns

_SCRIPTS: Final = r"\x{0}-\x{17F}\x{300}-\x{36F}\x{386}-\x{3CE}\x{400}-\x{45F}\x{5D0}-\x{5EA}\x{620}-\x{64A}\x{900}-\x{97F}\x{E00}-\x{E7F}\x{2010}-\x{203A}\x{20A0}-\x{20BF}"
_SIGNS: Final = r"\x{3000}-\x{30FF}\x{4E00}-\x{9FFF}\x{AC00}-\x{D7A3}\x{FF01}-\x{FF5E}\x{1F300}-\x{1F64F}"
"""Latin, Greek, Cyrillic, and scripts and signs without capitals."""

_NOT_UPPER: Final = r"\x{149}\x{345}\x{390}\x{3B0}"
_NOT_LOWER: Final = r"\x{130}\x{3A3}"


def _texts(name: str, args: Sequence[Made], count: int) -> list[str]:
    """The arguments, which must be so many texts."""
    if len(args) != count or any(a.type != "STRING" for a in args):
        raise unproven(f"{name}({', '.join(a.type for a in args)})")
    return [a.text for a in args]


def _number(name: str, made: Made) -> int:
    """A constant argument."""
    if made.literal is None or made.literal.of != "INTEGER" or made.type != "INT":
        raise unproven(f"{name} with a number that is no constant")
    return int(made.literal.value)


def _raise(args: Sequence[Made]) -> bool:
    return any(a.raises for a in args)


def _all_looked_at(name: str, args: Sequence[Made]) -> None:
    """Nothing, if none of the arguments raises an error: Spark looks at all, DuckDB at none after a NULL."""
    if _raise(args):
        raise unproven(f"{name} with what may raise an error")


def joined(args: Sequence[Made]) -> Made:
    """``concat`` and ``||``: null if an argument is."""
    if not args or any(a.type in (NULL, "BINARY") for a in args):
        raise unproven(f"concat of {' and '.join(a.type for a in args) or 'nothing'}")
    found = [cast(a, "STRING") for a in args]
    _all_looked_at("concat", found[1:])
    return Made(f"({' || '.join(a.text for a in found)})", "STRING", _raise(found))


def joined_by(args: Sequence[Made]) -> Made:
    """``concat_ws``: leaves nulls out."""
    found = _texts("concat_ws", args, max(2, len(args)))
    _all_looked_at("concat_ws", args[1:])
    return Made(f"concat_ws({', '.join(found)})", "STRING", _raise(args))


def trimmed(name: str, args: Sequence[Made]) -> Made:
    """Of spaces. Without its second argument DuckDB removes other white space too."""
    (text,) = _texts(name, args, 1)
    return Made(f"{name}({text}, ' ')", "STRING", _raise(args))


def in_case(name: str, args: Sequence[Made]) -> Made:
    """``upper`` and ``lower``, of scripts in which Unicode has long been settled. A few letters change in Spark only, or by what stands around."""
    (text,) = _texts(name, args, 1)
    left_out = _NOT_UPPER if name == "upper" else _NOT_LOWER
    known = guarded(
        text,
        f"regexp_full_match({text}, '[{_SCRIPTS}{_SIGNS}]*') AND NOT regexp_matches({text}, '[{left_out}]')",
        f"{name} of an unusual letter",
    )
    whole = f"replace({known}, 'ß', 'SS')" if name == "upper" else known
    return Made(f"{name}({whole})", "STRING", args[0].raises)


def part(args: Sequence[Made]) -> Made:
    """``substring(text, position[, length])``."""
    if len(args) not in (2, 3):
        raise unproven(f"substring with {len(args)} arguments")
    (text,) = _texts("substring", args[:1], 1)
    start, count = _number("substring", args[1]), None if len(args) == 2 else max(0, _number("substring", args[2]))
    if start < 0:
        if count is not None:
            raise unproven("substring from the end with a length")
        return Made(f"right({text}, {-start})", "STRING", _raise(args))
    made = f"substring({text}, {max(1, start)}{'' if count is None else f', {count}'})"
    return Made(made, "STRING", _raise(args))


def end(name: str, args: Sequence[Made]) -> Made:
    """``left`` and ``right``."""
    (text,) = _texts(name, args[:1], 1)
    if len(args) != 2:
        raise unproven(f"{name} with {len(args)} arguments")
    return Made(f"{name}({text}, {max(0, _number(name, args[1]))})", "STRING", _raise(args))


def replaced(args: Sequence[Made]) -> Made:
    """``replace``."""
    found = _texts("replace", args, 3 if len(args) == 3 else 2)
    return Made(f"replace({', '.join(found if len(found) == 3 else [*found, quoted('')])})", "STRING", _raise(args))


def split(args: Sequence[Made]) -> Made:
    """``split_part`` with a constant that is not empty, counted from the beginning."""
    if len(args) != 3 or args[1].literal is None or not args[1].literal.value or _number("split_part", args[2]) < 1:
        raise unproven("split_part with other than a constant text and a number from 1")
    text, what = _texts("split_part", args[:2], 2)
    return Made(f"split_part({text}, {what}, {args[2].text})", "STRING", args[0].raises)


def position(args: Sequence[Made]) -> Made:
    """``instr`` of a constant that is not empty."""
    text, what = _texts("instr", args, 2)
    if args[1].literal is None or not args[1].literal.value:
        raise unproven("instr of a text that is no constant, or empty")
    return Made(as_type(f"instr({text}, {what})", "INT"), "INT", args[0].raises)


def measured(name: str, args: Sequence[Made]) -> Made:
    """``length`` (characters) and ``octet_length`` (bytes)."""
    (text,) = _texts(name, args, 1)
    return Made(as_type(f"{'strlen' if name == 'octet_length' else 'length'}({text})", "INT"), "INT", _raise(args))


def found(name: str, args: Sequence[Made]) -> Made:
    """``startswith``, ``endswith`` and ``contains``."""
    text, what = _texts(name, args, 2)
    own = {"startswith": "starts_with", "endswith": "ends_with", "contains": "contains"}[name]
    return Made(f"{own}({text}, {what})", "BOOLEAN", _raise(args))


def like(args: Sequence[Made], escape: str) -> Made:
    """LIKE a constant pattern."""
    text, pattern = _texts("LIKE", args, 2)
    if args[1].literal is None:
        raise unproven("LIKE with a pattern that is no constant")
    written = args[1].literal.value
    if patterns.like_mistake(written, escape) is not None or len(escape) != 1:
        raise unproven(f"LIKE {written!r}")
    return Made(f"({text} LIKE {pattern}{f' ESCAPE {quoted(escape)}' if escape in written else ''})", "BOOLEAN", args[0].raises)
