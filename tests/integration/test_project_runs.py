"""What `rejoin init` makes works as its README says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packed import ROOT

pytestmark = pytest.mark.slow


def test_the_commands_of_the_readme_do_what_they_say(tmp_path: Path) -> None:
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("REJOIN_ENGINE", "PYTEST"))},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "include"),
    }

    def typed(commands: str, where: Path) -> str:
        done = subprocess.run(["bash", "-euc", commands], capture_output=True, text=True, check=False, cwd=where, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    typed("rejoin init shop", tmp_path)
    project = tmp_path / "shop"
    [commands] = re.findall(r"```sh\n(.*?)```", (project / "README.md").read_text(), re.DOTALL)
    assert commands.count("rejoin run") == 2 and "rejoin verify" in commands and "python -m pytest" in commands
    said = typed(commands, project)
    before, after = (
        '{"order_id": 2, "customer_id": 9, "total": "3.00", "customer": null}',
        '{"order_id": 2, "customer_id": 9, "total": "3.00", "customer": "Cleo"}',
    )
    assert 0 < said.find(before) < said.find("3 rows read, 2 rows changed") < said.find(after) < said.find("0 differences"), said
    assert "1 passed" in said
