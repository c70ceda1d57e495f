"""What a scheduler meets that looks after a lake: exit codes of ``rejoin compact`` and ``rejoin expire`` where there is nothing to do."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from rejoin.cli import main

COMMANDS = {"compact": "nothing to compact: nothing was run yet", "expire": "nothing to expire: nothing was run yet"}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("topology", [(), ("--topology", "shop")])
def test_fault_a18_upkeep_of_a_lake_where_nothing_was_run_yet_is_no_mistake(
    tmp_path: Path, command: str, topology: tuple[str, ...]
) -> None:
    done = CliRunner().invoke(main, [command, "--lake", str(tmp_path), *topology])
    assert (done.exit_code, done.stdout.strip()) == (0, COMMANDS[command])


@pytest.mark.parametrize("command", COMMANDS)
def test_fault_a18_a_lake_that_is_not_there_still_is_one(tmp_path: Path, command: str) -> None:
    done = CliRunner().invoke(main, [command, "--lake", str(tmp_path / "mistyped")])
    assert done.exit_code == 4 and not (tmp_path / "mistyped").exists()
