"""Arrays, structs and maps from sources through joins to outputs, by both engines, beside a join in Python."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from integration.conftest import Sessions
from integration.nested_values import SCHEMA, value
from integration.texts import Lake, line, put
from limited import limited

from rejoin.engines.choice import EngineChoice
from rejoin.errors import SchemaRefused
from rejoin.operate.compact import compact
from rejoin.operate.verify.verify import verify
from rejoin.steps.run.topology import Topology

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COLUMNS = ", ".join(f"{name} {of}" for name, of in SCHEMA.items())
FILE = f"""
things = t.table("things", key="id", schema="id BIGINT, other BIGINT, {COLUMNS}", source=debezium("things"))
others = t.table("others", key="id", schema="id BIGINT, {COLUMNS}", source=debezium("others"))
given = ", ".join(f"right.{{c}} AS other_{{c}}" for c in {list(SCHEMA)!r}).split(", ")
things.left_join(others, "other", ["left.*", *given]).named("joined", max_change_share=1.0)
"""
READING = f"""{FILE}
read = ["left.id", "left.Place.city", "size(left.tags) AS n", "left.props['a'].n AS a", "right.place.at.day", "get(get(right.deep, 0).b, 0) AS b"]
read += ["array_contains(left.tags, 'a') AS has_a", "left.deep.a AS every_a", "array_join(left.tags, '|') AS tags", "map_keys(left.props) AS names"]
things.filter("size(tags) < 3 OR get(flags, 0)['a']").left_join(others, "get(deep, 0).a", read).named("read", max_change_share=1.0)
cities = things.group_by("place.city AS id").aggregate(n="count(*)", tags="sum(size(tags))", least="min(get(deep, 0).a)", days="collect(place.at.day ORDER BY id)")
cities.named("cities", max_change_share=1.0)
"""
EVOLVING = """
a = t.table("a", key="id", schema="id BIGINT, b BIGINT, {0}", source=debezium("a"))
b = t.table("b", key="id", schema="id BIGINT, {0}", source=debezium("b"))
a.left_join(b, "b", ["left.*", "right.s AS bs", "right.l AS bl", "right.m AS bm"]).named("out", max_change_share=1.0)
"""
NARROW = "s STRUCT<x: INT>, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<x: INT>>"
WIDE = NARROW.replace("x: INT", "x: BIGINT, y: ARRAY<STRING>")


class World:
    """Random rows of both tables, and what their join is."""

    def __init__(self, seed: int, lake: Lake) -> None:
        self.random, self.lake, self.lsn = random.Random(seed), lake, 0
        self.rows: dict[str, dict[int, dict[str, Any]]] = {"things": {}, "others": {}}

    def change(self) -> None:
        for table, rows in self.rows.items():
            lines = []
            for _ in range(25):
                self.lsn, key = self.lsn + 1, self.random.randrange(30)
                if self.random.random() < 0.15:
                    rows.pop(key, None)
                    lines.append(line("d", self.lsn, {"id": key}))
                    continue
                made = {name: value(of, self.random) for name, of in SCHEMA.items()}
                other = {"other": self.random.randrange(30)} if table == "things" else {}
                lines.append(put(self.lsn, key, **other, **{name: pair[0] for name, pair in made.items()}))
                rows[key] = {"id": key, **other, **{name: pair[1] for name, pair in made.items()}}
            self.lake.land(f"{table}/{self.lsn:06}.jsonl", "\n".join(lines) + "\n")

    def joined(self) -> dict[int, dict[str, Any]]:
        none = dict.fromkeys(SCHEMA)
        rights = {key: self.rows["others"].get(row["other"], none) for key, row in self.rows["things"].items()}
        return {key: {**row, **{f"other_{c}": rights[key][c] for c in SCHEMA}} for key, row in self.rows["things"].items()}

    def made(self, output: str) -> dict[Any, dict[str, Any]]:
        """The rows of an output."""
        return {"joined": self.joined, "read": self.read, "cities": self.cities}[output]()

    def read(self) -> dict[int, dict[str, Any]]:
        """What expressions read of nested values."""
        rows = {
            key: row
            for key, row in self.rows["things"].items()
            if (len(row["tags"] or ()) < 3 and row["tags"] is not None) or _at(_get(row["flags"]), "a")
        }
        return {key: self._read(row, self.rows["others"].get(_at(_get(row["deep"]), "a"), {})) for key, row in rows.items()}

    def _read(self, row: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        tags, decimals = row["tags"], _at(_get(right.get("deep")), "b")
        has_a = None if tags is None else True if "a" in tags else None if None in tags else False
        return {
            "id": row["id"],
            "city": _at(row["place"], "city"),
            "n": None if tags is None else len(tags),
            "a": _at(_at(row["props"], "a"), "n"),
            "day": _at(_at(right.get("place"), "at"), "day"),
            "b": _get(decimals),
            "has_a": has_a,
            "every_a": None if row["deep"] is None else [_at(one, "a") for one in row["deep"]],
            "tags": None if tags is None else "|".join(tag for tag in tags if tag is not None),
            "names": None if row["props"] is None else [name for name, _ in row["props"]],
        }

    def cities(self) -> dict[str | None, dict[str, Any]]:
        """Groups by a field, of what is read of their members."""
        found: dict[str | None, list[dict[str, Any]]] = {}
        for _, row in sorted(self.rows["things"].items()):
            found.setdefault(_at(row["place"], "city"), []).append(row)
        return {city: _group(city, rows) for city, rows in found.items()}


def _at(of: Any, name: str) -> Any:
    """A field of a struct, or the value of a key of a map."""
    return dict(of or {}).get(name)


def _get(array: Any) -> Any:
    return array[0] if array else None


def _group(city: str | None, rows: list[dict[str, Any]]) -> dict[str, Any]:
    counts = [len(row["tags"]) for row in rows if row["tags"] is not None]
    firsts = [a for row in rows if (a := _at(_get(row["deep"]), "a")) is not None]
    days = [_at(_at(row["place"], "at"), "day") for row in rows]
    return {"id": city, "n": len(rows), "tags": sum(counts) if counts else None, "least": min(firsts, default=None), "days": days}


def check(lake: Lake, world: World) -> None:
    """Every output is what Python makes of the rows."""
    for output in lake.topology.plan.nodes:
        assert lake.rows(output.name) == world.made(output.name), output.name


def differences(lake: Lake, sessions: Sessions, engine: EngineChoice) -> list[int]:
    topology = lake.topology
    by = Topology(topology.plan, replace(topology.config, engine=engine), topology.root)
    return [d.total for d in verify(by, lambda: sessions(by), fast=False)]


def test_nested_values_arrive_as_they_were_written_and_are_read_as_spark_reads_them(
    tmp_path: Path, sessions: Sessions, pytestconfig: pytest.Config
) -> None:
    lake = Lake(tmp_path, sessions, READING)
    world = World(int(pytestconfig.option.hypothesis_seed), lake)
    for _ in range(6):
        world.change()
        lake.run()
        check(lake, world)
    assert lake.run()["ingest.things"]["read"] == 0
    assert differences(lake, sessions, EngineChoice.LOCAL) == [0, 0, 0]


@pytest.mark.nightly
@pytest.mark.by_spark
@pytest.mark.parametrize("text", [FILE, READING], ids=["joined", "read"])
def test_both_engines_store_compare_and_hash_nested_values_alike(
    text: str, tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    lake, seed = Lake(tmp_path, sessions, text), int(pytestconfig.option.hypothesis_seed)
    world = World(seed, lake)
    for here in (True, False):
        world.change()
        limited(monkeypatch, small_rows=200_000 if here else 0, sparse=20 if here else 0)
        lake.run()
        check(lake, world)
    topology = lake.topology
    assert compact(topology, lambda: sessions(topology), "compactor") is not None
    limited(monkeypatch, small_rows=200_000, sparse=20)
    again = max((tmp_path / "things").iterdir()).read_text()  # the same rows, at later positions
    lake.land("things/again.jsonl", again.replace('"lsn": ', '"lsn": 9'))
    counts = lake.run()
    found = counts["ingest.things"]
    assert found["noop"] + found["superseded"] == found["read"] == 25, f"{seed}: this process knows the hashes that Spark has made"
    assert [differences(lake, sessions, engine) for engine in (EngineChoice.LOCAL, EngineChoice.SPARK)] == [
        [0] * len(topology.plan.nodes)
    ] * 2, seed


def test_a_struct_gets_fields_and_wider_ones_wherever_it_stands(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(tmp_path, sessions, EVOLVING.format(NARROW))
    narrow, wide = {"x": 1}, {"x": 2**40, "y": ["é", None]}
    for table, more in (("a", {"b": 1}), ("b", {})):
        lake.land(f"{table}/1.jsonl", "".join(put(n, n, **more, s=narrow, l=[narrow, None], m={"k": narrow}) + "\n" for n in (1, 2)))
    lake.run()
    lake.declare(EVOLVING.format(WIDE))
    lake.land("b/2.jsonl", put(9, 1, s=wide, l=[wide], m={"k": wide}) + "\n")
    lake.run()
    grown = {"x": 1, "y": None}
    assert lake.rows("out")[2] == {
        "id": 2,
        "b": 1,
        "s": grown,
        "l": [grown, None],
        "m": [("k", grown)],
        "bs": wide,
        "bl": [wide],
        "bm": [("k", wide)],
    }
    assert differences(lake, sessions, EngineChoice.LOCAL) == [0]
    lake.declare(EVOLVING.format(NARROW))
    with pytest.raises(SchemaRefused, match=r"column 's' of table 'a' was declared STRUCT<x: BIGINT, y: ARRAY<STRING>> and is now"):
        lake.run()


def test_not_a_number_within_a_value_is_stored_as_any_number_is(tmp_path: Path, sessions: Sessions) -> None:
    """What a run checks on itself compares the rows that it finds with those that it has written."""
    of = "l ARRAY<DOUBLE>, m MAP<STRING, STRUCT<x: FLOAT>>"
    lake = Lake(tmp_path, sessions, f't.table("a", key="id", schema="id BIGINT, {of}", source=debezium("a")).select(["*"]).named("out")')
    for number, last in enumerate((1, 2)):
        lake.land(f"a/{number}.jsonl", put(number + 1, 1, l=["NaN", last], m={"k": {"x": "NaN"}}) + "\n")
        lake.run()
        assert str(lake.rows("out")[1]) == f"{{'id': 1, 'l': [nan, {float(last)}], 'm': [('k', {{'x': nan}})]}}"
    assert differences(lake, sessions, EngineChoice.LOCAL) == [0]
