"""What commands print for machines: one JSON document, or one a line, valid whatever the rows hold, and nothing beside it."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from rejoin import Topology, snapshot
from rejoin.cli import main
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import StepRecord, Write
from rejoin.lake.query.json_values import plain
from rejoin.operate.verify.comparison import Difference
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.report.history import verification_data

TYPES = {
    "day": ("DATE", pa.date32()),
    "no": ("BIGINT", pa.int64()),
    "yes": ("BOOLEAN", pa.bool_()),
    "share": ("DOUBLE", pa.float64()),
    "small": ("FLOAT", pa.float32()),
    "price": ("DECIMAL(38,10)", pa.decimal128(38, 10)),
    "raw": ("BINARY", pa.binary()),
    "at": ("TIMESTAMP", pa.timestamp("us", "UTC")),
    "clock": ("TIMESTAMP_NTZ", pa.timestamp("us")),
    "text": ("STRING", pa.string()),
}
ROWS: list[dict[str, Any]] = [
    {
        "day": date(1, 1, 1),
        "no": 2**63 - 1,
        "yes": True,
        "share": float("nan"),
        "small": float("-inf"),
        "price": Decimal("0E-10"),
        "raw": b"\x00\xff",
        "at": datetime(2024, 5, 1, 12, 30, tzinfo=UTC),
        "clock": datetime.fromisoformat("1969-12-31T23:59:59.000001"),
        "text": 'é\n\u2028"[a-z]" :smile:',
    },
    {"day": date(2024, 2, 29), "no": -1, "share": -0.0, "price": Decimal("1234567890123456789012345678.0123456789")},
]
EXPECTED: list[dict[str, Any]] = [
    {
        "day": "0001-01-01",
        "no": 9223372036854775807,
        "yes": True,
        "share": "NaN",
        "small": "-Infinity",
        "price": "0.0000000000",
        "raw": "AP8=",
        "at": "2024-05-01T12:30:00Z",
        "clock": "1969-12-31T23:59:59.000001",
        "text": 'é\n\u2028"[a-z]" :smile:',
    },
    dict.fromkeys(TYPES) | {"day": "2024-02-29", "no": -1, "share": -0.0, "price": "1234567890123456789012345678.0123456789"},
]

ODD = 'matches("text", "[a-z]+[/b] :smile:")'


def plan() -> Plan:
    types = Topology("types")
    schema = ", ".join(f"`{name}` {of}" for name, (of, _) in TYPES.items())
    rows = types.table("rows", key=["day", "no"], schema=schema, source=snapshot("landing/rows"))
    rows.select(["*"]).named("copies")
    return compile(types)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A committed run of an output with every type, made without Spark."""
    location = str(tmp_path_factory.mktemp("typed") / "lake")
    config = lake_config(location)
    ledger, refs = Ledger(config.ledger, "types"), Refs(config, "types")
    run = ledger.open("process:here:1:2.0", plan(), {"copies": "f"})
    refs.ensure_namespace()
    columns = [(name, of) for name, (_, of) in TYPES.items()]
    image = pa.struct(columns)
    tables = {
        "copies": (pa.schema([*columns, ("_run", pa.int64())]), [{**row, "_run": 1} for row in ROWS]),
        "copies__changes": (
            pa.schema([("_run", pa.int64()), ("_op", pa.string()), *columns[:2], ("_before", image), ("_after", image)]),
            [{"_run": 1, "_op": "U", "day": r["day"], "no": r["no"], "_before": ROWS[1], "_after": r} for r in ROWS],
        ),
    }
    writes = []
    for name, (schema, rows) in tables.items():
        refs.create(name, schema, {})
        table = refs.table(name)
        assert table is not None
        table.append(pa.Table.from_pylist(rows, schema))
        writes.append(Write(name, refs.head(name, "main")))
    verdict = {"expectation": ODD, "severity": "warn", "met": False, "checked": 2, "unexpected": 1}
    detail = {"validation": [verdict], "share": float("nan")}
    ledger.register(run.number, StepRecord("resolve.copies", {"changes": 2}, 0.1, 0, detail), "a", tuple(writes))
    ledger.publish(run.number)
    return location


def asked(lake: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments[:1], "--lake", lake, *arguments[1:]])


def strictly(text: str) -> Any:
    """As a reader of JSON that knows the standard takes it: NaN and Infinity are no numbers there."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize("flag", [(), ("--json",)], ids=["plain", "with --json"])
@pytest.mark.parametrize("number", [0, 1])
def test_get_prints_every_type_as_valid_json(lake: str, number: int, flag: tuple[str, ...]) -> None:
    row = EXPECTED[number]
    done = asked(lake, "get", "copies", *flag, "--", str(ROWS[number]["day"]), str(row["no"]))
    assert done.exit_code == 0, done.stderr
    [line] = done.stdout.rstrip("\n").split("\n")
    found = strictly(line)
    assert found == row
    assert str(found["share"]) == str(row["share"]), "the sign of a zero is kept"


def test_changes_prints_every_type_as_valid_json(lake: str) -> None:
    done = asked(lake, "changes", "copies", "--json")
    assert done.exit_code == 0, done.stderr
    found = [strictly(line) for line in done.stdout.rstrip("\n").split("\n")]
    assert found == [{"op": "U", "before": EXPECTED[1], "after": row} for row in EXPECTED]


@pytest.mark.parametrize("arguments", [("history",), ("history", "--run", "1")])
def test_history_is_valid_json_whatever_a_step_has_noted(lake: str, arguments: tuple[str, ...]) -> None:
    found = strictly(asked(lake, *arguments, "--json").stdout)
    assert found["steps"][0]["detail"]["share"] == "NaN"
    for time in (found["opened_at"], found["closed_at"]):
        assert datetime.fromisoformat(time).tzinfo == UTC


def test_brackets_and_colons_are_no_markup_in_what_people_read(lake: str) -> None:
    assert ODD in asked(lake, "history", "--run", "1").stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("get", "copies", "--json", "2000-01-01", "1"), 4),
        (("get", "nothing", "--json", "2000-01-01", "1"), 2),
        (("get", "copies", "--json", "today", "1"), 2),
        (("get", "copies", "--json", "2000-01-01", "1", "--as-of", "7"), 4),
        (("changes", "nothing", "--json"), 2),
        (("history", "--json", "--run", "7"), 4),
        (("history", "--json", "--topology", "other"), 2),
    ],
)
def test_what_is_not_there_prints_nothing_where_json_is_expected(lake: str, arguments: tuple[str, ...], code: int) -> None:
    done = asked(lake, *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr


def test_a_run_without_changes_prints_no_line(lake: str) -> None:
    assert asked(lake, "changes", "copies", "--limit", "0").stdout == ""


def odd_values() -> Iterator[tuple[object, object]]:
    yield {"a": [None, {"b": None}]}, {"a": [None, {"b": None}]}
    yield (b"", b"\xfb\xff"), ["", "+/8="]
    yield [float("inf"), float("-inf"), 1e300], ["Infinity", "-Infinity", 1e300]
    yield [Decimal("1E+3"), Decimal("-0.00"), Decimal("1E-38")], ["1000", "-0.00", "0." + "0" * 37 + "1"]
    yield datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2023-12-31T23:00:00Z"
    yield [datetime.fromisoformat("9999-12-31T23:59:59.999999"), date(9999, 12, 31)], ["9999-12-31T23:59:59.999999", "9999-12-31"]
    yield [True, 0, "", 2**70], [True, 0, "", 2**70]


@pytest.mark.parametrize(("value", "expected"), list(odd_values()))
def test_a_value_becomes_what_json_has(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_verify_as_data_says_what_was_not_looked_for() -> None:
    found = [Difference("out", 10, 1, 2, 3, 4, suspects=5, held=6, hidden=0, engine="local"), Difference("left", 7, 0, 0, 0, 0, kept=True)]
    fast, whole = (verification_data("shop", found, {}, fast=f) for f in (True, False))
    assert (fast["differences"], fast["outputs"][0]["hidden"], whole["outputs"][0]["suspects"]) == (10, None, None)
    assert [o["compared"] for o in whole["outputs"]] == [True, False]
    counts = {"rows": 10, "missing": 1, "extra": 2, "different": 3, "subscriptions": 4}
    assert whole["outputs"][0] == counts | {
        "output": "out",
        "compared": True,
        "engine": "local",
        "hidden": 0,
        "held_back": 6,
        "suspects": None,
    }


TOPOLOGY = """
from rejoin import Topology, snapshot
print("hello from the file")
t = Topology("types")
t.table("rows", key="id", schema="id BIGINT", source=snapshot("rows")).filter("id > 1").named("copies")
"""


@pytest.mark.parametrize(
    "arguments", [("explain", "FILE", "--json"), ("explain", "FILE", "--json", "--run", "1"), ("sinks", "FILE", "--json")]
)
def test_what_a_topology_file_prints_is_not_among_the_json(lake: str, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    file = tmp_path / "t.py"
    file.write_text(TOPOLOGY)
    done = asked(lake, *(str(file) if a == "FILE" else a for a in arguments))
    assert done.exit_code == 0, done.stderr
    assert isinstance(strictly(done.stdout), dict)
    assert "hello from the file" in done.stderr
