"""How a database stands that is captured from: its settings, the rights of this user, and the slot. Changes nothing."""

from dataclasses import dataclass
from typing import Final

from rejoin.capture.server import Server


@dataclass(frozen=True)
class SlotCondition:
    """A replication slot.

    Attributes:
        status: as ``pg_replication_slots.wal_status`` has it: reserved, extended, unreserved or lost.
        held_bytes: of the log, which the server keeps for it.
        safe_bytes: so much can be written until it is lost; None: without limit.
    """

    status: str
    held_bytes: int
    safe_bytes: int | None


@dataclass(frozen=True)
class Condition:
    """A database.

    Attributes:
        replication: this user may replicate.
        create: this user may make a publication.
        free_slots: of the server.
        slot: None: there is none.
        published: schema and name of the tables in the publication; None: there is none.
        keep_size: ``max_slot_wal_keep_size`` as the server prints it; -1: without limit.
    """

    wal_level: str
    replication: bool
    create: bool
    free_slots: int
    slot: SlotCondition | None
    published: frozenset[str] | None
    keep_size: str


def condition(server: Server) -> Condition:
    """How it stands."""
    ((level, replication, create, free, keep_size),) = server.rows("looking at the server", _SERVER)
    slots = server.rows("looking at the slot", _SLOT, (server.name,))
    publications = server.rows("looking at the publication", "SELECT oid FROM pg_publication WHERE pubname = %s", (server.name,))
    tables = server.rows("looking at the publication", _PUBLISHED, (server.name,))
    published = frozenset(name for (name,) in tables) if publications else None
    return Condition(level, replication, create, free, SlotCondition(*slots[0]) if slots else None, published, keep_size)


_SERVER: Final = """
SELECT current_setting('wal_level'), r.rolreplication OR r.rolsuper, has_database_privilege(current_database(), 'CREATE'),
       current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots)::int, current_setting('max_slot_wal_keep_size')
FROM pg_roles r WHERE r.rolname = current_user
"""
_SLOT: Final = """
SELECT wal_status, coalesce(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), restart_lsn), 0)::int8, safe_wal_size
FROM pg_replication_slots WHERE slot_name = %s
"""
_PUBLISHED: Final = "SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = %s"
