"""How sources are reached from where a run is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

OWN = "lake"
"""The Iceberg catalog of the lake itself."""


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

    def to(self, path: str) -> "SourceAccess":
        """What it takes to reach the source of a path: the settings of the system that ``<scheme>://<system>/...`` names, and of no other."""
        system = path.partition("://")[2].partition("/")[0]
        named = {name: stated for name, stated in self.connections.items() if name.lower() == system.lower()}
        return SourceAccess(self.root, named, self.catalog if system == OWN else {})

    def catalog_settings(self, at: str) -> Mapping[str, str] | None:
        """Properties of an Iceberg catalog by its name; None: nothing says where it is."""
        return self.catalog if at == OWN else self.connections.get(at)
