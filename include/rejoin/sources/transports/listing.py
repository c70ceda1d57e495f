"""Which files of changes or records are new."""

from collections.abc import Iterable
from dataclasses import asdict, replace

from rejoin.errors import SourceMissing
from rejoin.plan.model.added_columns import delivered
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource, Meaning, NamedFields, Source
from rejoin.plan.pin import Part, Pin
from rejoin.sources.compression import packing
from rejoin.sources.declared_columns import check_drift, columns_of
from rejoin.sources.stored_files import PinnedFile, Place, changed, corrupt, first_lines, format_of, pin_files, place, written_as
from rejoin.sources.transports.key_files import taken_apart
from rejoin.sources.transports.layout import layout, reading_order
from rejoin.sources.transports.transport import Taken

FEW = 5
"""So many names of what is not read are told in a message."""


def parts_of(files: Iterable[PinnedFile]) -> tuple[Part, ...]:
    """Files as a pin keeps them."""
    return tuple(Part(file.path, file.size, {"sha256": file.sha256}) for file in files)


def reads_any_name(source: Source) -> bool:
    """Whether files are read whatever their names: the source says how they are written."""
    return source.format is not None if isinstance(source, NamedFields) else source.meaning is Meaning.FEED


def new_files(table: Table, root: str, taken: Taken) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """The files of a feed or of records (``layout``) that no committed run applied, in their order, pinned; and what is not looked into.

    A late file with an old name is simply new. Debezium's have the files of their keys with them (``key_files``).

    Raises:
        SourceMissing: the path does not exist; or there are files below it, and none of them is read or ever was.
        SourceFileChanged: an applied file has another size now.
    """
    any_name = reads_any_name(table.source)
    found = layout(root, table.source.path, lambda name: any_name or format_of(name) is not None)
    if found is None:
        raise missing(table, "does not exist")
    beside, known = taken_apart(found.files, keys=isinstance(table.source, DebeziumSource)), taken()
    fresh = []
    for label, file in found.files.items():
        if label not in known:
            fresh.append(label)
        elif file.size not in (known[label], None):
            raise changed(label, "has another size")
    awaited = beside.awaited(fresh)
    others = [*found.others, *beside.others, *awaited]
    if others and len(found.files) == len(awaited) and not _read_there(found.where, others, known):
        raise _unread(table, others)
    fresh = sorted((label for label in fresh if label not in awaited), key=reading_order)
    parts = parts_of(pin_files([found.files[label].place for label in fresh]))
    keyed = [label for label in fresh if label in beside.keys]
    keys = dict(zip(keyed, pin_files([beside.keys[label].place for label in keyed]), strict=True))
    return tuple(_with_keys(part, keys.get(part.id)) for part in parts), tuple(sorted(others))


def _read_there(where: Place, others: Iterable[str], known: Iterable[str]) -> bool:
    """Whether some of the files that were read lay where they would be looked for now, though they may be gone."""
    front, aside = "" if where.label == "." else where.label.rstrip("/") + "/", tuple(f"{other}/" for other in others)
    return any(path.startswith(front) and not path.startswith(aside) for path in known)


def _with_keys(part: Part, keys: PinnedFile | None) -> Part:
    return part if keys is None else replace(part, place={**part.place, "keys": asdict(keys)})


def columns_of_records(table: Table, root: str, fresh: tuple[Part, ...], last: Pin | None) -> tuple[str, ...]:
    """The columns that files of records have; a file of zero bytes, packed or not, has no records, and so lacks none."""
    format_ = written_as(table.source, fresh[0].id)
    if format_ is None:
        raise corrupt(fresh[0].id, "its name ends in no known format")
    if other := next((part.id for part in fresh if written_as(table.source, part.id) != format_), None):
        raise corrupt(other, f"the new file {fresh[0].id!r} has another format, and a run reads one")
    full = [where for where in (place(root, part.id) for part in fresh if part.size) if not _is_packed_nothing(where)]
    if not full:
        return last.columns if last else ()
    columns = columns_of(full, format_, table.source)
    check_drift(delivered(table), columns, last.columns if last else ())
    return columns


def _is_packed_nothing(file: Place) -> bool:
    return bool(packing(file.label)) and not list(first_lines(file, 1))


def missing(table: Table, why: str) -> SourceMissing:
    return SourceMissing(
        f"source path {table.source.path!r} of table {table.name!r} {why}",
        next_step="check the path and the root, or deliver the first files",
    )


def _unread(table: Table, others: list[str]) -> SourceMissing:
    what = "files in it" if reads_any_name(table.source) else "files whose names end in .csv, .jsonl or .parquet (packed: .csv.gz)"
    shown = ", ".join(sorted(others)[:FEW]) + (f" and {len(others) - FEW} more" if len(others) > FEW else "")
    return SourceMissing(
        f"source path {table.source.path!r} of table {table.name!r} holds nothing that is read, and never did: {shown}",
        expected=f"{what}, and in sub-directories that are partitions (dt=2026-11-21, partition=0) or dates (2026/11/21)",
        next_step="name the directory that holds the files as the path of the source, or a pattern: landing/**/*.json",
    )
