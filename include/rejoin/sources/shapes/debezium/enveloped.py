"""Lines of a shape -> the envelopes in them, as SQL: what ``cloud_events.envelope`` makes of CloudEvents; of other lines what they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rejoin.plan.sql.portable import quoted
from rejoin.sources.decode.line_shape import STYLES, TEXT, WHOLE, Branch, Constant, Leaf, Part, Path, Shape, at
from rejoin.sources.shapes.debezium.cloud_events import NUMBERS, OF_SOURCE, OP, ORDER, is_cloud_event

_READ = {"connector", "name", "db", "schema", "table", "snapshot", "lsn", "ts_ms", "ts_us", "ts_ns"}
"""The members of ``source`` that proven lines are read by."""
_WHOLE = "[0-9]{1,18}"


@dataclass(frozen=True)
class Envelopes:
    """What lines of a shape hold.

    Attributes:
        shape: messages or bare envelopes.
        given: names -> SQL over the struct of a line: ``j``, such a struct, and whatever ``holds`` needs.
        holds: the conditions of that, over ``given``.
    """

    shape: Shape
    given: Mapping[str, str] = field(default_factory=lambda: {"j": "j"})
    holds: Sequence[str] = ()


def envelopes(shape: Shape) -> Envelopes:
    """CloudEvents that are not told stay what they are: no envelopes."""
    root, value = shape.root, shape.root.members.get("value")
    if is_cloud_event(root.members):
        return _envelope(root, ()) or Envelopes(shape)
    if isinstance(value, Branch) and is_cloud_event(value.members):
        inner = _envelope(value, ("value",))
        if inner is None or "op" in root.members or value.nullable:
            return Envelopes(shape)
        others = {name: at("j", (name,)) for name, part in root.members.items() if not isinstance(part, Constant)}
        given = {**inner.given, "j": _struct(others | {"value": inner.given["j"]})}
        return Envelopes(_shape(replace(root, members=root.members | {"value": inner.shape.root})), given, inner.holds)
    return Envelopes(shape)


def _envelope(event: Branch, path: Path) -> Envelopes | None:
    data, place = event.members["data"], (*path, "data")
    schema: Part | None = None
    if isinstance(data, Branch) and data.members.keys() == {"schema", "payload"}:
        schema, data, place = data.members["schema"], data.members["payload"], (*place, "payload")
    source = {member: f"iodebezium{name}" for name, member in OF_SOURCE.items() if member in _READ}
    attributes = {member: event.members[name] for member, name in source.items() if name in event.members}
    order = {"total_order": event.members[ORDER]} if ORDER in event.members else {}
    if not isinstance(data, Branch) or data.nullable or not all(isinstance(part, Leaf) for part in (*attributes.values(), *order.values())):
        return None
    written = {member: at("j", (*path, name)) for member, name in (source | {"total_order": ORDER}).items()}
    holds = [
        f"{written[member]} IS NULL OR regexp_full_match({written[member]}, '{_WHOLE}')"
        for member, part in (attributes | order).items()
        if _is_written_number(member, part)
    ]
    blocks = {"source": attributes} | ({"transaction": order} if order else {})
    rows = [name for name in data.members if name != "transaction"]
    members = {
        **{name: data.members[name] for name in rows},
        "op": event.members[OP],
        **{name: Branch({member: _read(member, part) for member, part in block.items()}) for name, block in blocks.items()},
    }
    values = {
        **{name: at("j", (*place, name)) for name in rows},
        "op": at("j", (*path, OP)),
        **{name: _struct({m: _value(m, part, written[m]) for m, part in block.items()}) for name, block in blocks.items()},
    }
    root, made = Branch(members), _struct(values)
    if schema is not None:
        root, made = Branch({"schema": schema, "payload": root}), _struct({"payload": made})
    return Envelopes(_shape(root), {"j": made, "numbers": " AND ".join(f"({hold})" for hold in holds) or "true"}, ("numbers",))


def _shape(root: Branch) -> Shape:
    """That of structs, which are nowhere written."""
    return Shape(root, STYLES[0])


def _is_written_number(member: str, part: Part) -> bool:
    return member in NUMBERS and isinstance(part, Leaf) and part.kind == TEXT


def _read(member: str, part: Part) -> Part:
    return replace(part, kind=WHOLE) if isinstance(part, Leaf) and _is_written_number(member, part) else part


def _value(member: str, part: Part, written: str) -> str:
    return f"TRY_CAST({written} AS BIGINT)" if _is_written_number(member, part) else written


def _struct(members: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{quoted(name)}: {text}' for name, text in members.items())}}}"
