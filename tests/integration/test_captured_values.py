"""Values of PostgreSQL's types through capture and rejoin: what its rows and its changes say is the same, and is what PostgreSQL says, or is refused."""

import datetime as dt
import json
import math
import struct
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from integration.captured_shop import CapturedShop

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

COLUMNS = {
    "small": ("smallint", "INT"),
    "whole": ("int", "INT"),
    "large": ("bigint", "BIGINT"),
    "exact": ("numeric(38, 9)", "DECIMAL(38,9)"),
    "count": ("numeric(20)", "DECIMAL(20,0)"),
    "real_": ("real", "FLOAT"),
    "double_": ("double precision", "DOUBLE"),
    "flag": ("boolean", "BOOLEAN"),
    "octets": ("bytea", "BINARY"),
    "said": ("text", "STRING"),
    "padded": ("char(5)", "STRING"),
    "born": ("date", "DATE"),
    "seen": ("timestamptz", "TIMESTAMP"),
    "local": ("timestamp", "TIMESTAMP_NTZ"),
    "number_text": ("numeric", "STRING"),
    "flag_text": ("boolean", "STRING"),
    "id_": ("uuid", "STRING"),
    "tags": ("text[]", "STRING"),
    "doc": ("jsonb", "STRING"),
    "span": ("interval", "STRING"),
    "mood": ("mood", "STRING"),
    "positive": ("positive", "INT"),
    "label": ("label", "STRING"),
    "numbers": ("int[]", "ARRAY<INT>"),
    "prices": ("numeric(12, 2)[]", "ARRAY<DECIMAL(12,2)>"),
    "shares": ("double precision[]", "ARRAY<DOUBLE>"),
    "words": ("text[]", "ARRAY<STRING>"),
    "digits": ("bigint[]", "ARRAY<STRING>"),
    "flags": ("boolean[]", "ARRAY<BOOLEAN>"),
    "blobs": ("bytea[]", "ARRAY<BINARY>"),
    "days": ("date[]", "ARRAY<DATE>"),
    "times": ("timestamptz[]", "ARRAY<TIMESTAMP>"),
    "grid": ("int[]", "ARRAY<ARRAY<INT>>"),
    "parts": ("jsonb", "STRUCT<a: INT, b: ARRAY<STRING>>"),
}
FILE = """
from rejoin import Topology, captured, debezium

t = Topology("t")
t.table("v", key="id", schema="id INT, {schema}", source=debezium(captured("public.v", at="{at}"), max_bad_share=1.0)).select("*").named("o")
"""
TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'so "so"'); CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE DOMAIN label AS positive;
DROP DOMAIN label; CREATE DOMAIN label AS varchar(9)
"""
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
TIME = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))  # noqa: DTZ001 -- of both kinds of columns


def several(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(elements | st.none(), max_size=4)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "small": st.integers(-(2**15), 2**15 - 1),
    "whole": st.integers(-(2**31), 2**31 - 1),
    "large": st.integers(-(2**63), 2**63 - 1),
    "exact": st.decimals(-(10**29) + 1, 10**29 - 1, places=9, allow_nan=False),
    "count": st.integers(-(10**20) + 1, 10**20 - 1).map(Decimal),
    "real_": st.floats(width=32, allow_subnormal=False),
    "double_": st.floats(allow_subnormal=False),
    "flag": st.booleans(),
    "octets": st.binary(max_size=200),
    "said": TEXT,
    "padded": st.text("ab ", max_size=5),
    "born": st.dates(),
    "seen": TIME.map(lambda x: x.replace(tzinfo=dt.UTC)),
    "local": TIME,
    "number_text": st.decimals(-(10**40), 10**40, allow_nan=False) | st.just(Decimal("NaN")),
    "flag_text": st.booleans(),
    "id_": st.uuids(),
    "tags": st.lists(TEXT | st.none(), max_size=4),
    "doc": st.dictionaries(TEXT, st.integers() | TEXT, max_size=3).map(json.dumps),
    "span": st.timedeltas(dt.timedelta(-1000), dt.timedelta(1000)),
    "mood": st.sampled_from(["sad", 'so "so"']),
    "positive": st.integers(1, 9),
    "label": st.text("xyz 0", max_size=9),
    "numbers": several(st.integers(-(2**31), 2**31 - 1)),
    "prices": several(st.decimals(-(10**10) + 1, 10**10 - 1, places=2, allow_nan=False)),
    "shares": several(st.floats(allow_subnormal=False)),
    "words": several(TEXT | st.sampled_from(["NULL", "", '{"', "a,b", "\\"])),
    "digits": several(st.integers(-(2**63), 2**63 - 1)),
    "flags": several(st.booleans()),
    "blobs": several(st.binary(max_size=9)),
    "days": several(st.dates()),
    "times": several(TIME.map(lambda x: x.replace(tzinfo=dt.UTC))),
    "grid": st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(st.integers(0, 9) | st.none(), min_size=n, max_size=n), max_size=3)),
    "parts": st.fixed_dictionaries({"a": st.none() | st.integers(0, 9), "b": several(TEXT)}).map(json.dumps),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), min_size=1, max_size=60)


def same(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) and isinstance(wanted, float):
        return (math.isnan(found) and math.isnan(wanted)) or struct.pack("d", found) == struct.pack("d", wanted)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    return bool(found == wanted) and type(found) is type(wanted)


def filled(shop: CapturedShop, rows: list[dict[str, Any]]) -> None:
    shop.db.execute("TRUNCATE v")
    names = ", ".join(COLUMNS)
    marks = ", ".join(f"%s::{kind}" for kind, _ in COLUMNS.values())
    for number, row in enumerate(rows):
        shop.db.execute(f"INSERT INTO v (id, {names}) VALUES ({number}, {marks})", [row[name] for name in COLUMNS])  # type: ignore[arg-type]


@pytest.fixture
def shop(logging_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = CapturedShop(logging_server, f"values_{uuid.uuid4().hex[:8]}", tmp_path, monkeypatch)
    with made.db:
        made.db.execute(TYPES)
        made.db.execute(f"CREATE TABLE v (id int PRIMARY KEY, {', '.join(f'{n} {kind}' for n, (kind, _) in COLUMNS.items())})")  # type: ignore[arg-type]
        schema = ", ".join(f"{n} {type_}" for n, (_, type_) in COLUMNS.items())
        (made.root / "shop.py").write_text(FILE.format(schema=schema, at=made.at))
        yield made


def is_what_postgresql_says(shop: CapturedShop) -> None:
    shop.run()
    texts = {"number_text", "flag_text", "id_", "tags", "doc", "span", "mood", "padded"}
    shown = [f"CASE WHEN {n} IS NOT NULL THEN format('%s', {n}) END" if n in texts else n for n in COLUMNS]
    shown = [s + {"real_": "::float8", "digits": "::text[]"}.get(s, "") for s in shown]  # psycopg takes the nearest double of a text
    shop.db.execute("SET timezone = 'UTC'")
    wanted = shop.db.execute(f"SELECT id, {', '.join(shown)} FROM v ORDER BY id").fetchall()  # type: ignore[arg-type]
    found = shop.stored("o", "id", *COLUMNS)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert [(n, f, w) for n, f, w in zip(["id", *COLUMNS], one, other, strict=True) if not same(f, w)] == []


@settings(
    max_examples=3,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(ROWS)
def test_every_value_is_what_postgresql_says_or_refused(shop: CapturedShop, rows: list[dict[str, Any]]) -> None:
    filled(shop, rows)
    shop.capture("--resnapshot")
    is_what_postgresql_says(shop)
    filled(shop, rows)
    shop.capture()
    is_what_postgresql_says(shop)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("born", "infinity"),
        ("seen", "-infinity"),
        ("local", "infinity"),
        ("exact", "NaN"),
        ("born", "0044-03-15 BC"),
        ("seen", "10000-01-01"),
    ],
)
def test_what_no_declared_type_holds_is_refused(shop: CapturedShop, column: str, value: str) -> None:
    for keys in (range(20), range(20, 40)):
        for key in keys:
            shop.db.execute("INSERT INTO v (id, whole) VALUES (%s, 1)", (key,))
        shop.db.execute(f"INSERT INTO v (id, {column}) VALUES (%s, %s)", (100 + keys[0], value))  # type: ignore[arg-type]
        shop.capture()
    assert shop.run()["ingest.v"]["quarantined"] == 2
    assert len(shop.stored("o", "id")) == 40


def test_a_large_array_that_has_not_changed_keeps_its_elements(shop: CapturedShop) -> None:
    shop.db.execute("ALTER TABLE v ALTER words SET STORAGE EXTERNAL, ALTER parts SET STORAGE EXTERNAL")
    shop.db.execute("INSERT INTO v (id, words, numbers) VALUES (1, array_fill('a \"b\"'::text, '{2000}'), '[0:1]={1,2}')")
    shop.capture()
    shop.run()
    shop.db.execute("UPDATE v SET whole = 7")
    shop.capture()
    assert shop.run()["ingest.v"]["applied"] == 1
    assert shop.stored("o", "whole", "words", "numbers") == [(7, ['a "b"'] * 2000, [1, 2])]
