"""Changes of an output as documents: id, version and body. Pure; the same change always gives the same document.

An id is the key: the text of its only column, or a JSON array of several (``["a",1]``). What could be taken for another id is an array too: a null, an
empty text, and a text that begins with ``[``. An id of more than 512 bytes, which no index takes, is ``[#`` and its SHA-256.

A version is an *epoch* and the run that changed the row: a row has one state after a run, so a document of a lower version is an older one.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec
import pyarrow as pa

from rejoin.lake.query.arrow_values import rows, values
from rejoin.sinks.json_values import JsonTexts

ID_BYTES: Final = 512
RUN_BITS: Final = 24
HAND_BITS: Final = 7
"""So often may others write a document, each time one version more, before they are taken for the next run."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Change:
    """What a document becomes: ``body`` as JSON, or None for a delete."""

    id: str
    version: int
    run: int
    body: bytes | None

    @cached_property
    def lines(self) -> bytes:
        """The change as a bulk request has it."""
        said = {"index" if self.body is not None else "delete": {"_id": self.id, "version": self.version, "version_type": "external"}}
        return _encode(said) + b"\n" + (b"" if self.body is None else self.body + b"\n")

    @property
    def removal(self) -> "Change":
        """That there be no document, as of the same version."""
        return Change(self.id, self.version, self.run, None)


class Documents:
    """Makes the documents of one output, with this key and columns of these types."""

    def __init__(self, key: Sequence[str], types: pa.Schema) -> None:
        self._key, self._texts = tuple(key), JsonTexts(types)

    def of(self, batch: pa.RecordBatch, epoch: int) -> Iterator[Change]:
        """The documents of a batch of changes (``lake.read.change_feed``), in its order. A null is no field."""
        keys = zip(*(values(batch[k]) for k in self._key), strict=True)
        for run, key, after in zip(values(batch["_run"]), keys, rows(batch["_after"]), strict=True):
            said = self._texts.all(dict(zip(self._key, key, strict=True)))
            row = None if after is None else {c: v for c, v in self._texts.all(after).items() if v is not None}
            yield Change(document_id(list(said.values())), version(epoch, run), run, None if row is None else _encode(row))


def document_id(key: Sequence[Any]) -> str:
    """The id of a key, as the module says; no two keys of an output have the same."""
    text = _text(key[0]) if len(key) == 1 else ""
    if not text or text.startswith("["):
        text = _encode(key).decode()
    encoded = text.encode()
    return text if len(encoded) <= ID_BYTES else f"[#{hashlib.sha256(encoded).hexdigest()}"


def version(epoch: int, run: int) -> int:
    """The version of what a run made of a row."""
    return (epoch << RUN_BITS | run) << HAND_BITS


def next_epoch(before: int) -> int:
    """The epoch of a sink that starts anew: the time in seconds, so that versions are above those of others, too."""
    return max(before + 1, int(time.time()))


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else _encode(value).decode().strip('"')
