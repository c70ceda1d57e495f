"""Freeing storage: snapshots that nobody may ask for any more, and files that no snapshot knows. By metadata alone, without Spark."""

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from pyarrow.fs import FileSelector, FileSystem
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from rejoin import crash
from rejoin.lake.config import LakeConfig
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import manifests_of
from rejoin.lake.locations import native
from rejoin.lake.write.exchange import Exchange

_AT_ONCE = 8
"""Requests to an object store."""


def free(refs: Refs, name: str, kept: Collection[int], before: datetime, ours: Callable[[], None]) -> dict[str, int]:
    """Drops every snapshot of a table but ``kept`` and those that a branch or tag points to, with the files that only they need, and deletes files in
    the table's directory that no snapshot knows.

    Nobody else deletes meanwhile, and whatever others write starts from what stays.

    Args:
        refs: the tables.
        name: one of them.
        kept: ids of snapshots.
        before: files that no snapshot knows go if they are older; at least a day, since a running job may be about to commit them.
        ours: raises if another process has taken our place, and so may need more than ``kept``. Asked when it is known which snapshots go: those that
            come after it stay, whoever stops us from here on and for how long.

    Returns:
        How many ``snapshots`` and data and delete ``files`` of theirs are gone, and how many ``orphans``.
    """
    nothing = {"snapshots": 0, "files": 0, "orphans": 0}
    if (table := refs.table(name)) is None:
        return nothing
    # Listed first: what others commit from now on is known when the snapshots that stay are read.
    old = list(_older(table.io, table.location(), before))
    dropped = refs.forget(name, kept, ours)
    crash.point(f"expire.{name}:forgotten")
    if (not old and not dropped) or (table := refs.table(name)) is None:
        return nothing
    stay = _needed(table.io, table.metadata.snapshots)
    gone = _needed(table.io, dropped, but=stay)
    _delete(table.io, chain(gone.files, gone.manifests, gone.lists))
    known = {_last(path) for path in chain(stay.files, stay.manifests, stay.lists, _of_metadata(table))}
    orphans = _delete(table.io, (path for path in old if _subject(path) not in known))
    return {"snapshots": len(dropped), "files": len(gone.files), "orphans": orphans}


@dataclass(frozen=True)
class _Files:
    """Paths of data and delete files, of the manifests that name these, and of the lists of manifests."""

    files: frozenset[str]
    manifests: frozenset[str]
    lists: frozenset[str]


_NONE = _Files(frozenset(), frozenset(), frozenset())


def _needed(io: FileIO, snapshots: Iterable[Snapshot], but: _Files = _NONE) -> _Files:
    """What some snapshots need and others do not."""
    found = {s.manifest_list: s for s in snapshots if s.manifest_list not in but.lists}
    listed = _at_once(lambda snapshot: manifests_of(snapshot, io), found.values(), found)
    manifests = {m.manifest_path: m for several in listed for m in several if m.manifest_path not in but.manifests}

    def paths(manifest: ManifestFile) -> list[str]:
        return [entry.data_file.file_path for entry in manifest.fetch_manifest_entry(io, discard_deleted=True)]

    files = frozenset(chain.from_iterable(_at_once(paths, manifests.values(), manifests)))
    return _Files(files - but.files, frozenset(manifests), frozenset(found))


def _of_metadata(table: Table) -> Iterator[str]:
    """The files that a table's metadata names beside snapshots, its own among them."""
    metadata = table.metadata
    yield table.metadata_location
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (found.statistics_path for found in (*metadata.statistics, *metadata.partition_statistics))


def free_exchange(config: LakeConfig, topology: str, before: datetime) -> int:
    """Deletes what tasks that were lost have left for other tasks, if it is older than ``before``. Returns how many files."""
    left = Exchange.root(config, topology)
    return _delete(left.io, _older(left.io, left.location, before))


def _older(io: FileIO, location: str, before: datetime) -> Iterator[str]:
    """The files below a directory that are older than a time, but those that Iceberg's own procedures leave alone: hidden ones."""
    assert isinstance(io, PyArrowFileIO)
    scheme, host, root = io.parse_location(location, io.properties)
    files: FileSystem = io.fs_by_scheme(scheme, host)
    for found in files.get_file_info(FileSelector(root, recursive=True, allow_not_found=True)):
        inside = found.path.removeprefix(root).lstrip("/")
        hidden = any(part.startswith(("_", ".")) for part in inside.split("/")[:-1]) or _subject(inside).startswith(("_", "."))
        if found.is_file and found.path.startswith(root) and not hidden and found.mtime is not None and found.mtime < before:
            yield f"{location}/{inside}"


def _last(path: str) -> str:
    """The last part of a path. Files of Iceberg have one of their own each, so it tells them apart however the folders before it are written."""
    return path.rpartition("/")[2]


def _subject(path: str) -> str:
    """The name of a file; of a checksum that Hadoop has put beside a file on a disk: the name of that file."""
    name = _last(path)
    return name[1:-4] if name.startswith(".") and name.endswith(".crc") else name


def _delete(io: FileIO, paths: Iterable[str]) -> int:
    """Deletes files, whether or not they are there. Returns how many were."""

    def one(path: str) -> bool:
        try:
            io.delete(path)
        except FileNotFoundError:
            return False
        return True

    every = list(paths)
    return sum(_at_once(one, every, every))


def _at_once(do: Callable[[Any], Any], items: Iterable[Any], paths: Iterable[str]) -> list[Any]:
    """What each item gives, in their order; several at once where their paths are in an object store, where each is a request."""
    if all(native(path) is not None for path in paths):
        return list(map(do, items))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(do, items))
