"""Keys in files of their own, as Kafka Connect's sinks write them beside the values."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pinning import EVENTS, RECORDS, cut, decode_pin, paths, pinned, put, there
from source_cases import event, rows

from rejoin.errors import BadRecord, SourceCorrupt, SourceFileChanged, SourceFileMissing
from rejoin.plan.model.sources import FeedSource
from rejoin.plan.pin import Pin
from rejoin.sources import SourceAccess, read_along
from rejoin.sources.formats.json_text import loads
from rejoin.sources.formats.key_lines import message_lines
from rejoin.sources.transports.registry import transport

ROWS = [event(after={"id": i, "name": "a"}, key={"id": i}, lsn=i) for i in range(4)]
VALUES, KEYS = (("".join(json.loads(row[part]) and row[part] + "\n" for row in ROWS)) for part in ("value", "key"))
DIR = "src/partition=0"


def two(root: Path, values: str | bytes = VALUES, keys: str | bytes = KEYS, at: int = 0, end: str = ".json") -> None:
    put(root, **{f"{DIR}/shop.orders+0+{at:010}{end}": values, f"{DIR}/shop.orders+0+{at:010}.keys{end}": keys})


def read(root: Path) -> list[dict[str, Any]]:
    return rows(decode_pin(EVENTS, pinned(EVENTS, root), str(root)))


def test_the_nth_key_is_that_of_the_nth_value(tmp_path: Path) -> None:
    two(tmp_path)
    two(tmp_path, gzip.compress(VALUES.encode()), gzip.compress(KEYS.encode()), 100, ".json.gz")
    together = "".join(json.dumps({"key": json.loads(r["key"]), "value": json.loads(r["value"])}) + "\n" for r in ROWS)
    put(tmp_path / "one", **{f"{DIR}/shop.orders+0+{at:010}.json": together for at in (0, 100)})
    found, expected = read(tmp_path), read(tmp_path / "one")
    assert [r | {"_file": ""} for r in found] == [r | {"_file": ""} for r in expected] and [r["id"] for r in found] == [0, 1, 2, 3] * 2
    assert paths(pinned(EVENTS, tmp_path)) == [f"{DIR}/shop.orders+0+0000000000.json", f"{DIR}/shop.orders+0+0000000100.json.gz"]
    assert not there(EVENTS, str(tmp_path)).ignored


def test_a_null_value_is_a_delete_of_the_key_beside_it(tmp_path: Path) -> None:
    two(tmp_path, "null\n", '{"id": 7}\n')
    assert [(r["_kind"], r["id"]) for r in read(tmp_path)] == [("delete", 7)]


def test_a_part_with_keys_survives_json_and_its_records_are_found_again(tmp_path: Path) -> None:
    two(tmp_path)
    pin = pinned(EVENTS, tmp_path)
    assert Pin.from_dict(json.loads(json.dumps(pin.to_dict()))) == pin and cut(EVENTS, tmp_path, pin, pin) is None
    again = dict(transport(EVENTS, SourceAccess(str(tmp_path))).raw(pin.parts[0], [2]))
    assert json.loads(again[2]) == {"key": {"id": 1}, "value": json.loads(ROWS[1]["value"])}


def test_values_whose_keys_are_still_written_wait(tmp_path: Path) -> None:
    two(tmp_path)
    first = pinned(EVENTS, tmp_path)
    put(tmp_path, **{f"{DIR}/shop.orders+0+0000000004.json": VALUES})
    found = there(EVENTS, str(tmp_path), first, first.parts)
    assert (found.pin, found.ignored) == (None, (f"{DIR}/shop.orders+0+0000000004.json",))
    put(tmp_path, **{f"{DIR}/shop.orders+0+0000000004.keys.json": KEYS})
    assert paths(cut(EVENTS, tmp_path, first, first)) == [f"{DIR}/shop.orders+0+0000000004.json"]


def test_keys_whose_values_are_still_written_and_headers_are_named_and_not_taken_for_values(tmp_path: Path) -> None:
    two(tmp_path)
    others = [f"{DIR}/shop.orders+0+0000000000.headers.json", f"{DIR}/shop.orders+0+0000000004.keys.json"]
    put(tmp_path, **dict.fromkeys(others, KEYS))
    found = there(EVENTS, str(tmp_path))
    assert (paths(found.pin), found.ignored) == ([f"{DIR}/shop.orders+0+0000000000.json"], tuple(others))


def test_keys_are_no_records(tmp_path: Path) -> None:
    two(tmp_path, '{"id": 1, "name": "a"}\n', '{"id": 1}\n')
    found = there(RECORDS, str(tmp_path))
    assert (paths(found.pin), found.ignored) == ([f"{DIR}/shop.orders+0+0000000000.json"], (f"{DIR}/shop.orders+0+0000000000.keys.json",))


def test_a_name_with_keys_in_it_and_nothing_beside_it_is_one_of_values(tmp_path: Path) -> None:
    put(tmp_path, **{"src/app.keys.json": "x"})
    assert paths(cut(EVENTS, tmp_path)) == ["src/app.keys.json"]


# --- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "keys", "how"), [(VALUES, KEYS + KEYS[:10] + "\n", "fewer"), (VALUES + "null\n", KEYS, "more")])
def test_fault_more_of_one_than_of_the_other_is_refused(tmp_path: Path, values: str, keys: str, how: str) -> None:
    two(tmp_path, values, keys)
    with pytest.raises(SourceCorrupt, match=f"it has {how} records than '.*keys.json' has keys"):
        read(tmp_path)


@pytest.mark.parametrize("change", [None, KEYS.replace("1", "2"), KEYS + " "])
def test_fault_keys_that_are_gone_or_changed_stop_the_run(tmp_path: Path, change: str | None) -> None:
    two(tmp_path)
    pin = pinned(EVENTS, tmp_path)
    keys = tmp_path / f"{DIR}/shop.orders+0+0000000000.keys.json"
    keys.unlink()
    if change is not None:
        keys.write_text(change)
    with pytest.raises(SourceFileChanged if change else SourceFileMissing, match="keys"):
        rows(read_along(EVENTS, pin, SourceAccess(str(tmp_path))))


@pytest.mark.parametrize("bad", ['{"id": 9', '{"id": 9}, "value": null, "x": {', '{"id": 1}}', "x", '"', '{"key": {"id": 9}, "value": '])
def test_fault_a_broken_key_or_value_is_one_bad_record_and_never_becomes_other_members(tmp_path: Path, bad: str) -> None:
    lines = [VALUES.splitlines(), KEYS.splitlines()]
    for which in (0, 1):
        values, keys = ("\n".join([part[0], bad if at == which else part[1], part[2]]) for at, part in enumerate(lines))
        two(tmp_path / str(which), values, keys)
        found = read(tmp_path / str(which))
        assert [(r["_kind"], r["_code"]) for r in found] == [("upsert", None), ("quarantined", "BAD_JSON"), ("upsert", None)]


texts = st.text('{}[]":, akeyvl1\\', max_size=12) | st.sampled_from(['{"id": 1}', "null", '"a', '{"a": "', '"}'])


@given(key=texts, value=texts)
def test_fault_a_line_is_a_message_of_two_whole_documents_or_no_json(key: str, value: str) -> None:
    for line in message_lines(iter([value.encode()]), iter([key.encode()]), "f", "k") if key.strip() and value.strip() else ():
        try:
            expected = {"key": loads(key), "value": loads(value)}
        except BadRecord:
            with pytest.raises(BadRecord):
                loads(line.decode())
        else:
            assert loads(line.decode()) == expected


def test_another_dialect_reads_values_alone(tmp_path: Path) -> None:
    two(tmp_path)
    found = there(replace(EVENTS, source=FeedSource("src", "maxwell")), str(tmp_path))
    assert found.ignored == (f"{DIR}/shop.orders+0+0000000000.keys.json",)
