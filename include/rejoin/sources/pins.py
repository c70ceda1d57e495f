"""What one run reads of one source: found once by the cut, pinned by size and checksum, so that every retry reads the same."""

import re
from dataclasses import asdict, dataclass
from typing import Any

from pyarrow.fs import FileSelector, FileType

from rejoin.errors import SnapshotEmpty, SnapshotOrder, SourceMissing
from rejoin.plan.model.plan import Table
from rejoin.plan.model.record_place import delivered
from rejoin.plan.model.sources import Meaning, meaning_of
from rejoin.sources.declared_columns import check_drift, columns_of
from rejoin.sources.transports.files import PinnedFile, Place, changed, children, corrupt, first_lines, pin_files, place

FEW = 5
"""So many names of what is not read are told in a message."""
_UNFINISHED = (".tmp", ".inprogress", ".crc", "._COPYING_")
_DATED = re.compile(r"(?:\w+=)?\d{2,4}(?:-?\d{2}){0,3}(?:T\d{2,6})?")
# Longest first: the format of a name is the first that it ends with.
_FORMATS = {
    ".csv.gz": "csv",
    ".jsonl.gz": "json",
    ".ndjson.gz": "json",
    ".json.gz": "json",
    ".parquet": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
}


@dataclass(frozen=True)
class Pin:
    """Exactly what one run reads of one source.

    ``kind``: of the source, as ``plan.model.sources.SOURCES`` names it.
    ``files``: in the order in which they are read.
    ``ordinal``: grows with every pin of a source; for snapshots by the number of snapshots passed.
    ``superseded``: snapshots newer than the last pin that were skipped because a still newer one exists.
    ``columns``: the column names found in a snapshot, or in files of records.
    """

    kind: str
    files: tuple[PinnedFile, ...]
    ordinal: int
    superseded: int = 0
    columns: tuple[str, ...] = ()

    @property
    def of_a_feed(self) -> bool:
        """Whether its records are changes."""
        return meaning_of(self.kind) is Meaning.FEED

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, for the ledger."""
        data = asdict(self)
        return data | {"files": list(data["files"]), "columns": list(self.columns)}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> "Pin":
        files = tuple(PinnedFile(**file) for file in data["files"])
        return Pin(data["kind"], files, data["ordinal"], data["superseded"], tuple(data["columns"]))


def natural(name: str) -> tuple[str | int, ...]:
    """The order of names, numbers in them by value: ``9.csv`` is before ``10.csv``. Dates and padded numbers sort as texts do."""
    return tuple(int(part) if at % 2 else part for at, part in enumerate(re.split(r"([0-9]+)", name)))


def format_of(path: str) -> str | None:
    """csv, json or parquet by the end of the name; None for any other file."""
    return next((format_ for end, format_ in _FORMATS.items() if path.endswith(end)), None)


def available(table: Table, root: str, consumed: tuple[PinnedFile, ...], last: Pin | None) -> Pin | None:
    """Everything new of the source of ``table``; None if there is nothing new.

    Change events and records: every file of the directory and of its dated sub-directories (``2026-11-21``, ``dt=20261121``, ``2026/11/21``)
    that is not in ``consumed``, in order of its path. A late file with an old name is simply new. Other sub-directories are not
    looked into (``ignored``), and neither are files of records whose names end in no known format.
    Snapshots: the newest complete one by name (``natural``). One that is being written (``_temporary``, ``*.tmp``, ``*._COPYING_``) is not yet
    there; a source that is a single file has a new snapshot when its bytes change.

    Args:
        root: where relative paths start.
        consumed: all files of change events or records that committed runs applied.
        last: the pin of the last committed run that had one.

    Raises:
        SourceMissing (also if there are files and none of them is read, or was ever), SourceOutsideRoot, SourceFileChanged (an applied file has another size now), SourceCorrupt, SnapshotEmpty,
        SnapshotOrder, SchemaDrift.
    """
    where = place(root, table.source.path)
    if table.source.meaning is Meaning.SNAPSHOT:
        return _snapshot(table, root, where, last)
    fresh = _new_files(table, root, where, consumed)
    if not fresh:
        if not consumed and (others := ignored(table, root)):
            raise _unread(table, others)
        return None
    ordinal = (last.ordinal if last else 0) + 1
    columns = _columns_of_records(table, root, fresh, last) if table.source.meaning is Meaning.RECORDS else ()
    return Pin(table.source.kind, fresh, ordinal, columns=columns)


def ignored(table: Table, root: str) -> tuple[str, ...]:
    """What lies beside the files of a source and is not looked into: sub-directories of a feed or of records whose names are no dates, files
    beside snapshots or records whose names end in no known format.
    """
    where = place(root, table.source.path)
    if not where.is_directory():
        return ()
    if table.source.meaning is not Meaning.SNAPSHOT:
        return tuple(_added_files(table, root, where)[1])
    others = [e for e in children(root, where) if not e.is_directory() and format_of(e.name) is None]
    return tuple(e.label for e in others if not e.name.endswith(_UNFINISHED))


def _missing(table: Table, why: str) -> SourceMissing:
    return SourceMissing(
        f"source path {table.source.path!r} of table {table.name!r} {why}",
        next_step="check the path and the root, or deliver the first files",
    )


def _unread(table: Table, others: tuple[str, ...]) -> SourceMissing:
    what = "files in it" if table.source.meaning is Meaning.FEED else "files whose names end in .csv, .jsonl or .parquet (.gz, too)"
    shown = ", ".join(others[:FEW]) + (f" and {len(others) - FEW} more" if len(others) > FEW else "")
    return SourceMissing(
        f"source path {table.source.path!r} of table {table.name!r} holds nothing that is read, and never did: {shown}",
        expected=f"{what}, and in sub-directories that are dates (2026-11-21, dt=20261121, 2026/11/21)",
        next_step="name the directory that holds the files as the path of the source",
    )


def _new_files(table: Table, root: str, where: Place, consumed: tuple[PinnedFile, ...]) -> tuple[PinnedFile, ...]:
    """The files of a feed or of records that no committed run applied, in order of their paths."""
    if not where.exists():
        raise _missing(table, "does not exist")
    known = {file.path: file for file in consumed}
    fresh = []
    for file in sorted(_added_files(table, root, where)[0], key=lambda f: (natural(f.label), f.label)):
        if file.label not in known:
            fresh.append(file)
        elif file.info().size not in (known[file.label].size, None):  # None: it was moved away since it was listed
            raise changed(file.label, "has another size")
    return pin_files(fresh)


def _columns_of_records(table: Table, root: str, fresh: tuple[PinnedFile, ...], last: Pin | None) -> tuple[str, ...]:
    """The columns that files of records have; a file of zero bytes, packed or not, has no records, and so lacks none."""
    format_ = format_of(fresh[0].path)
    if format_ is None:
        raise corrupt(fresh[0].path, "its name ends in no known format")
    if other := next((file.path for file in fresh if format_of(file.path) != format_), None):
        raise corrupt(other, f"the new file {fresh[0].path!r} has another format, and a run reads one")
    full = [where for where in (place(root, file.path) for file in fresh if file.size) if not _is_packed_nothing(where)]
    if not full:
        return last.columns if last else ()
    columns = columns_of(full, format_)
    check_drift(delivered(table), columns, last.columns if last else ())
    return columns


def _is_packed_nothing(file: Place) -> bool:
    return file.label.endswith(".gz") and not list(first_lines(file, 1))


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
        elif entry.name.endswith(_UNFINISHED):
            continue
        elif table.source.meaning is Meaning.FEED or format_of(entry.name):
            found.append(entry)
        else:
            others.append(entry.label)
    return found, others


def _snapshot(table: Table, root: str, where: Place, last: Pin | None) -> Pin | None:
    if not where.exists():
        if last is None:
            raise _missing(table, "does not exist")
        return None
    if not where.is_directory():
        files: tuple[PinnedFile, ...] = pin_files([where])
        if last is not None and last.files[0].sha256 == files[0].sha256:
            return None
        newer = 1
    else:
        entries = [entry for entry in _entries(table, root, where) if _complete(entry)]
        if not entries and last is None:
            raise _missing(table, "holds no complete snapshot")
        before = _entry_name(last, where) if last else ""
        fresh = _newer(table, entries, before)
        if not fresh:
            _check_unchanged(root, next((e for e in entries if e.name == before), None), last)
            return None
        files, newer = pin_files(_data_files(table, root, fresh[-1])), len(fresh)
    columns = columns_of([place(root, file.path) for file in files], str(format_of(files[0].path)))
    check_drift(table, columns, last.columns if last else ())
    return Pin("snapshot", files, (last.ordinal if last else 0) + newer, newer - 1, columns)


def _entries(table: Table, root: str, where: Place) -> list[Place]:
    if place(root, where.label + "/_SUCCESS").exists():
        # Each part would be taken for a whole snapshot, and the rows of the others for deleted.
        raise _missing(table, "is itself one snapshot written by Spark (_SUCCESS), not a directory of snapshots")
    return [entry for entry in children(root, where) if entry.is_directory() or format_of(entry.name)]


def _newer(table: Table, entries: list[Place], before: str) -> list[Place]:
    """The snapshots after the one that was applied last, the newest at the end."""
    ordered = sorted(entries, key=lambda entry: natural(entry.name))
    fresh = [entry for entry in ordered if not before or natural(entry.name) > natural(before)]
    newest = fresh[-1].name if fresh else before
    twin = next((e.name for e in ordered if e.name != newest and natural(e.name) == natural(newest)), None)
    if twin is not None:
        raise SnapshotOrder(
            f"of the snapshots {newest!r} and {twin!r} of table {table.name!r} none is the newer one: numbers in names are compared by value",
            expected="names that tell which snapshot is newer",
            next_step="rename the one that was not applied yet, or remove it",
        )
    return fresh


def _complete(entry: Place) -> bool:
    if not entry.is_directory():
        return not entry.name.endswith(_UNFINISHED)
    names = [info.base_name for info in entry.fs.get_file_info(FileSelector(entry.native))]
    return not any(name == "_temporary" or name.endswith((".tmp", ".inprogress", "._COPYING_")) for name in names)


def _data_files(table: Table, root: str, entry: Place) -> list[Place]:
    """The files of one snapshot; all must have one format, and nothing else may lie beside them but what is hidden or unfinished: rows that
    nobody reads would be taken for deleted.
    """
    if not entry.is_directory():
        return [entry]
    inside, listed = children(root, entry), entry.fs.get_file_info(FileSelector(entry.native))
    folders = {info.base_name for info in listed if info.type == FileType.Directory}
    files = [f for f in inside if format_of(f.name) and f.name not in folders]
    if not files:
        raise SnapshotEmpty(
            f"snapshot {entry.label!r} of table {table.name!r} holds no data files: taken as it is, it would delete every row",
            expected="files .parquet, .csv, .jsonl (or .gz of the last two)",
            next_step="deliver a complete snapshot under a later name",
        )
    if len({format_of(file.name) for file in files}) > 1:
        raise corrupt(entry.label, "it mixes file formats")
    others = [f.name for f in inside if f.name in folders or not (format_of(f.name) or f.name.endswith(_UNFINISHED))]
    if others:
        raise corrupt(entry.label, f"beside its data files are others, which nobody would read: {', '.join(others[:5])}")
    return files


def _entry_name(last: Pin, where: Place) -> str:
    """The name of the snapshot (file or directory below the source path) that ``last`` pinned; empty if it lay below another path: names of
    two places say nothing of each other.
    """
    front, path = "" if where.label == "." else where.label.rstrip("/") + "/", last.files[0].path
    return path.removeprefix(front).split("/", 1)[0] if path.startswith(front) else ""


def _check_unchanged(root: str, entry: Place | None, last: Pin | None) -> None:
    """The snapshot that was applied last still has the sizes that were applied."""
    if entry is None or last is None:
        return
    now = {f.label: f.info().size for f in (children(root, entry) if entry.is_directory() else [entry]) if format_of(f.name)}
    for path in now.keys() | {file.path for file in last.files}:
        if now.get(path) != next((file.size for file in last.files if file.path == path), None):
            raise changed(path, "has another size")
