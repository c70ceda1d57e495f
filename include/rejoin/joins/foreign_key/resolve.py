"""resolve, what the star does: changed left rows and responses become the results that can change (KIP-213: ResponseJoin).

What is looked up in between (left rows that a response is about, right rows that no valid response tells) comes in as an input, so each
function is one statement. ``state`` of a statement is what ``pair`` gives, with more right rows after each ``fill``.
"""

from collections.abc import Iterable, Mapping, Sequence

from rejoin.plan.model.plan import Edge, Node
from rejoin.statements.dialect import Dialect
from rejoin.statements.own_columns import HASH, numbered
from rejoin.statements.relations import foreign_key, seen


def touched(sql: Dialect, answers: Iterable[str], key: tuple[str, ...], *, changed: bool, again: bool, nulls: bool) -> str:
    """The keys (columns ``key`` of the left table) that got a response, or are in ``again``, though their left row did not change: their
    left rows have to be looked up. A key may be there more than once.

    Args:
        sql: the dialect.
        answers: the names of the inputs that are ``Responses``.
        key: key columns of the left table.
        changed: ``changes`` is an input: ``Changes`` of the left table.
        again: ``again`` is an input, with the columns ``key``.
        nulls: parts of the left key may be null.
    """
    pks = numbered("pk", len(key))
    parts = [f"SELECT {sql.renamed(pks, key)} FROM {name}" for name in answers]
    if again:
        parts.append(f"SELECT {sql.names(key)} FROM again")
    every = " UNION ALL ".join(parts)
    if not changed:
        return every
    same = sql.on(key, "a", "c", nulls=nulls)
    return f"SELECT {sql.names(key)} FROM ({every}) AS a WHERE NOT EXISTS (SELECT 1 FROM changes AS c WHERE {same})"


def affected(sql: Dialect, key: tuple[str, ...], names: Sequence[str], *, changed: bool, told: bool) -> str:
    """The keys, named ``names``, that ``pair`` can come to: those of ``changes`` and those of ``touched``, as far as these are inputs."""
    inputs = [name for name, given in (("changes", changed), ("touched", told)) if given]
    return " UNION ALL ".join(f"SELECT {sql.renamed(key, names)} FROM {name}" for name in inputs)


def lefts_before(sql: Dialect, key: tuple[str, ...], *, changed: bool, looked_up: bool) -> str:
    """``Rows`` of the left table before this run: of ``changes`` the rows before (null: there was none), and ``lefts``, as far as these are inputs."""
    inputs = [part for part, given in (("_before AS _row FROM changes", changed), ("_row FROM lefts", looked_up)) if given]
    return " UNION ALL ".join(f"SELECT {sql.names(key)}, {part}" for part in inputs)


def pair(sql: Dialect, node: Node, key: tuple[str, ...], answers: Mapping[str, str], *, changed: bool, looked_up: bool) -> str:
    """Every affected key once: ``pk_1``.., ``l`` (left row through the view or null), ``changed``, and for edge i ``stale_<i>`` (a
    response came that was made for another version of the left row: dropped), ``lacks_<i>`` (no valid response tells the right row) and,
    if it responded at all, ``r<i>``.

    Args:
        sql: the dialect.
        node: the node.
        key: key columns of the left table.
        answers: edge name -> the input that has its ``Responses``; an edge that is not there did not respond at all.
        changed: ``changes`` is an input: ``Changes`` of the left table in this run.
        looked_up: ``lefts`` is an input: ``Rows`` of the left table for the keys of ``touched``, as of this run.
    """
    pks, row = numbered("pk", len(key)), seen(sql, node.left)
    given = ([("changes", "_after", "true")] if changed else []) + ([("lefts", "_row", "false")] if looked_up else [])
    sides = [
        f"SELECT {sql.names(pks)}, {row} AS l, {own} AS changed FROM (SELECT {sql.renamed(key, pks)}, {column} AS t FROM {name})"
        for name, column, own in given
    ]
    text, columns = " UNION ALL ".join(sides), [*pks, "l", "changed"]
    for number, edge in enumerate(node.edges, start=1):
        answer = answers.get(edge.name)
        answered = None if answer is None else (answer, sql.on(pks, "s", "a", nulls=node.null_keys))
        text, columns = _with_response(sql, (text, columns), number, edge, answered)
    return text


def _with_response(
    sql: Dialect, state: tuple[str, list[str]], number: int, edge: Edge, answered: tuple[str, str] | None
) -> tuple[str, list[str]]:
    """A changed row that nobody answered has no right row, that is what its instruction says; an unchanged one has to be looked up.

    An answer is stale if its hash is not that of the left row. Equal hashes are enough: a row that gets another hash is subscribed anew in the same run,
    and an answer follows the one subscription that is there as of this run.

    Args:
        sql: the dialect.
        state: so far: its text and its columns.
        number: of the edge.
        edge: the edge.
        answered: the input that has its ``Responses``, and the condition that a row of the state ``s`` and an answer ``a`` have one key.
    """
    so_far, columns = state
    subscribed, stale, lacks, right = f"({foreign_key(sql, edge)}) IS NOT NULL", f"stale_{number}", f"lacks_{number}", f"r{number}"
    kept = sql.names(columns)
    if answered is None:
        return f"SELECT {kept}, false AS {stale}, {subscribed} AND NOT changed AS {lacks} FROM ({so_far})", [*columns, stale, lacks]
    answers, on = answered
    old = f"left_hash IS DISTINCT FROM {sql.get('l', HASH)} AND l IS NOT NULL"
    met = f"""
    SELECT {sql.names(columns, "s")}, a.{sql.name("right")} AS {right}, a.left_hash, a.answered IS NOT NULL AS answered
    FROM ({so_far}) AS s LEFT JOIN (SELECT *, true AS answered FROM {answers}) AS a ON {on}"""
    judged = f"SELECT {kept}, {right}, answered, answered AND {old} AS {stale} FROM ({met})"
    text = f"""SELECT
    {kept}, CASE WHEN NOT {stale} THEN {right} END AS {right}, {stale},
    {subscribed} AND ({stale} OR (NOT answered AND NOT changed)) AS {lacks}
FROM ({judged})"""
    return text, [*columns, right, stale, lacks]


def missing(sql: Dialect, number: int, edge: Edge, key: tuple[str, ...]) -> str:
    """The distinct right keys (columns ``key``) of edge ``number`` that ``fill`` of this ``state`` needs."""
    fks = numbered("fk", len(key))
    keys = ", ".join(f"{sql.get('fk', c)} AS {sql.name(k)}" for c, k in zip(fks, key, strict=True))
    return f"SELECT DISTINCT {keys} FROM (SELECT {foreign_key(sql, edge)} AS fk FROM state WHERE lacks_{number})"


def fill(sql: Dialect, columns: Sequence[str], number: int, edge: Edge, key: tuple[str, ...], *, none: bool = False) -> str:
    """``state`` with ``r<i>`` filled, for the rows that lack it, from the right Rows ``rights`` as of this run.

    Args:
        sql: the dialect.
        columns: those of ``state``.
        number: i.
        edge: the edge.
        key: key columns of the right table.
        none: no row of ``state`` has a right row on this edge; ``rights`` only lends its type.
    """
    right, fks = f"r{number}", numbered("fk", len(key))
    others = [c for c in columns if c != right]
    on = " AND ".join(f"{sql.get('s.fk', c)} = r.{c}" for c in fks)
    known = f"CASE WHEN s.lacks_{number} THEN r.found ELSE s.{right} END" if right in columns else "r.found"
    return f"""
WITH shown AS (
    SELECT {sql.names(fks)}, {seen(sql, edge.right)} AS found
    FROM (SELECT {sql.renamed(key, fks)}, _row AS t FROM rights{" WHERE false" if none else ""})
),
asking AS (SELECT *, CASE WHEN lacks_{number} THEN {foreign_key(sql, edge)} END AS fk FROM state)
SELECT {sql.names(others, "s")}, {known} AS {right} FROM asking AS s LEFT JOIN shown AS r ON {"false" if none else on}"""
