"""Event times that are expressions over the record: computed as it is read, stored, and quarantined where there is none."""

import json
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from limited import limited

from rejoin import Lake, Topology, debezium, records
from rejoin.declare.declarations import SourceDeclaration
from rejoin.errors import BadRecords, SchemaRefused, TopologyError
from rejoin.plan.check.compile import compile
from rejoin.plan.explain import text
from rejoin.plan.model import json_form
from rejoin.plan.model.plan import Column, Table
from rejoin.plan.sql.portable import SETTINGS, printed
from rejoin.sources.stream_columns import Clock

pytestmark = pytest.mark.slow
MILLIS = "timestamp_millis(ts)"
HOUR = 3_600_000
BAD = 2**62  # no year of four digits
Rows = list[dict[str, Any]]


def topology(
    time: str = MILLIS, source: SourceDeclaration | None = None, schema: str = "id BIGINT, ad STRING, ts BIGINT", **more: Any
) -> Topology:
    on = Topology("web")
    read = source or records("views/", max_bad_share=1.0)
    views = on.stream("views", id=more.pop("id", "id"), key="ad", event_time=time, schema=schema, source=read, **more)
    views.join(views, within="1 hour", select=["left.id AS one", "right.id AS other"], name="pairs", max_change_share=1.0)
    return on


@pytest.fixture(params=["local", *(pytest.param(engine, marks=pytest.mark.nightly) for engine in ("spark", "spark, by its workers"))])
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("REJOIN_ENGINE", request.param.partition(",")[0])
    if "workers" in request.param:
        limited(monkeypatch, fetched_bytes=0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "views").mkdir()
    return Lake(tmp_path / "lake")


def as_json(number: int, rows: Rows) -> None:
    Path("views", f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_csv(number: int, rows: Rows) -> None:
    lines = [",".join("" if row[c] is None else str(row[c]) for c in ("id", "ad", "ts")) for row in rows]
    Path("views", f"{number}.csv").write_text("\n".join(["id,ad,ts", *lines]) + "\n")


def as_parquet(number: int, rows: Rows) -> None:
    pq.write_table(pa.Table.from_pylist(rows), Path("views", f"{number}.parquet"))


def as_events(number: int, rows: Rows) -> None:
    source = {"connector": "postgresql", "ts_ms": 1}
    lines = (
        {"key": {"id": row["id"]}, "value": {"op": "c", "before": None, "after": row, "source": {**source, "lsn": number * 1000 + n}}}
        for n, row in enumerate(rows)
    )
    Path("views", f"{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def stored(lake: Lake) -> dict[int, datetime]:
    return {r["id"]: r["event_time"] for r in lake.read("views").to_arrow().to_pylist()}


def pairs(lake: Lake) -> set[tuple[int, int]]:
    return {(r["one"], r["other"]) for r in lake.read("pairs").to_arrow().to_pylist()}


def aside(lake: Lake) -> Rows:
    rows: Rows = lake.sql("SELECT id, _code, _reason, _raw, _line FROM web.views__quarantine ORDER BY id").to_arrow().to_pylist()
    return rows


def within_an_hour(rows: Iterable[dict[str, Any]]) -> set[tuple[int, int]]:
    good = [r for r in rows if r["ts"] is not None and r["ts"] != BAD]
    return {(a["id"], b["id"]) for a in good for b in good if a["ad"] == b["ad"] and abs(a["ts"] - b["ts"]) <= HOUR}


EVERY_FORMAT = [as_json, as_csv, as_parquet, as_events]
BY_ENGINE = [
    *(("local", land) for land in EVERY_FORMAT),
    pytest.param("spark", as_json, marks=pytest.mark.slow),
    *(pytest.param("spark", land, marks=pytest.mark.nightly) for land in EVERY_FORMAT[1:]),
    *(pytest.param("spark, by its workers", land, marks=pytest.mark.nightly) for land in EVERY_FORMAT),
]


@pytest.mark.parametrize(("lake", "land"), BY_ENGINE, indirect=["lake"])
def test_a_time_is_computed_of_every_record_and_one_without_is_quarantined(lake: Lake, land: Callable[[int, Rows], None]) -> None:
    source = debezium("views/", max_bad_share=1.0) if land is as_events else None
    first = [{"id": i, "ad": "ab"[i % 2], "ts": ts} for i, ts in enumerate([0, HOUR, HOUR // 2, BAD, None, 3 * HOUR])]
    land(1, first)
    run = lake.run(topology(source=source))
    assert stored(lake) == {i: datetime.fromtimestamp(first[i]["ts"] / 1000, UTC) for i in (0, 1, 2, 5)}
    assert pairs(lake) == within_an_hour(first)
    [three, four] = aside(lake)
    assert [(r["id"], r["_code"]) for r in (three, four)] == [(3, "NO_EVENT_TIME"), (4, "NO_EVENT_TIME")]
    assert three["_reason"] == "its event time is null, or cannot be computed: timestamp_millis(t.`ts`)"
    assert str(BAD) in three["_raw"]
    assert three["_line"] == (5 if land is as_csv else 4)
    # Delivered again: a known record is a duplicate; one that was without time counts if it has one now.
    second = [{**first[3], "ts": 3 * HOUR}, first[0], {"id": 9, "ad": "a", "ts": 0}]
    land(2, second)
    lake.run(topology(source=source))
    assert pairs(lake) == within_an_hour([*first[:3], *first[4:], second[0], second[2]])
    assert run.number == 1


def test_a_time_made_of_what_an_event_left_out_is_quarantined_as_that(lake: Lake) -> None:
    """And an update of a known record is a duplicate, whatever it left out."""
    unchanged = "__debezium_unavailable_value"
    schema, time = "id BIGINT, ad STRING, at STRING", "to_timestamp(at)"
    as_events(1, [{"id": 1, "ad": "a", "at": "2026-01-01"}, {"id": 2, "ad": "a", "at": unchanged}])
    source = debezium("views/", max_bad_share=1.0)
    lake.run(topology(time, source=source, schema=schema))
    assert (list(stored(lake)), [(r["id"], r["_code"]) for r in aside(lake)]) == ([1], [(2, "TOAST_UNRESOLVED")])
    as_events(2, [{"id": 1, "ad": "a", "at": unchanged}, {"id": 1, "ad": "a", "at": "no time"}])
    lake.run(topology(time, source=source, schema=schema))
    assert (list(stored(lake)), [(r["id"], r["_code"]) for r in aside(lake)]) == ([1], [(1, "NO_EVENT_TIME"), (2, "TOAST_UNRESOLVED")])


def test_an_expression_with_a_text_tells_times_and_is_told_in_quarantine(lake: Lake) -> None:
    time = r"CASE WHEN ad <> 'it\'s' AND ad <> 'a\\b' THEN timestamp_millis(ts) END"
    as_json(
        1,
        [{"id": 1, "ad": "x", "ts": 0}, {"id": 2, "ad": "it's", "ts": 0}, {"id": 3, "ad": "a\\b", "ts": 0}, {"id": 4, "ad": "y", "ts": 1}],
    )
    lake.run(topology(time))
    assert sorted(r["one"] for r in lake.read("pairs").to_arrow().to_pylist()) == [1, 4]


def test_it_does_not_matter_how_records_without_time_are_cut_into_runs(lake: Lake, tmp_path: Path) -> None:
    rows = [{"id": i % 4, "ad": "a", "ts": ts} for i, ts in enumerate([None, 0, BAD, 1, 2, None, 3, BAD])]
    good = {"id": 9, "ad": "a", "ts": 0}  # without it a run would stop that has nothing but a record without time
    as_json(1, [*rows, good])
    lake.run(topology())
    once, among = stored(lake), [r["id"] for r in aside(lake)]
    for file in Path("views").iterdir():
        file.unlink()
    single = Lake(tmp_path / "single")
    for number, row in enumerate(rows, 1):
        as_json(number, [row, good])
        single.run(topology())
    assert stored(single) == once
    assert [r["id"] for r in aside(single)] == among == [0, 1, 2, 3]


def test_a_stream_without_id_and_a_column_of_a_chosen_name(lake: Lake) -> None:
    as_json(1, [{"ad": "a", "event_time": "2026-01-01 00:00:00"}, {"ad": "a", "event_time": "no time"}])
    on = Topology("web")
    read = records("views/", max_bad_share=1.0)
    time = "to_timestamp(event_time) - INTERVAL 90 MINUTES AS began"
    views = on.stream("views", key="ad", event_time=time, schema="ad STRING, event_time STRING", source=read, retention="1 day")
    views.join(views, within="1 hour", select=["left.record AS one", "right.record AS other", "left.began"], name="pairs")
    lake.run(on)
    [pair] = lake.read("pairs").to_arrow().to_pylist()
    assert (pair["one"], pair["began"]) == ("views/1.jsonl:1", datetime(2025, 12, 31, 22, 30, tzinfo=UTC))


def test_the_first_record_without_time_stops_a_run_that_is_to_fail_then(lake: Lake) -> None:
    as_json(1, [{"id": 1, "ad": "a", "ts": BAD}])
    with pytest.raises(BadRecords, match="NO_EVENT_TIME"):
        lake.run(topology(source=records("views/", on_bad_record="fail")))


def test_another_expression_is_refused_before_anything_is_read(lake: Lake) -> None:
    as_json(1, [{"id": 1, "ad": "a", "ts": 5}])
    lake.run(topology())
    as_json(2, [{"id": 2, "ad": "a", "ts": 5}])
    for other in ("timestamp_seconds(ts)", "timestamp_millis(ts) AS at"):
        with pytest.raises(SchemaRefused, match="the event time of stream 'views' was timestamp_millis"):
            lake.run(topology(other))
    lake.run(topology("timestamp_millis( ts )".replace(" ", "")))
    assert pairs(lake) == {(1, 1), (1, 2), (2, 1), (2, 2)}


def test_a_column_cannot_become_an_expression(lake: Lake) -> None:
    as_json(1, [{"id": 1, "ad": "a", "at": "2026-01-01T00:00:00Z"}])
    schema = "id BIGINT, ad STRING, at TIMESTAMP"
    lake.run(topology("at", schema=schema))
    with pytest.raises(SchemaRefused, match="was at and is now date_trunc"):
        lake.run(topology("date_trunc('HOUR', at)", schema=schema))


@pytest.mark.parametrize(
    ("time", "said"),
    [
        ("ts", "column 'ts' is BIGINT; expected TIMESTAMP or TIMESTAMP_NTZ, or an expression over it, such as timestamp_millis"),
        ("tss", "the schema has no column 'tss'; did you mean 'ts'"),
        ("ts + 1", "it is BIGINT; expected TIMESTAMP or TIMESTAMP_NTZ"),
        ("timestamp_millis(tz)", "unknown column 'tz'"),
        ("current_timestamp()", "current_timestamp"),
        ("timestamp_millis(ts) AS ad", "becomes a column 'ad', and the stream has one, too"),
        ("timestamp_millis(ts) AS _at", "starts with an underscore"),
        ("make_timestamp(ts, 1, 1, 0, 0, 0)", "an event time is computed where files are read, without Spark"),
        ("timestamp_millis(", "event_time"),
    ],
)
def test_what_is_no_event_time_is_a_mistake_of_the_users_line(time: str, said: str) -> None:
    with pytest.raises(TopologyError) as error:
        compile(topology(time))
    assert said in str(error.value)
    assert Path(__file__).name in str(error.value)


def test_the_time_takes_no_place_of_the_place() -> None:
    with pytest.raises(TopologyError, match="becomes a column 'record', and the stream has one, too"):
        compile(topology("timestamp_millis(ts) AS record", id=None))


def test_the_plan_tells_it_and_keeps_it() -> None:
    plan = compile(topology("timestamp_millis(ts) - INTERVAL 1 DAY 2 HOURS"))
    assert "time     event_time = timestamp_millis(t.`ts`) - INTERVAL 1 DAY 2 HOURS" in text(plan)
    assert json_form.from_json(json_form.to_json(plan)) == plan


@pytest.mark.slow
def test_what_has_no_time_is_what_cannot_be_computed_alone() -> None:
    """Every record of a batch, against each one computed by itself by what is proven to be Spark's."""
    import duckdb

    types = {"ts": "BIGINT", "at": "STRING", "day": "DATE"}
    chance = random.Random(3)
    numbers = [0, 1, -1, 253_402_300_799, 253_402_300_800, -62_135_596_800, BAD, -BAD, 2**63 - 1, -(2**63), None]
    texts = ["2026-01-01", "2026-01-01 00:00:00", "0000-00-00", "x", "2026-02-30", "", None, "error('1')", "9999-12-31 23:59:59.999999"]
    rows = [{"ts": chance.choice(numbers), "at": chance.choice(texts), "day": None} for _ in range(300)]
    events = pa.Table.from_pylist(rows, pa.schema([("ts", pa.int64()), ("at", pa.string()), ("day", pa.date32())]))
    database = duckdb.connect()
    for setting in SETTINGS:
        database.execute(setting)
    for expression in (
        "timestamp_seconds(t.`ts`)",
        "coalesce(timestamp_seconds(t.`ts`), to_timestamp(t.`at`))",
        "to_timestamp(t.`at`) + INTERVAL 1 SECOND",
        "CASE WHEN t.`ts` > 0 THEN timestamp_micros(t.`ts` * 1000) ELSE CAST(t.`at` AS TIMESTAMP) END",
        "coalesce(CAST(t.`day` AS TIMESTAMP), CAST(t.`at` AS TIMESTAMP))",
    ):
        columns = (*(Column(n, k) for n, k in types.items()), Column("time", "TIMESTAMP"))
        clock = Clock(Table("views", ("ts",), columns, records("v"), (), event_time="time", computed_time=expression))  # type: ignore[arg-type]
        given = {n: events[n].combine_chunks() for n in types} | {"_kind": pa.repeat("upsert", len(rows))}
        made = clock.times(given).to_pylist()
        query = f"SELECT {printed(expression, {'t': types}).text} AS at FROM one AS t"
        for row, found in zip(rows, made, strict=True):
            database.register("one", pa.Table.from_pylist([row], events.schema))
            try:
                expected = database.sql(query).to_arrow_table()["at"].to_pylist()[0]
            except duckdb.Error:
                expected = None
            assert found == expected, (expression, row)
