"""How far an index is: a document a sink in the index ``rejoin_cursors`` of the same server, moved only by the attempt that it belongs to."""

import time
from typing import Any, Final

from opensearchpy import ConflictError, OpenSearch, RequestError

from rejoin.lake.ledger.deliveries import fenced
from rejoin.plan.model.sinks import CURSORS
from rejoin.sinks.opensearch.documents import next_epoch
from rejoin.sinks.position import Position

_MAPPING: Final = {
    "dynamic": "strict",
    "properties": {
        **{name: {"type": "keyword", "index": False, "doc_values": False} for name in ("sink", "position")},
        **{name: {"type": "long"} for name in ("attempt", "epoch")},
        "moved_at": {"type": "date"},
    },
}
OWN: Final = {"number_of_shards": 1, "auto_expand_replicas": "0-1"}
"""Settings of rejoin's own indices: a copy where there is a node for it."""


class Cursor:
    """That of one sink. ``epoch``: of the documents' versions; known after ``begin``."""

    def __init__(self, server: OpenSearch, sink: str, row: str) -> None:
        self._server, self._sink, self._row = server, sink, row
        self._attempt, self._seen = 0, dict[str, int]()
        self.epoch = 0

    def begin(self, of_index: int) -> Position | None:
        """A new attempt; whatever an older one writes here from now on is refused. Gives the position.

        Args:
            of_index: the epoch that the index says its documents have; 0 if it says none.
        """
        make_index(self._server, CURSORS, _MAPPING, OWN)
        while True:
            found = self._server.get(index=CURSORS, id=self._row, params={"ignore": 404})
            stored: dict[str, Any] = found["_source"] if found.get("found") else {}
            self._attempt = stored.get("attempt", 0) + 1
            self.epoch = max(stored.get("epoch", 0), of_index)
            self._seen = _numbers(found, "if_seq_no", "if_primary_term") if stored else {}
            try:
                self._write(stored.get("position"), {} if stored else {"op_type": "create"})
            except ConflictError:
                continue
            return Position.from_json(stored["position"]) if "position" in stored else None

    def check(self) -> None:
        """Raises ``SinkFenced`` if a newer attempt has begun."""
        if _numbers(self._server.get(index=CURSORS, id=self._row), "if_seq_no", "if_primary_term") != self._seen:
            raise fenced(self._sink)

    def move(self, position: Position) -> None:
        """Says that everything up to a position is there. Raises ``SinkFenced`` as above."""
        try:
            self._write(position.to_json(), {})
        except ConflictError:
            raise fenced(self._sink) from None

    def start_epoch(self) -> None:
        """From now on every version is above all that were written; stored with the next move."""
        self.epoch = next_epoch(self.epoch)

    def _write(self, position: str | None, how: dict[str, str]) -> None:
        body = {"sink": self._row, "attempt": self._attempt, "epoch": self.epoch, "moved_at": int(time.time() * 1000)}
        if position is not None:
            body["position"] = position
        done = self._server.index(index=CURSORS, body=body, id=self._row, params={**self._seen, **how})
        self._seen = _numbers(done, "if_seq_no", "if_primary_term")


def make_index(server: OpenSearch, name: str, mapping: dict[str, Any], settings: dict[str, Any]) -> None:
    """An index, unless it is there or another process makes it just now."""
    if server.indices.exists(index=name):
        return
    try:
        server.indices.create(index=name, body={"mappings": mapping, "settings": settings})
    except RequestError as error:
        if error.error != "resource_already_exists_exception":
            raise


def _numbers(answer: Any, *names: str) -> dict[str, int]:
    return dict(zip(names, (answer["_seq_no"], answer["_primary_term"]), strict=True))
