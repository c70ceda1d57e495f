"""Numbers and times as people read them. Pure: the present is an argument."""

import json
from datetime import UTC, datetime
from typing import Any

from rejoin.lake.query.json_values import json_text

UNKNOWN = "not known"


def number(value: float | None) -> str:
    """1,234,567; ``not known`` for None."""
    return UNKNOWN if value is None else f"{value:,}"


def seconds(value: float | None) -> str:
    """0.71 s, 12.3 s, 4 min 5 s."""
    if value is None:
        return UNKNOWN
    if value >= 60:
        return f"{int(value // 60)} min {int(value % 60)} s"
    return f"{value:.1f} s" if value >= 10 else f"{value:.2f} s"


def size(value: int | None) -> str:
    """Bytes with a binary unit."""
    if value is None:
        return UNKNOWN
    left, unit = float(value), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if left < 1024:
            break
        left, unit = left / 1024, larger
    return f"{value} B" if unit == "B" else f"{left:.1f} {unit}"


def moment(at: float | None) -> str:
    """A point in time, in UTC."""
    return UNKNOWN if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def age(at: float | None, now: float) -> str:
    """How long ago: 42 min ago, 3 h 5 min ago."""
    if at is None:
        return UNKNOWN
    return f"{span(max(0, now - at))} ago"


def span(of: float) -> str:
    """A length of time: 42 min, 3 h 5 min."""
    gone = int(of)
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    first = next((i for i, (_, length) in enumerate(units) if gone >= length), len(units) - 1)
    count, rest = divmod(gone, units[first][1])
    text = f"{count} {units[first][0]}"
    if count < 10 and first + 1 < len(units) and rest >= units[first + 1][1]:  # 3 h alone would be too coarse
        text += f" {rest // units[first + 1][1]} {units[first + 1][0]}"
    return text


def counts(made: dict[str, int]) -> str:
    """What a step counted, without the zeros."""
    return ", ".join(f"{name.replace('_', ' ').replace('noop', 'no-op')} {value:,}" for name, value in made.items() if value) or "nothing"


def value(of: Any) -> str:
    """One value of a row; null stays visible, and an array, struct or map is JSON."""
    if of is None:
        return "null"
    if isinstance(of, str):
        return of
    if isinstance(of, bytes):
        return of.hex()
    if isinstance(of, list | dict):
        return json_text(of)
    return json.dumps(of, default=str).strip('"')


def cut_off(text: str, most: int) -> str:
    """At most so many characters, with a sign that there are more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
