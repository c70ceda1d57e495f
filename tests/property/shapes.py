"""The shapes of topologies: which table refers to which, and how they are joined. Everything else about them is random."""

from collections.abc import Callable, Mapping
from typing import Final

from topologies import Declared


def star(d: Declared) -> None:
    first = d.join(d.filtered(d.tables["a"]), d.filtered(d.tables["b"], 0.3), "b")
    second = d.join(d.filtered(first, 0.3), d.tables["c"], "c")
    d.named(d.filtered(second, 0.3), "out")


def chain(d: Declared) -> None:
    first = d.join(d.tables["a"], d.filtered(d.tables["b"], 0.3), "b", carry=True)
    d.named(d.filtered(d.join(first, d.tables["c"], "c"), 0.3), "out")


def long_chain(d: Declared) -> None:
    first = d.named(d.join(d.tables["a"], d.tables["b"], "b", carry=True), "first")
    second = d.join(d.filtered(first, 0.3), d.tables["c"], "c", carry=True)
    d.named(d.join(second, d.tables["d"], "d"), "out")


def chain_right(d: Declared) -> None:
    right = d.join(d.filtered(d.tables["b"], 0.3), d.tables["c"], "c")
    right = d.named(right, "enriched") if d.rng.random() < 0.5 else d.filtered(right)
    d.named(d.join(d.filtered(d.tables["a"], 0.3), right, "b"), "out")


def self_join(d: Declared) -> None:
    parent = d.join(d.tables["a"], d.tables["a"], "a", carry=True)
    d.named(d.join(parent, d.tables["a"], "a", 1), "out")


def self_filtered(d: Declared) -> None:
    right = d.selected(d.filtered(d.tables["a"], 1.0))
    d.named(d.join(d.filtered(d.tables["a"], 1.0), right, "a"), "out")


def diamond(d: Declared) -> None:
    """Both foreign keys name one table."""
    first = d.join(d.filtered(d.tables["a"], 0.3), d.tables["b"], "b")
    d.named(d.join(first, d.selected(d.filtered(d.tables["b"], 0.5)), "b", 1), "out")


def deep_diamond(d: Declared) -> None:
    """A change of b reaches ``out`` directly and through ``middle``."""
    middle = d.named(d.join(d.tables["b"], d.tables["c"], "c"), "middle")
    first = d.join(d.tables["a"], d.filtered(middle, 0.3), "b")
    d.named(d.filtered(d.join(first, d.tables["b"], "b", 1), 0.3), "out")


def output_as_both_sides(d: Declared) -> None:
    """A self join of an output."""
    middle = d.named(d.join(d.tables["a"], d.tables["b"], "b"), "middle")
    d.named(d.join(middle, d.filtered(middle), "a"), "out")


def several(d: Declared) -> None:
    """Two outputs over the same tables, and one without a join."""
    first = d.join(d.tables["a"], d.tables["b"], "b")
    d.named(d.join(first, d.tables["c"], "c"), "out")
    d.named(d.join(d.tables["b"], d.tables["a"], "a"), "back")
    d.named(d.selected(d.filtered(d.tables["a"], 1.0)), "plain")


def six_tables(d: Declared) -> None:
    """A star of three, one arm of which is itself a join; filters everywhere."""
    right = d.filtered(d.join(d.tables["b"], d.tables["e"], "e"), 0.3)
    first = d.join(d.join(d.filtered(d.tables["a"], 0.3), right, "b"), d.tables["c"], "c", carry=True)
    d.named(d.join(d.join(first, d.tables["d"], "d"), d.tables["f"], "f"), "out")


SHAPES: Final[Mapping[str, tuple[Mapping[str, str], Callable[[Declared], None]]]] = {
    "star": ({"a": "bc", "b": "", "c": ""}, star),
    "chain": ({"a": "b", "b": "c", "c": ""}, chain),
    "chain_right": ({"a": "b", "b": "c", "c": ""}, chain_right),
    "self_filtered": ({"a": "a"}, self_filtered),
    "diamond": ({"a": "bb", "b": ""}, diamond),
    "long_chain": ({"a": "b", "b": "c", "c": "d", "d": ""}, long_chain),
    "self_join": ({"a": "a"}, self_join),
    "deep_diamond": ({"a": "bb", "b": "c", "c": ""}, deep_diamond),
    "output_as_both_sides": ({"a": "ab", "b": ""}, output_as_both_sides),
    "six_tables": ({"a": "bcd", "b": "e", "c": "f", "d": "", "e": "", "f": ""}, six_tables),
    "several": ({"a": "bc", "b": "a", "c": ""}, several),
}
"""Shape -> (table -> the tables that its foreign keys name, how they are joined)."""
