"""Types and statements of a target table."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.sql import Identifier

from rejoin.sinks.postgres import statements as sql

TYPES = {
    pa.bool_(): "boolean",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.decimal128(12, 2): "numeric(12,2)",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.binary(): "bytea",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
    pa.timestamp("us"): "timestamp without time zone",
    pa.list_(pa.decimal128(12, 2)): "numeric(12,2)[]",
    pa.list_(pa.struct([("a", pa.int32())])): "jsonb",
    pa.list_(pa.list_(pa.int32())): "jsonb",
    pa.struct([("a", pa.int32())]): "jsonb",
    pa.map_(pa.string(), pa.int32()): "jsonb",
}


@pytest.mark.parametrize(("stored", "wanted"), TYPES.items(), ids=map(str, TYPES))
def test_every_type_has_one_that_holds_exactly_its_values(stored: pa.DataType, wanted: str) -> None:
    assert sql.type_of(stored) == wanted and sql.fits(wanted, wanted)


FITS = [
    ("integer", "bigint"),
    ("bigint", "numeric"),
    ("real", "double precision"),
    ("text", "character varying(20)"),
    ("numeric(10,2)", "numeric(12,2)"),
    ("numeric(10,2)", "numeric(12,4)"),
    ("numeric(10,2)", "numeric"),
]
DOES_NOT = [
    ("bigint", "integer"),
    ("double precision", "real"),
    ("numeric(10,2)", "numeric(10,4)"),
    ("numeric(10,2)", "numeric(12,1)"),
    ("numeric(10,2)", "bigint"),
    ("text", "integer"),
    ("numeric(10,2)[]", "numeric(12,2)[]"),
    ("text[]", "text"),
    ("jsonb", "text"),
    ("timestamp with time zone", "timestamp without time zone"),
]


@pytest.mark.parametrize(("wanted", "found"), FITS)
def test_wider_types_fit(wanted: str, found: str) -> None:
    assert sql.fits(wanted, found)


@pytest.mark.parametrize(("wanted", "found"), DOES_NOT)
def test_narrower_and_other_types_do_not(wanted: str, found: str) -> None:
    assert not sql.fits(wanted, found)


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1))
def test_whatever_a_name_holds_it_stays_one_identifier(name: str) -> None:
    quoted, other = ('"' + text.replace('"', '""') + '"' for text in (name, f"{name}b"))
    text = sql.upsert(Identifier("s", name), [(name, "text"), (f"{name}b", "text")], [name]).as_string(None)
    assert (
        text.startswith(f'INSERT INTO "s".{quoted} ({quoted}, {other})')
        and f"ON CONFLICT ({quoted}) DO UPDATE SET {other} = EXCLUDED.{other}" in text
    )


def test_a_table_of_key_columns_only_has_nothing_to_update() -> None:
    assert sql.upsert(Identifier("s", "t"), [("id", "bigint")], ["id"]).as_string(None).endswith("DO NOTHING")


KEY = ("a", "b")


def test_keys_without_nulls_are_compared_as_ever() -> None:
    text = sql.delete(Identifier("t"), KEY, sql.NO_NULLS).as_string(None)
    assert text == """DELETE FROM "t" AS t USING "rejoin_staging" AS s WHERE t."a" = s."a" AND t."b" = s."b" AND s."_op" = 'D'"""
    assert "PRIMARY KEY" in sql.create_target(Identifier("t"), [("a", "bigint"), ("b", "text")], KEY, nulls=False).as_string(None)


def test_every_pattern_of_nulls_has_conditions_that_an_index_answers() -> None:
    text = sql.delete(Identifier("t"), KEY, frozenset({"b"})).as_string(None)
    assert 't."a" = s."a" AND t."b" IS NULL AND s."b" IS NULL' in text
    others = sql.delete_others(Identifier("t"), KEY, [sql.NO_NULLS, frozenset({"b"})]).as_string(None)
    assert others.count("NOT EXISTS") == 2
    assert sql.delete_others(Identifier("t"), KEY, []).as_string(None) == 'DELETE FROM "t" AS t WHERE true'
    created = sql.create_target(Identifier("t"), [("a", "bigint"), ("b", "text")], KEY, nulls=True).as_string(None)
    assert 'UNIQUE NULLS NOT DISTINCT ("a", "b")' in created
