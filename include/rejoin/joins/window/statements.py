"""Statements of joins of two streams within a time.

``Changed``: the keys of records that changed in this run, as the stream's key columns. ``Lonely``: the keys (``pk_1``.. or ``rk_1``..) of records of which it
has to be judged anew whether they are in the result without partner.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rejoin.joins import sides
from rejoin.plan.model.durations import FOREVER
from rejoin.plan.model.match import Window
from rejoin.plan.model.plan import Edge, Node, Plan
from rejoin.plan.model.steps import Verb, step_id
from rejoin.statements.dialect import Dialect
from rejoin.statements.own_columns import numbered


@dataclass(frozen=True)
class Keys:
    """The key columns of both streams."""

    left: tuple[str, ...]
    right: tuple[str, ...]

    @property
    def pks(self) -> list[str]:
        return numbered("pk", len(self.left))

    @property
    def rks(self) -> list[str]:
        return numbered("rk", len(self.right))

    @property
    def whole(self) -> list[str]:
        """The key of a result, as ``state`` names it."""
        return numbered("pk", len(self.left) + len(self.right))

    @property
    def sides(self) -> tuple[list[str], list[str]]:
        """The left and the right part of it."""
        return self.whole[: len(self.left)], self.whole[len(self.left) :]


def window_of(edge: Edge) -> Window:
    assert isinstance(edge.match, Window)
    return edge.match


def times(sql: Dialect, node: Node, keys: Keys, *, left: bool) -> str:
    """``rows_``, Changes of one stream -> ``low`` and ``high``, the times of every row before and after, in microseconds."""
    text, at = _images(sql, node, keys, "rows_", left=left), "lt" if left else "rt"
    return f"SELECT {at} AS low, {at} AS high FROM ({text})"


def _images(sql: Dialect, node: Node, keys: Keys, changes: str, *, left: bool) -> str:
    key = keys.left if left else keys.right
    return _side(sql, node, keys, sides.images(sql, key, changes, "_before", "_after"), left=left)


def _side(sql: Dialect, node: Node, keys: Keys, rows: str, *, left: bool) -> str:
    """``Lefts`` or ``Rights`` of rows as ``sides`` takes them."""
    edge = node.edges[0]
    window = window_of(edge)
    if left:
        return sides.lefts(sql, node.left, edge, keys.left, rows, time=window.left_time)
    return sides.rights(sql, edge.right, window.on, keys.right, rows, time=window.right_time)


def _pairs(window: Window, left: str, right: str) -> str:
    """The pairs ``l_``, ``r_`` of ``Lefts`` and ``Rights``, as the text behind FROM.

    Time is cut into slots as long as the window, so the window of a left record lies in at most two of them: records meet by equality of a slot, and
    not everything of one key meets everything else of it.
    """
    width = max(window.before + window.after, 1)
    first = _slot(f"(lt - {window.before})", width)
    lefts = f"SELECT s.*, {first} + n * {width} AS slot FROM {left} AS s CROSS JOIN (VALUES (0), (1)) AS twice(n)"
    rights = f"SELECT s.*, {_slot('rt', width)} AS slot FROM {right} AS s"
    within = f"r_.rt BETWEEN l_.lt - {window.before} AND l_.lt + {window.after}"
    return f"({lefts}) AS l_ JOIN ({rights}) AS r_ ON {sides.met(len(window.on), 'l_', 'r_')} AND l_.slot = r_.slot AND {within}"


def _slot(at: str, width: int) -> str:
    """The begin of the slot that a time is in; ``%`` has the sign of the time."""
    return f"{at} - ({at} % {width} + {width}) % {width}"


def lonely(sql: Dialect, node: Node, keys: Keys, *, left: bool, given: Sequence[str]) -> str:
    """``lefts`` (or ``rights``), Rows, and ``marks`` -> ``Lonely``: who changed, whose window closes, who has a partner that changed.

    ``given``: which of ``left_changes`` and ``right_changes`` are inputs.
    """
    own, other = ("left_changes", "right_changes") if left else ("right_changes", "left_changes")
    name, ks, window = ("lefts" if left else "rights"), (keys.pks if left else keys.rks), window_of(node.edges[0])
    key = keys.left if left else keys.right
    side = _marked(sql, window, _side(sql, node, keys, sides.stored(sql, key, name), left=left), left=left)
    end = f"lt + {window.after}" if left else f"rt + {window.before}"
    parts = [f"SELECT {sql.names(ks)} FROM side WHERE {end} >= old_mark AND {end} < mark"]
    if own in given:
        parts.append(f"SELECT {sql.renamed(key, ks)} FROM {own}")
    if other in given:
        images = f"({_images(sql, node, keys, other, left=not left)})"
        pairs = _pairs(window, *(("side", images) if left else (images, "side")))
        parts.append(f"SELECT {sql.names(ks, 'l_' if left else 'r_')} FROM {pairs}")
    return f"WITH side AS ({side}) SELECT DISTINCT {sql.names(ks)} FROM ({' UNION ALL '.join(parts)})"


def marks(window: Window, *, before: Sequence[str], now: Sequence[str]) -> str:
    """The ``newest`` event times of both streams, as of the run before and of this one -> ``c_1``.., ``old_mark`` and ``mark``: the watermarks, in
    microseconds; before all times where there was none.

    Args:
        window: the window.
        before: the inputs as of the run before, with ``c_1``.. and ``newest``.
        now: those as of this run.
    """
    clocks = [f"c_{i}" for i in range(1, len(window.left_clock) + 1)]
    parts = [
        f"SELECT {', '.join([*clocks, f'{flag} AS is_old', 'newest'])} FROM {n}"
        for of, flag in ((before, "true"), (now, "false"))
        for n in of
    ]
    old, new = (
        f"coalesce({_mark(window, f'CASE WHEN {of} THEN newest END')}, -{FOREVER}) - {window.lateness}" for of in ("is_old", "NOT is_old")
    )
    grouped = f" GROUP BY {', '.join(clocks)}" if clocks else ""
    return f"SELECT {', '.join([*clocks, f'{old} AS old_mark', f'{new} AS mark'])} FROM ({' UNION ALL '.join(parts)}){grouped}"


def _mark(window: Window, newest: str) -> str:
    """The watermark of what is the newest event time of either stream."""
    return f"CASE WHEN count({newest}) = 2 THEN min({newest}) END" if window.each else f"max({newest})"


def closing(window: Window, *, left: bool) -> str:
    """``rows_``, the ``marks`` -> ``low`` and ``high``: the times of the records whose windows close in this run."""
    reach = window.after if left else window.before
    return f"SELECT old_mark - {reach} AS low, mark - {reach} - 1 AS high FROM rows_ WHERE mark > old_mark"


def _marked(sql: Dialect, window: Window, side: str, *, left: bool) -> str:
    """``Lefts`` or ``Rights`` with ``old_mark`` and ``mark``, null where a clock has no value."""
    clocks, row = (window.left_clock, "l") if left else (window.right_clock, "r1")
    on = " AND ".join(["true", *(f"{sql.get(f's.{row}', name)} = m.c_{i}" for i, name in enumerate(clocks, start=1))])
    return f"SELECT s.*, m.old_mark, m.mark FROM ({side}) AS s LEFT JOIN marks AS m ON {on}"


@dataclass(frozen=True)
class Stored:
    """From when on all records of either stream are stored, in microseconds; None: all are."""

    left: int | None = None
    right: int | None = None


ALL = Stored()
"""Nothing was let go."""


def state(sql: Dialect, node: Node, keys: Keys, *, scoped: Sequence[str] | None, stored: Stored = ALL) -> str:
    """``lefts`` and ``rights``, ``Rows`` of both streams, and ``marks`` -> ``pk_1``.., ``l``, ``r1``: pairs, and records without partner.

    Args:
        sql: the dialect.
        node: the node.
        keys: the keys.
        scoped: which of ``left_changes`` and ``right_changes`` are inputs: only pairs of those records, and of the others those in
            ``lonely_left`` and ``lonely_right``. None: all.
        stored: which records are stored; whether one had a partner before that is not known, so it is not in the result as one without.
    """
    edge = node.edges[0]
    window = window_of(edge)
    left = _marked(sql, window, _side(sql, node, keys, sides.stored(sql, keys.left, "lefts"), left=True), left=True)
    right = _marked(sql, window, _side(sql, node, keys, sides.stored(sql, keys.right, "rights"), left=False), left=False)
    mine, theirs = keys.sides
    line = ", ".join([*_named(keys.pks, mine, "l_"), *_named(keys.rks, theirs, "r_"), "l_.l", "r_.r1"])
    pairs = f"SELECT {line} FROM {_pairs(window, 'ls', 'rs')}"
    parts = [f"SELECT * FROM pairs AS p{_of_changed(sql, keys, scoped)}"]
    if edge.kind.keeps_left:
        parts.append(_unpaired(sql, window, keys, left=True, scoped=scoped is not None, partners=stored.right))
    if edge.kind.keeps_right:
        parts.append(_unpaired(sql, window, keys, left=False, scoped=scoped is not None, partners=stored.left))
    return f"WITH ls AS ({left}), rs AS ({right}), pairs AS ({pairs}) {' UNION ALL '.join(parts)}"


def _named(key: Sequence[str], names: Sequence[str], of: str) -> list[str]:
    return [f"{of}.{k} AS {name}" for k, name in zip(key, names, strict=True)]


def _unpaired(sql: Dialect, window: Window, keys: Keys, *, left: bool, scoped: bool, partners: int | None) -> str:
    """The records of one side that are in no pair, and whose window has closed: of all, or of those that have to be judged anew. ``partners``: from
    when on all records of the other side are stored.
    """
    mine, theirs = keys.sides
    ks, own, side, among = (keys.pks, mine, "ls", "lonely_left") if left else (keys.rks, theirs, "rs", "lonely_right")
    names = [*(f"s.{k}" for k in ks), *("NULL" for _ in (theirs if left else mine))]
    line = ", ".join([*names, "s.l", "NULL"] if left else [*names[len(ks) :], *names[: len(ks)], "NULL", "s.r1"])
    paired = " AND ".join(f"p.{name} = s.{k}" for name, k in zip(own, ks, strict=True))
    judged = f" AND EXISTS (SELECT 1 FROM {among} AS x WHERE {sql.on(ks, 'x', 's')})" if scoped else ""
    if partners is not None:
        judged += f" AND {_known('s.lt' if left else 's.rt', window, partners, left=left)}"
    return f"SELECT {line} FROM {side} AS s WHERE {_closed(window, left=left)}{judged} AND NOT EXISTS (SELECT 1 FROM pairs AS p WHERE {paired})"


def _of_changed(sql: Dialect, keys: Keys, scoped: Sequence[str] | None) -> str:
    if scoped is None:
        return ""
    return f" WHERE {_any_changed(sql, keys, scoped, 'p', keys.sides)}"


def _any_changed(sql: Dialect, keys: Keys, given: Sequence[str], pair: str, names: tuple[Sequence[str], Sequence[str]]) -> str:
    """Whether a record of a pair changed in this run."""
    parts = []
    for changes, own, key in (("left_changes", names[0], keys.left), ("right_changes", names[1], keys.right)):
        if changes in given:
            same = " AND ".join(f"c.{sql.name(k)} = {pair}.{sql.name(n)}" for k, n in zip(key, own, strict=True))
            parts.append(f"EXISTS (SELECT 1 FROM {changes} AS c WHERE {same})")
    return f"({' OR '.join(parts)})" if parts else "false"


def _known(time: str, window: Window, partners: int, *, left: bool) -> str:
    """Whether all that can be the partner of a record is stored, if all ``partners`` from a time on are."""
    return f"coalesce({time} - {window.before if left else window.after} >= {partners}, true)"


def unsettled(sql: Dialect, node: Node, keys: Keys, times: tuple[str, str], stored: Stored) -> str:
    """``rows_`` with the key of the node, ``lefts`` and ``rights``, ``Rows`` of both streams -> those that ``state`` would give again.

    The others rest on records that are not stored any more, and stay as they are. ``times``: SQL texts of the time of a record, in microseconds, over
    the columns of either stream.
    """
    window, joins, conditions = window_of(node.edges[0]), [], []
    own = (node.key[: len(keys.left)], node.key[len(keys.left) :])
    for at, (name, key, partners) in enumerate((("lefts", keys.left, stored.right), ("rights", keys.right, stored.left))):
        known = "true" if partners is None else _known(times[at], window, partners, left=at == 0)
        same = " AND ".join(f"s_{at}.{sql.name(k)} = o.{sql.name(n)}" for k, n in zip(key, own[at], strict=True))
        joins.append(f"LEFT JOIN (SELECT {sql.names(key)}, {known} AS known FROM {name}) AS s_{at} ON {same}")
        mine, other = sql.name(own[at][0]), sql.name(own[1 - at][0])
        conditions.append(f"(o.{mine} IS NULL OR s_{at}.known OR (s_{at}.known IS NOT NULL AND o.{other} IS NOT NULL))")
    return f"SELECT o.* FROM rows_ AS o {' '.join(joins)} WHERE {' AND '.join(conditions)}"


def _closed(window: Window, *, left: bool) -> str:
    """Whether no partner can come any more: the watermark has passed the end of the window, or there never is one."""
    if window.at_once:
        return "true"
    time, reach = ("s.lt", window.after) if left else ("s.rt", window.before)
    equal = [f"s.{'fk' if left else 'on'}_{i} IS NULL" for i in range(1, len(window.on) + 1)]
    return f"({' OR '.join([*equal, f'{time} IS NULL', f'{time} + {reach} < s.mark'])})"


def in_scope(sql: Dialect, key: Sequence[str], keys: Keys, *, given: Sequence[str], kept: tuple[bool, bool]) -> str:
    """``rows_`` with the columns ``key`` of results -> those that ``state`` would give again with the same scope. ``kept``: whether records of the left,
    and of the right, are in the result without partner.
    """
    mine, theirs = key[: len(keys.left)], key[len(keys.left) :]
    parts = [_any_changed(sql, keys, given, "o", (mine, theirs))]
    for judged, own, other, ks, name in (
        (kept[0], mine, theirs, keys.pks, "lonely_left"),
        (kept[1], theirs, mine, keys.rks, "lonely_right"),
    ):
        if judged:
            same = " AND ".join(f"x.{k} = o.{sql.name(n)}" for k, n in zip(ks, own, strict=True))
            parts.append(f"(o.{sql.name(other[0])} IS NULL AND EXISTS (SELECT 1 FROM {name} AS x WHERE {same}))")
    return f"SELECT * FROM rows_ AS o WHERE {' OR '.join(parts)}"


def shown(sql: Dialect, plan: Plan, node: Node) -> Iterator[tuple[str, str, str]]:
    """What finds the results of a node, whose texts are in the dialect: the step, a title and the statement."""
    step, kind, both = step_id(Verb.RESOLVE, node.name), node.edges[0].kind, ("left_changes", "right_changes")
    keys = Keys(plan.key_of(node.left.table), plan.key_of(node.edges[0].right.table))
    yield step, "marks, from the newest times", marks(window_of(node.edges[0]), before=["before"], now=["now"])
    for of_left, kept in ((True, kind.keeps_left), (False, kind.keeps_right)):
        if kept:
            yield step, f"lonely_{'left' if of_left else 'right'}", lonely(sql, node, keys, left=of_left, given=both)
    yield step, "state, from lefts, rights, marks and changes", state(sql, node, keys, scoped=both)
