"""A test kit for topologies: rows as texts in, real runs on a real lake in a temporary directory, changes and rows as texts out (docs/testing.md)."""

from rejoin.testing.driver import Changes, Driver
from rejoin.testing.grid import Grid
from rejoin.testing.plugin import fixture

__all__ = ["Changes", "Driver", "Grid", "fixture"]
