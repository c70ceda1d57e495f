"""Which results of two streams rest on records that were let go: for comparisons, by another way than a run (ADR 0012)."""

from rejoin.engines.relation import Engine, Relation
from rejoin.lake.read.reader import Reader
from rejoin.plan.change.stream_retention import settled
from rejoin.plan.model.match import Window
from rejoin.plan.model.plan import Node, Plan, Table, View


def with_settled(engine: Engine, plan: Plan, reader: Reader, node: Node, rows: Relation) -> Relation:
    """What the output of a node should be: the rows that its query gives, and in the place of settled ones those that it has. ``node``: its texts in the
    dialect of the engine.
    """
    if not isinstance(node.match, Window) or not settled(plan, node) or not reader.has(node.name):
        return rows
    columns = engine.sql.names(p.name for p in node.columns)
    given, kept = (_marked(engine, plan, reader, node, some) for some in (rows, shown(engine, node, reader.current(node.name))))
    both = f"SELECT {columns} FROM given WHERE NOT _settled UNION ALL SELECT {columns} FROM kept WHERE _settled"
    return engine.query(both, given=given, kept=kept)


def shown(engine: Engine, of: Node | Table, rows: Relation) -> Relation:
    """The ``Rows`` of a source table or node with its columns instead of ``_row``."""
    line = ", ".join(f"{engine.sql.get('_row', c.name)} AS {engine.sql.name(c.name)}" for c in of.columns)
    return engine.query(f"SELECT {line} FROM found", found=rows)


def _marked(engine: Engine, plan: Plan, reader: Reader, node: Node, rows: Relation) -> Relation:
    """The rows with ``_settled``: a record of theirs is not stored, or they have one whose partners may not be."""
    window, right, sql = node.match, node.edges[0].right, engine.sql
    assert isinstance(window, Window)
    parts = len(plan.key_of(node.left.table))
    keys = (node.key[:parts], node.key[parts:])
    views: tuple[tuple[View, str, int], ...] = ((node.left, window.left_time, window.before), (right, window.right_time, window.after))
    conditions, joins, records = list[str](), list[str](), dict[str, Relation]()
    for at, (view, time, reach) in enumerate(views):
        own, stored = keys[at], plan.key_of(view.table)
        line = f"SELECT {sql.names(stored)}, {reader.micros(view, time)} AS _time FROM found"
        records[f"side_{at}"] = engine.query(line, found=reader.current(view.table))
        same = " AND ".join(f"r.{sql.name(k)} = s{at}.{sql.name(c)}" for k, c in zip(own, stored, strict=True))
        joins.append(f"LEFT JOIN (SELECT *, true AS _found FROM side_{at}) AS s{at} ON {same}")
        mine, other = f"r.{sql.name(own[0])}", f"r.{sql.name(keys[1 - at][0])}"
        conditions.append(f"({mine} IS NOT NULL AND s{at}._found IS NULL)")
        partners = plan.stored_from(views[1 - at][0].table)
        if partners is not None:
            conditions.append(f"({other} IS NULL AND coalesce(s{at}._time - {reach} < {partners}, false))")
    return engine.query(f"SELECT r.*, {' OR '.join(conditions)} AS _settled FROM rows_ AS r {' '.join(joins)}", rows_=rows, **records)
