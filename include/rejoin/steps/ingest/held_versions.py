"""Versions of a source table that are held back (ADR 0010), and records that could not be applied: they are quarantined, and come again."""

from rejoin.plan.model.plan import Column, Table
from rejoin.statements.dialect import Dialect, text
from rejoin.statements.own_columns import HELD, HELD_CODE, REPLAYED, REPLAYED_CODE, SOURCE_FILE
from rejoin.steps.ingest.fates import Fate
from rejoin.steps.ingest.statements import event_columns


def held_events(sql: Dialect, table: Table, stored: tuple[str, ...]) -> str:
    """``held``, rows that are held back -> events again, at their own positions. Their ``_arrival`` is -1: they are no records of this cut.

    Args:
        sql: the dialect.
        table: the table.
        stored: the fields that ``held._row`` has.
    """
    old_key = sql.struct_type((c.name, c.type or "") for k in table.key for c in table.columns if c.name == k)
    line = {c.name: sql.cast(sql.get("_row", c.name) if c.name in stored else "NULL", c.type or "STRING") for c in _others(table)}
    line |= {k: sql.name(k) for k in table.key} | {"_kind": "'upsert'", "_position": "_version", "_arrival": sql.cast(str(HELD), "BIGINT")}
    line |= {"_missing": sql.array([]), "_absent": sql.array([]), "_old_key": f"CAST(NULL AS {old_key})", "_file": SOURCE_FILE}
    line |= {"_lines": sql.cast("1", "BIGINT"), "_code": sql.null("STRING"), "_reason": sql.null("STRING"), "_snapshot": sql.null("STRING")}
    return f"SELECT {', '.join(f'{line.get(c, c)} AS {sql.name(c)}' for c in event_columns(table))} FROM held"


def new_rows(sql: Dialect, table: Table) -> str:
    """``made``, the result of ``ingest.versions`` -> ``_row``: each new row that would become the current version of its key and is another
    one than that is now.
    """
    new = sql.struct((c.name, sql.get("_new", c.name)) for c in table.columns)
    same = " AND ".join(sql.same(sql.get("_new", c.name), sql.get("_row", c.name)) for c in table.columns)
    return f"SELECT {new} AS _row FROM made WHERE _op IN ('I', 'U', 'N') AND NOT ({same})"


def held_back(sql: Dialect, table: Table, columns: list[str]) -> str:
    """``made``, the result of ``ingest.versions``, with the versions of the keys of ``bad`` (with ``_reason``) quarantined instead of stored.

    Args:
        sql: the dialect.
        table: the table.
        columns: those of ``made``.
    """
    holds = "b._reason IS NOT NULL AND m._op IS NOT NULL"
    instead = {"_fate": text(Fate.QUARANTINED), "_code": text(HELD_CODE), "_reason": "b._reason", "_op": "NULL"}
    line = ", ".join(f"CASE WHEN {holds} THEN {instead[c]} ELSE m.{c} END AS {c}" if c in instead else f"m.{sql.name(c)}" for c in columns)
    return f"SELECT {line} FROM made AS m LEFT JOIN bad AS b ON {sql.on(table.key, 'm', 'b')}"


def records_aside(sql: Dialect, table: Table, run: int, *, held: bool) -> str:
    """What a run adds to the quarantine of a source table.

    Inputs: ``refused``, events that could not be decoded; ``judged``, those records of the cut that have a fate, the quarantined ones with
    their ``_raw``; ``made``, these, rows that were held back and were judged again, and refused records that were replayed; ``held``, what
    was held back of the keys of the cut.

    Args:
        sql: the dialect.
        table: the table.
        run: the run.
        held: ``held`` is an input; else nothing was held back.
    """
    others = _others(table)
    kind = sql.struct_type([(c.name, c.type or "") for c in others] or [("_", "STRING")])
    row = sql.struct((c.name, sql.get("_new", c.name)) for c in others) if others else "NULL"
    quarantined, is_held = f"_fate = {text(Fate.QUARANTINED)}", f"_code = {text(HELD_CODE)}"
    own = f"{sql.names(table.key)}, {sql.cast(str(run), 'BIGINT')} AS _run"
    where, nothing = f"_file AS {SOURCE_FILE}, _line, _raw", f"{sql.null('STRING')} AS _version, CAST(NULL AS {kind}) AS _row"
    kept = f"CASE WHEN {is_held} THEN _position END, CAST(CASE WHEN {is_held} THEN {row} END AS {kind})"
    parts = [
        f"SELECT {own}, 'Q' AS _op, _code, _reason, {where}, {nothing} FROM refused",
        f"SELECT {own}, 'Q', _code, _reason, {where}, {kept} FROM judged WHERE {quarantined}",
        f"SELECT {own}, 'R', {text(REPLAYED_CODE)}, _reason, {where}, {nothing} FROM made WHERE _arrival <= {REPLAYED} AND NOT ({quarantined})",
    ]
    if held:
        # What was judged again and is refused otherwise now, since it is too old meanwhile, stays held back as it is.
        refused = f"m.{quarantined} AND (m.{is_held} OR m._arrival = {HELD})"
        still = f"SELECT 1 FROM made AS m WHERE {refused} AND {sql.on(table.key, 'm', 'h')}"
        parts.append(f"SELECT {own}, 'R', _code, _reason, {SOURCE_FILE}, _line, _raw, {nothing} FROM held AS h WHERE NOT EXISTS ({still})")
    return " UNION ALL ".join(parts)


def _others(table: Table) -> list[Column]:
    return [c for c in table.columns if c.name not in table.key]
