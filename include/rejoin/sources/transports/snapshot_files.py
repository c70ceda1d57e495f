"""Which snapshot of a directory is the newest complete one, and which files it has."""

from pyarrow.fs import FileSelector

from rejoin.errors import SnapshotEmpty, SnapshotOrder
from rejoin.plan.model.plan import Table
from rejoin.plan.pin import Pin
from rejoin.sources.declared_columns import check_drift, columns_of
from rejoin.sources.stored_files import PinnedFile, Place, changed, child, children, corrupt, entries, pin_files, place, written_as
from rejoin.sources.transports.layout import UNFINISHED, natural
from rejoin.sources.transports.listing import missing, parts_of


def newest_snapshot(table: Table, root: str, where: Place, last: Pin | None) -> Pin | None:
    """The newest complete snapshot by name (``natural``), if it is newer than the one that was applied last.

    One that is being written (``_temporary``, ``*.tmp``, ``*._COPYING_``) is not yet there; a source that is a single file has a new snapshot
    when its bytes change.

    Raises:
        SourceMissing, SourceFileChanged, SourceCorrupt, SnapshotEmpty, SnapshotOrder, SchemaDrift.
    """
    if not where.exists():
        if last is None:
            raise missing(table, "does not exist")
        return None
    if not where.is_directory():
        files: tuple[PinnedFile, ...] = pin_files([where])
        if last is not None and last.parts[0].place["sha256"] == files[0].sha256:
            return None
        newer = 1
    else:
        complete = [entry for entry in _entries(table, root, where) if _complete(entry)]
        if not complete and last is None:
            raise missing(table, "holds no complete snapshot")
        before = _entry_name(last, where) if last else ""
        fresh = _newer(table, complete, before)
        if not fresh:
            _check_unchanged(table, root, next((e for e in complete if e.name == before), None), last)
            return None
        files, newer = pin_files(_data_files(table, root, fresh[-1])), len(fresh)
    columns = columns_of([place(root, file.path) for file in files], str(written_as(table.source, files[0].path)), table.source)
    check_drift(table, columns, last.columns if last else ())
    return Pin("snapshot", parts_of(files), (last.ordinal if last else 0) + newer, newer - 1, columns)


def beside_snapshots(table: Table, root: str, where: Place) -> tuple[str, ...]:
    """Files beside snapshots whose names end in no known format: nobody reads them."""
    if not where.is_directory():
        return ()
    others = [e for e in children(root, where) if not e.is_directory() and written_as(table.source, e.name) is None]
    return tuple(e.label for e in others if not e.name.endswith(UNFINISHED))


def _entries(table: Table, root: str, where: Place) -> list[Place]:
    if place(root, where.label + "/_SUCCESS").exists():
        # Each part would be taken for a whole snapshot, and the rows of the others for deleted.
        raise missing(table, "is itself one snapshot written by Spark (_SUCCESS), not a directory of snapshots")
    return [entry for entry in children(root, where) if entry.is_directory() or written_as(table.source, entry.name)]


def _newer(table: Table, entries: list[Place], before: str) -> list[Place]:
    """The snapshots after the one that was applied last, the newest at the end."""
    ordered = sorted(entries, key=lambda entry: natural(entry.name))
    fresh = [entry for entry in ordered if not before or natural(entry.name) > natural(before)]
    newest = fresh[-1].name if fresh else before
    twin = next((e.name for e in ordered if e.name != newest and natural(e.name) == natural(newest)), None)
    if twin is not None:
        raise SnapshotOrder(
            f"of the snapshots {newest!r} and {twin!r} of table {table.name!r} none is the newer one: numbers in names are compared by value",
            expected="names that say which snapshot is newer",
            next_step="rename the one that was not applied yet, or remove it",
        )
    return fresh


def _complete(entry: Place) -> bool:
    if not entry.is_directory():
        return not entry.name.endswith(UNFINISHED)
    names = [info.base_name for info in entry.fs.get_file_info(FileSelector(entry.native))]
    return not any(name == "_temporary" or name.endswith((".tmp", ".inprogress", "._COPYING_")) for name in names)


def _data_files(table: Table, root: str, entry: Place) -> list[Place]:
    """The files of one snapshot; all must have one format, and nothing else may lie beside them but what is hidden or unfinished: rows that
    nobody reads would be taken for deleted.
    """
    if not entry.is_directory():
        return [entry]
    inside = sorted(entries(root, entry))
    files = [
        child(entry, f.name) for f in inside if written_as(table.source, f.name) and not f.is_directory and not f.name.endswith(UNFINISHED)
    ]
    if not files:
        raise SnapshotEmpty(
            f"snapshot {entry.label!r} of table {table.name!r} holds no data files: taken as it is, it would delete every row",
            expected="files .parquet, .csv, .jsonl (or .gz of the last two)",
            next_step="deliver a complete snapshot under a later name",
        )
    if len({written_as(table.source, file.name) for file in files}) > 1:
        raise corrupt(entry.label, "it mixes file formats")
    others = [f.name for f in inside if f.is_directory or not (written_as(table.source, f.name) or f.name.endswith(UNFINISHED))]
    if others:
        raise corrupt(entry.label, f"beside its data files are others, which nobody would read: {', '.join(others[:5])}")
    return files


def _entry_name(last: Pin, where: Place) -> str:
    """The name of the snapshot (file or directory below the source path) that ``last`` pinned; empty if it lay below another path: names of
    two places say nothing of each other.
    """
    front, path = "" if where.label == "." else where.label.rstrip("/") + "/", last.parts[0].id
    return path.removeprefix(front).split("/", 1)[0] if path.startswith(front) else ""


def _check_unchanged(table: Table, root: str, entry: Place | None, last: Pin | None) -> None:
    """The snapshot that was applied last still has the sizes that were applied."""
    if entry is None or last is None:
        return
    if entry.is_directory():
        files = [f for f in entries(root, entry) if not f.is_directory]
        now = {child(entry, f.name).label: f.size for f in files if written_as(table.source, f.name) and not f.name.endswith(UNFINISHED)}
    else:
        now = {entry.label: entry.info().size}
    was = {part.id: part.size for part in last.parts}
    for path in now.keys() | was.keys():
        if now.get(path) != was.get(path):
            raise changed(path, "has another size")
