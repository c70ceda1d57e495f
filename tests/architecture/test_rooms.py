"""The plan of the house: imports lead down, nothing goes in a circle, no room is crowded, and every room says what it is."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from checker import PACKAGE, ROOMS, ROOT
from count import Graph, circles, climbs, imports, modules, rooms, sizes

MODULES, IN_THE_HALL = 15, 4
FOLDERS = {name for name, file in modules(ROOT / PACKAGE).items() if file.name == "__init__.py" and name}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return imports(ROOT / PACKAGE)


def test_every_room_has_its_place_and_imports_lead_down(graph: Graph) -> None:
    assert sorted(ROOMS) == sorted(f for f in FOLDERS if "." not in f)
    assert not climbs(graph)


def test_neither_modules_nor_rooms_side_by_side_need_each_other(graph: Graph) -> None:
    assert not circles(graph)
    assert not circles(rooms(graph, FOLDERS))


def test_no_room_is_crowded_and_hardly_anything_stands_in_the_hall() -> None:
    found = sizes(ROOT / PACKAGE)
    assert {room: n for room, n in found.items() if n > MODULES} == {}
    assert found[""] <= IN_THE_HALL


def test_every_room_says_what_is_in_it() -> None:
    silent = [
        f for f in sorted(FOLDERS) if not ast.get_docstring(ast.parse((ROOT / PACKAGE / f.replace(".", "/") / "__init__.py").read_text()))
    ]
    assert silent == []


def made(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        for folder in [(file := root / PACKAGE / path).parent, *file.parents]:
            if folder.is_relative_to(root / PACKAGE):
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "__init__.py").touch()
        file.write_text(text)
    return root / PACKAGE


def test_a_climb_is_seen_wherever_it_is_imported(tmp_path: Path) -> None:
    below = "def f():\n    from rejoin.steps import x\n"
    package = made(
        tmp_path,
        {"steps/x.py": "from rejoin.lake import y", "lake/y.py": below, "plan/z.py": "from rejoin.unknown.w import q", "unknown/w.py": ""},
    )
    assert climbs(imports(package)) == ["lake.y imports steps.x", "plan.z imports unknown.w"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("statements/x.py", "from rejoin import lake"),
        ("statements/x.py", "def f():\n    import rejoin.steps.run.attempt"),
        ("engines/x.py", "from rejoin.steps.run.attempt import AttemptStart"),
        ("sources/x.py", "import rejoin.steps"),
        ("plan/x.py", "from rejoin.sinks import records"),
        ("declare/x.py", "from rejoin.plan.model import plan"),
        ("sinks/x.py", "from rejoin.steps.run.topology import Topology"),
        ("page/routes.py", "from rejoin.airflow import dag"),
    ],
)
def test_no_room_knows_who_uses_it_by_whatever_name_it_is_imported(tmp_path: Path, path: str, text: str) -> None:
    above = ("lake", "steps/run/attempt", "steps/run/topology", "sinks/records", "plan/model/plan", "airflow/dag")
    (climb,) = climbs(imports(made(tmp_path, {**{f"{name}.py" if "/" in name else f"{name}/a.py": "" for name in above}, path: text})))
    assert climb.startswith(path.removesuffix(".py").replace("/", "."))


def test_a_circle_is_seen_wherever_it_is_imported(tmp_path: Path) -> None:
    typed = "if TYPE_CHECKING:\n    from rejoin.plan.a import x\n"
    files = {
        "plan/a/x.py": "from rejoin.plan.b import y",
        "plan/b/y.py": "",
        "plan/b/z.py": typed,
        "plan/c/u.py": "from rejoin.plan.a import x",
    }
    graph = imports(made(tmp_path, files))
    assert circles(graph) == []
    assert circles(rooms(graph, {"plan", "plan.a", "plan.b", "plan.c"})) == [["plan.a", "plan.b"]]
    graph = imports(made(tmp_path, {"plan/b/y.py": "def f():\n    import rejoin.plan.b.z"}))
    assert circles(graph) == [["plan.a.x", "plan.b.y", "plan.b.z"]]


def test_anybody_can_count(tmp_path: Path) -> None:
    made(tmp_path, {"lake/y.py": ""})
    command = [sys.executable, "tests/architecture/count.py", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("modules ") and "circles of rooms" in done.stdout
