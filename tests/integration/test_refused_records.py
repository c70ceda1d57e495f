"""Records that are refused: the text is kept as it came, whatever refused them, and a replay applies it when its cause is gone (S*, C2)."""

import importlib
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from integration.conftest import Sessions
from integration.texts import UNCHANGED, Lake, line, put
from limited import limited

from rejoin.cli import main
from rejoin.errors import BadRecords, SourceCorrupt

pytestmark = pytest.mark.slow
reading = importlib.import_module("rejoin.sources.read")


NOTES = """
t.table("notes", key="id", schema="id BIGINT, big STRING{more}", source=debezium("notes")).filter("id > 0").named("published")
"""


def test_fault_a6_two_key_changes_replayed_together_take_the_values_of_their_own_old_rows(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(tmp_path, sessions, NOTES.format(more=", n INT"))
    lake.land("notes/1.jsonl", "\n".join([put(11, 1, n=0, big="ONE"), put(12, 2, n=0, big="TWO"), put(13, 5, n=0, big="X")]))
    lake.run()
    moves = [(line("d", lsn, {"id": was}), put(lsn, was + 10, was, n=2**40, big=UNCHANGED)) for lsn, was in ((21, 1), (22, 2))]
    lake.land("notes/2.jsonl", "\n".join(text for pair in moves for text in pair))
    assert lake.run()["ingest.notes"]["quarantined"] == 2
    assert {code for code, _ in lake.kept_aside("notes").values()} == {"VALUE_RANGE"}
    lake.declare(NOTES.format(more=", n BIGINT"))
    lake.run(replay=("notes",))
    assert {k: (r["n"], r["big"]) for k, r in lake.rows("published").items()} == {5: (0, "X"), 11: (2**40, "ONE"), 12: (2**40, "TWO")}
    assert lake.kept_aside("notes") == {}


THINGS = """
things = t.table("things", key="id", schema="id STRING{n}, m {m}{v}, r {r}{w}, big STRING", source=debezium("things"{placeholder}))
things.filter("id IS NOT NULL").select(["id", "m", "r", "big"]).named("published")
{expect}
for form in ("csv", "jsonl", "parquet"):
    t.table(form, key="id", schema="id BIGINT, name STRING", source=snapshot(form)).filter("id > 0").named(f"{{form}}_published")
"""
BEFORE = {"n": ", n BIGINT", "m": "INT", "v": ", v DECIMAL(10,2)", "r": "FLOAT", "w": ", w DECIMAL(12,2)", "placeholder": "",
          "expect": 'things.expect(condition("m <> -1"), severity="quarantine", max_share=1.0)'}  # fmt: skip
MENDED = {"n": "", "m": "BIGINT", "v": "", "r": "DOUBLE", "w": "", "placeholder": "", "expect": ""}


def thing(lsn: int, key: str, **values: object) -> str:
    row = {"id": key, "n": 1, "m": 1, "v": None, "r": 1.5, "w": None, "big": "B"} | values
    return line("u", lsn, {"id": key}, row)


# Code -> the record, and whether a replay applies it once the topology is mended.
REFUSED: dict[str, tuple[str, bool]] = {
    "BAD_JSON": (thing(2, "bad_json")[:-9], False),
    "AMBIGUOUS_JSON": (thing(3, "twice")[:-1] + ', "key": {"id": "x"}}', False),
    "MISSING_KEY": (line("u", 4, None, {"m": 1}), False),
    "MISSING_AFTER": (line("u", 5, {"id": "no row"}), False),
    "UNKNOWN_OP": (line("z", 6, {"id": "z"}, {"id": "z"}), False),
    "UNKNOWN_POSITION": (line("u", 7, {"id": "nowhere"}, {"id": "nowhere"}, value={"source": {}}), False),
    "TOAST_KEY": (thing(8, UNCHANGED), True),
    "TOAST_UNRESOLVED": (thing(9, "late", big=UNCHANGED), True),
    "VALUE_TYPE": (thing(11, "type", n="many"), True),
    "VALUE_RANGE": (thing(12, "range", m=2**40, big="x" * 70_000), True),
    "VALUE_INFINITE": (thing(13, "infinite", v="NaN"), True),
    "VALUE_ROUNDED": (thing(14, "rounded", r=0.123456789012), True),
    "VALUE_AMBIGUOUS": (thing(15, "ambiguous", w="1234"), True),
    "EXPECTATION": (thing(16, "held", m=-1), True),
}
CSV = ["id,name", "1,Ann", '2,"B', 'b"x', "3,Cid", '3,"C', 'i"', "4,Dee"]
JSONL = ['{"id": 1, "name": "Ann"}', '{"id": 3, "name": "Cid"}', '{"id": 3}', '{"id": 4, "name": "Dee"}']
SNAPSHOTS = {
    "csv": {("csv/1.csv", 3): ("BAD_CSV", '2,"B\nb"x'), ("csv/1.csv", 5): ("DUPLICATE_KEY", "3,Cid"),
            ("csv/1.csv", 6): ("DUPLICATE_KEY", '3,"C\ni"')},
    "jsonl": {("jsonl/1.jsonl", 2): ("DUPLICATE_KEY", JSONL[1]), ("jsonl/1.jsonl", 3): ("DUPLICATE_KEY", JSONL[2])},
    "parquet": {("parquet/1/a.parquet", 2): ("DUPLICATE_KEY", '{"id":3,"name":"Cid"}'),
                ("parquet/1/a.parquet", 3): ("DUPLICATE_KEY", '{"id":3,"name":null}')},
}  # fmt: skip


def test_the_page_of_sources_has_a_case_here_for_every_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sources.md").read_text()
    page, _, _ = page.partition("**Bad records**")[2].partition("**Fates.**")  # further down are codes of runs
    codes = set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE))
    codes -= {
        "TOO_LATE",
        "NO_EVENT_TIME",
        "UNKNOWN_TIME",
        "VALUE_EXPRESSION",
    }  # test_retention, test_event_times, test_sources_debezium, test_changes
    assert codes | {"EXPECTATION"} == set(REFUSED) | {code for kept in SNAPSHOTS.values() for code, _ in kept.values()}


@pytest.mark.parametrize("path", ["driver", pytest.param("workers", marks=pytest.mark.nightly)])  # minutes each
def test_fault_a7_every_refused_record_is_kept_as_it_came_and_applied_by_a_replay_when_its_cause_is_gone(
    tmp_path: Path, sessions: Sessions, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "workers":
        limited(monkeypatch, fetched_bytes=0, small_rows=0)
    lake = Lake(tmp_path, sessions, THINGS.format(**BEFORE))
    lake.land("things/1.jsonl", "\n".join([thing(1, "good"), *(text for text, _ in REFUSED.values())]))
    lake.land("csv/1.csv", "\n".join(CSV))
    lake.land("jsonl/1.jsonl", "\n".join(JSONL))
    lake.land("parquet/1/a.parquet", pa.table({"id": [1, 3, 3, 4], "name": ["Ann", "Cid", None, "Dee"]}))
    limited(monkeypatch, refused_records=len(REFUSED))
    lake.run()
    assert set(lake.rows("published")) == {"good"}
    expected = {("things/1.jsonl", at): (code, text) for at, (code, (text, _)) in enumerate(REFUSED.items(), 2)}
    assert lake.kept_aside("things") == expected
    shown = CliRunner().invoke(main, ["quarantine", "show", "things", "--lake", str(lake.root / "lake")])
    assert {(e["code"], e["raw"]) for e in map(json.loads, shown.stdout.splitlines())} == set(expected.values())
    for form, kept in SNAPSHOTS.items():
        assert lake.kept_aside(form) == kept
        assert set(lake.rows(f"{form}_published")) == {1, 4}

    lake.declare(THINGS.format(**MENDED))
    lake.land("things/2.jsonl", thing(8, "late", big="known now"))
    lake.run(replay=("things",))
    lake.declare(THINGS.format(**MENDED | {"placeholder": ", placeholder='?'"}))
    lake.run(replay=("things",))
    applied = {code for code, (_, replayed) in REFUSED.items() if replayed}
    assert {code for code, _ in lake.kept_aside("things").values()} == set(REFUSED) - applied
    keys = {"good", UNCHANGED, "late", "type", "range", "infinite", "rounded", "ambiguous", "held"}
    found = lake.rows("published")
    assert set(found) == keys
    assert found["late"] == {"id": "late", "m": 1, "r": 1.5, "big": "known now"}
    assert (found["range"]["m"], found["rounded"]["r"], found["held"]["m"]) == (2**40, 0.123456789012, -1)
    assert found["range"]["big"] == "x" * 70_000
    assert found[UNCHANGED]["big"] == "B"


def test_fault_look_older_records_that_stay_refused_do_not_keep_later_ones_from_being_tried(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path, sessions, NOTES.format(more=", n INT"))
    lake.land("notes/1.jsonl", "\n".join([*["no record"] * 5, put(1, 2, n=1, big="b")]))
    lake.run()
    lake.land("notes/2.jsonl", "\n".join([put(2, 1, n=2**40, big="B"), put(2, 3, n=1, big="b")]))
    lake.run()
    lake.declare(NOTES.format(more=", n BIGINT"))
    limited(monkeypatch, small_rows=3)
    lake.run(replay=("notes",))
    assert lake.rows("published")[1]["n"] == 2**40
    assert {place[0] for place in lake.kept_aside("notes")} == {"notes/1.jsonl"}


@pytest.mark.parametrize("path", ["driver", "workers"])
def test_fault_a4_a_snapshot_with_an_unclosed_quote_changes_nothing_whatever_it_swallows(
    tmp_path: Path, sessions: Sessions, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "workers":
        limited(monkeypatch, fetched_bytes=0)
    text = 't.table("c", key="id", schema="id BIGINT, name STRING", source=snapshot("c")).filter("id > 0").named("published")'
    lake = Lake(tmp_path, sessions, text)
    good = ["id,name", *(f'{i},"name {i}"' for i in range(1, 101))]
    lake.land("c/1.csv", "\n".join(good))
    lake.run()
    before = lake.rows("published")
    plain = [good[0], *(f"{i},changed" for i in range(1, 101))]
    lake.land("c/2.csv", "\n".join([*plain[:2], plain[2].replace("ch", '"ch'), *plain[3:]]))
    with pytest.raises(SourceCorrupt, match=r"'c/2\.csv'.*line 3"):
        lake.run()
    closed_later = [*plain[:10], plain[10].replace("ch", '"ch'), *plain[11:40], '40,"x"', *plain[41:]]
    lake.land("c/3.csv", "\n".join(closed_later))
    with pytest.raises(BadRecords, match=r"1 of 70 records, which are 31 of 100 lines.*BAD_CSV at c/3\.csv:11"):
        lake.run()
    assert lake.rows("published") == before and lake.topology.ledger.head() == 1
    few = [*plain[:10], plain[10].replace("ch", '"ch'), *plain[11:13], '13,"x"', *plain[14:]]
    lake.land("c/4.csv", "\n".join(few))
    counts = lake.run()["ingest.c"]
    assert (counts["read"], counts["applied"], counts["quarantined"], counts["deleted"]) == (97, 96, 1, 0)
    swallowed = range(10, 14)
    assert lake.rows("published") == {i: {"id": i, "name": f"name {i}" if i in swallowed else "changed"} for i in range(1, 101)}
