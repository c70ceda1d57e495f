"""Servers and indices that are not as they should be: the delivery says so, and the index is equal to the output once they are."""

import base64
import itertools
import json
import ssl
import subprocess
from pathlib import Path

import pytest
from integration.made import Lake
from integration.opensearch import OpenSearchServer
from search_proxy import proxy
from targets import Hook, wanted

from rejoin.airflow.local.server import free_port
from rejoin.errors import (
    SinkCursorLost,
    SinkDenied,
    SinkDown,
    SinkSchemaRefused,
    SinkSlow,
)
from rejoin.sinks.opensearch import bulk
from rejoin.steps.deliver.catch_up import Restart

pytestmark = [pytest.mark.opensearch, pytest.mark.slow, pytest.mark.timeout(600)]
SINK = "people.opensearch"


def test_a_server_without_room_gets_it_later_and_what_it_had_taken_is_not_sent_again(
    lake: Lake, index: str, search_server: OpenSearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "PAUSES", (0.01,) * 4)
    with proxy(search_server.url) as before:
        monkeypatch.setenv("REJOIN_SINK_OPENSEARCH", before.url)
        statuses, counted = iter([429, 503]), itertools.count()
        before.answer = lambda: next(statuses, None)
        before.busy = lambda lines: next(counted) < 40 and next(counted) % 3 == 0
        done = lake.topology().deliver(SINK)
    assert done.detail["repeated"] == len(before.seen) + 1, "two whole answers, and some of parts"
    assert before.seen[0] == len(lake.state) > before.seen[1] > 0
    assert search_server.documents(index) == wanted(lake)


def test_a_server_that_stays_without_room_is_told_and_gets_the_rest_next_time(
    lake: Lake, index: str, search_server: OpenSearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "PAUSES", (0.01,) * 2)
    with proxy(search_server.url) as before:
        monkeypatch.setenv("REJOIN_SINK_OPENSEARCH", before.url)
        before.busy = lambda lines: "näme 9".encode() in lines[-1]
        with pytest.raises(SinkSlow, match=r"3 times \(429\)"):
            lake.topology().deliver(SINK)
        some = search_server.documents(index)
        assert 0 < len(some) < len(lake.state)
        before.busy = lambda lines: False
        lake.topology().deliver(SINK)
    assert search_server.documents(index) == wanted(lake)


def test_an_index_that_does_not_fit_is_refused_with_all_that_is_wrong_before_anything_is_written(
    lake: Lake, index: str, search_server: OpenSearchServer
) -> None:
    wrong = {
        "id": {"type": "integer"},
        "paid": {"type": "double", "coerce": False},
        "born": {"type": "date", "format": "yyyy"},
        "name": {"properties": {}},
    }
    search_server("PUT", index, {"mappings": {"properties": wrong}})
    with pytest.raises(SinkSchemaRefused) as raised:
        lake.topology().deliver(SINK)
    said = str(raised.value)
    expected = (
        "'id' is integer, not long",
        "'paid' is double without coerce",
        "'born' is date with a format",
        "'name' is object, not text",
    )
    assert all(text in said for text in expected), said
    assert search_server.documents(index) == {}
    assert search_server("GET", f"{index}/_mapping")[index]["mappings"]["properties"].keys() == wrong.keys()


def test_a_new_index_has_a_mapping_of_the_outputs_types_and_one_of_the_users_own_gets_what_it_lacks(
    lake: Lake, index: str, search_server: OpenSearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"id": {"type": "keyword"}, "name": {"type": "keyword"}, "seen": {"type": "date_nanos"}, "remark": {"type": "text"}}
    search_server("PUT", f"{index}_b", {"mappings": {"properties": own, "_meta": {"owner": "us"}}})
    search_server("POST", "_aliases", {"actions": [{"add": {"index": f"{index}_b", "alias": f"{index}_alias"}}]})
    lake.declare(f'opensearch("{index}"), opensearch("{index}_alias", name="other")')
    monkeypatch.setenv("REJOIN_SINK_OTHER", search_server.url)
    for sink in (SINK, "people.other"):
        lake.topology().deliver(sink)
    found = search_server("GET", f"{index}/_mapping")[index]["mappings"]
    text = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 8191}}}
    kinds = {"id": "long", "paid": "double", "share": "double", "born": "date", "seen": "date", "photo": "binary", "active": "boolean"}
    new = {**{name: {"type": kind} for name, kind in kinds.items()}, "name": text}
    assert (found["dynamic"], found["properties"]) == ("strict", new)
    theirs = search_server("GET", f"{index}_b/_mapping")[f"{index}_b"]["mappings"]
    assert (theirs["_meta"]["owner"], theirs["properties"]) == ("us", {**new, **own})
    assert search_server.documents(f"{index}_b") == search_server.documents(index) == wanted(lake)


def test_an_index_that_is_gone_is_not_taken_for_a_new_sink(lake: Lake, index: str, search_server: OpenSearchServer) -> None:
    lake.topology().deliver(SINK)
    search_server("DELETE", index)
    for _ in range(2):
        with pytest.raises(SinkCursorLost):
            lake.topology().deliver(SINK)
    lake.topology().deliver(SINK, Restart(None))
    assert search_server.documents(index) == wanted(lake)


def test_an_index_that_goes_while_it_is_written_to_is_noticed(lake: Lake, index: str, search_server: OpenSearchServer, at: Hook) -> None:
    lake.topology().deliver(SINK)
    lake.run(lake.some(9))
    at(":1:begun", lambda: search_server("DELETE", index))
    with pytest.raises(SinkCursorLost, match="while it was written to"):
        lake.topology().deliver(SINK)
    search_server("DELETE", index)
    lake.topology().deliver(SINK, Restart(None))
    assert search_server.documents(index) == wanted(lake)


def test_a_cursor_that_is_lost_is_told_and_the_runs_after_it_still_arrive(lake: Lake, index: str, search_server: OpenSearchServer) -> None:
    lake.topology().deliver(SINK, Restart(None))
    search_server("DELETE", "rejoin_cursors")
    lake.run(lake.some(20))
    with pytest.raises(SinkCursorLost):
        lake.topology().deliver(SINK)
    lake.topology().deliver(SINK, Restart(4))
    assert search_server.documents(index) == wanted(lake)


def test_a_server_that_is_down_gets_everything_later(
    lake: Lake, index: str, search_server: OpenSearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_SINK_OPENSEARCH", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(SinkDown):
        lake.topology().deliver(SINK)
    lake.run(lake.some(9))
    monkeypatch.setenv("REJOIN_SINK_OPENSEARCH", search_server.url)
    lake.topology().deliver(SINK)
    assert search_server.documents(index) == wanted(lake)


def test_an_index_that_takes_no_writes_is_told(lake: Lake, index: str, search_server: OpenSearchServer) -> None:
    lake.topology().deliver(SINK)
    lake.run(lake.some(9))
    search_server("PUT", f"{index}/_settings", {"index.blocks.write": True})
    with pytest.raises(SinkDenied, match="cluster_block_exception"):
        lake.topology().deliver(SINK)
    search_server("PUT", f"{index}/_settings", {"index.blocks.write": None})
    lake.topology().deliver(SINK)
    assert search_server.documents(index) == wanted(lake)


def test_tls_and_a_user_of_the_lakes_file(
    lake: Lake, index: str, search_server: OpenSearchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ours", "other"):
        files = ["-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.pem")]
        made = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=x",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            *files,
        ]
        subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ours.pem", tmp_path / "ours.key")
    with proxy(search_server.url, context) as before:
        before.user = "Basic " + base64.b64encode(b"me:s3cret").decode()

        def told(**more: str) -> None:
            settings = {"url": before.url, "user": "me", "password": "s3cret", "ca_certs": str(tmp_path / "ours.pem"), **more}
            monkeypatch.setenv("REJOIN_SINK_OPENSEARCH", json.dumps(settings))

        for wrong, said in (({"ca_certs": str(tmp_path / "other.pem")}, "TLS"), ({"password": "gu3ss"}, "(401)")):
            told(**wrong)
            with pytest.raises(SinkDenied) as raised:
                lake.topology().deliver(SINK)
            assert said in str(raised.value) and "gu3ss" not in str(raised.value)
        told()
        lake.topology().deliver(SINK)
    assert search_server.documents(index) == wanted(lake)
