"""Which values of lines that are messages become which fields, by columns: as ``message_fields`` finds them one by one, which is the definition."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rejoin.plan.sql.raw_fields import EITHER, HEADER, KEY
from rejoin.sources.decode.line_shape import NULL, TEXT, WHOLE, Branch, Constant, Leaf, Part, Path, Shape, at, part_at
from rejoin.sources.decode.proven_lines import Judge
from rejoin.sources.decode.sql_values import Typed, typed, unscaled
from rejoin.sources.decode.values import CONNECT_DECIMAL, UNITS, Field
from rejoin.sources.shapes.debezium.envelope import fields_of
from rejoin.sources.shapes.mapped.json_fields import AS_TEXT, RAW, texts

OF_KEY, OF_HEADERS, OF_EITHER = f"{KEY}.", f"{HEADER}.", f"{EITHER}."
VARIABLE: Final = "io.debezium.data.VariableScaleDecimal"
"""The schema of a decimal that says its scale itself."""
_MOST_PLACES = 18
"""Of decimals: so many that there is always a digit before the point."""


def judged(names: Sequence[str], shape: Shape, *, bare: bool) -> Judge | None:
    """How lines of a shape become records with their fields; None if that is not told. Lines without a value are never proven.

    Args:
        names: of the fields.
        shape: of the lines.
        bare: as of ``message_fields``.
    """
    value, key = _place(shape.root, "value"), _place(shape.root, "key")
    if value is None or key is None or not isinstance(value.part, Branch):
        return None
    parts = _Parts(value, key, shape.root.members.get("headers"), bare)
    absent = [name for name in names if parts.lacks(name)]
    columns, holds = {"_raw": RAW, "_absent": texts(absent)}, [f"{at('j', value.path)} IS NOT NULL"]
    for name in names:
        found = parts.text(name)
        if found is None:
            return None
        columns[name] = found.value
        holds += [found.holds] if found.holds != "true" else []
    if any(name == KEY or name.startswith(OF_KEY) for name in absent):
        holds.append(f"{at('j', key.path)} IS NOT NULL")
    return Judge(columns, tuple(holds))


@dataclass(frozen=True)
class _Place:
    """A key or value in lines of a shape, without its schema, and what that says of its fields; None: it has none."""

    path: Path
    part: Part
    known: Mapping[str, Field] | None = field(default=None)


def _place(root: Branch, member: str) -> _Place | None:
    part = root.members.get(member, Leaf(NULL))
    if not isinstance(part, Branch) or part.members.keys() != {"schema", "payload"}:
        return _Place((member,), part)
    schema = part.members["schema"]
    said = json.loads(schema.text) if isinstance(schema, Constant) else {}
    return _Place((member, "payload"), part.members["payload"], fields_of(said, envelope=False)) if "type" in said else None


@dataclass(frozen=True)
class _Parts:
    """The parts of messages, as ``message_fields`` has them of one."""

    value: _Place
    key: _Place
    headers: Part | None
    bare: bool

    def text(self, name: str) -> Typed | None:
        """SQL of the text of a field; None if values there are not told."""
        if name.startswith(OF_HEADERS):
            member = name.removeprefix(OF_HEADERS)
            return _perhaps_json(part_at(self.headers, (member,)), at("j", ("headers", member)))
        if name == KEY:
            return self._whole_key()
        if name.startswith(OF_EITHER):
            return self._either(name.removeprefix(OF_EITHER))
        return _member(self.key, name.removeprefix(OF_KEY)) if name.startswith(OF_KEY) else _member(self.value, name)

    def lacks(self, name: str) -> bool:
        """Whether lines that have a key lack a field."""
        if name == KEY:
            return isinstance(self.key.part, Branch)
        if name.startswith(OF_KEY):
            never = isinstance(self.key.part, Leaf) and self.key.part.kind == NULL
            return not never and part_at(self.key.part, (name.removeprefix(OF_KEY),)) is None
        return not name.startswith((OF_HEADERS, OF_EITHER)) and part_at(self.value.part, (name,)) is None

    def _whole_key(self) -> Typed | None:
        part, written = None if isinstance(self.key.part, Branch) else self.key.part, at("j", self.key.path)
        return _perhaps_json(part, written) if self.key.known is None else _text(part, written, Field())

    def _either(self, name: str) -> Typed | None:
        of_value = _member(self.value, name)
        of_key = self._whole_key() if self.bare and not isinstance(self.key.part, Branch) else _member(self.key, name)
        if of_value is None or of_key is None:
            return None
        holds = [of_key.holds, of_value.holds, f"coalesce({of_key.value} = {of_value.value}, true)"]
        return Typed(f"coalesce({of_value.value}, {of_key.value})", " AND ".join(text for text in holds if text != "true"))


def _member(place: _Place, name: str) -> Typed | None:
    return _text(part_at(place.part, (name,)), at("j", (*place.path, name)), (place.known or {}).get(name, Field()))


def _perhaps_json(part: Part | None, written: str) -> Typed | None:
    """Of a key or header, which may be a text that is a text of JSON."""
    if not isinstance(part, Leaf) or part.kind != TEXT:
        return _text(part, written, Field())
    text = f"""CASE WHEN starts_with({written}, '"') THEN substr({written}, 2, length({written}) - 2) ELSE {written} END"""
    plain = rf"""regexp_full_match({written}, '"[^"\\]*"') OR NOT regexp_matches({written}, '^\s*["{{\[]')"""
    return Typed(text, f"({written} IS NULL OR {plain})")


def _text(part: Part | None, written: str, known: Field) -> Typed | None:
    if part is None:
        return Typed(AS_TEXT[NULL])
    if not isinstance(part, Leaf):
        return None
    unit = UNITS.get(known.name or "")
    if part.kind == NULL or (unit is None and known.name not in (CONNECT_DECIMAL, VARIABLE)):
        return Typed(AS_TEXT[part.kind].format(written))
    found, scale = None, known.scale or 0
    if unit is not None and part.kind == WHOLE:
        found = typed(WHOLE, written, "DATE" if unit == "days" else "TIMESTAMP_NTZ", unit=unit)
    elif known.type == "bytes" and part.kind == TEXT and 0 <= scale <= _MOST_PLACES:
        found = unscaled(written, f"DECIMAL({38 - scale},{scale})")
    return None if found is None else Typed(f"CAST({found.value} AS VARCHAR)", f"({written} IS NULL OR {found.holds})")
