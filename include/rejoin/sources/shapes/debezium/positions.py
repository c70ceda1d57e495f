"""Source positions of Debezium events as text that sorts like the log: fixed-width parts, never a clock.

``<parts of the connector>.<rank>.<order>``: rank 0 for a row that a snapshot read and 1 for a streamed change, so that the change
wins over a snapshot taken at the same position; order is ``transaction.total_order`` (0 if the connector does not write it), since
several changes of a transaction can share one log position.

* postgresql: the LSN of the change, which the row lock makes grow with every change of one row; or that of the last commit before its transaction
  (``source.sequence``), where that is later: a change stands in the log before a snapshot that does not have it, if its transaction was open then. Order is
  then the LSN of the change, if there is no ``total_order``. The first transaction after a snapshot does not say what was committed before
  (``marks.mark``): ``ingest`` puts its changes behind the row that the snapshot read.
* mysql, mariadb: number of the binlog file (the digits that its name ends in), position, row within the event. GTIDs say which
  transactions ran, not in which order, so they are ignored; after ``RESET MASTER`` or a fail-over to a server with other binlogs
  the numbers start again and the table needs a new snapshot under a new topic.
* sqlserver: commit LSN, change LSN (hexadecimal groups), serial number of the event within the change.
"""

import re
from typing import Any

from rejoin.errors import BadRecord

UNKNOWN_POSITION = "UNKNOWN_POSITION"
OF_A_READ, OF_A_CHANGE = (f"%.{rank}.{'_' * 20}" for rank in (0, 1))
"""Patterns of SQL's LIKE: the positions of each rank."""
COMMITTED = r'^\["([0-9]{1,18})",'
"""What finds, in ``source.sequence``, the LSN of the last commit before the transaction of an event."""
FIRST = "[null,"
"""With what the sequence of an event begins whose transaction is the first one after a snapshot."""
_LIMIT = 10**20
_COMMITTED = re.compile(COMMITTED)
_BINLOG = re.compile(r".*?(\d{1,19})", re.ASCII | re.DOTALL)
_LSN_GROUPS = re.compile(r"([0-9a-f]{8}):([0-9a-f]{8}):([0-9a-f]{4})", re.IGNORECASE)


def position(source: Any, rank: int, transaction: Any) -> str:
    """The position of an event, from its ``source`` and ``transaction`` blocks; ``BadRecord`` UNKNOWN_POSITION if they have none."""
    if type(source) is not dict:
        raise BadRecord(UNKNOWN_POSITION, "the event has no source block")
    order = transaction.get("total_order") if type(transaction) is dict else 0
    order = 0 if order is None else _number(order, "transaction.total_order")
    connector = source.get("connector")
    if connector == "postgresql":
        lsn, sequence = _number(source.get("lsn"), "source.lsn"), source.get("sequence")
        if rank and type(sequence) is str and (found := _COMMITTED.match(sequence)) and (committed := int(found[1])) >= lsn:
            lsn, order = committed, order or lsn
        return "%020d.%d.%020d" % (lsn, rank, order)  # noqa: UP031 - twice as fast as an f-string
    if connector in ("mysql", "mariadb"):
        return f"{_binlog(source)}.{rank}.{order:020d}"
    if connector == "sqlserver":
        return f"{_sqlserver(source)}.{rank}.{order:020d}"
    raise BadRecord(UNKNOWN_POSITION, "the connector is none of postgresql, mysql, mariadb, sqlserver")


def _number(value: Any, name: str) -> int:
    if type(value) is int and 0 <= value < _LIMIT:
        return value
    raise BadRecord(UNKNOWN_POSITION, f"{name} is not a log position")


def _binlog(source: dict[str, Any]) -> str:
    file = source.get("file")
    match = _BINLOG.fullmatch(file) if type(file) is str else None
    if match is None:
        raise BadRecord(UNKNOWN_POSITION, "source.file does not end in the number of a binlog file")
    row = source.get("row")
    parts = (int(match[1]), _number(source.get("pos"), "source.pos"), 0 if row is None else _number(row, "source.row"))
    return ".".join(f"{part:020d}" for part in parts)


def _sqlserver(source: dict[str, Any]) -> str:
    change, serial = source.get("change_lsn"), source.get("event_serial_no")
    # Rows of a snapshot have a commit LSN only.
    parts = [_groups(source.get("commit_lsn"), "source.commit_lsn"), "0" * 20 if change is None else _groups(change, "source.change_lsn")]
    return ".".join([*parts, f"{0 if serial is None else _number(serial, 'source.event_serial_no'):020d}"])


def _groups(text: Any, name: str) -> str:
    match = _LSN_GROUPS.fullmatch(text) if type(text) is str else None
    if match is None:
        raise BadRecord(UNKNOWN_POSITION, f"{name} is not a log position")
    return "".join(match.groups()).lower()
