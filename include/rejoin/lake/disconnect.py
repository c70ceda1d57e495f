"""Lets go of a lake that is about to be removed: a process otherwise keeps its connections for good."""

from rejoin.lake.config import LakeConfig
from rejoin.lake.iceberg import refs
from rejoin.lake.ledger import history, schema


def disconnect(config: LakeConfig) -> None:
    """Closes this process's connections to a lake; those to other lakes stay."""
    refs.CATALOGS.forget(refs.key_of(config))
    for engines in (schema.ENGINES, history.ENGINES):
        engines.forget(config.ledger)
