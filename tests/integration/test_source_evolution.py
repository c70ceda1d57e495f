"""What becomes of a table when the columns of its source change, under each declaration: the table of docs/sources.md, row by row."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from integration.conftest import Sessions
from integration.texts import Lake

from rejoin.errors import RejoinError

pytestmark = pytest.mark.slow
TABLE = 't.table("s", key="id", schema="id BIGINT, {}", source={}("s", max_bad_share=0.9{}){}).filter("id > 0").named("o")'

# happens | second row | schema before -> schema after | other declaration | outcome: the second row, or a code
CASES = """
added    | name=Bob city=Rome | name STRING               |                                           | name=Bob
declared | name=Bob city=Rome | name STRING > name STRING, city STRING |                              | name=Bob city=Rome
dropped  |                    | name STRING               |                                           | SCHEMA_DRIFT
optional |                    | name STRING               | optional=["name"]                         | name=null
let go   | n=1                | name STRING, n INT > n INT |                                          | n=1
renamed  | full=Bob           | name STRING               |                                           | SCHEMA_DRIFT
alias    | full=Bob           | name STRING               | columns={"name": "coalesce(full, name)"}  | name=Bob
widened  | n=3000000000       | n INT                     |                                           | VALUE_RANGE
wider    | n=3000000000       | n INT > n BIGINT          |                                           | n=3000000000
digits   | n=12345.25         | n DECIMAL(5,2) > n DECIMAL(9,2) |                                     | n=12345.25
narrower | n=7                | n BIGINT > n INT          |                                           | SCHEMA_REFUSED
retyped  | n=x                | n INT                     |                                           | VALUE_TYPE
"""
ROWS = [[cell.strip() for cell in line.split("|")] for line in CASES.strip().splitlines()]
FIRST = {"name": "Ann", "n": 1}


def values(cell: str) -> dict[str, Any]:
    pairs = (pair.split("=", 1) for pair in cell.split())
    return {name: int(value) if value.isdigit() else None if value == "null" else value for name, value in pairs}


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[pytest.mark.by_spark, pytest.mark.nightly])])
@pytest.mark.parametrize("kind", ["changes", pytest.param("snapshot", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("case", ROWS, ids=[row[0] for row in ROWS])
def test_columns_of_a_source_change(tmp_path: Path, sessions: Sessions, case: list[str], kind: str, engine: str) -> None:
    _, second, schemas, more, outcome = case
    before, _, after = (part.strip() for part in schemas.partition(">"))
    of_table, of_source = (f", {more}" if more.startswith(to) else "" for to in ("optional", "columns"))
    of_source += ', order_by="v"' if kind == "changes" else ""
    lake = Lake(tmp_path, sessions, TABLE.format(before, kind, of_source, of_table))
    first = {"id": 1, "v": 1} | {name: value for name, value in FIRST.items() if f"{name} " in before}
    lake.land("s/1.jsonl", json.dumps(first))
    lake.run()
    lake.declare(TABLE.format(after or before, kind, of_source, of_table))
    beside = [first] if outcome.startswith("VALUE") else []  # where all records are refused, the declaration is wrong
    lake.land("s/2.jsonl", "\n".join(map(json.dumps, [*beside, {"id": 2, "v": 2} | values(second)])))
    if outcome.startswith("SCHEMA"):
        with pytest.raises(RejoinError) as stopped:
            lake.run()
        assert stopped.value.code == outcome and 2 not in lake.rows("o")
        return
    lake.run()
    if outcome.startswith("VALUE"):
        assert [code for code, _ in lake.kept_aside("s").values()] == [outcome] and 2 not in lake.rows("o")
        return
    found = {name: value if value is None else str(value) for name, value in lake.rows("o")[2].items() if name != "id"}
    assert found == {name: value if value is None else str(value) for name, value in values(outcome).items()}


WIDE = """
s = t.table("s", key="id", schema="id BIGINT, n {n}, d {d}, f {f}, name STRING", source=snapshot("s"))
s.select(["id", "n", "d", "f"]).named("numbers")
s.select(["id", "name"]).named("names")
"""


def test_a_wider_type_rebuilds_what_reads_the_column_and_changes_no_row(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(tmp_path, sessions, WIDE.format(n="INT", d="DECIMAL(5,2)", f="FLOAT"))
    lake.land("s/1.csv", "id,n,d,f,name\n1,-7,1.50,0.5,Ann\n2,,,,\n")
    lake.run()
    before = lake.rows("numbers")
    lake.declare(WIDE.format(n="BIGINT", d="DECIMAL(12,2)", f="DOUBLE"))
    counts = lake.run()
    assert (counts["resolve.numbers"]["unchanged"], counts["resolve.names"]["unchanged"]) == (2, 0), (
        "what does not read them is not made anew"
    )
    assert counts["publish"]["changes"] == 0 and lake.rows("numbers") == before
    lake.land("s/2.csv", "id,n,d,f,name\n1,-7,1.50,0.5,Ann\n2,5000000000,1234567.25,1e300,Bob\n")
    counts = lake.run()
    assert (counts["ingest.s"]["noop"], counts["ingest.s"]["applied"]) == (1, 1)
    assert lake.rows("numbers")[2] == {"id": 2, "n": 5_000_000_000, "d": Decimal("1234567.25"), "f": 1e300}
