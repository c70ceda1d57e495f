"""Lets go of a lake that is about to be removed: a process otherwise keeps its connections for good."""

from rejoin.lake import history, ledger_schema, refs
from rejoin.lake.config import LakeConfig


def disconnect(config: LakeConfig) -> None:
    """Closes this process's connections to a lake. The caches of connections stay: those of other lakes would be dropped while they are open."""
    refs.catalog(config).close()
    for connected in (ledger_schema.connected, history.connected):
        connected(config.ledger).dispose()
