"""What is kept aside in a lake now, for people. Read without Spark."""

from collections.abc import Sequence

from rejoin.errors import UnknownTable
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.query.point_query import PointQuery
from rejoin.lake.query.quarantine_entries import Entry, open_entries
from rejoin.lake.query.typed_keys import key_text


def entries(ledger: Ledger, refs: Refs, name: str | None = None, key: Sequence[str] = ()) -> list[Entry]:
    """What the newest committed run keeps aside.

    Args:
        ledger: the topology's ledger.
        refs: its tables.
        name: only of this table or output.
        key: only of this key, as texts (``typed_keys.NULL``: null).

    Raises:
        RunUnknown: nothing was committed yet.
        UnknownTable: no such table or output.
    """
    query = PointQuery(ledger, refs)
    known = query.plan.names
    if name is not None and name not in known:
        raise UnknownTable(f"topology {query.plan.topology!r} has no table {name!r}", expected=", ".join(known))
    found = [e for of in known if name in (None, of) for e in open_entries(query.plan, of, query.quarantine(of))]
    return [e for e in found if not key or tuple(map(key_text, e.key.values())) == tuple(key)]
