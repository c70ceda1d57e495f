"""Directories as tools fill them: what is read of them without a word, what by a pattern, in which order, and what is named as not looked into."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.fs as pafs
import pytest
from pinning import EVENTS, RECORDS, cut, decode_pin, paths, pinned, put, there
from source_cases import event, rows, table

from rejoin.errors import SchemaDrift, SourceFileChanged, SourceMissing, SourceOutsideRoot
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource, RecordsSource
from rejoin.sources import stored_files
from rejoin.sources.stored_files import format_of
from rejoin.sources.transports.layout import is_partition


def at(path: str, of: Table = EVENTS) -> Table:
    return replace(of, source=replace(of.source, path=path))


# --- what tools write -------------------------------------------------------------------------------------------------

CONNECT = [f"topics/shop.orders/partition={p}/shop.orders+{p}+{o:010}.json.gz" for p in (0, 2, 10) for o in (0, 999, 10000)]
BY_TIME = [f"topics/shop.orders/year=2026/month=11/day=26/hour={h:02}/shop.orders+0+{o:010}.json" for h, o in ((9, 0), (10, 1000))]
HIVE = ["lake/orders/dt=2026-11-26/region=eu/part-0.json", "lake/orders/dt=2026-11-27/region=__HIVE_DEFAULT_PARTITION__/part-0.json"]
DMS = ["dms/shop/orders/2026/11/26/10/20261126-101530123.json", "dms/shop/orders/LOAD00000001.json"]
DATED = ["d/orders/2026-11-26/a", "d/orders/20261126T1015/a", "d/orders/2026/1/2/a", "d/orders/2026-11-26-10/a", "d/orders/2026_11_26/a"]


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("topics/shop.orders", CONNECT),
        ("topics/shop.orders", BY_TIME),
        ("lake/orders", HIVE),
        ("dms/shop/orders", DMS),
        ("d/orders", DATED),
        ("d/orders", ["d/orders/_year=2026/a"]),
    ],
    ids=["Connect", "Connect by time", "Hive", "DMS", "dated", "an underscore before a partition"],
)
@pytest.mark.parametrize("of", [EVENTS, RECORDS], ids=["events", "records"])
def test_what_tools_write_is_read_whole(tmp_path: Path, of: Table, path: str, written: list[str]) -> None:
    names = [name if format_of(name) else f"{name}.json" for name in written]
    put(tmp_path, **dict.fromkeys(names, '{"id": 1, "name": "a"}\n'))
    found = there(at(path, of), str(tmp_path))
    assert sorted(paths(found.pin) or []) == sorted(names) and not found.ignored


def test_files_of_connect_are_read_by_partition_and_offset_wherever_they_lie(tmp_path: Path) -> None:
    by_event_time = [("hour=11", 1, 5), ("hour=09", 0, 20), ("hour=10", 0, 100), ("hour=11", 0, 3), ("hour=09", 10, 0), ("hour=09", 2, 7)]
    put(tmp_path, **{f"src/{hour}/shop.orders+{p}+{o:010}.json": "x" for hour, p, o in by_event_time})
    put(tmp_path, **{"src/hour=08/other.json": "x", "src/hour=08/shop.items+7+0000000001.json": "x"})
    names = [path.rsplit("/", 1)[1] for path in paths(cut(EVENTS, tmp_path)) or []]
    ordered = [(0, 3), (0, 20), (0, 100), (1, 5), (2, 7), (10, 0)]
    assert names == ["shop.items+7+0000000001.json", *(f"shop.orders+{p}+{o:010}.json" for p, o in ordered), "other.json"]


def test_unfinished_and_hidden_files_of_tools_are_not_read(tmp_path: Path) -> None:
    hidden = ["_SUCCESS", "_temporary/0/a.json", ".spark-staging/dt=1/a.json", "dt=1/.a.json.crc", "dt=1/a.json.tmp", "dt=1/_committed_1"]
    put(tmp_path, **{f"src/{name}": "x" for name in [*hidden, "dt=1/part-0.c000.json"]})
    found = there(EVENTS, str(tmp_path))
    assert (paths(found.pin), found.ignored) == (["src/dt=1/part-0.c000.json"], ())


def test_a_directory_of_several_topics_is_named_and_not_guessed(tmp_path: Path) -> None:
    put(tmp_path, **dict.fromkeys(CONNECT, "x"))
    with pytest.raises(SourceMissing, match=r"'topics'.*topics/shop\.orders\n.*\n.*pattern"):
        cut(at("topics"), tmp_path)


@pytest.mark.parametrize("name", ["archive", "orders", "v2", "2026-11-21-old", "=x", "12345678901234567890"])
def test_other_directories_are_not_partitions(name: str) -> None:
    assert not is_partition(name)


# --- patterns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "read"),
    [
        ("l/topics/shop.orders/**/*.json.gz", ["l/topics/shop.orders/x/1.json.gz", "l/topics/shop.orders/x/y/2.json.gz"]),
        ("l/topics/*/x/*.json.gz", ["l/topics/shop.items/x/1.json.gz", "l/topics/shop.orders/x/1.json.gz"]),
        ("l/topics/shop.orders/x/**", [f"l/topics/shop.orders/x/{n}" for n in ("1.json.gz", "3.json", "y/2.json.gz")]),
        ("l/topics/shop.*/x", ["l/topics/shop.items/x/1.json.gz", *(f"l/topics/shop.orders/x/{n}" for n in ("1.json.gz", "3.json"))]),
        ("l/**/shop.items/x/?.json.*", ["l/topics/shop.items/x/1.json.gz"]),
        ("l/**/[xz]/3.*", ["l/topics/shop.orders/x/3.json"]),
        ("**/3.json", ["l/topics/shop.orders/x/3.json"]),
        ("l/topics/shop.orders/x/*.json", ["l/topics/shop.orders/x/3.json"]),
    ],
)
def test_a_pattern_says_which_files_and_directories_are_read(tmp_path: Path, pattern: str, read: list[str]) -> None:
    written = ["shop.orders/x/1.json.gz", "shop.orders/x/y/2.json.gz", "shop.orders/x/3.json", "shop.items/x/1.json.gz"]
    put(tmp_path, **{f"l/topics/{name}": "x" for name in [*written, "shop.orders/_x/9.json.gz", "shop.orders/x/8.json.gz.tmp"]})
    found = there(at(pattern), str(tmp_path))
    assert paths(found.pin) == sorted(read)
    named = set(found.ignored)
    fixed = pattern[: pattern.index("*")].rpartition("/")[0]
    missed = {name for name in (f"l/topics/{name}" for name in written) if name.startswith(fixed)} - set(read)
    assert all(any(name == other or name.startswith(f"{other}/") for other in named) for name in missed), "what is not read is named"
    assert not any(name == other or name.startswith(f"{other}/") for other in named for name in read)


def test_a_pattern_of_records_reads_files_of_known_formats_only(tmp_path: Path) -> None:
    put(tmp_path, **{"src/a/1.json": '{"id": 1, "name": "a"}', "src/a/1.txt": "x"})
    found = there(at("src/*/1.*", RECORDS), str(tmp_path))
    assert (paths(found.pin), found.ignored) == (["src/a/1.json"], ("src/a/1.txt",))


@pytest.mark.parametrize(("pattern", "error"), [("gone/*", SourceMissing), ("../*", SourceOutsideRoot), ("src/*.csv", SourceMissing)])
def test_a_pattern_that_leads_nowhere_is_an_error(tmp_path: Path, pattern: str, error: type[Exception]) -> None:
    put(tmp_path / "root", **{"src/a.json": "x"})
    with pytest.raises(error):
        cut(at(pattern), tmp_path / "root")


def test_a_pattern_of_a_uri_is_one_too(tmp_path: Path) -> None:
    put(tmp_path, **{"src/x/1.json": "x"})
    assert paths(cut(at(f"file://{tmp_path}/src/*/*.json"), tmp_path)) == [f"file://{tmp_path}/src/x/1.json"]


def test_what_a_pattern_has_read_is_read_again_from_its_pin(tmp_path: Path) -> None:
    put(tmp_path, **{"src/x/1.json": json.dumps(event(after={"id": 1, "name": "a"}))})
    of = table("id BIGINT; name STRING", source=DebeziumSource("src/*/*.json"))
    pin = pinned(of, tmp_path)
    assert [r["name"] for r in rows(decode_pin(of, pin, str(tmp_path)))] == ["a"] and cut(of, tmp_path, pin, pin) is None


def test_hive_values_in_names_of_directories_are_no_columns(tmp_path: Path) -> None:
    of = table("id BIGINT; name STRING; dt STRING", source=RecordsSource("src"))
    put(tmp_path, **{"src/dt=2026-11-26/1.csv": "id,name\n1,a\n"})
    with pytest.raises(SchemaDrift, match="lacks: dt"):
        cut(of, tmp_path)


# --- many files -------------------------------------------------------------------------------------------------------


def test_a_cut_over_many_files_lists_each_directory_once_and_opens_new_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, **{f"src/day={d}/orders+0+{n:010}.json": "x" for d in range(10) for n in range(300)})
    known = pinned(EVENTS, tmp_path)
    put(tmp_path, **{f"src/day=3/orders+0+{n:010}.json": "x" for n in range(300, 310)})
    listed, opened, places = list[str](), list[str](), list[str]()
    scandir, raw, place = stored_files.os.scandir, stored_files._raw, stored_files.place
    monkeypatch.setattr(stored_files.os, "scandir", lambda path: listed.append(path) or scandir(path))  # type: ignore[func-returns-value]
    monkeypatch.setattr(stored_files, "_raw", lambda file: opened.append(file.label) or raw(file))  # type: ignore[func-returns-value]
    monkeypatch.setattr(stored_files, "place", lambda *of: places.append(of[1]) or place(*of))  # type: ignore[func-returns-value]
    began = time.process_time()
    pin = cut(EVENTS, tmp_path, known, known)
    assert pin is not None and len(pin.parts) == 10 and time.process_time() - began < 1
    assert len(listed) == 11 == len(set(listed)) and len(opened) == 10 and not places
    # Listings of other file systems: tests/integration/test_object_store.py.
    assert isinstance(place(str(tmp_path), "src").fs, pafs.LocalFileSystem)


def test_fault_an_applied_file_that_has_another_size_in_the_listing_stops_the_cut(tmp_path: Path) -> None:
    put(tmp_path, **{"src/day=1/a.json": "x", "src/day=2/a.json": "x"})
    known = pinned(EVENTS, tmp_path)
    put(tmp_path, **{"src/day=2/a.json": "xy", "src/day=3/a.json": "x"})
    with pytest.raises(SourceFileChanged, match="src/day=2/a"):
        cut(EVENTS, tmp_path, known, known)
