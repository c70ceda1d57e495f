"""What belongs to a topology in a lake."""

from functools import cached_property
from typing import TYPE_CHECKING

from rejoin.lake.config import LakeConfig
from rejoin.lake.ledger.ledger import Ledger
from rejoin.plan.model.plan import Plan

if TYPE_CHECKING:
    from rejoin.lake.iceberg.refs import Refs


class TopologyLake:
    """A topology's plan with its ledger and its tables.

    Args:
        plan: what the topology is now.
        config: where the lake is.
    """

    def __init__(self, plan: Plan, config: LakeConfig) -> None:
        self.plan, self.config = plan, config
        self.ledger = Ledger(config.ledger, plan.topology)

    @cached_property
    def refs(self) -> "Refs":
        """Its tables. Whoever asks the ledger alone does not load PyIceberg."""
        from rejoin.lake.iceberg.refs import Refs

        return Refs(self.config, self.plan.topology)

    def forget_recent(self) -> None:
        """Gives back the memory of rows that this process has just written."""
        if "refs" in vars(self):
            self.refs.recent.clear()
