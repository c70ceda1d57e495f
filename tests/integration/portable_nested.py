"""Expressions that read arrays, structs and maps, and rows for them. Not all are portable."""

import itertools
import random
from collections.abc import Iterator

import pyarrow as pa
from integration.nested_values import value

from rejoin.sources.events import arrow_type

COLUMNS = {
    "l": {
        "place": "STRUCT<City: STRING, at: STRUCT<day: DATE, order: INT>, tags: ARRAY<STRING>, props: MAP<STRING, INT>>",
        "lines": "ARRAY<STRUCT<product: STRING, quantity: INT, price: DECIMAL(10,2), parts: ARRAY<STRUCT<Code: STRING>>, more: MAP<STRING, INT>>>",
        "tags": "ARRAY<STRING>",
        "ints": "ARRAY<INT>",
        "bigs": "ARRAY<BIGINT>",
        "prices": "ARRAY<DECIMAL(10,2)>",
        "doubles": "ARRAY<DOUBLE>",
        "days": "ARRAY<DATE>",
        "flags": "ARRAY<BOOLEAN>",
        "raws": "ARRAY<BINARY>",
        "grid": "ARRAY<ARRAY<INT>>",
        "m": "MAP<STRING, INT>",
        "deep": "MAP<STRING, STRUCT<n: BIGINT, tags: ARRAY<STRING>>>",
        "i": "INT",
        "b": "BIGINT",
        "s": "STRING",
    }
}
_NUMBERS = (None, 0, 0, 1, 1, 2, 3, -1, -2, -3, 2**31 - 1, -(2**31) + 1)
"""Not the smallest INT: as the number of an element it ends Java itself, which takes its absolute value for one."""
_PLACES = ("0", "1", "2", "-1", "-3", "2147483647", "l.i", "l.i - 1", "CAST(NULL AS INT)", "l.b", "NULL")
_ARRAYS = (
    *(f"l.{name}" for name, of in COLUMNS["l"].items() if of.startswith("ARRAY")),
    *("l.place.tags", "l.lines.product", "l.lines.quantity", "l.lines.parts", "l.deep['a'].tags", "coalesce(l.tags, array())"),
    *("map_keys(l.m)", "map_values(l.deep)", "l.grid[0]", "l.lines[0].parts"),
)
_MAPS = ("l.m", "l.deep", "l.place.props", "l.lines[0].more", "element_at(l.lines, -1).more")
_KEYS = ("'a'", "'A'", "''", "'é'", "'a,b'", r"'\\'", r"'\n'", "'none'", "'\"'", r"'\''", "l.s", "l.place.city", "l.i", "NULL")


def rows(count: int) -> pa.Table:
    """Random rows, the same each time: nulls at every depth, empty arrays and maps, odd keys."""
    chance = random.Random(1)
    made = {name: [value(of, chance)[1] for _ in range(count)] for name, of in COLUMNS["l"].items()}
    made |= {"i": [chance.choice(_NUMBERS) for _ in range(count)]}
    return pa.table({"row": pa.array(range(count), pa.int64()), **{n: pa.array(v, arrow_type(COLUMNS["l"][n])) for n, v in made.items()}})


def fields() -> Iterator[str]:
    yield from ("l.place", "l.place.city", "l.place.CITY", "l.`place`.`at`.`Day`", "l.place.at.order", "l.place.at", "l.place.at.day + 1")
    yield from (
        "l.lines.product",
        "l.lines.Price",
        "l.lines.parts",
        "l.lines.more",
        "l.m.a",
        "l.m.`a,b`",
        "l.m.A",
        "l.deep.a.n",
        "l.deep.a.tags",
    )
    yield from (
        "upper(l.place.city)",
        "l.place.city = l.s",
        "l.place.city IS NULL",
        "l.place.at IS NULL",
        "coalesce(l.place.city, l.s, 'none')",
    )
    yield from (
        "l.place.at.day >= DATE'2000-01-01'",
        "CAST(l.place.at.order AS STRING)",
        "l.place.at.order + l.i",
        "l.place.at.order::BIGINT",
    )
    yield from (
        "CASE WHEN l.place.at.order > 0 THEN l.place.city ELSE l.s END",
        "coalesce(l.place.tags, l.tags)",
        "l.place.at = l.place.at",
    )


def elements() -> Iterator[str]:
    yield from (f"{array}[{place}]" for array, place in itertools.product(_ARRAYS, _PLACES))
    names = ("element_at", "try_element_at", "get")
    yield from (f"{name}({array}, {place})" for name, array, place in itertools.product(names, _ARRAYS, _PLACES))
    yield from (f"{map_}[{key}]" for map_, key in itertools.product(_MAPS, _KEYS))
    yield from (f"{name}({map_}, {key})" for name, map_, key in itertools.product(names[:2], _MAPS, _KEYS))
    for line in ("l.lines[0]", "l.lines[1]", "element_at(l.lines, -1)", "get(l.lines, 0)", "try_element_at(l.lines, 2)", "l.lines[l.i]"):
        yield from (
            f"{line}.{field}"
            for field in ("product", "QUANTITY", "price", "parts", "parts.code", "parts[0].code", "more", "more['a']", "more.a")
        )
        yield from (
            f"size({line}.parts)",
            f"{line}.quantity + 1",
            f"{line}.price * 2 > 1",
            f"{line}.product IS NULL",
            f"coalesce({line}.product, 'x')",
        )
    yield from (
        "l.grid[0][0]",
        "l.grid[1][l.i]",
        "element_at(l.grid[0], -1)",
        "get(get(l.grid, 0), 0)",
        "l.deep['a'].tags[0]",
        "l.deep[''].n",
    )


def functions() -> Iterator[str]:
    yield from (f"{name}({of})" for name in ("size", "cardinality") for of in (*_ARRAYS, *_MAPS))
    yield from (f"{name}({of})" for name in ("array_min", "array_max", "map_keys", "map_values") for of in (*_ARRAYS, *_MAPS))
    values = (
        "'a'",
        "''",
        "l.s",
        "0",
        "l.i",
        "l.b",
        "1.5",
        "DATE'2000-01-01'",
        "true",
        "NULL",
        "l.place.city",
        "l.tags",
        "l.lines[0].quantity",
    )
    yield from (f"array_contains({array}, {one})" for array, one in itertools.product(_ARRAYS, values))
    yield from (f"array_join({array}, {between})" for array, between in itertools.product(_ARRAYS, ("','", "''", "l.s", "', '", "NULL")))
    yield from ("array_join(l.tags, ',', '-')", "array_position(l.tags, 'a')", "slice(l.tags, 1, 2)", "sort_array(l.tags)")


def conditions() -> Iterator[str]:
    yield from ("size(l.lines) > 0", "NOT size(l.lines) > 0", "size(l.lines) > 0 AND l.lines[0].quantity >= 0", "size(l.m) = size(l.tags)")
    yield from ("l.lines[0].quantity >= 0 OR size(l.lines) = 0", "size(l.lines) = 0 OR l.lines[0].quantity >= 0", "l.tags[0] = l.tags[1]")
    yield from (
        "CASE WHEN size(l.lines) > 0 THEN l.lines[0].product END",
        "if(size(l.tags) > 1, l.tags[1], 'none')",
        "l.tags[0] IN ('a', l.s)",
    )
    yield from ("coalesce(size(l.tags), 0) + size(l.m)", "size(coalesce(l.lines, array()))", "length(l.tags[0])", "l.tags[0] LIKE 'a%'")
    yield from (
        "array_contains(l.lines.product, 'a')",
        "array_min(l.lines.quantity) >= 0",
        "NOT array_contains(l.tags, '')",
        "l.tags[l.i] = 'a'",
    )
    yield from (
        "array_contains(l.tags, 'a') AND l.tags[0] = 'a'",
        "1 / size(l.tags) > 0",
        "l.ints[0] / l.ints[1] > 0",
        "l.ints[0] = 0 AND l.i = 0",
    )
    yield from (
        "element_at(l.m, 'a') > 0 OR l.m[''] IS NULL",
        "l.tags[0] || l.tags[1]",
        "concat(l.tags[0], '-', l.s)",
        "nullif(l.m['a'], 0)",
    )
