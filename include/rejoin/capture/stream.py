"""The log of a database -> files of changes. The server may forget what is on the disk, and nothing else."""

import select
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin import crash
from rejoin.capture.landing import TableFiles
from rejoin.capture.pgoutput import Transactions
from rejoin.capture.server import Server, told
from rejoin.capture.tables import CapturedTable

_FILE_BYTES: Final = 64 << 20
_FILE_SECONDS: Final = 30.0
"""A change is in a file so many seconds after its commit, and a file has no more bytes than those, but for one larger transaction."""
_IDLE_SECONDS: Final = 10.0
"""So often the server is told that nothing of an idle publication is missed."""
_LOOK_SECONDS: Final = 0.1


@dataclass
class Stream:
    """Follows the log.

    Args:
        server: where.
        tables: schema and table -> what is captured.
        files: schema and table -> where it lands.
        stopped: whether somebody wants this to end.
    """

    server: Server
    tables: Mapping[str, CapturedTable]
    files: Mapping[str, TableFiles]
    stopped: Callable[[], bool]
    appeared: int = 0
    _end: int = 0
    _told: int = 0
    _bytes: int = 0
    _asking: float = 0.0
    _since: float = field(default_factory=time.monotonic)

    def follow(self, until: int | None) -> int:
        """Lands all changes that are committed before ``until``, or until it is stopped; how many.

        Whatever ends this: files that have appeared have whole transactions, and the next call goes on behind them.
        """
        bases: dict[int, int] = {}

        def base_type(type_: int) -> int:
            return bases[type_] if type_ in bases else bases.setdefault(type_, self.server.base_type(type_))

        landed = {name: files.landed() for name, files in self.files.items()}
        transactions = Transactions(self.tables, landed, base_type, self._write)
        cursor = self.server.following()
        try:
            with told(self.server.at, "following the log"):
                self._follow(cursor, transactions, until)
        finally:
            cursor.connection.close()
        return transactions.events

    def _follow(self, cursor: Any, transactions: Transactions, until: int | None) -> None:
        while not self.stopped():
            message = cursor.read_message()
            if message is not None:
                end = transactions.take(message.payload)
                if end is None:
                    continue
                self._commit(end)
                if until is not None and end >= until:
                    break
                self._flush_if_due(cursor)
                continue
            if not transactions.open:
                if not self._bytes:
                    self._end = max(self._end, cursor.wal_end)
                if until is not None and cursor.wal_end >= until:
                    break
                self._flush_if_due(cursor)
            if until is not None and time.monotonic() >= self._asking:
                # Asks how far it is: of what is not published the server says so now and then only.
                cursor.send_feedback(reply=True, force=True)
                self._asking = time.monotonic() + _LOOK_SECONDS
            select.select([cursor], [], [], _LOOK_SECONDS)
        self._flush(cursor)

    def _write(self, table: str, line: bytes) -> None:
        self.files[table].write(line)
        self._bytes += len(line)

    def _commit(self, end: int) -> None:
        self._end = end
        for files in self.files.values():
            if files.growing is not None:
                files.growing.commit()

    def _flush_if_due(self, cursor: Any) -> None:
        waited = time.monotonic() - self._since
        if self._bytes >= _FILE_BYTES or waited >= (_FILE_SECONDS if self._bytes else _IDLE_SECONDS):
            self._flush(cursor)

    def _flush(self, cursor: Any) -> None:
        """Puts what is whole onto the disk, and says so."""
        for name, files in self.files.items():
            self.appeared += files.finish(self._end)
            crash.point(f"capture.landed:{name}")
        if self._end > self._told:
            cursor.send_feedback(write_lsn=self._end, flush_lsn=self._end, apply_lsn=self._end, force=True)
        self._told, self._bytes, self._since = self._end, 0, time.monotonic()
