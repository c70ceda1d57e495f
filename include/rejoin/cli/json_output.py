"""JSON as every command prints it."""

import json
from collections.abc import Iterable
from typing import Any

import click

from rejoin.lake.query.json_values import plain


def print_json(value: Any) -> None:
    """Prints one value on one line of standard output."""
    click.echo(json.dumps(plain(value), ensure_ascii=False, allow_nan=False))


def print_lines(values: Iterable[Any]) -> None:
    """Prints one value a line."""
    for value in values:
        print_json(value)
