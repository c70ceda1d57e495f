"""Documents that an index refuses, kept with the reason in the index ``rejoin_refused`` of the same server until their row is taken or gone."""

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from opensearchpy import OpenSearch

from rejoin.errors import SinkRecordRefused
from rejoin.plan.model.sinks import REFUSED
from rejoin.sinks.opensearch.cursor import OWN, make_index
from rejoin.sinks.opensearch.documents import Change

LIMIT: Final = 1_000
"""So many are kept of a sink; where more are refused, not the rows are wrong but the index."""

_MAPPING: Final = {
    "dynamic": "strict",
    "properties": {
        **{name: {"type": "keyword"} for name in ("sink", "error")},
        **{name: {"type": "keyword", "index": False, "doc_values": False} for name in ("id", "reason")},
        **{name: {"type": "long"} for name in ("run", "version")},
        "kept_at": {"type": "date"},
        "document": {"type": "object", "enabled": False},
    },
}


@dataclass(frozen=True)
class Refusal:
    """A document that the index refused: the server's name of the error, and its sentence, which may show values."""

    change: Change
    error: str
    reason: str


class Refused:
    """Those of one sink. ``load`` first."""

    def __init__(self, server: OpenSearch, sink: str, row: str) -> None:
        self._server, self._sink, self._row = server, sink, row
        self._kept = dict[str, int]()

    def __len__(self) -> int:
        return len(self._kept)

    def load(self) -> None:
        """Asks which there are."""
        make_index(self._server, REFUSED, _MAPPING, OWN)
        self._server.indices.refresh(index=REFUSED)
        asked = {"query": {"term": {"sink": self._row}}, "_source": ["id", "version"], "size": LIMIT}
        found = [hit["_source"] for hit in self._server.search(body=asked, index=REFUSED)["hits"]["hits"]]
        self._kept = {entry["id"]: entry["version"] for entry in found}

    def keep(self, found: Sequence[Refusal]) -> None:
        """Keeps these.

        Raises:
            SinkRecordRefused: they are more than ``LIMIT``, with those that are kept.
        """
        kept = self._kept | {refusal.change.id: refusal.change.version for refusal in found}
        if len(kept) > LIMIT:
            raise SinkRecordRefused(
                f"sink {self._sink!r}: the index refuses more than {LIMIT:,} documents, the last with {found[-1].error}",
                expected="an index that takes the rows of the output",
                next_step=f"look at the reasons in the index {REFUSED!r}, correct the mapping, then `rejoin publish --sink {self._sink} --snapshot`",
            )
        self._bulk((self._head("index", r.change.id), self._entry(r)) for r in found)
        self._kept = kept

    def release(self, changes: Iterable[Change]) -> None:
        """Forgets the earlier ones of these documents, which the index has taken: they are replaced or gone."""
        over = [change.id for change in changes if self._kept.get(change.id, change.version) < change.version]
        self._bulk((self._head("delete", id_),) for id_ in over)
        for id_ in over:
            del self._kept[id_]

    def _head(self, action: str, id_: str) -> dict[str, Any]:
        return {action: {"_index": REFUSED, "_id": hashlib.sha256(f"{self._row}/{id_}".encode()).hexdigest()}}

    def _entry(self, refusal: Refusal) -> dict[str, Any]:
        change = refusal.change
        assert change.body is not None
        said = {"sink": self._row, "id": change.id, "run": change.run, "version": change.version}
        said |= {"error": refusal.error, "reason": refusal.reason}
        return {**said, "kept_at": int(time.time() * 1000), "document": msgspec.Raw(change.body)}

    def _bulk(self, lines: Iterable[tuple[dict[str, Any], ...]]) -> None:
        body = b"".join(msgspec.json.encode(line) + b"\n" for entry in lines for line in entry)
        if body and (errors := _errors(self._server.bulk(body=body))):
            raise SinkRecordRefused(
                f"sink {self._sink!r}: what the index refused cannot be kept in {REFUSED!r}: {', '.join(errors)}",
                next_step=f"correct or delete the index {REFUSED!r}; the next run tries again",
            )


def _errors(answer: dict[str, Any]) -> list[str]:
    said = [next(iter(item.values())) for item in answer["items"]] if answer["errors"] else []
    return sorted({item["error"]["type"] for item in said if "error" in item})
