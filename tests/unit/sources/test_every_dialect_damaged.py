"""Records of every dialect that are changed at random: none crashes, each has one fate, and none is applied by half.

What is read by columns or in batches is read one by one, too: both say the same.
"""

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from mapped import pinned, unproven
from source_fuzz import mutated, other_value
from test_cloud_events import cloud_event, envelope

from rejoin import Topology, airbyte, changes, csv, debezium, dms, feed, fivetran, flattened
from rejoin.declare.declarations import SourceDeclaration
from rejoin.errors import SchemaDrift, SourceCorrupt
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Table
from rejoin.plan.pin import Part, Pin
from rejoin.sources import SourceAccess
from rejoin.sources.formats import line_chunks
from rejoin.sources.read import events_of_part
from rejoin.sources.shapes.mapped import records
from rejoin.sources.stored_files import PinnedFile

Row = dict[str, Any]
SCHEMA = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": [{"field": "id", "type": "int64"}]}]}


def bare(row: Row, n: int) -> Row:
    return envelope("d", row, None, n) if n % 5 == 4 else envelope("u", None, row, n)


def maxwell(row: Row, n: int) -> Row:
    own = {
        "database": "shop",
        "table": "orders",
        "type": ("insert", "update", "delete")[n % 3],
        "ts": 1,
        "position": f"b.3:{n}",
        "xoffset": n,
    }
    return {**own, "data": row, **({"old": {"id": n % 7 + 100}} if n % 6 == 1 else {})}


def canal(row: Row, n: int) -> Row:
    texts = [{name: None if value is None else str(value) for name, value in row.items()} | {"id": str(id_)} for id_ in (n % 7, n % 5 + 50)]
    of = {"database": "shop", "table": "orders", "isDdl": False, "type": ("INSERT", "UPDATE", "DELETE")[n % 3], "data": texts, "old": None}
    return {**of, "old": [{"name": "x"}, {"id": "9"}]} if n % 3 == 1 else of


def golden_gate(row: Row, n: int) -> Row:
    images = {"before": row} if n % 3 == 2 else {"after": row, **({"before": {**row, "id": 99}} if n % 6 == 1 else {})}
    return {"table": "orders", "op_type": "IUD"[n % 3], "op_ts": "2026-11-27 10:00:00", "pos": f"{n:020d}", **images}


def nested(row: Row, n: int) -> Row:
    of = {"tags": [f"t{n}", None], "place": {"city": "é", "day": "2026-01-02"}, "m": {"b": n, "a": None}}
    return {**row, **(dict.fromkeys(of) if n % 5 == 0 else of)}


JSON: dict[str, tuple[SourceDeclaration, Callable[[Row, int], Row]]] = {
    "messages": (debezium("landing"), lambda row, n: {"key": {"id": row["id"]}, "value": bare(row, n) if n % 6 else None}),
    "bare envelopes": (debezium("landing", topic="shop.public.people"), bare),
    "envelopes with schemas": (debezium("landing"), lambda row, n: {"schema": SCHEMA, "payload": bare(row, n)}),
    "CloudEvents": (debezium("landing"), lambda row, n: cloud_event(bare(row, n)["op"], bare(row, n), iodebeziumlsn=str(n))),
    "Maxwell": (feed("landing", "maxwell", only="shop.orders"), maxwell),
    "Canal": (feed("landing", "canal", only="shop.orders"), canal),
    "GoldenGate": (feed("landing", "goldengate"), golden_gate),
    "flattened": (flattened("landing", order_by="__lsn"), lambda row, n: {**row, "__lsn": n, "__deleted": str(n % 5 == 0).lower()}),
    "DMS": (dms("landing", sequence="seq"), lambda row, n: {"Op": "IUD"[n % 3], **row, "seq": f"{n:035d}"}),
    "Fivetran": (
        fivetran("landing"),
        lambda row, n: {**row, "_fivetran_synced": f"2026-01-01T00:00:{n % 60:02d}Z", "_fivetran_deleted": n % 5 == 0},
    ),
    "Airbyte": (
        airbyte("landing", order_by="_ab_cdc_lsn"),
        lambda row, n: {**row, "_ab_cdc_lsn": n, "_ab_cdc_deleted_at": "2026-01-01" if n % 5 == 0 else None},
    ),
    "nested columns of messages": (debezium("landing"), lambda row, n: {"key": {"id": row["id"]}, "value": bare(nested(row, n), n)}),
    "nested columns of rows": (
        changes("landing", order_by="at", deleted="gone = 'true'", columns={"m": "coalesce(m, more)"}),
        lambda row, n: {**nested(row, n), "at": n, "gone": n % 5 == 4},
    ),
    "Connect JDBC": (changes("landing", order_by="updated_at"), lambda row, n: {**row, "updated_at": 1_767_225_600_000 + n}),
    "upserts": (changes("landing", order_by="at", columns={"total": "replace(total, ',', '')"}), lambda row, n: {**row, "at": n}),
}


def cells(row: Row, n: int) -> Row:
    return {"id": row["id"], "name": f"n{n}", "total": row["total"], "at": n}


CSV: dict[str, tuple[SourceDeclaration, Callable[[Row, int], Row], str, str]] = {
    "with a header": (changes("landing", order_by="at", format=csv()), cells, ",", "utf-8"),
    "with semicolons in Latin-1": (changes("landing", order_by="at", format=csv(delimiter=";", encoding="latin-1")), cells, ";", "latin-1"),
    "with names and escapes": (
        changes("landing", order_by="at", format=csv(header=False, names=["id", "name", "total", "at"], escape="\\")),
        cells,
        ",",
        "utf-8",
    ),
    "with tabs and no quotes": (changes("landing", order_by="at", format=csv(delimiter="\t", quote=None, trim=True)), cells, "\t", "utf-8"),
    "of DMS": (dms("landing", sequence="seq"), lambda row, n: {"Op": "IUD"[n % 3], "seq": f"{n:035d}", **cells(row, n)}, ",", "utf-8"),
    "with nested columns": (
        changes("landing", order_by="at", format=csv()),
        lambda row, n: {
            **cells(row, n),
            "tags": '"[""a"",null]"',
            "place": '"{""city"":""é"",""day"":""2026-01-02""}"',
            "m": '"{""b"":1,""a"":null}"',
        },
        ",",
        "utf-8",
    ),
}
FILES = [1, pytest.param(400, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)])]
"""So many files of 200 records, of which two thirds are changed: 50,000 in the night."""
FILES_OF_CSV = [1, pytest.param(500, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)])]
"""The same, of which half are changed."""
PLAIN = "id BIGINT, name STRING, total DECIMAL(10,2)"
NESTED = f"{PLAIN}, tags ARRAY<STRING>, place STRUCT<city: STRING, day: DATE>, m MAP<STRING, INT>"


def table(source: SourceDeclaration, schema: str = PLAIN) -> Table:
    topology = Topology("t")
    topology.table("orders", key="id", schema=schema, source=source).named("out")
    return compile(topology).table("orders")


def rows(count: int) -> Iterator[tuple[int, Row]]:
    for n in range(1, count + 1):
        yield n, {"id": n % 7, "name": f'é "{n}", \\' if n % 4 == 0 else None if n % 9 == 0 else f"n{n}", "total": f"{n}.50"}


def read(of: Table, root: Path, file: PinnedFile, *, fast: bool) -> list[Row] | str:
    """The events of a file, by columns where that is possible or one by one; or the code of what was refused as a whole."""
    with (
        patch.multiple(line_chunks, FEWEST=0 if fast else 1 << 60, LINES=60),
        patch.object(records, "run", records.run if fast else unproven),
    ):
        try:
            pin = Pin(of.source.kind, (Part(file.path, file.size, {"sha256": file.sha256}),), 1)
            return [row for batch in events_of_part(of, pin, 0, SourceAccess(str(root))) for row in batch.to_pylist()]
        except (SourceCorrupt, SchemaDrift) as refused:
            return refused.code


def both(of: Table, root: Path, name: str, data: bytes) -> list[Row] | str:
    file = pinned(root, name, data)
    fast, careful = read(of, root, file, fast=True), read(of, root, file, fast=False)
    assert list(map(repr, fast)) == list(map(repr, careful))
    return fast


def check_fates(found: list[Row], places: set[int]) -> None:
    """Each of the records at these places is applied, or refused with a code, as a whole."""
    fates: dict[int, list[Row]] = {}
    for event in found:
        fates.setdefault(event["_line"], []).append(event)
    assert set(fates) == places, "a record without a fate"
    for events in fates.values():
        assert len(events) == 1 or all(event["_code"] is None for event in events), "applied by half"
        assert all((event["_kind"] == "quarantined") == (event["_code"] is not None) for event in events)


def damaged(chance: random.Random, line: bytes) -> bytes:
    kind = chance.random()
    return line if kind < 0.33 else mutated(chance, line) if kind < 0.66 else other_value(chance, line)


@pytest.mark.parametrize("files", FILES)
@pytest.mark.parametrize("dialect", JSON)
def test_fault_every_record_of_every_dialect_has_one_fate(tmp_path: Path, dialect: str, files: int, pytestconfig: pytest.Config) -> None:
    source, make = JSON[dialect]
    of, kinds = table(source, NESTED if "nested" in dialect else PLAIN), set[str]()
    for number in range(files):
        chance = random.Random(f"{pytestconfig.option.hypothesis_seed} {number}")
        first, *others = (json.dumps(make(row, n), ensure_ascii=chance.random() < 0.5).encode() for n, row in rows(200))
        lines = [first, *(damaged(chance, line) for line in others)]  # by the first it is told that records are lines
        data = b"\n".join(lines) + b"\n"
        packed = chance.random() < 0.3
        found = both(of, tmp_path, f"{number}.jsonl{'.gz' * packed}", gzip.compress(data) if packed else data)
        assert isinstance(found, list), f"refused as a whole: {found}"
        check_fates(found, {n for n, line in enumerate(lines, 1) if line.strip()})
        kinds |= {event["_kind"] for event in found}
    assert {"upsert", "quarantined"} <= kinds and ("delete" in kinds or dialect in ("upserts", "Connect JDBC"))


@pytest.mark.parametrize(
    "field",
    [{"fields": 1.5}, {"fields": "x"}, {"fields": [1]}, {"fields": [{"field": "id", "type": ["int64"], "name": {}}]}]
    + [{"fields": [{"field": "total", "type": "bytes", "parameters": {"scale": scale}}]} for scale in ("--5", "\u00b2", "99999", 2)],
)
def test_fault_a_schema_that_is_damaged_is_one_that_says_nothing(tmp_path: Path, field: Row) -> None:
    schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", **field}]}
    lines = [json.dumps({"schema": schema, "payload": bare(row, n)}).encode() for n, row in rows(4)]
    lines.append(json.dumps({"schema": {"type": "struct", **field}, "payload": bare({"id": 5, "name": "x", "total": "1"}, 5)}).encode())
    found = both(table(debezium("landing")), tmp_path, "1.jsonl", b"\n".join(lines))
    assert [(row["_kind"], str(row["total"])) for row in found if isinstance(row, dict)][:2] == [("upsert", "1.50"), ("upsert", "2.50")]


@pytest.mark.parametrize("files", FILES_OF_CSV)
@pytest.mark.parametrize("declared", CSV)
def test_fault_every_record_of_every_csv_has_one_fate(tmp_path: Path, declared: str, files: int, pytestconfig: pytest.Config) -> None:
    source, make, delimiter, encoding = CSV[declared]
    of, read_files = table(source, NESTED if "nested" in declared else PLAIN), 0
    for number in range(files + 4):
        chance = random.Random(f"{pytestconfig.option.hypothesis_seed} {number}")
        made = [make(row, n) for n, row in rows(200)]
        lines = [delimiter.join(map(str, row.values())) for row in made]
        header = [] if "names" in declared else [delimiter.join(made[0]).encode()]
        share = chance.choice([0.1, 0.9])
        changed = [mutated(chance, line.encode(encoding)) if chance.random() < share else line.encode(encoding) for line in lines]
        data = b"\n".join([*header, *changed, b""])
        found = both(of, tmp_path, f"{number}.csv", data)
        if isinstance(found, list):
            read_files += 1
            assert all((event["_kind"] == "quarantined") == (event["_code"] is not None) for event in found)
            places = [event["_line"] for event in found]
            assert places == sorted(set(places)), "a record with two fates"
            taken = sum(event["_lines"] for event in found)
            assert taken <= len(data.splitlines()) and taken >= len(found)
    assert read_files
