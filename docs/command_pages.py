"""Writes docs/commands.md, the reference of the command line, from the commands themselves: `python docs/command_pages.py`, or `make docs`."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from rejoin.cli import main

PAGE = Path(__file__).with_name("commands.md")
HEAD = """# Commands

<!-- Written by docs/command_pages.py from the commands themselves: `make docs` writes it again. -->

`rejoin COMMAND --help` prints the same. [Operations](operations.md) explains what `--lake` and `--root` name,
the [exit codes](operations.md#exit-codes) and the [JSON that `--json` prints](operations.md#output-for-programs).
"""


def page() -> str:
    """The whole page: a list of the commands in the order of the alphabet, then a section for each."""
    commands = list(_commands("rejoin", main, None))
    listed = "\n".join(f"| [`{name}`](#{name.replace(' ', '-')}) | {_first_sentence(command)} |" for name, command, _ in commands)
    return "\n".join([HEAD, f"| command | does |\n|---|---|\n{listed}", *(_section(*one) for one in commands)]) + "\n"


def _commands(name: str, group: click.Group, parent: click.Context | None) -> Iterator[tuple[str, click.Command, click.Context]]:
    context = click.Context(group, parent, info_name=name.rpartition(" ")[2])
    for word, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _commands(f"{name} {word}", command, context)
        else:
            yield f"{name} {word}", command, click.Context(command, context, info_name=word)


def _section(name: str, command: click.Command, context: click.Context) -> str:
    usage = command.get_usage(context).removeprefix("Usage: ")
    records = (p.get_help_record(context) for p in command.get_params(context) if isinstance(p, click.Option))
    options = "\n".join(f"- `{spelled}`: {said}" for spelled, said in filter(None, records) if "--help" not in spelled)
    parts = [f"\n## {name}", f"```\n{' '.join(usage.split())}\n```", inspect.cleandoc(command.help or ""), options]
    return "\n\n".join(part for part in parts if part)


def _first_sentence(command: click.Command) -> str:
    """Up to the first full stop or semicolon; the rest is in the section."""
    text = " ".join(inspect.cleandoc(command.help or "").split())
    return min((text.partition(mark)[0] for mark in (". ", "; ")), key=len).removesuffix(".")


if __name__ == "__main__":
    PAGE.write_text(page())
