"""What shells offer for names: the tables and topologies that a lake's ledger knows. Takes no lock, makes nothing, and is silent about what it cannot read."""

from contextlib import suppress

import click


def topologies(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Those of the lake."""
    with suppress(Exception):  # a prompt is no place for errors; the command itself will tell
        return [name for name in _heads(ctx) if name.startswith(incomplete)]
    return []


def outputs(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Outputs of the named (or only) topology as of its newest committed run."""
    return _names(ctx, incomplete, tables=False)


def tables(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The same with its source tables."""
    return _names(ctx, incomplete, tables=True)


def _names(ctx: click.Context, incomplete: str, *, tables: bool) -> list[str]:
    from rejoin.lake.ledger.history import History

    with suppress(Exception):
        known = [(name, head) for name, head in _heads(ctx).items() if ctx.params.get("name") in (None, name)]
        if len(known) == 1 and (head := known[0][1]) is not None:
            plan = History(_ledger(ctx), known[0][0]).plan(head)
            names = [n.name for n in plan.nodes if n.published] + [t.name for t in plan.tables if tables]
            return [name for name in names if name.startswith(incomplete)]
    return []


def _heads(ctx: click.Context) -> dict[str, int | None]:
    from rejoin.lake.ledger.history import heads

    return heads(_ledger(ctx))


def _ledger(ctx: click.Context) -> str:
    from rejoin.lake.config import is_there, lake_config

    location = str(ctx.params["location"])
    if not is_there(location):
        raise FileNotFoundError(location)  # else its directory would be made
    return lake_config(location).ledger
