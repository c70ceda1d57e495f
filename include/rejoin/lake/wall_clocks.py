"""Where the tables of a plan hold wall clocks (TIMESTAMP_NTZ). From the plan alone."""

from collections.abc import Iterable, Mapping

from rejoin.lake.table_roles import Role, StateTable, state_tables
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.plan import Edge, Node, Plan
from rejoin.statements.own_columns import numbered

WALL = "TIMESTAMP_NTZ"
Path = tuple[str, ...]
STRUCTS = {
    Role.SOURCE: ("", "_before"),
    Role.REFUSED: ("", "_row"),
    Role.OUTPUT: ("",),
    Role.CHANGES: ("", "_before", "_after"),
    Role.CANDIDATES: ("", "_before", "_after"),
    Role.HELD: ("",),
}
"""Where the columns of a table or node stand in the tables that belong to it: in the row itself (the empty name), and in these structs."""


def wall_clocks(plan: Plan) -> dict[str, set[Path]]:
    """Table -> the columns, and fields of structs, that hold wall clocks."""
    tables = state_tables(plan).values()
    walls = {table.of.name: [c.name for c in table.of.columns if c.type == WALL] for table in tables}
    return {table.name: _walls(plan, walls, table) for table in tables}


def _walls(plan: Plan, walls: Mapping[str, list[str]], table: StateTable) -> set[Path]:
    """Of one table. ``walls``: table or node -> its columns that hold wall clocks."""
    own = walls[table.of.name]
    left = plan.left_key(table.of) if isinstance(table.of, Node) else table.of.key
    pks = {(pk,) for pk, key in zip(numbered("pk", len(left)), left, strict=True) if key in own}
    match table.role, table.edge:
        case (Role.SUBSCRIPTIONS, Grouping() as grouping):
            assert isinstance(table.of, Node)
            of_left = plan.key_of(table.of.left.table)
            members = {(pk,) for pk, key in zip(numbered("pk", len(of_left)), of_left, strict=True) if key in walls[table.of.left.table]}
            named = zip(
                (*numbered("fk", len(grouping.keys)), *(v.name for v in grouping.values)), (*grouping.keys, *grouping.values), strict=True
            )
            return members | {(name,) for name, value in named if value.type == WALL}
        case (Role.TOTALS, Grouping() as grouping):
            return {(fk,) for fk, key in zip(numbered("fk", len(grouping.keys)), grouping.keys, strict=True) if key.type == WALL}
        case (Role.SUBSCRIPTIONS, Edge() as edge):
            keys = zip(numbered("fk", len(edge.foreign_key)), plan.key_of(edge.right.table), strict=True)
            return pks | {(fk,) for fk, key in keys if key in walls[edge.right.table]}
        case (Role.RESPONSES, Edge() as edge):
            return pks | _paths([c.name for c in edge.right.columns if c.type == WALL], "right")
        case _:
            return _paths(own, *STRUCTS[table.role])


def _paths(columns: Iterable[str], *parents: str) -> set[Path]:
    """The columns within each of the structs; the empty name: the row itself."""
    return {((parent, c) if parent else (c,)) for parent in parents for c in columns}
