"""A topology of every kind of join, and what its outputs have to be: DuckDB's SQL over what arrived, written by hand."""

from rejoin.declare.sources import debezium
from rejoin.declare.topology import Relation, Topology

WINDOWS = {  # output -> kind, before, after (microseconds), when rows without partner are there
    "pairs_inner": ("INNER", 5_000_000, 5_000_000, "closed"),
    "pairs_left": ("LEFT", 2_000_000, 4_000_000, "closed"),
    "pairs_right": ("RIGHT", 0, 3_000_000, "closed"),
    "pairs_full": ("FULL", 3_000_000, 3_000_000, "closed"),
    "pairs_full_at_once": ("FULL", 1_000_000, 3_000_000, "at_once"),
    "pairs_full_each": ("FULL", 2_000_000, 1_000_000, "each"),
    "pairs_left_each": ("LEFT", 1_000_000, 1_000_000, "each"),
}
LATENESS = 2_000_000


def topology() -> Topology:
    """Two streams and three tables; everything has a column ``s``, the history that it belongs to."""
    on = Topology("mixed")
    views = _stream(on, "views", "v")
    clicks = _stream(on, "clicks", "c")
    ads = on.table("ads", ["s", "k"], "s BIGINT, k STRING, name STRING", debezium("ads/"))
    owners = on.table("owners", ["s", "k"], "s BIGINT, k STRING, ad STRING, owner STRING", debezium("owners/"))
    both = ["left.s", "left.v", "left.k", "left.note", "right.s AS rs", "right.c", "right.k AS rk", "right.note AS rnote"]
    for name, (kind, before, after, when) in WINDOWS.items():
        more = {"closed": {}, "at_once": {"unmatched": "at_once"}, "each": {"watermark": "each"}}[when]
        join = {"INNER": views.join, "LEFT": views.left_join, "RIGHT": views.right_join, "FULL": views.full_join}[kind]
        join(clicks, select=both, name=name, before=_text(before), after=_text(after), clock="s", **more)  # type: ignore[arg-type]
    of_ad = ["left.s", "left.v", "left.k", "left.at", "right.name"]
    named = views.left_join(ads, as_of="event_time", select=of_ad, name="named_left")
    views.join(ads.filter("name <> 'b'"), as_of="event_time", select=of_ad, name="named_inner")
    of_named = ["left.s", "left.v", "left.name", "right.s AS rs", "right.c"]
    named.left_join(clicks, on=["s", "k"], within="3 seconds", clock="s", select=of_named, name="named_pairs")
    ads.full_join(owners, select=["left.s", "left.k", "left.name", "right.owner"], name="same_full")
    ads.right_join(owners, select=["left.s", "left.k", "left.name", "right.owner"], name="same_right")
    ads.left_join(owners, select=["left.s", "left.k", "left.name", "right.owner"], name="same_left")
    of_owner = ["left.s", "left.k", "left.owner", "right.s AS rs", "right.k AS rk", "right.name"]
    owned = owners.full_join(ads, foreign_key=["s", "ad"], select=of_owner, name="owned_full")
    owners.right_join(ads.filter("name <> 'b'"), foreign_key=["s", "ad"], select=of_owner, name="owned_right")
    owned.left_join(ads, foreign_key=["s", "k"], select=["left.s", "left.k", "left.rs", "left.rk", "right.name"], name="owned_chain")
    return on


def _text(micros: int) -> str:
    return f"{micros // 1000} milliseconds"


def _stream(on: Topology, name: str, number: str) -> Relation:
    schema = f"s BIGINT, {number} BIGINT, k STRING, note STRING, at TIMESTAMP"
    late = f"{LATENESS // 1_000_000} seconds"
    return on.stream(name, id=["s", number], key=["s", "k"], event_time="at", schema=schema, source=debezium(f"{name}/"), lateness=late)


MARKS = f'SELECT s, max("at") - {LATENESS} AS mark FROM (SELECT s, "at" FROM views UNION ALL SELECT s, "at" FROM clicks) GROUP BY s'
EACH = f"""SELECT s, min(newest) - {LATENESS} AS mark FROM (
    SELECT s, max("at") AS newest FROM views GROUP BY s UNION ALL SELECT s, max("at") FROM clicks GROUP BY s) GROUP BY s HAVING count(*) = 2"""
"""Of the streams ``views`` and ``clicks``; times are BIGINT, microseconds."""


def _window(kind: str, before: int, after: int, when: str, left: str, shown: str) -> str:
    met = f'l.s = r.s AND l.k = r.k AND r."at" - l."at" BETWEEN -{before} AND {after}'
    waits = "true" if when == "at_once" else f'(l.k IS NULL OR l."at" + {after} < m.mark)'
    theirs = "true" if when == "at_once" else f'(r.k IS NULL OR r."at" + {before} < m.mark)'
    return f"""
        SELECT {shown} FROM {left} AS l {kind} JOIN clicks AS r ON {met} LEFT JOIN ({EACH if when == "each" else MARKS}) AS m ON m.s = coalesce(l.s, r.s)
        WHERE (l.s IS NOT NULL AND r.s IS NOT NULL) OR (r.s IS NULL AND {waits}) OR (l.s IS NULL AND {theirs})"""


_NAMED = 'SELECT l.s, l.v, l.k, l."at", {name} AS name FROM views AS l {kind} JOIN valid AS r ON {on}'
_VALID = 'l.s = r.s AND l.k = r.k AND r.since <= l."at" AND l."at" < r.until AND NOT r.gone'
QUERIES = {
    **{name: _window(*of, "views", "l.s, l.v, l.k, l.note, r.s AS rs, r.c, r.k AS rk, r.note AS rnote") for name, of in WINDOWS.items()},
    "named_left": _NAMED.format(name="r.name", kind="LEFT", on=_VALID),
    "named_inner": _NAMED.format(name="r.name", kind="INNER", on=f"{_VALID} AND r.name <> 'b'"),
    "named_pairs": _window("LEFT", 3_000_000, 3_000_000, "closed", "named_left", "l.s, l.v, l.name, r.s AS rs, r.c"),
    "same_full": "SELECT s, k, name, owner FROM ads FULL JOIN owners USING (s, k)",
    "same_right": "SELECT s, k, name, owner FROM ads RIGHT JOIN owners USING (s, k)",
    "same_left": "SELECT s, k, name, owner FROM ads LEFT JOIN owners USING (s, k)",
    "owned_full": "SELECT l.s, l.k, l.owner, r.s AS rs, r.k AS rk, r.name FROM owners AS l FULL JOIN ads AS r ON l.s = r.s AND l.ad = r.k",
    "owned_right": """SELECT l.s, l.k, l.owner, r.s AS rs, r.k AS rk, r.name
        FROM owners AS l RIGHT JOIN (SELECT * FROM ads WHERE name <> 'b') AS r ON l.s = r.s AND l.ad = r.k""",
    "owned_chain": "SELECT l.s, l.k, l.rs, l.rk, r.name FROM owned_full AS l LEFT JOIN ads AS r ON l.s = r.s AND l.k = r.k",
}
"""Output -> its rows, over ``views``, ``clicks``, ``ads``, ``owners`` and ``valid`` (the versions of ads: s, k, name, gone, since, until), and outputs above it."""
