"""An index is equal to the output after every delivery, whatever happens in between, and what comes again or late changes nothing."""

import json
import math
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from integration.made import Lake, deliver
from integration.opensearch import OpenSearchServer
from opensearchpy import OpenSearch
from sparkless import no_spark
from targets import Hook, wanted

from rejoin import crash
from rejoin.errors import (
    SinkFenced,
    SinkRecordRefused,
    Unexpected,
)
from rejoin.lake.config import lake_config
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.policy import Fuse, RunOptions
from rejoin.sinks.opensearch import bulk, refused
from rejoin.sinks.opensearch.bulk import Bulk
from rejoin.sinks.opensearch.cursor import Cursor
from rejoin.sinks.opensearch.documents import Change, document_id
from rejoin.steps.deliver.catch_up import Restart
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = [pytest.mark.opensearch, pytest.mark.slow, pytest.mark.timeout(600)]
SINK = "people.opensearch"


def kept(lake: Lake, server: OpenSearchServer) -> dict[str, dict[str, Any]]:
    """What is kept of the documents that the index refused, by their ids."""
    of_sink = [entry for entry in server.documents("rejoin_refused").values() if entry["sink"] == f"{lake.name}.{SINK}"]
    return {entry["id"]: entry for entry in of_sink}


def versions(server: OpenSearchServer, index: str) -> dict[str, tuple[int, int]]:
    """The version of each document, and the number of the write that made it."""
    server("POST", f"{index}/_refresh")
    found = server("POST", f"{index}/_search", {"size": 1000, "version": True, "seq_no_primary_term": True})
    return {hit["_id"]: (hit["_version"], hit["_seq_no"]) for hit in found["hits"]["hits"]}


def test_a_run_after_the_other_the_index_is_equal_to_the_output(lake: Lake, index: str, search_server: OpenSearchServer) -> None:
    for _ in range(4):
        lake.topology().deliver(SINK)
        assert search_server.documents(index) == wanted(lake)
        lake.run(lake.some(20))


NESTED = """
from rejoin import Topology, opensearch, snapshot

t = Topology("nested")
schema = "id BIGINT, home STRUCT<city: STRING, at: ARRAY<STRUCT<x: DOUBLE>>>, tags ARRAY<STRING>, counts MAP<STRING, INT>"
people = t.table("people", key="id", schema=schema, source=snapshot("people", max_delete_share=1.0))
people.filter("id > 0").named("out").to(opensearch("{index}"))
"""


def test_structs_are_searched_by_their_fields_and_maps_are_kept(
    tmp_path: Path, topic: str, search_server: OpenSearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_SINK_OPENSEARCH", search_server.url)
    (tmp_path / "topology.py").write_text(NESTED.format(index=topic))
    (tmp_path / "people").mkdir()
    ann = {"id": 1, "home": {"city": "Ulm", "at": [{"x": 1.5}, {"x": None}]}, "tags": ["a", "b"], "counts": {"one": 1}}
    people = [ann, {"id": 2, "tags": [], "counts": {}}, {"id": 3, "home": {"city": "Bonn", "at": None}}]
    for number, rows in enumerate((people, [{**ann, "tags": ["c"]}])):
        (tmp_path / "people" / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        topology = Topology(load(str(tmp_path / "topology.py")), lake_config(str(tmp_path / "lake")), str(tmp_path))
        run_topology(topology, no_spark, f"run {number}", options=RunOptions(fuse=Fuse.APPLY))
        topology.deliver("out.opensearch")
        assert [json.loads(json.dumps(d)) for d in search_server.documents(topic).values()] == rows

        def found(query: dict[str, Any]) -> set[str]:
            return {hit["_id"] for hit in search_server("POST", f"{topic}/_search", {"query": query})["hits"]["hits"]}

        assert found({"match": {"home.city": "Ulm"}}) == found({"range": {"home.at.x": {"gte": 1}}}) == {"1"}
        assert found({"match": {"tags": "a"}}) == ({"1"} if number == 0 else set())
    search_server("DELETE", f"{topic}*")


def test_a_replay_changes_nothing(lake: Lake, index: str, search_server: OpenSearchServer) -> None:
    lake.declare(f'opensearch("{index}", start="changes")')
    lake.topology().deliver(SINK)
    before = versions(search_server, index)
    done = lake.topology().deliver(SINK, Restart(1))
    assert (done.records, done.detail["documents"], done.detail["unchanged"]) == (45, 0, 45)
    assert versions(search_server, index) == before


@pytest.mark.parametrize("every", [pytest.param(1, id="every one", marks=pytest.mark.nightly), pytest.param(6, id="every sixth")])
def test_after_kills_at_every_point_the_index_is_equal_to_the_output(
    lake: Lake, index: str, search_server: OpenSearchServer, tmp_path: Path, every: int
) -> None:
    lake.declare(f'opensearch("{index}", start="changes")')
    trace = tmp_path / "trace"
    done = deliver(lake, "opensearch", REJOIN_CRASH_TRACE=str(trace))
    assert done.returncode == 0, done.stderr
    second = [p for p in dict.fromkeys(trace.read_text().split()) if ":2:" in p]
    points = [f"deliver.{SINK}:taken_over", f"deliver.{SINK}:moving", *second]
    assert len(points) >= 8, points
    for point in points[::every]:
        lake.run(lake.some(20))
        lake.run(lake.some(10))
        killed = deliver(lake, "opensearch", REJOIN_CRASH=point)
        assert killed.returncode == -signal.SIGKILL, f"the fault at {point} did not fire:\n{killed.stderr}"
    lake.topology().deliver(SINK)
    assert search_server.documents(index) == wanted(lake)


@pytest.mark.parametrize("seed", [pytest.param(n, marks=() if n < 2 else pytest.mark.nightly) for n in range(24)])
def test_random_histories_with_interruptions_anywhere_refused_rows_and_repetitions(
    lake: Lake, index: str, search_server: OpenSearchServer, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The index is the output without what it refuses, and what it refuses is kept."""
    rng = random.Random(seed)
    lake.random = random.Random(seed)
    monkeypatch.setattr(bulk, "REQUEST_CHANGES", 4)
    lake.declare(f'opensearch("{index}", catch_up="{rng.choice(["every", "net"])}", start="{rng.choice(["changes", "snapshot"])}")')
    interrupted = 0

    def point(name: str) -> None:
        if name.startswith("deliver.") and rng.random() < 0.05:
            raise InterruptedError(name)

    monkeypatch.setattr(crash, "point", point)
    for _ in range(8):
        changed = lake.some(rng.randrange(1, 25))
        for row in changed.values():
            if row is not None and rng.random() < 0.15:
                row["share"] = math.nan
        lake.run(changed)
        again = rng.choice([None, None, None, Restart(None), Restart(rng.randrange(1, 4))])
        try:
            lake.topology().deliver(SINK, again)
        except Unexpected:
            interrupted += 1
    monkeypatch.setattr(crash, "point", lambda name: None)
    lake.topology().deliver(SINK)
    assert interrupted, "nothing was interrupted"
    bad = {str(key) for key, row in lake.rows().items() if isinstance(row["share"], float) and math.isnan(row["share"])}
    assert search_server.documents(index) == {id_: d for id_, d in wanted(lake).items() if id_ not in bad}
    assert kept(lake, search_server).keys() == bad


def test_an_attempt_that_a_newer_one_overtakes_is_fenced(lake: Lake, index: str, search_server: OpenSearchServer, at: Hook) -> None:
    at(":1:begun", lambda: lake.topology().deliver(SINK))
    with pytest.raises(SinkFenced):
        lake.topology().deliver(SINK)
    assert search_server.documents(index) == wanted(lake)


def test_an_older_delivery_that_arrives_late_overwrites_nothing_and_brings_nothing_back(
    lake: Lake, index: str, search_server: OpenSearchServer, at: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.topology().deliver(SINK)
    lake.run({500: lake.row(500), 501: lake.row(501)})

    def overtake() -> None:
        lake.run({500: None, 501: lake.row(501)})
        lake.topology().deliver(SINK)

    at(":1:begun", overtake)
    monkeypatch.setattr(Cursor, "check", lambda self: None)  # it was asked just before the newer attempt began
    with pytest.raises(SinkFenced):
        lake.topology().deliver(SINK)
    assert search_server.documents(index) == wanted(lake)
    assert search_server("GET", f"{index}/_settings")[index]["settings"]["index"]["gc_deletes"] == "10m", "so long are deletes remembered"


def test_a_refused_document_is_kept_with_its_reason_until_its_row_is_taken(lake: Lake, index: str, search_server: OpenSearchServer) -> None:
    lake.topology().deliver(SINK)
    key = min(lake.state)
    lake.run({key: {**lake.row(key), "share": math.inf}, 500: {**lake.row(500), "share": math.nan}})
    done = lake.topology().deliver(SINK)
    assert done.detail["refused"] == 2 and "NaN" not in str(done)
    assert search_server.documents(index) == {k: d for k, d in wanted(lake).items() if k not in (str(key), "500")}, (
        "rather none than an old one"
    )
    found = kept(lake, search_server)
    assert found.keys() == {str(key), "500"}
    assert found["500"]["error"] == "mapper_parsing_exception" and "supports only finite values" in found["500"]["reason"]
    assert (found["500"]["run"], found["500"]["document"]["share"]) == (4, "NaN")
    lake.topology().deliver(SINK, Restart(4))
    assert kept(lake, search_server).keys() == found.keys(), "a replay forgets none"
    lake.run({key: lake.row(key), 500: None})
    assert lake.topology().deliver(SINK).detail["refused"] == 0
    assert kept(lake, search_server) == {} and search_server.documents(index) == wanted(lake)


def test_where_too_much_is_refused_the_index_is_wrong_and_the_delivery_stops(
    lake: Lake, index: str, search_server: OpenSearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused, "LIMIT", 3)
    lake.topology().deliver(SINK)
    lake.run({key: {**lake.row(key), "share": math.nan} for key in range(4)})
    with pytest.raises(SinkRecordRefused, match="more than 3 documents, the last with mapper_parsing_exception"):
        lake.topology().deliver(SINK)


def test_a_snapshot_again_takes_back_what_others_wrote_and_the_next_run_comes_through(
    lake: Lake, index: str, search_server: OpenSearchServer
) -> None:
    lake.topology().deliver(SINK)
    changed, next_one = sorted(lake.state)[:2]
    for id_ in (changed, next_one, next_one, -1):
        search_server("PUT", f"{index}/_doc/{id_}", {"name": "by hand"})
    lake.run({next_one: lake.row(next_one)})
    lake.topology().deliver(SINK)
    found = search_server.documents(index)
    assert {id_ for id_, document in found.items() if document.get("name") == "by hand"} == {str(changed), "-1"}
    lake.topology().deliver(SINK, Restart(None))
    assert search_server.documents(index) == wanted(lake)
    lake.run(lake.some(20))
    lake.topology().deliver(SINK)
    assert search_server.documents(index) == wanted(lake)


KEYS = [
    "plain",
    "näme 日本",
    "a/b?c#d%20&e=f",
    "_leading",
    "",
    "[",
    '["x"]',
    "\x00\x1f",
    '"\\',
    " ",
    "x" * 512,
    "x" * 513,
    "é" * 300,
    None,
]


def test_every_key_has_a_document_of_its_own(search_server: OpenSearchServer, topic: str) -> None:
    client = OpenSearch(search_server.url)
    for number, keys in enumerate(([[k] for k in KEYS], [[k, 1] for k in KEYS], [[None, None], [0, None], [None, 0]])):
        index = f"{topic}_{number}"
        changes = [Change(document_id(key), 1, 1, b'{"n": %d}' % n) for n, key in enumerate(keys)]
        assert Bulk(client, "s", index).send(changes) == []
        assert {id_: d["n"] for id_, d in search_server.documents(index).items()} == {document_id(key): n for n, key in enumerate(keys)}
        search_server("DELETE", index)
    client.close()
