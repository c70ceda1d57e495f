"""ingest: events of a cut and the stored versions become new versions of a source table, at most one a key (the source KTable).

Two entries, for the two kinds of source: ``feed`` (change events with positions) and ``snapshot`` (full snapshots, deletes by absence).
Both give ``classified``, which ``versions`` and ``table_rows`` turn into rows to append, and every input record in it has exactly one
``Fate``: that is the conservation count I4.
"""

from collections.abc import Sequence

from rejoin.plan.change.fingerprint import columns_print
from rejoin.plan.model.plan import Table
from rejoin.sources.shapes.debezium.positions import OF_A_READ
from rejoin.statements.dialect import Dialect, equal, text
from rejoin.statements.own_columns import HASH
from rejoin.statements.value_hash import canonical, compared, hashed
from rejoin.steps.ingest import stream_records
from rejoin.steps.ingest.fates import Fate
from rejoin.steps.ingest.stream_records import ANY_AGE, FIRST_AFTER, Ages

UNRESOLVED = "TOAST_UNRESOLVED"
"""Quarantine code of an event that does not carry a column whose earlier value is not known either."""

_DETAILS = ["_position", "_arrival", "_missing", "_absent", "_old_key", "_file", "_line", "_lines", "_code", "_reason", "_raw", "_snapshot"]


def values(table: Table) -> list[str]:
    """The declared columns that are not key columns."""
    return [c.name for c in table.columns if c.name not in table.key]


def event_columns(table: Table) -> list[str]:
    """The columns of events (``sources.events``), in order."""
    return ["_kind", *(c.name for c in table.columns), *_DETAILS]


def _classified(table: Table) -> list[str]:
    return [*event_columns(table), "_version", "_row", "_fate"]


def truncation(sql: Dialect, table: Table, position: str, *, stored: bool) -> str:
    """``events`` plus one delete at ``position`` for every key that lives or appears: what a truncate event means.

    The deletes are marked by a null ``_arrival``: they are nobody's input record and are not counted. ``stored`` is an input where there
    are stored ``Versions``.
    """
    key = sql.names(table.key)
    keys = f"SELECT {key} FROM events" + (f" UNION ALL SELECT {key} FROM stored WHERE _row IS NOT NULL" if stored else "")
    made = {"_kind": "'delete'", **{k: sql.name(k) for k in table.key}, "_position": text(position), "_missing": sql.array([])}
    columns = event_columns(table)
    line = ", ".join(f"{made.get(c, 'NULL')} AS {sql.name(c)}" for c in columns)
    return f"SELECT {sql.names(columns)} FROM events UNION ALL SELECT {line} FROM (SELECT DISTINCT {key} FROM ({keys}))"


def behind_reads(sql: Dialect, table: Table, *, stored: bool) -> str:
    """``events`` with the changes of the first transaction after a snapshot behind the row of their key that it has read, if they are not newer by themselves.
    ``stored``: as of ``truncation``.
    """
    window = f"PARTITION BY {sql.names(table.key)} ORDER BY _arrival ASC NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    read = f"{sql.last_known(f'CASE WHEN _position LIKE {text(OF_A_READ)} THEN _position END')} OVER ({window})"
    behind = [f"{row} || '~' || _position" for row in (read, f"CASE WHEN _version LIKE {text(OF_A_READ)} THEN _version END")]
    own = f"CASE WHEN {FIRST_AFTER} THEN greatest({', '.join(['_position', *behind])}) ELSE _position END"
    line = ", ".join(f"{own} AS _position" if c == "_position" else sql.name(c) for c in event_columns(table))
    return f"SELECT {line} FROM ({_with_stored(sql, table, 'events', stored=stored)})"


def feed(sql: Dialect, table: Table, *, stored: bool, placed: bool, alone: bool = False, ages: Ages = ANY_AGE) -> str:
    """``events``, upserts and deletes with their positions, and ``stored``, the ``Versions`` of their keys -> ``classified``.

    ``classified``: the event's columns and ``_fate``; for the newest fresh event of each key also ``_version`` and ``_row`` (what is
    stored). The newest position of a key wins, whatever the order of arrival.

    Args:
        sql: the dialect.
        table: the table.
        stored: ``stored`` is an input; else nothing is.
        placed: every event has a position of its own.
        alone: no two events have one key.
        ages: which records are too old.
    """
    key, known = sql.names(table.key), _with_stored(sql, table, "events", stored=stored)
    if not placed:
        columns = [*event_columns(table), "_version", "_row"]
        line = ", ".join(f"{_placed(sql, table)} AS _position" if c == "_position" else sql.name(c) for c in columns)
        known = f"SELECT {line} FROM ({known})"
    if table.event_time is not None:
        columns = [*event_columns(table), "_version", "_row"]
        return stream_records.once(sql, table, columns, known, alone=alone, ages=ages)
    newest = f"(PARTITION BY {key}, _fate ORDER BY _position DESC NULLS LAST, _arrival DESC NULLS LAST)"
    shown = sql.names([*event_columns(table), "_version", "_row"])
    fresh = text(Fate.APPLIED if alone else "fresh")
    judged = f"""
    SELECT {shown}, CASE WHEN {ages.void} THEN {text(Fate.STALE)} WHEN _position < _version THEN {text(Fate.STALE)} WHEN _position = _version THEN {text(Fate.DUPLICATE)} ELSE {fresh} END AS _fate
    FROM ({known})"""
    if alone:
        return judged
    return f"""
WITH judged AS ({judged}
)
SELECT {shown}, CASE
    WHEN _fate <> 'fresh' THEN _fate
    WHEN row_number() OVER {newest} = 1 THEN {text(Fate.APPLIED)}
    WHEN lag(_position) OVER {newest} = _position THEN {text(Fate.DUPLICATE)}
    ELSE {text(Fate.SUPERSEDED)}
END AS _fate
FROM judged"""


def _with_stored(sql: Dialect, table: Table, events: str, *, stored: bool) -> str:
    if stored:
        return f"SELECT e.*, s._version, s._row FROM {events} AS e LEFT JOIN stored AS s ON {sql.on(table.key, 'e', 's')}"
    row = sql.struct_type([*((c.name, c.type or "") for c in table.columns), (HASH, "BINARY")])
    return f"SELECT *, {sql.null('STRING')} AS _version, CAST(NULL AS {row}) AS _row FROM {events}"


def _placed(sql: Dialect, table: Table) -> str:
    """A tombstone has no position of its own: it comes right after the event of its key that arrived before it; if only later ones came
    with it, it is older than those; alone, it deletes the stored version (and is a duplicate if that is a delete already).
    """
    window = f"PARTITION BY {sql.names(table.key)} ORDER BY _arrival ASC NULLS FIRST ROWS BETWEEN"
    arrived = "CASE WHEN _arrival IS NOT NULL THEN _position END"  # rows held back have arrived before all others
    earlier = f"{sql.last_known(arrived)} OVER ({window} UNBOUNDED PRECEDING AND 1 PRECEDING)"
    later = f"{sql.first_known(arrived)} OVER ({window} 1 FOLLOWING AND UNBOUNDED FOLLOWING)"
    alone = "CASE WHEN _row IS NULL THEN _version ELSE _version || '~' END"
    return f"coalesce(_position, {earlier} || '~', CASE WHEN {later} IS NOT NULL THEN '' END, {alone}, '~')"


def unsettled(sql: Dialect, table: Table, *, stored: bool) -> str:
    """``classified`` with every value filled that an event did not carry (unchanged TOAST), or marked quarantined.

    The value is that of the newest earlier version of the same row since its last delete: an event of the cut, else the stored version.
    A row that changed its primary key continues the row with the old key (one such step a cut), which may have been deleted by an
    earlier cut: a remembered delete keeps the version before. ``stored``: the ``Versions``, with the version before, are an input.
    """
    lost = f"_fate = {text(Fate.APPLIED)} AND {sql.size('_missing')} > 0"
    reason = f"'no known value for unchanged column ' || {sql.joined('_missing')}"
    instead = {"_fate": text(Fate.QUARANTINED), "_code": text(UNRESOLVED), "_reason": reason}
    line = ", ".join(f"CASE WHEN {lost} THEN {instead[c]} ELSE {c} END AS {c}" if c in instead else sql.name(c) for c in _classified(table))
    return f"""
WITH filled AS ({_filled(sql, table, "classified")}),
adopted AS ({_adopted(sql, table, stored=stored)})
SELECT {line} FROM ({_filled(sql, table, "adopted")})"""


def _filled(sql: Dialect, table: Table, classified: str) -> str:
    names = values(table)
    group = f"PARTITION BY {sql.names(table.key)}, _fate IN ({text(Fate.APPLIED)}, {text(Fate.SUPERSEDED)})"
    order = "ORDER BY _position ASC NULLS FIRST, _arrival ASC NULLS FIRST"
    window = f"({group}, _life {order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    known, shown, still = [], dict[str, str](), []
    for i, name in enumerate(names):
        column, lacks = sql.name(name), sql.has("_missing", sql.literal(name))
        carried = f"CASE WHEN NOT {lacks} AND _kind = 'upsert' THEN {sql.struct([('v', column)])} END"
        kept = f"CASE WHEN _life = 0 AND _row IS NOT NULL THEN {sql.struct([('v', sql.get('_row', name))])} END"
        known.append(f"coalesce({sql.last_known(carried)} OVER {window}, {kept}) AS _known_{i}")
        shown[name] = f"CASE WHEN {lacks} THEN {sql.get(f'_known_{i}', 'v')} ELSE {column} END"
        still.append(f"CASE WHEN {lacks} AND _known_{i} IS NULL THEN {sql.literal(name)} END")
    shown["_missing"] = sql.compact(sql.array(still))
    lives = f"SELECT *, sum(CASE WHEN _kind = 'delete' THEN 1 ELSE 0 END) OVER ({group} {order}) AS _life FROM {classified}"
    line = ", ".join(f"{shown[c]} AS {sql.name(c)}" if c in shown else sql.name(c) for c in _classified(table))
    return f"SELECT {line} FROM (SELECT {', '.join(['*', *known])} FROM ({lives}))"


def _adopted(sql: Dialect, table: Table, *, stored: bool) -> str:
    """``filled`` with what a PK change's new row lacks from the newest earlier event of its old key in the cut, else from that key's stored row."""
    names = values(table)
    old_key = sql.struct((k, sql.name(k)) for k in table.key)
    gift = sql.struct((f"_{i}", sql.name(n)) for i, n in enumerate(names))
    given = (
        f"SELECT {old_key} AS _old_key, _position AS _at, {gift} AS _gift FROM filled WHERE _kind = 'upsert' AND {sql.size('_missing')} = 0"
    )
    if stored:
        last = (f"CASE WHEN _row IS NOT NULL THEN {sql.get('_row', n)} ELSE {sql.get('_before', n)} END" for n in names)
        kept = sql.struct((f"_{i}", value) for i, value in enumerate(last))
        given += f" UNION ALL SELECT {old_key}, _version, {kept} FROM stored WHERE _row IS NOT NULL OR _before IS NOT NULL"
    # The delete of the old key and the new row have one position where events carry no order within their transaction.
    offers = f"""
    SELECT n._arrival, g._gift, row_number() OVER (PARTITION BY n._arrival ORDER BY g._at DESC) AS _nth
    FROM filled AS n JOIN ({given}) AS g ON n._old_key = g._old_key
    WHERE {sql.size("n._missing")} > 0 AND g._at <= n._position"""
    shown = {
        n: f"CASE WHEN {sql.has('f._missing', sql.literal(n))} THEN {sql.get('g._gift', f'_{i}')} ELSE f.{sql.name(n)} END"
        for i, n in enumerate(names)
    }
    shown["_missing"] = f"CASE WHEN g._gift IS NOT NULL THEN {sql.array([])} ELSE f._missing END"
    line = ", ".join(f"{shown[c]} AS {sql.name(c)}" if c in shown else f"f.{sql.name(c)}" for c in _classified(table))
    return (
        f"SELECT {line} FROM filled AS f LEFT JOIN (SELECT _arrival, _gift FROM ({offers}) WHERE _nth = 1) AS g ON f._arrival = g._arrival"
    )


def snapshot(sql: Dialect, table: Table, *, stored: bool, deletes: bool) -> str:
    """A full snapshot and the stored ``Versions`` of all keys -> ``classified``.

    Inputs: ``events``, the snapshot's readable rows (of kind upsert); ``bad_keys``, the keys of quarantined rows whose key was readable: they
    keep their stored version; ``stored``. Rows that are absent become deletes (with a null ``_arrival``: nobody's input record), except the
    keys of ``bad_keys``. Equal rows of one key are duplicates; different rows of one key are all quarantined.

    Args:
        sql: the dialect.
        table: the table.
        stored: ``stored`` is an input; else the table is new.
        deletes: False if the snapshot had a row whose key was not readable: then nothing is deleted.
    """
    key, columns = sql.names(table.key), event_columns(table)
    unlike = f"min(_bytes) OVER (PARTITION BY {key}) <> max(_bytes) OVER (PARTITION BY {key})"
    instead = {"_code": text("DUPLICATE_KEY"), "_reason": text("two different rows of the snapshot have this key")}
    line = ", ".join(f"CASE WHEN _unlike THEN {instead[c]} ELSE {c} END AS {c}" if c in instead else sql.name(c) for c in columns)
    fate = f"CASE WHEN _unlike THEN {text(Fate.QUARANTINED)} WHEN _nth = 1 THEN {text(Fate.APPLIED)} ELSE {text(Fate.DUPLICATE)} END"
    judged = f"""
WITH marked AS (SELECT *, {_bytes(sql, table, values(table))} AS _bytes FROM events),
numbered AS (
    SELECT *, {unlike} AS _unlike, row_number() OVER (PARTITION BY {key} ORDER BY _arrival ASC NULLS FIRST) AS _nth FROM marked
),
judged AS (SELECT {line}, {fate} AS _fate FROM numbered)"""
    if not (stored and deletes):
        return f"{judged} SELECT {sql.names(_classified(table))} FROM ({_with_stored(sql, table, 'judged', stored=stored)})"
    shown = {k: f"coalesce(j.{sql.name(k)}, s.{sql.name(k)})" for k in table.key}
    shown |= {"_kind": "coalesce(j._kind, 'delete')", "_position": "coalesce(j._position, (SELECT max(_position) FROM events))"}
    shown |= {"_fate": f"coalesce(j._fate, {text(Fate.APPLIED)})", "_version": "s._version", "_row": "s._row"}
    line = ", ".join(f"{shown.get(c, f'j.{sql.name(c)}')} AS {sql.name(c)}" for c in _classified(table))
    return f"""{judged}
SELECT {line}
FROM judged AS j
FULL JOIN stored AS s ON {sql.on(table.key, "j", "s")}
LEFT JOIN (SELECT DISTINCT {key}, true AS _kept FROM bad_keys) AS b ON {sql.on(table.key, "s", "b")}
WHERE j._fate IS NOT NULL OR (s._row IS NOT NULL AND b._kept IS NULL)"""


def versions(sql: Dialect, table: Table, *, keep_unchanged: bool) -> str:
    """``classified`` -> the same with their final ``_fate``, and for those to be stored: ``_op``, ``_new`` (null for a delete),
    ``_before``, ``_newhash``.

    ``_op`` is I, U, D, or N: stored, but no used column changed. A row that was hashed when other columns were used is U, even if it is the same: so a
    hash is always that of its own row. ``keep_unchanged``: store a newest version that changes nothing at all, because later records may be older
    than it (feeds; snapshots never go back).
    """
    columns = [c for c in _classified(table) if c != "_fate"]
    after = f"CASE WHEN _kind = 'upsert' THEN {sql.struct((c.name, sql.name(c.name)) for c in table.columns)} END"
    newest, alive = f"_fate = {text(Fate.APPLIED)}", "_row IS NOT NULL"
    types = {c.name: c.type for c in table.columns}
    pair = {n: (compared(sql, sql.name(n), types[n]), compared(sql, sql.get("_row", n), types[n])) for n in types}
    same_used = equal(pair[n] for n in table.used)
    unchanged = equal(pair[n] for n in values(table)) + f" AND {alive} AND _kind = 'upsert'"
    stays = "true" if keep_unchanged else f"NOT ({unchanged})"
    return f"""
WITH encoded AS (
    SELECT *, {_bytes(sql, table, table.used, columns_print(table.used))} AS _used FROM classified
),
compared AS (
    SELECT *, CASE
        WHEN NOT {newest} THEN NULL WHEN _kind = 'delete' THEN 'D' WHEN NOT {alive} THEN 'I' WHEN {same_used} THEN 'N' ELSE 'U'
    END AS _seems
    FROM encoded
),
rehashed AS (
    SELECT *, {stays} AS _stays, {hashed(f"CASE WHEN _seems IN ('I', 'U') OR (_seems = 'N' AND {stays}) THEN _used END")} AS _newhash FROM compared
),
settled AS (
    SELECT *, CASE WHEN _newhash <> {sql.get("_row", HASH)} THEN 'U' ELSE _seems END AS _is FROM rehashed
)
SELECT
    {sql.names(columns)},
    CASE WHEN _is = 'N' OR (_is = 'D' AND NOT {alive}) THEN {text(Fate.NOOP)} ELSE _fate END AS _fate,
    CASE WHEN _stays THEN _is END AS _op,
    CASE WHEN {newest} THEN _row END AS _before, CASE WHEN {newest} THEN {after} END AS _new, _newhash
FROM settled"""


COUNTED = {"_fate": "_fate", "_real": "coalesce(_arrival >= 0, false)", "_alive": "_row IS NOT NULL", "_lines": "_lines"}
"""What is counted of the result of ``versions``; ``_real``: it is a record of the cut."""


def table_rows(sql: Dialect, table: Table, run: int) -> str:
    """``made``, the result of ``versions`` -> rows of the source table, and of what is not stored (``_op`` null) no more than what is COUNTED."""
    names, counted = values(table), ", ".join(f"{value} AS {name}" for name, value in COUNTED.items())
    before = sql.struct((n, sql.get("_before", n)) for n in (*names, HASH))
    new = "".join(f", {sql.get('_new', n)} AS {sql.name(n)}" for n in names)
    return f"""
SELECT
    {sql.names(table.key)}, {sql.cast(str(run), "BIGINT")} AS _run, _op, _position AS _version, _newhash AS {HASH}{new},
    CASE WHEN _before IS NOT NULL THEN {before} END AS _before, {counted}
FROM made"""


APPENDED = "_op IS NOT NULL"
"""Of the rows that ``table_rows`` gives, those to append to the source table."""


def appended(table: Table) -> list[str]:
    """Their columns."""
    return [*table.key, "_run", "_op", "_version", HASH, *values(table), "_before"]


def _bytes(sql: Dialect, table: Table, names: Sequence[str], which: str = "") -> str:
    """The encoding of some columns of an event; ``which`` tells them from others, where it is compared with that of other columns."""
    types = {c.name: c.type or "" for c in table.columns}
    begin = [(text(which), "STRING")] if which else []
    return canonical(sql, [*begin, *((sql.name(n), types[n]) for n in names)])
