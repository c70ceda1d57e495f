"""Groups of records -> record batches: plain records by whole columns, every other record by itself, the careful way.

Reading stays in the order of the records, so that a format may remember something from one record to the next.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.errors import BadRecord
from rejoin.sources.decode.column_values import REFUSED
from rejoin.sources.decode.values import AMBIGUOUS
from rejoin.sources.events import BATCH_ROWS, Event, Layout
from rejoin.sources.formats.json_text import Unsure

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)
# A run of fewer records is not worth the fixed cost of columns, about that of eight events.
_SHORT = 12
# Into how many runs one is cut whose columns are not plain, to find the records that make them so.
_PARTS = 8


NO_UNICODE = BadRecord("VALUE_TYPE", "a text is not valid Unicode (lone surrogate)")
"""Why a record is refused that is not ``encodable``."""


class Format(Protocol[R_contra]):
    """How the records of one file are read. ``event`` is the definition; ``plain`` and ``columns`` may refuse for any reason."""

    def plain(self, record: R_contra) -> Any:
        """What ``columns`` needs of the record if it is a plain one, else ``Unsure`` or ``BadRecord``. Has no effect."""

    def columns(self, run: Sequence[Any]) -> tuple[dict[str, pa.Array], Sequence[int]]:
        """Plain records that follow each other -> (arrays, lines) for ``Layout.arranged``. Has no effect if it raises (``REFUSED``)."""

    def event(self, record: R_contra) -> Event:
        """Any record -> its event."""

    def raw(self, record: R_contra) -> bytes:
        """The record as it was written."""


class OneByOne:
    """The part of a ``Format`` whose records are all read by ``event``."""

    def plain(self, record: object) -> NoReturn:  # noqa: ARG002 -- none is
        raise Unsure

    def columns(self, run: object) -> NoReturn:  # noqa: ARG002 -- likewise
        raise Unsure


def batches(layout: Layout, file: str, index: int, records: Iterator[R], how: Format[R]) -> Iterator[pa.RecordBatch]:
    """Records of a file -> record batches of ``layout.schema``, a row a record, ``BATCH_ROWS`` rows each but the last."""
    while group := list(islice(records, BATCH_ROWS)):
        yield _Group(layout, file, index, how, group).batch()


class _Group(Generic[R]):
    """The records of one batch."""

    def __init__(self, layout: Layout, file: str, index: int, how: Format[R], records: list[R]) -> None:
        self._layout, self._file, self._index, self._how, self._records = layout, file, index, how, records
        self._plain: list[pa.RecordBatch] = []
        self._events: list[Event] = []
        # Which records the rows of ``_plain`` are, and those of ``_events``.
        self._plain_at: list[int] = []
        self._events_at: list[int] = []

    def batch(self) -> pa.RecordBatch:
        plain, run = self._how.plain, []
        for i, record in enumerate(self._records):
            try:
                run.append(plain(record))
            except (Unsure, BadRecord):
                self._take(run, i - len(run))
                self._careful(i, i + 1)
                run = []
        self._take(run, len(self._records) - len(run))
        if not self._events:
            return self._plain[0] if len(self._plain) == 1 else pa.concat_batches(self._plain)
        careful = self._careful_batch()
        if not self._plain:
            return careful
        order = pc.sort_indices(pa.array(self._plain_at + self._events_at))
        return pa.concat_batches([*self._plain, careful]).take(order)

    def _take(self, run: list[Any], start: int) -> None:
        """Takes a run of plain records, of which the first is record ``start``."""
        if len(run) < _SHORT:
            return self._careful(start, start + len(run))
        try:
            arrays, lines = self._how.columns(run)
        except REFUSED:
            step = -(-len(run) // _PARTS)
            for at in range(0, len(run), step):
                self._take(run[at : at + step], start + at)
        else:
            self._plain.append(self._layout.arranged(arrays, lines, self._file, self._index))
            self._plain_at += range(start, start + len(run))

    def _careful(self, start: int, stop: int) -> None:
        # Not map: a StopIteration of an event would end it without a word.
        self._events += [self._how.event(record) for record in self._records[start:stop]]
        self._events_at += range(start, stop)

    def _careful_batch(self) -> pa.RecordBatch:
        """The events that were read one by one. A row with text that is no Unicode (a lone surrogate, which JSON escapes can write) is
        quarantined; looked for only after Arrow refused the batch.
        """
        records = [self._records[i] for i in self._events_at]
        for i, event in enumerate(self._events):
            # The rest of the batch may have shown how this feed writes decimals (values._decimal_text).
            if event.code == AMBIGUOUS:
                self._events[i] = self._how.event(records[i])
        try:
            return self._layout.batch(self._events, self._file, self._index)
        except UnicodeEncodeError:
            pairs = zip(self._events, records, strict=True)
            checked = [e if encodable(e) else self._layout.quarantined(e.line, NO_UNICODE, self._how.raw(r)) for e, r in pairs]
            return self._layout.batch(checked, self._file, self._index)


def encodable(event: Event) -> bool:
    """Whether all texts of an event are Unicode."""
    try:
        json.dumps((event.key, event.values, event.old_key, event.snapshot), ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return False
    return True
