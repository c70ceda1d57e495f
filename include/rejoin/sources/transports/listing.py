"""Which files of a directory are changes or records, and which of them are new."""

import re
from collections.abc import Iterable

from rejoin.errors import SourceMissing
from rejoin.plan.model.plan import Table
from rejoin.plan.model.record_place import delivered
from rejoin.plan.model.sources import Meaning, NamedFields, Source
from rejoin.plan.pin import Part, Pin
from rejoin.sources.declared_columns import check_drift, columns_of, csv_of
from rejoin.sources.stored_files import PinnedFile, Place, changed, children, corrupt, first_lines, format_of, pin_files, place, written_as
from rejoin.sources.transports.transport import Taken

FEW = 5
"""So many names of what is not read are told in a message."""
UNFINISHED = (".tmp", ".inprogress", ".crc", "._COPYING_")
_DATED = re.compile(r"(?:\w+=)?\d{2,4}(?:-?\d{2}){0,3}(?:T\d{2,6})?")


def parts_of(files: Iterable[PinnedFile]) -> tuple[Part, ...]:
    """Files as a pin keeps them."""
    return tuple(Part(file.path, file.size, {"sha256": file.sha256}) for file in files)


def natural(name: str) -> tuple[str | int, ...]:
    """The order of names, numbers in them by value: ``9.csv`` is before ``10.csv``. Dates and padded numbers sort as texts do."""
    return tuple(int(part) if at % 2 else part for at, part in enumerate(re.split(r"([0-9]+)", name)))


def reads_any_name(source: Source) -> bool:
    """Whether files are read whatever their names: the source says how they are written."""
    return source.format is not None if isinstance(source, NamedFields) else source.meaning is Meaning.FEED


def new_files(table: Table, root: str, where: Place, taken: Taken) -> tuple[tuple[PinnedFile, ...], tuple[str, ...]]:
    """The files of a feed or of records that no committed run applied, in order of their paths, pinned; and what is not looked into.

    Every file of the directory and of its dated sub-directories (``2026-11-21``, ``dt=20261121``, ``2026/11/21``) counts. A late file with an
    old name is simply new. Other sub-directories are not looked into, and neither are files of records whose names end in no known format.

    Raises:
        SourceMissing: the path does not exist; or there are files, and none of them is read or ever was.
        SourceFileChanged: an applied file has another size now.
    """
    if not where.exists():
        raise missing(table, "does not exist")
    found, others = _added_files(table, root, where)
    known = {path: size for path, size, _ in taken()}
    if others and not found and not known:
        raise _unread(table, tuple(others))
    fresh = []
    for file in sorted(found, key=lambda f: (natural(f.label), f.label)):
        if file.label not in known:
            fresh.append(file)
        elif file.info().size not in (known[file.label], None):  # None: it was moved away since it was listed
            raise changed(file.label, "has another size")
    return pin_files(fresh), tuple(others)


def columns_of_records(table: Table, root: str, fresh: tuple[PinnedFile, ...], last: Pin | None) -> tuple[str, ...]:
    """The columns that files of records have; a file of zero bytes, packed or not, has no records, and so lacks none."""
    format_ = written_as(table.source, fresh[0].path)
    if format_ is None:
        raise corrupt(fresh[0].path, "its name ends in no known format")
    if other := next((file.path for file in fresh if written_as(table.source, file.path) != format_), None):
        raise corrupt(other, f"the new file {fresh[0].path!r} has another format, and a run reads one")
    full = [where for where in (place(root, file.path) for file in fresh if file.size) if not _is_packed_nothing(where)]
    if not full:
        return last.columns if last else ()
    columns = columns_of(full, format_, csv_of(table.source))
    check_drift(delivered(table), columns, last.columns if last else ())
    return columns


def _is_packed_nothing(file: Place) -> bool:
    return file.label.endswith(".gz") and not list(first_lines(file, 1))


def missing(table: Table, why: str) -> SourceMissing:
    return SourceMissing(
        f"source path {table.source.path!r} of table {table.name!r} {why}",
        next_step="check the path and the root, or deliver the first files",
    )


def _unread(table: Table, others: tuple[str, ...]) -> SourceMissing:
    what = "files in it" if reads_any_name(table.source) else "files whose names end in .csv, .jsonl or .parquet (.gz, too)"
    shown = ", ".join(others[:FEW]) + (f" and {len(others) - FEW} more" if len(others) > FEW else "")
    return SourceMissing(
        f"source path {table.source.path!r} of table {table.name!r} holds nothing that is read, and never did: {shown}",
        expected=f"{what}, and in sub-directories that are dates (2026-11-21, dt=20261121, 2026/11/21)",
        next_step="name the directory that holds the files as the path of the source",
    )


def _added_files(table: Table, root: str, where: Place) -> tuple[list[Place], list[str]]:
    """The files of a feed or of records, and what is not looked into."""
    if not where.is_directory():
        return [where], []
    found: list[Place] = []
    others: list[str] = []
    for entry in children(root, where):
        if entry.is_directory() and _DATED.fullmatch(entry.name):
            inner = _added_files(table, root, entry)
            found += inner[0]
            others += inner[1]
        elif entry.is_directory():
            others.append(entry.label)
        elif entry.name.endswith(UNFINISHED):
            continue
        elif reads_any_name(table.source) or format_of(entry.name):
            found.append(entry)
        else:
            others.append(entry.label)
    return found, others
