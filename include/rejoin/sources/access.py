"""How sources are reached from where a run is."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SourceAccess:
    """Sent to the workers that read, never written to a plan, the ledger or an error.

    Attributes:
        root: where relative paths start.
        connections: name of a system, as ``[sources.<name>]`` of the lake's file has it -> its settings.
        catalog: properties of the Iceberg catalog of the lake itself.
    """

    root: str
    connections: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    catalog: Mapping[str, str] = field(default_factory=dict, repr=False)
