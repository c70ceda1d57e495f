"""Lets go of a lake that is about to be removed: a process otherwise keeps its connections and metadata for good."""

from rejoin.lake import history, ledger_schema, refs
from rejoin.lake.config import LakeConfig


def forget(config: LakeConfig) -> None:
    """Closes this process's connections to a lake. Other lakes are connected to anew where they are next asked for."""
    refs.catalog(config).close()
    for connected in (ledger_schema.connected, history.connected):
        connected(config.ledger).dispose()
    for cached in (refs.connected, ledger_schema.connected, history.connected):
        cached.cache_clear()
