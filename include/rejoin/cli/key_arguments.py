"""Commands that take a key: what begins with a minus and a digit is a value of it and no option."""

import re
from typing import Any

import click

_BELOW_ZERO = re.compile(r"-\.?\d")
_VALUE = "\0"
"""Stands before a value while options are looked for: no word of a command line has it."""


class Keyed(click.Command):
    """A command whose words that begin with a minus and a digit are values. Any other text that begins with a minus stands behind ``--``."""

    def make_parser(self, ctx: click.Context) -> Any:
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parsed(args: list[str]) -> Any:
            given, rest, order = parse([_VALUE + word if _BELOW_ZERO.match(word) else word for word in args])
            return {name: _bare(value) for name, value in given.items()}, _bare(rest), order

        parser.parse_args = parsed  # type: ignore[method-assign]
        return parser


def _bare(value: Any) -> Any:
    if isinstance(value, str):
        return value.removeprefix(_VALUE)
    return type(value)(map(_bare, value)) if isinstance(value, list | tuple) else value
