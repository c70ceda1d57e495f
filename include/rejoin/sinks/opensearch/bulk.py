"""Changes -> bulk requests, of which each change is taken, unchanged, refused, or to be sent again."""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from opensearchpy import OpenSearch, TransportError

from rejoin.sinks.opensearch import errors
from rejoin.sinks.opensearch.documents import Change
from rejoin.sinks.opensearch.refused import Refusal

REQUEST_BYTES: Final = 5_000_000
REQUEST_CHANGES: Final = 2_000
PAUSES: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 16.0, 16.0)
"""Seconds before what was refused for the time being is sent again; each with a random part. A minute in all, well below ``GC_DELETES``."""

_THERE: Final = 409
_PASSING: Final = frozenset({errors.BUSY, 502, 503, 504})


@dataclass
class Outcome:
    """What has become of changes, in numbers for people. ``unchanged``: the index had this version or a later one already."""

    written: int = 0
    unchanged: int = 0
    requests: int = 0
    waited: int = 0


class Bulk:
    """Writes to one index. ``total`` counts everything so far."""

    def __init__(self, server: OpenSearch, sink: str, index: str) -> None:
        self._server, self._sink, self._index = server, sink, index
        self.total = Outcome()

    def send(self, changes: Sequence[Change]) -> list[Refusal]:
        """One request, and repetitions of what the server had no room for. Gives what it refuses.

        Raises:
            SinkSlow: there was no room through all repetitions.
            SinkDown, SinkDenied, SinkError: nothing or something else was answered.
        """
        refused: list[Refusal] = []
        for pause in (*PAUSES, None):
            self.total.requests += 1
            status, changes = self._once(changes, refused)
            if not changes:
                break
            if pause is None:
                raise errors.coded(
                    status, f"{len(changes):,} documents were not taken, {len(PAUSES) + 1} times", self._sink, self._index, "writing to"
                )
            self.total.waited += 1
            time.sleep(pause * random.uniform(0.5, 1.5))
        return refused

    def _once(self, changes: Sequence[Change], refused: list[Refusal]) -> tuple[int, list[Change]]:
        """The status of what is to be sent again, and that."""
        try:
            answer = self._server.bulk(body=b"".join(change.lines for change in changes), index=self._index)
        except TransportError as error:
            if error.status_code in _PASSING:
                return int(error.status_code), list(changes)
            raise
        last, again = 0, list[Change]()
        for change, item in zip(changes, answer["items"], strict=True):
            found = next(iter(item.values()))
            status = found["status"]
            if status in _PASSING:
                last = status
                again.append(change)
            elif "error" not in found:
                self.total.written += 1
            elif status == _THERE:
                self.total.unchanged += 1
            elif status == errors.REFUSED and change.body is not None:
                refused.append(Refusal(change, found["error"]["type"], _reason(found["error"])))
            else:
                raise errors.coded(status, found["error"]["type"], self._sink, self._index, "writing to")
        return last, again


def requests(changes: Iterable[Change]) -> Iterator[list[Change]]:
    """The same changes, as many at once as a request may have."""
    kept: list[Change] = []
    size = 0
    for change in changes:
        length = len(change.lines)
        if kept and (len(kept) == REQUEST_CHANGES or size + length > REQUEST_BYTES):
            yield kept
            kept, size = [], 0
        kept.append(change)
        size += length
    if kept:
        yield kept


def _reason(error: dict[str, Any]) -> str:
    """The server's sentence, and that of its cause."""
    cause = error.get("caused_by", {}).get("reason")
    return f"{error['reason']}: {cause}" if cause else str(error["reason"])
