"""`rejoin init`: what it writes, what it says, and that it overwrites nothing."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rejoin.cli import main
from rejoin.plan.check.topology_file import load
from rejoin.project import init as project


def init(*words: str) -> Result:
    return CliRunner().invoke(main, ["init", *words])


def tree(root: Path) -> dict[str, str]:
    return {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}


def test_it_writes_every_file_of_the_template_and_names_it_and_what_to_type_next(tmp_path: Path) -> None:
    made = tmp_path / "not there yet" / "shop"
    done = init(str(made))
    assert done.exit_code == 0, done.output
    assert tree(made) == {n: t for n, t in tree(project.TEMPLATE).items() if "__pycache__" not in n}
    assert set(project.FILES) == set(tree(made))
    assert [name for name in project.FILES if f"  {name} " not in done.stdout] == []
    assert done.stdout.endswith(f"next: cd '{made}'\n      rejoin run shop.py\n      cat README.md\n")


def test_the_topology_has_no_mistakes(tmp_path: Path) -> None:
    init(str(tmp_path))
    plan = load(str(tmp_path / "shop.py"))
    assert [n.name for n in plan.nodes] == ["orders_enriched"]


def test_without_a_directory_it_is_the_one_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = init()
    assert done.exit_code == 0 and set(tree(tmp_path)) == set(project.FILES)
    assert "next: rejoin run shop.py\n" in done.stdout


def test_what_else_is_in_the_directory_stays(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "notes.txt").write_text("mine")
    assert init(str(tmp_path)).exit_code == 0
    assert (tmp_path / "landing" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", [*project.FILES, "landing", "landing/orders"])
def test_a_file_in_the_way_is_named_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    there = tmp_path / name
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_text("mine")
    done = init(str(tmp_path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"FILE_EXISTS {tmp_path} already has {name}; nothing was written" in done.stderr
    assert "to go on: name another one: rejoin init DIRECTORY" in done.stderr
    assert tree(tmp_path) == {name: "mine"}


def test_a_link_to_nowhere_is_in_the_way_as_well(tmp_path: Path) -> None:
    (tmp_path / "shop.py").symlink_to(tmp_path / "nowhere")
    assert init(str(tmp_path)).exit_code == 2
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_path_where_no_directory_can_be_is_a_set_up_error(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("mine")
    done = init(str(tmp_path / "file" / below))
    assert done.exit_code == 5 and "SETUP" in done.stderr and "cannot be written" in done.stderr
    assert (tmp_path / "file").read_text() == "mine"
