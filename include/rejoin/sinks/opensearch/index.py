"""Delivery to an index: documents first, by versions that only grow, then the cursor. What is sent again changes nothing."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pyarrow as pa
from opensearchpy import OpenSearch

from rejoin import crash
from rejoin.errors import SinkCursorLost, SinkSchemaRefused
from rejoin.plan.model.plan import Node
from rejoin.plan.model.sinks import OpenSearchSink, sink_id
from rejoin.sinks.opensearch.bulk import Bulk, requests
from rejoin.sinks.opensearch.client import client
from rejoin.sinks.opensearch.cursor import Cursor, make_index
from rejoin.sinks.opensearch.documents import Change, Documents, version
from rejoin.sinks.opensearch.errors import coded_errors
from rejoin.sinks.opensearch.mapping import lacking, misfits, new_mapping
from rejoin.sinks.opensearch.refused import Refused
from rejoin.sinks.position import Position
from rejoin.sinks.target import Rows

GC_DELETES: Final = "10m"
"""So long does an index that rejoin makes remember the versions of deleted documents."""
PAGE: Final = 5_000
SCROLL: Final = "5m"
EPOCH: Final = "rejoin_epoch"
"""What an index says of its documents, in its mapping's ``_meta``: a cursor may be lost, and versions must grow all the same."""
_DIGEST: Final = np.dtype("S16")


class OpenSearchTarget:
    """One index, or an alias of one.

    Args:
        topology: the topology's name.
        node: the output.
        sink: the index.
        where: the sink's settings.
        types: the output's columns.
    """

    at_once: int | None = None

    def __init__(self, topology: str, node: Node, sink: OpenSearchSink, where: Mapping[str, str], types: pa.Schema) -> None:
        self._name, self._index, self._types = sink_id(node.name, sink), sink.index, types
        self._documents = Documents(node.key, types)
        self._server, self._writes, self.identity = client(self._name, where), 0, ""
        row = f"{topology}.{self._name}"
        self._cursor, self._refused = Cursor(self._server, self._name, row), Refused(self._server, self._name, row)
        self._bulk, self._meta = Bulk(self._server, self._name, self._index), dict[str, Any]()

    def take_over(self, known: Position | None) -> Position | None:  # noqa: ARG002 -- the index's own cursor counts
        """As ``Target`` says. Makes the index where there is none, and adds fields that it lacks.

        Raises:
            SinkSchemaRefused: the index is there and does not fit.
        """
        with coded_errors(self._name, self._index, "preparing"):
            make_index(self._server, self._index, new_mapping(self._types), {"index.gc_deletes": GC_DELETES})
            self._meta = self._fit()
            found = self._cursor.begin(self._meta.get(EPOCH, 0))
            if not self._cursor.epoch:
                self._start_epoch()
            self._refused.load()
            self.identity = _identity(self._server, self._index) or ""
        return found

    def write(self, rows: Rows, position: Position, *, whole: bool, cleared: Sequence[str] = ()) -> int:  # noqa: ARG002 -- documents are replaced whole
        """As ``Target`` says; who is interrupted in between does it again."""
        self._writes += 1
        with coded_errors(self._name, self._index, "writing to"):
            self._point("begun")
            if position.snapshot and not position.offset:
                self._start_epoch()
            count, ids = 0, bytearray()
            for batch in rows():
                count += batch.num_rows
                for request in requests(self._documents.of(batch, self._cursor.epoch)):
                    self._send(request)
                    ids += _digests(change.id for change in request) if whole else b""
            self._point("sent")
            if whole:
                self._delete_others(ids, position.done)
            self._point("complete")
            self._same_index()
            self._cursor.move(position)
        self._point("moved")
        return count

    def summary(self) -> dict[str, Any]:
        """How many documents were written, unchanged and refused, in how many requests, and how often the server had no room."""
        total = self._bulk.total
        counts = {"documents": total.written, "unchanged": total.unchanged, "requests": total.requests, "repeated": total.waited}
        return {**counts, "refused": len(self._refused)}

    def close(self) -> None:
        """Ends the connections."""
        self._server.close()

    def _send(self, changes: Sequence[Change]) -> None:
        self._cursor.check()
        refused = self._bulk.send(changes)
        self._point("requested")
        self._refused.keep(refused)
        self._point("kept")
        if refused:  # rather no document than one of an older row
            self._bulk.send([refusal.change.removal for refusal in refused])
        again = {refusal.change.id for refusal in refused}
        self._refused.release(change for change in changes if change.id not in again)

    def _start_epoch(self) -> None:
        self._cursor.start_epoch()
        meta = {**self._meta, EPOCH: self._cursor.epoch}
        self._server.indices.put_mapping(body={"_meta": meta}, index=self._index)

    def _fit(self) -> dict[str, Any]:
        """Refuses an index that cannot take the output, before anything is written; adds what is missing. Gives its ``_meta``."""
        found = self._server.indices.get_mapping(index=self._index)
        if len(found) != 1:
            raise self._unfit([f"the name stands for {len(found)} indices"])
        [(_, answer)] = found.items()
        if wrong := misfits(self._types, answer["mappings"]):
            raise self._unfit(wrong)
        if added := lacking(self._types, answer["mappings"]):
            self._server.indices.put_mapping(body={"properties": added}, index=self._index)
        return dict(answer["mappings"].get("_meta", {}))

    def _unfit(self, wrong: Sequence[str]) -> SinkSchemaRefused:
        return SinkSchemaRefused(
            f"sink {self._name!r}: index {self._index!r} does not fit the output: {'; '.join(wrong)}",
            expected="one index, whose fields take every value of the output's columns",
            next_step=f"name another index, or make this one anew; then `rejoin publish --sink {self._name} --snapshot`",
        )

    def _delete_others(self, ids: bytearray, run: int) -> None:
        """Deletes the documents that have none of these ids, of which there are digests."""
        known = np.unique(np.frombuffer(ids, _DIGEST))
        self._server.indices.refresh(index=self._index)
        for page in _pages(self._server, self._index):
            asked = np.frombuffer(_digests(page), _DIGEST)
            there = np.searchsorted(known, asked, "left") < np.searchsorted(known, asked, "right")
            others = [id_ for id_, wanted in zip(page, there, strict=True) if not wanted]
            for request in requests(Change(id_, version(self._cursor.epoch, run), run, None) for id_ in others):
                self._send(request)

    def _same_index(self) -> None:
        """A server makes an index that is gone anew, of anything that is written to it."""
        if _identity(self._server, self._index) != self.identity:
            raise SinkCursorLost(
                f"sink {self._name!r}: index {self._index!r} was deleted or made anew while it was written to",
                expected="the index that was there when the delivery began",
                next_step=f"delete the index that the server has made; then `rejoin publish --sink {self._name} --snapshot`",
            )

    def _point(self, name: str) -> None:
        crash.point(f"deliver.{self._name}:{self._writes}:{name}")


def identity(name: str, sink: OpenSearchSink, where: Mapping[str, str]) -> str | None:
    """What tells the sink's index from an earlier one of its name; None if there is no such index.

    Raises:
        SinkDown, SinkDenied: it cannot be reached.
    """
    with _connected(name, where) as server, coded_errors(name, sink.index, "asking for"):
        return _identity(server, sink.index)


@contextmanager
def _connected(name: str, where: Mapping[str, str]) -> Iterator[OpenSearch]:
    server = client(name, where)
    try:
        yield server
    finally:
        server.close()


def _identity(server: OpenSearch, index: str) -> str | None:
    """The id that an index has for as long as it is there; the next one of its name has another."""
    found = server.indices.get_settings(index=index, name="index.uuid", params={"ignore": 404})
    return ",".join(sorted(one["settings"]["index"]["uuid"] for one in found.values())) if "error" not in found else None


def _pages(server: OpenSearch, index: str) -> Iterator[list[str]]:
    """The ids of all documents, some thousands at a time."""
    asked = {"query": {"match_all": {}}, "sort": ["_doc"], "_source": False, "size": PAGE}
    answer = server.search(body=asked, index=index, params={"scroll": SCROLL})
    try:
        while hits := answer["hits"]["hits"]:
            yield [hit["_id"] for hit in hits]
            answer = server.scroll(body={"scroll_id": answer["_scroll_id"], "scroll": SCROLL})
    finally:
        server.clear_scroll(body={"scroll_id": [answer["_scroll_id"]]})


def _digests(ids: Iterable[str]) -> bytes:
    return b"".join(hashlib.blake2b(id_.encode(), digest_size=_DIGEST.itemsize).digest() for id_ in ids)
