"""Formats that other packages bring: the one of docs/extending.md, found by an entry point, read as snapshots, records and changes."""

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from followed import files
from pinning import there

from rejoin import Topology, changes, installed_format, records, snapshot
from rejoin.errors import SchemaDrift, SetupError, SourceCorrupt, TopologyError
from rejoin.plan.check.compile import compile
from rejoin.plan.explain import text
from rejoin.plan.model import json_form
from rejoin.plan.model.plan import Plan
from rejoin.sources import SourceAccess, read_again_here, read_here
from rejoin.sources.transports.registry import transport

PAGE = (Path(__file__).parents[3] / "docs" / "extending.md").read_text()
NUMBERS = '''
class Numbers:
    """Two octets each: a number, and a letter."""

    def rows(self, pieces):
        data = b"".join(pieces)
        for at in range(0, len(data), 2):
            yield at // 2 + 1, data[at : at + 2], {"id": str(data[at]), "name": chr(data[at + 1])}
'''
POINTS = "[rejoin.formats]\nfixed_width = fixed_width:FixedWidth\nnumbers = numbers_:Numbers\n"
WIDTHS = {"id": 3, "name": 5, "v": 4}


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that adds both formats, as ``pip install`` leaves it."""
    place = tmp_path / "site"
    (place / "ours-1.dist-info").mkdir(parents=True)
    (place / "fixed_width.py").write_text(files(PAGE)["fixed_width.py"])
    (place / "numbers_.py").write_text(NUMBERS)
    (place / "ours-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n")
    (place / "ours-1.dist-info" / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(place))
    return iter(())


def plan(of: Any = snapshot, name: str = "fixed_width", schema: str = "id INT, name STRING", **options: Any) -> Plan:
    made = Topology("t")
    written = installed_format(name, **({"widths": WIDTHS} if name == "fixed_width" else {}) | options.pop("written", {}))
    if of is records:
        source = records("src", format=written, columns={"at": "TIMESTAMP '2026-11-27 00:00:00'"})
        made.stream("people", id="id", schema=f"{schema}, at TIMESTAMP", event_time="at", source=source).select(["id"]).named("listed")
    else:
        made.table("people", key="id", schema=schema, source=of("src", format=written, **options)).named("listed")
    return compile(made)


def events(root: Path, of: Plan, data: bytes, name: str = "1.txt") -> list[dict[str, Any]]:
    (root / "src").mkdir(exist_ok=True)
    (root / "src" / name).write_bytes(data)
    table = of.table("people")
    pin = there(table, str(root)).pin
    assert pin is not None
    found = read_here(table, pin, SourceAccess(str(root)))
    assert found is not None
    kept = [e["_line"] for e in found.to_pylist() if e["_kind"] == "quarantined"]
    raw = dict(transport(table, SourceAccess(str(root))).raw(pin.parts[0], kept))
    assert [e["_raw"] for e in found.to_pylist() if e["_kind"] == "quarantined"] == [raw[line] for line in kept]
    return found.to_pylist()


@pytest.mark.parametrize("of", [snapshot, records])
@pytest.mark.parametrize("packed", [False, True])
def test_rows_are_read_and_what_is_none_is_quarantined_as_it_is_written(tmp_path: Path, of: Any, packed: bool) -> None:
    data = "  1Ann     7\n  2\n  3ü ä      \n  xBob     1\n   Cleo    1\n".encode()
    found = events(tmp_path, plan(of), gzip.compress(data) if packed else data)
    assert [(e["_line"], e["_kind"], e["id"], e["name"], e["_code"]) for e in found] == [
        (1, "upsert", 1, "Ann", None),
        (2, "quarantined", None, None, "WIDTH"),
        (3, "upsert", 3, "ü ä", None),
        (4, "quarantined", None, None, "VALUE_TYPE"),
        (5, "quarantined", None, None, "MISSING_KEY"),
    ]
    assert found[1]["_raw"] == "  2"


def test_changes_are_ordered_deleted_and_made_of_fields(tmp_path: Path) -> None:
    of = plan(changes, schema="id INT, name STRING, v INT", order_by="v", deleted="name = 'gone'", columns={"name": "upper(name)"})
    found = events(tmp_path, of, b"  1Ann     7\n  1gone    8\n")
    assert [(e["_kind"], e["id"], e["name"], e["v"]) for e in found] == [("upsert", 1, "ANN", 7), ("delete", 1, None, None)]
    assert found[0]["_position"] < found[1]["_position"]


def test_octets_that_are_no_text_are_read(tmp_path: Path) -> None:
    found = events(tmp_path, plan(name="numbers"), b"\x28\x41\xff\x42", "1.bin")
    assert [(e["id"], e["name"]) for e in found] == [(0x28, "A"), (0xFF, "B")]


def test_refused_records_are_read_again() -> None:
    kept = {"_file": "src/1.txt", "_line": 9, "_reason": "the field", "_raw": "  4Dora    1", "_arrival": -2}
    again = read_again_here(plan(changes, order_by="v").table("people"), [kept])
    assert again.select(["id", "name", "_line", "_arrival"]).to_pylist() == [{"id": 4, "name": "Dora", "_line": 9, "_arrival": -2}]


def test_fault_a_column_that_no_record_has_is_drift(tmp_path: Path) -> None:
    with pytest.raises(SchemaDrift, match="lacks: city"):
        events(tmp_path, plan(schema="id INT, city STRING"), b"  1Ann     7\n")


def test_fault_a_file_that_the_format_cannot_read_is_corrupt(tmp_path: Path) -> None:
    with pytest.raises(SourceCorrupt, match=r"src/1.txt.*the format 'fixed_width' cannot read it \(UnicodeDecodeError\)"):
        events(tmp_path, plan(), b"  1\xff\xff\xff     7\n")


def test_fault_a_plan_that_is_used_without_the_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan()
    monkeypatch.setattr("sys.path", [p for p in sys.path if p != str(tmp_path / "site")])
    with pytest.raises(SetupError, match=r"the format 'fixed_width' is not installed.* in the group 'rejoin.formats'"):
        events(tmp_path, made, b"  1Ann     7\n")


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        ("fixed_with", {}, "did you mean 'fixed_width'"),
        ("json", {}, "format 'json' is not installed"),
        ("fixed_width", {"widths": {}}, "refuses its options: widths must say"),
        ("fixed_width", {"wide": 1}, "unexpected keyword argument 'wide'"),
        ("fixed_width", {"encoding": b"x"}, "not JSON serializable"),
    ],
)
def test_a_format_that_is_not_there_or_refuses_its_options_is_refused(name: str, written: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match="BAD_OPTION") as refused:
        plan(name=name, written=written)
    assert message in str(refused.value)


def test_the_plan_says_the_format_and_is_the_same_after_json() -> None:
    made = plan()
    assert f"installed_format('fixed_width', widths={WIDTHS})" in text(made)
    assert json_form.from_json(json_form.to_json(made)) == made
    assert json.dumps(WIDTHS) in json.loads(json_form.to_json(made))["tables"][0]["source"]["format"]["options"]
