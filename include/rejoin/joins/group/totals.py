"""What the aggregates of a group are told from where each of them has an inverse: members that come are added, and those that go are taken away.

``Totals`` (of some groups, each once): ``fk_1``..; ``n`` BIGINT, how many members there are; for every value ``v_i`` of members ``n_v_i`` BIGINT, of how many it
is not null, and where it is added ``s_v_i`` DECIMAL, its sum, 0 without any.
"""

from collections.abc import Iterator, Sequence

from rejoin.plan.model.grouping import COUNT, Aggregate, Grouping
from rejoin.plan.sql.aggregates import result
from rejoin.plan.sql.typing.coercion import INTEGERS, MAX_DIGITS, digits, is_decimal
from rejoin.statements.dialect import Dialect
from rejoin.statements.own_columns import RUN, numbered

MOST_DIGITS = MAX_DIGITS - 10
"""Decimals of more digits can have sums that no type holds, though it holds the sum once other members are gone."""
WHOLE = "DECIMAL(20,0)"
"""Holds every whole number."""


def without_inverse(grouping: Grouping) -> str | None:
    """The first column that only all members of a group tell; None if there is none."""
    return next((f"{a.name} ({a.function})" for a in grouping.aggregates if not _has_inverse(grouping, a)), None)


def _has_inverse(grouping: Grouping, made: Aggregate) -> bool:
    of = grouping.type_of(made.of[0]) if made.of else ""
    match made.function:
        case "count":
            return True
        case "sum":
            return of in INTEGERS or (is_decimal(of) and digits(of)[0] <= MOST_DIGITS)
        case "avg":
            return of in INTEGERS
        case _:
            return False


def _added(grouping: Grouping) -> dict[str, str]:
    """The values that are added, each with the decimal type that holds it exactly."""
    names = [made.of[0] for made in grouping.aggregates if made.function != COUNT]
    return {name: WHOLE if (of := grouping.type_of(name)) in INTEGERS else of for name in names}


def _sums(sql: Dialect, grouping: Grouping) -> Iterator[tuple[str, str]]:
    """The name of every column of sums of ``Totals``, and the cast of a sum to its type."""
    for name, of in _added(grouping).items():
        yield f"s_{name}", sql.cast("{}", str(result("sum", [of])))


def columns(grouping: Grouping) -> list[str]:
    """The columns of ``Totals``."""
    fks, counts = numbered("fk", len(grouping.keys)), ["n", *(f"n_{value.name}" for value in grouping.values)]
    return [*fks, *counts, *(f"s_{name}" for name in _added(grouping))]


def of_members(sql: Dialect, grouping: Grouping) -> str:
    """``members``, ``fk_1``.. and ``v_1``.. of members -> ``Totals`` of their groups."""
    fks, added = sql.names(numbered("fk", len(grouping.keys))), _added(grouping)
    counted = ["count(*) AS n", *(f"count({value.name}) AS n_{value.name}" for value in grouping.values)]
    summed = [
        f"{cast.format(f'coalesce(sum({sql.cast(name, of)}), 0)')} AS {column}"
        for (name, of), (column, cast) in zip(added.items(), _sums(sql, grouping), strict=True)
    ]
    return f"SELECT {', '.join([fks, *counted, *summed])} FROM members GROUP BY {fks}"


def followed(sql: Dialect, grouping: Grouping) -> str:
    """``known``, ``Totals`` of groups before a run, ``come`` and ``gone``, those of the members that have come to these groups and that have left them, with
    the values that they have and that they had -> ``Totals`` of the groups after it. ``n`` is 0 where no member is left.
    """
    fks, sums = sql.names(numbered("fk", len(grouping.keys))), dict(_sums(sql, grouping))
    numbers = columns(grouping)[len(grouping.keys) :]
    parts = [
        f"SELECT {', '.join([fks, *(f'{sign}{c} AS {c}' for c in numbers)])} FROM {name}"
        for name, sign in (("known", ""), ("come", ""), ("gone", "-"))
    ]
    added = [f"{sums.get(c, sql.cast('{}', 'BIGINT')).format(f'sum({c})')} AS {c}" for c in numbers]
    return f"SELECT {', '.join([fks, *added])} FROM ({' UNION ALL '.join(parts)}) GROUP BY {fks}"


def told(sql: Dialect, grouping: Grouping) -> Iterator[tuple[str, str]]:
    """The name of every aggregate, and its SQL text over ``Totals``."""
    for made in grouping.aggregates:
        value = made.of[0] if made.of else ""
        match made.function:
            case "count":
                yield made.name, f"n_{value}" if value else "n"
            case "sum":
                yield made.name, sql.cast(f"CASE WHEN n_{value} > 0 THEN s_{value} END", made.type)
            case _:
                yield made.name, f"{sql.cast(f's_{value}', 'DOUBLE')} / nullif(n_{value}, 0)"


def kept(sql: Dialect, grouping: Grouping, run: int) -> str:
    """``totals`` -> their versions as they are stored: with ``_run``, and ``_op`` S, or D where no member is left."""
    return f"SELECT {sql.names(columns(grouping))}, {sql.cast(str(run), 'BIGINT')} AS {RUN}, CASE WHEN n > 0 THEN 'S' ELSE 'D' END AS _op FROM totals"


def of_these(sql: Dialect, fks: Sequence[str], shown: Sequence[str], *, op: str = "") -> str:
    """``sent``, Subscriptions, and ``known``, Totals -> what is ``shown`` of those that are sent to these groups, which ``fks`` name; ``op``: of this kind."""
    where, same = f"s._op = '{op}' AND " if op else "", sql.on(fks, "k", "s", nulls=True)
    return f"SELECT {sql.names(shown, 's')} FROM sent AS s WHERE {where}EXISTS (SELECT 1 FROM known AS k WHERE {same})"
