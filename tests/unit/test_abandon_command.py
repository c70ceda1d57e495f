"""`rejoin abandon` in a lake of several topologies: which run it closes when nobody says which."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from unit.small_lake import make, plan

from rejoin.cli import main
from rejoin.lake.config import lake_config
from rejoin.lake.ledger.ledger import Ledger


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """Two topologies: of `shop` run 3 is open, of `attic` none."""
    location = make(tmp_path)
    made = ledger(location, "attic").open("somebody", replace(plan(), topology="attic"), {})
    ledger(location, "attic").abandon(made.number, "not needed")
    return location


def ledger(location: str, topology: str) -> Ledger:
    return Ledger(lake_config(location).ledger, topology)


def abandon(location: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["abandon", "--lake", location, *words])


def test_the_only_open_run_of_a_lake_is_closed_without_its_topologys_name(lake: str) -> None:
    done = abandon(lake)
    assert done.exit_code == 0 and "run 3 is abandoned" in done.stdout
    assert ledger(lake, "shop").run(3).state == "abandoned"


def test_of_several_open_runs_none_is_closed_without_a_name(lake: str) -> None:
    other = ledger(lake, "attic").open("somebody", replace(plan(), topology="attic"), {})
    done = abandon(lake)
    assert done.exit_code == 2 and "--topology with one of: attic, shop" in " ".join(done.stderr.split())
    assert [ledger(lake, t).run(n).state for t, n in (("shop", 3), ("attic", other.number))] == ["open", "open"]


def test_a_number_is_not_enough_where_several_topologies_may_have_it(lake: str) -> None:
    assert abandon(lake, "--run", "1").exit_code == 2
    assert abandon(lake, "--run", "3", "--topology", "shop").exit_code == 0


def test_where_nothing_is_open_there_is_nothing_to_do(lake: str) -> None:
    abandon(lake)
    done = abandon(lake)
    assert done.exit_code == 4 and "has an open run" in done.stderr and "nothing to do" in done.stderr
