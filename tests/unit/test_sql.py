"""What queries over a lake find, and what they may not do."""

import datetime as dt
import io
import json
import math
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from published import answer, one_table, publish
from small_lake import NASTY, SUBSCRIPTIONS
from test_odd_paths import OWN, Stored

import rejoin
from rejoin import Lake
from rejoin.errors import QueryRefused, SetupError, UnknownTable
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import delete_file
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import files_of


@pytest.fixture
def lake(location: str) -> Lake:
    return Lake(location)


# --- what is found ----------------------------------------------------------------------------------------------------


def test_a_source_table_is_its_current_rows_with_the_columns_that_were_declared(lake: Lake) -> None:
    expected = [(1, 7, NASTY), (3, 7, "first"), (4, 4, "first"), (5, 5, "first"), (6, 6, "first")]
    assert answer(lake, "SELECT * FROM orders ORDER BY id") == expected
    assert lake.read("orders").columns == ("id", "customer_id", "note")


def test_an_earlier_run_is_read_as_it_was(lake: Lake) -> None:
    first = lake.sql("SELECT id, note FROM orders ORDER BY id", as_of=1)
    assert first.to_arrow().to_pylist() == [{"id": i, "note": "first"} for i in range(1, 7)]
    assert (first.as_of, lake.read("orders").as_of) == ({"shop": 1}, {"shop": 2})


def test_an_output_is_its_rows_without_bookkeeping(lake: Lake) -> None:
    assert lake.read("enriched").to_pandas().to_dict("records")[0] == {"id": 1, "note": "first", "customer": None}


def test_a_table_that_was_never_written_is_empty_and_has_its_columns_and_types(lake: Lake) -> None:
    rows = lake.read("customers")
    assert (rows.columns, rows.types, rows.count()) == (("id", "name"), ("BIGINT", "VARCHAR"), 0)
    assert answer(lake, "SELECT count(*), max(c.name) FROM orders o LEFT JOIN customers c ON c.id = o.customer_id") == [(5, None)]


def test_tables_of_rejoins_own_can_be_named_and_are_not_listed(lake: Lake) -> None:
    assert [(t.topology, t.name, t.kind, t.key) for t in lake.tables()] == [
        ("shop", "orders", "source", ("id",)),
        ("shop", "customers", "source", ("id",)),
        ("shop", "enriched", "output", ("id",)),
    ]
    assert answer(lake, "SHOW TABLES") == [("customers",), ("enriched",), ("orders",)]
    assert answer(lake, "SELECT _op, id, _before.note FROM enriched__changes WHERE _run = 2 ORDER BY id") == [
        ("U", 1, "first"),
        ("D", 2, "first"),
    ]
    assert lake.read(SUBSCRIPTIONS).count() == 7


def test_names_are_found_in_any_case_behind_their_topology_and_inside_with(lake: Lake) -> None:
    assert answer(lake, "WITH orders AS (SELECT * FROM Shop.ORDERS WHERE id < 4) SELECT count(*) FROM orders JOIN Enriched USING (id)") == [
        (2,)
    ]


def test_columns_of_one_name_get_two_names(lake: Lake) -> None:
    assert lake.sql("SELECT o.id, e.id FROM orders o, enriched e").columns == ("id", "id_1")


def test_only_the_tables_that_a_query_names_are_opened(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    require = Refs.require
    monkeypatch.setattr(Refs, "require", lambda self, name, snapshot_id: opened.append(name) or require(self, name, snapshot_id))
    lake.sql("SELECT 1").to_arrow()
    assert opened == []
    lake.sql("SELECT * FROM enriched").to_arrow()
    assert opened == ["enriched"]


def test_columns_and_conditions_reach_the_files(lake: Lake) -> None:
    plan = lake.read("enriched").to_duckdb().filter("id = 3").project("note").explain()
    scan = " ".join(plan[plan.index("PARQUET") :].split())
    assert "id=3" in scan.replace(" ", "") and "customer" not in scan


def test_all_kinds_of_values_come_back_as_they_were(tmp_path: Path) -> None:
    schema = "a BIGINT, b STRING, d DECIMAL(38,2), day DATE, at TIMESTAMP, clock TIMESTAMP_NTZ, f DOUBLE, raw BINARY, ok BOOLEAN"
    types = [pa.int64(), pa.string(), pa.decimal128(38, 2), pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.float64()]
    fields = [*zip(("a", "b", "d", "day", "at", "clock", "f"), types, strict=True), ("raw", pa.binary()), ("ok", pa.bool_())]
    day, at = dt.date(1, 1, 1), dt.datetime(2024, 5, 1, 10, 0, 0, 5)  # noqa: DTZ001  a clock without a zone
    rows: list[tuple[object, ...]] = [
        (1, "", Decimal("999999999999999999999999999999999999.99"), day, at.replace(tzinfo=dt.UTC), at, math.nan, b"\x00\xff", True),
        (1, "x", None, None, None, None, None, None, None),
        (2, "x", Decimal("-0.01"), dt.date(9999, 12, 31), at.replace(tzinfo=dt.UTC), at, -math.inf, b"", False),
        (2, "y", Decimal("1.00"), day, at.replace(tzinfo=dt.UTC), at, 1.5, b"", False),
    ]
    written = pa.table({name: pa.array(column, kind) for (name, kind), column in zip(fields, zip(*rows, strict=True), strict=True)})
    versions = written.append_column("_run", pa.array([1] * 4, pa.int64())).append_column("_op", pa.array(["I", "I", "I", "D"]))
    lake = Lake(tmp_path / "lake")
    plan = one_table("kinds", "kinds", schema, ["a", "b"])
    publish(lake.location, plan, {"kinds": versions, "kinds_out": written})
    found = lake.sql("SELECT * FROM kinds ORDER BY a, b").to_arrow()
    assert repr(found.to_pylist()) == repr(written.slice(0, 3).to_pylist())
    # DuckDB takes NaN for the largest number; Parquet's largest values leave it out.
    for condition in ("f > 100", "isnan(f)", "f = (SELECT max(f) FROM kinds)", "NOT f < 100"):
        assert answer(lake, f"SELECT a, b FROM kinds WHERE {condition}") == [(1, "")], condition
    later = versions.slice(0, 2).set_column(versions.num_columns - 2, "_run", pa.array([2, 2], pa.int64()))
    publish(lake.location, plan, {"kinds": later.set_column(versions.num_columns - 1, "_op", pa.array(["U", "D"]))})
    assert answer(lake, "SELECT a, b, _run FROM (SELECT *, 0 AS _run FROM kinds) ORDER BY ALL") == [(1, "", 0), (2, "x", 0)]


def test_a_column_that_is_not_stored_yet_is_null_and_a_narrower_one_is_widened(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    old = pa.table({"id": pa.array([1], pa.int64()), "n": pa.array([5], pa.int32()), "_run": pa.array([1], pa.int64()), "_op": ["I"]})
    publish(lake.location, one_table("t", "t", "id BIGINT, n BIGINT, more DECIMAL(10,2)"), {"t": old})
    rows = lake.read("t")
    assert (rows.types, rows.to_arrow().to_pylist()) == (("BIGINT", "BIGINT", "DECIMAL(10,2)"), [{"id": 1, "n": 5, "more": None}])


@pytest.mark.parametrize("folder", ["env=prod", "it's", "[x]", "a*", "$files", "a#b?c", "é日🙂", "100%20"])
def test_a_lake_may_be_anywhere_and_hidden_rows_stay_hidden(tmp_path: Path, folder: str) -> None:
    stored = Stored(tmp_path / folder / "lake", ["k", "env"])
    lake = Lake(tmp_path / folder / "lake")
    publish(lake.location, one_table("t", "rows", "k STRING, env STRING", "k"), {"rows": stored.head})
    left = [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]
    assert answer(lake, "SELECT * FROM rows ORDER BY k") == [(f"k {i:02}", f"env {i:02}") for i in left]
    assert answer(lake, "SELECT count(*) FROM rows WHERE env = 'env 03'") == [(0,)]


def test_columns_may_have_names_that_duckdb_gives_its_own(tmp_path: Path) -> None:
    stored = Stored(tmp_path / "lake", OWN)
    lake = Lake(tmp_path / "lake")
    publish(lake.location, one_table("t", "rows", ", ".join(f"{n} STRING" for n in OWN), OWN[0]), {"rows": stored.head})
    assert lake.sql(f"SELECT * FROM rows ORDER BY {OWN[0]}").to_arrow().to_pylist()[3] == {n: f"{n} 04" for n in OWN}


def test_several_topologies_are_seen_at_once_each_at_its_newest_run(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    for topology, value in (("a", "left"), ("b", "right")):
        rows = pa.table({"id": pa.array([1], pa.int64()), "v": [value], "_run": pa.array([1], pa.int64()), "_op": ["I"]})
        publish(lake.location, one_table(topology, "same", "id BIGINT, v STRING"), {"same": rows})
        publish(lake.location, one_table(topology, f"only_{topology}", "id BIGINT, v STRING"), {f"only_{topology}": rows})
    assert answer(lake, "SELECT only_a.v, only_b.v FROM only_a JOIN b.only_b ON only_a.id = only_b.id") == [("left", "right")]
    assert lake.sql("FROM only_a, only_b").as_of == {"a": 2, "b": 2}
    publish(lake.location, one_table("b", "only_a", "id BIGINT, v STRING"), {})
    with pytest.raises(UnknownTable, match="2 topologies have a table 'only_a_out'") as refused:
        lake.read("only_a_out")
    assert refused.value.expected == "a.only_a_out, b.only_a_out"
    assert lake.read("only_a_out", topology="b").count() == lake.read("B.only_a_out").count() == 0
    with pytest.raises(UnknownTable, match="2 topologies, each with runs of its own"):
        lake.read("only_a", as_of=1)
    assert lake.read("same", as_of=1, topology="a").to_arrow().to_pylist() == [{"id": 1, "v": "left"}]
    with pytest.raises(UnknownTable, match="run 1 was the last that had it") as left:
        lake.read("same", topology="a")
    assert left.value.next_step == "ask for the state as of run 1"


@pytest.mark.parametrize("name", ["temp", "system", "memory", "information_schema", "pg_catalog"])
def test_a_topology_with_a_name_that_duckdb_has_is_chosen_beside_the_query(tmp_path: Path, name: str) -> None:
    lake = Lake(tmp_path / "lake")
    rows = pa.table({"id": pa.array([1], pa.int64()), "_run": pa.array([1], pa.int64()), "_op": ["I"]})
    publish(lake.location, one_table(name, "t", "id BIGINT"), {"t": rows})
    with pytest.raises(QueryRefused, match="DuckDB has something of that name"):
        lake.sql(f"SELECT * FROM {name}.t")
    assert lake.sql("SELECT * FROM t", topology=name).count() == lake.read("t").count() == 1


# --- what it is turned into ------------------------------------------------------------------------------------------


def test_whole_numbers_in_nested_values_keep_all_digits_in_pandas(lake: Lake) -> None:
    large = 2**53 + 1
    [row] = (
        lake.sql(f"SELECT [{large}, NULL] AS l, MAP {{'a': {large}, 'b': NULL}} AS m, [{{'x': {large}}}, {{'x': NULL}}] AS s, 1.5 AS d")
        .to_pandas()
        .to_dict("records")
    )
    assert (list(row["l"]), row["m"], list(row["s"]), row["d"]) == (
        [large, None],
        [("a", large), ("b", None)],
        [{"x": large}, {"x": None}],
        Decimal("1.5"),
    )


def test_polars_that_is_not_there_is_told(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(SetupError, match="Polars is not installed"):
        lake.read("orders").to_polars()


def test_a_relation_lives_longer_than_what_made_it_and_can_be_used_further(lake: Lake) -> None:
    rows = lake.read("orders").to_duckdb().filter("id > 4").project("id").order("id")
    assert rows.fetchall() == [(5,), (6,)]


def test_loading_rejoin_loads_no_engine_and_reading_no_spark(location: str) -> None:
    text = (
        "import sys, rejoin\nlake = rejoin.Lake(sys.argv[1])\n"
        "print({'duckdb', 'pyiceberg', 'pyarrow', 'pandas', 'sqlalchemy'} & set(sys.modules))\n"
        "print(lake.read('orders').count(), 'pyspark' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text, location], capture_output=True, text=True, check=True, cwd=Path(rejoin.__file__).parents[1]
    )
    assert done.stdout.splitlines() == ["set()", "5 False"], done.stderr


def test_many_threads_read_one_file_each_at_its_own_place(tmp_path: Path) -> None:
    lake, count = Lake(tmp_path / "lake"), 300_000
    numbers = pa.array(range(count), pa.int64())
    rows = pa.table({"id": numbers, "v": pa.array([f"value {i}" for i in range(count)])})
    publish(lake.location, one_table("t", "t", "id BIGINT, v STRING"), {"t_out": rows})
    path = next((tmp_path / "lake").rglob("*.parquet"))
    assert pq.read_metadata(path).num_row_groups > 0
    assert answer(lake, "SELECT count(*), sum(id), count(DISTINCT v), bool_and(v = 'value ' || id) FROM t_out") == [
        (count, count * (count - 1) // 2, count, True)
    ]


def test_answers_as_json_lines_hold_what_topics_hold(lake: Lake) -> None:
    from rejoin.lake.query.export import write_json

    query = """SELECT sum(1) AS h, 12.50::DECIMAL(10,2) AS d, 'a'::BLOB AS b, TIMESTAMPTZ '2024-01-01 10:00:00+02' AS tz, NULL AS n,
        'nan'::DOUBLE AS f, [1] AS l, {'a': '-inf'::FLOAT} AS st, INTERVAL 1 DAY AS i, 'é' AS s"""
    written = io.BytesIO()
    write_json(lake.sql(query), written)
    [found] = [json.loads(line) for line in written.getvalue().splitlines()]
    assert found == {
        "h": 1,
        "d": "12.50",
        "b": "YQ==",
        "tz": "2024-01-01T08:00:00Z",
        "n": None,
        "f": "NaN",
        "l": [1],
        "st": {"a": "-Infinity"},
        "i": "1 day",
        "s": "é",
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # moto's
def test_a_lake_in_an_object_store_is_read_where_it_is(tmp_path: Path) -> None:
    from moto.server import ThreadedMotoServer
    from pyarrow.fs import S3FileSystem

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        S3FileSystem(access_key="a", secret_key="b", endpoint_override=endpoint, region="us-east-1", allow_bucket_creation=True).create_dir(
            "bucket"
        )
        (tmp_path / "lake.toml").write_text(
            f'catalog = "sqlite"\nuri = "sqlite:///{tmp_path}/catalog.db"\nwarehouse = "s3://bucket/my warehouse"\n[properties]\n'
            f'"s3.endpoint" = "{endpoint}"\n"s3.access-key-id" = "a"\n"s3.secret-access-key" = "b"\n"s3.region" = "us-east-1"\n'
        )
        lake, plan = Lake(tmp_path / "lake.toml"), one_table("t", "t", "id BIGINT, v STRING")
        rows = pa.table({"id": pa.array(range(5), pa.int64()), "v": ["a", "b", "c", "d", "e"]})
        publish(lake.location, plan, {"t_out": rows})
        refs = Refs(lake_config(lake.location), "t")
        base = refs.head("t_out", "run_1_a")
        [file] = files_of(refs.require("t_out", base), base).data
        gone = delete_file(refs.require("t_out", base), pa.table({"file_path": [file.file_path], "pos": [3]}))
        publish(lake.location, plan, {"t_out": refs.commit_files("t_out", "b", base, [], [gone])})
        assert answer(lake, "SELECT string_agg(v ORDER BY id DESC) FROM t_out") == [("e,c,b,a",)]
        assert answer(lake, "SELECT v FROM t_out WHERE id = 4") == [("e",)]
        assert lake.read("t_out", as_of=1).count() == 5
    finally:
        server.stop()
