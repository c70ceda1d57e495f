"""Streams under test: their records in files, each of which adds its own; what is refused, what comes twice, what is joined."""

import json
from collections.abc import Iterator

import pytest
from limited import limited

from rejoin import Topology, debezium, records, snapshot
from rejoin.declare.declarations import SourceDeclaration
from rejoin.errors import BadTestTable, TopologyError
from rejoin.plan.check.compile import compile
from rejoin.plan.model import json_form
from rejoin.testing import Driver

SCHEMA = "id STRING, key STRING, at TIMESTAMP"


def visits(views: SourceDeclaration, clicks: SourceDeclaration) -> Topology:
    """Clicks within ten seconds of a view."""
    made = Topology("visits")
    left, right = (
        made.stream(name, id="id", key="key", event_time="at", schema=SCHEMA, source=source)
        for name, source in (("views", views), ("clicks", clicks))
    )
    left.left_join(right, within="10 seconds", select=["left.id", "left.key", "right.id AS click"]).named("clicked")
    return made


@pytest.fixture(params=["landing/{}", "landing/{}.csv", "landing/{}.jsonl.gz"], ids=["JSON lines", "CSV", "packed"])
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    with Driver(visits(*(records(request.param.format(name), null="-") for name in ("views", "clicks")))) as made:
        yield made


def test_files_of_records_add_up_and_a_record_that_comes_again_is_no_second_one(driver: Driver) -> None:
    driver.run(views="a | A | 2026-01-01 10:00:00\n b | NULL | 2026-01-01 10:00:00", clicks="1 | A | 2026-01-01 10:00:09")
    assert driver.table("clicked") == "id | key | click\n a | A | 1\n b | NULL | NULL"
    again = driver.run(views="a | A | 2026-01-01 10:00:00\n c | A | 2026-01-01 10:00:10")
    assert again["clicked"] == "op | id | click\n I | c | 1"
    assert again["views"] == "op | id\n I | c"
    assert driver.table("views") == "id\n a\n b\n c"


def test_a_bad_record_is_kept_aside_and_comes_in_a_file_of_its_own_when_it_is_mended(driver: Driver) -> None:
    driver.run(views="a | A | today\n b | B | 2026-01-01 10:00:00", clicks="1 | A | 2026-01-01 10:00:09")
    assert driver.quarantine("views") == "id | code\n a | VALUE_TYPE"
    assert driver.run(views="a | A | 2026-01-01 10:00:05")["clicked"] == "op | id | click\n I | a | 1"


def test_the_first_record_of_an_id_counts_in_the_natural_order_of_the_files(driver: Driver) -> None:
    folder = next(p for p in (driver.root / "landing").iterdir() if p.name.startswith("views"))
    for number in (10, 9):
        line = {"id": "a", "key": f"from {number}", "at": "2026-01-01T10:00:00Z"}
        (folder / f"{number}.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(line | {"key": "later in the file"}) + "\n")
    driver.run(clicks="1 | A | 2026-01-01 10:00:09")
    assert driver.table("views") == 'id | key\n a | "from 9"'


def test_a_record_of_a_file_is_not_deleted(driver: Driver) -> None:
    driver.run(views="a | A | 2026-01-01 10:00:00")
    with pytest.raises(BadTestTable, match="'views' is a stream of records, of which none is ever deleted: - a"):
        driver.run(views="- a")


def test_a_stream_reads_records_or_change_events_and_a_table_no_records() -> None:
    compile(visits(records("views"), debezium("clicks")))
    wrong = visits(records("views"), snapshot("clicks"))
    wrong.table("people", key="id", schema="id BIGINT", source=records("people"))
    wrong.table("places", key="id", schema="id BIGINT", source=records("places", null=1, max_bad_share=2))  # type: ignore[arg-type]
    with pytest.raises(TopologyError) as refused:
        compile(wrong)
    told = [line.partition("BAD_OPTION ")[2] for line in str(refused.value).splitlines() if "BAD_OPTION" in line]
    of_stream = "a stream has records(...), of whose files each adds its records, debezium(...), changes(...) or feed(...)"
    of_table = (
        "records(...) is for a stream, whose records are only added; a table has snapshot(...), debezium(...), changes(...) or feed(...)"
    )
    assert told == [
        f"table 'clicks': snapshot(...) is for a table, whose rows a newer snapshot replaces; {of_stream}",
        f"table 'people': {of_table}",
        "table 'places': max_bad_share is 2; expected a share from 0 to 1",
        "table 'places': null must be a text, not 1",
        f"table 'places': {of_table}",
    ]


def test_a_source_of_records_is_part_of_the_plan() -> None:
    plan = compile(visits(records("views", null="-", on_bad_record="fail"), debezium("clicks")))
    again = json_form.from_json(json_form.to_json(plan))
    assert again == plan
    assert again.table("views").source.kind == "records"


def test_many_records_are_read_along(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, fetched_bytes=0)
    driver.run(views="a | A | 2026-01-01 10:00:00\n b | B | today", clicks="1 | A | 2026-01-01 10:00:09")
    driver.run(views="a | A | 2026-01-01 10:00:00\n c | A | 2026-01-01 10:00:10")
    assert driver.table("clicked") == "id | click\n a | 1\n c | 1"
    assert driver.quarantine("views") == "id | code\n b | VALUE_TYPE"


def test_records_without_an_id_are_told_by_their_places() -> None:
    web = Topology("web")
    views = web.stream("views", key="ad", event_time="at", schema="ad STRING, at TIMESTAMP", source=records("views"))
    views.select(["record", "upper(ad) AS ad", "at"]).named("shown")
    with Driver(web) as driver:
        changes = driver.run(views="ad | at\n A | 2026-01-01 10:00:00\n A | 2026-01-01 10:00:00\n B | today")
        assert changes["views"] == "op | record | ad\n I | views/000001.jsonl:1 | A\n I | views/000001.jsonl:2 | A"
        assert driver.quarantine("views") == "record | code\n views/000001.jsonl:3 | VALUE_TYPE"
        assert driver.run(views="A | 2026-01-01 10:00:00")["views"] == "op | record\n I | views/000002.jsonl:1"


def test_a_time_is_computed_and_a_record_without_is_kept_aside() -> None:
    made = Topology("visits")
    views = made.stream(
        "views", id="id", key="id", event_time="timestamp_millis(ts)", schema="id STRING, ts BIGINT", source=records("views")
    )
    views.join(views, within="10 seconds", select=["left.id", "right.id AS other", "left.event_time"]).named("pairs")
    with Driver(made) as driver:
        driver.run(views="id | ts\n a | 1500\n b | NULL")
        assert driver.table("pairs") == "id | other | event_time\n a | a | 1970-01-01 00:00:01.5"
        assert driver.quarantine("views") == "id | code\n b | NO_EVENT_TIME"
        driver.restart()
        assert driver.run(views="id | ts\n b | 2000")["views"] == "op | id | event_time\n I | b | 1970-01-01 00:00:02"
