"""Every invariant of docs/architecture.md is shown by a test that `make test` runs, and by one there that leaves every step to Spark."""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from checker import ROOT

DOCUMENTED = re.compile(r"^\| (I\d) \|", re.MULTILINE)

# What pytest itself would run: marks come from decorators, modules and parameters alike.
COLLECT = """
import json, sys
import pytest

class Marked:
    def pytest_collection_finish(self, session):
        found = [[item.nodeid, [n for m in item.iter_markers("invariant") for n in m.args]] for item in session.items]
        print("\\nMARKED", json.dumps(found))

sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[1:]], plugins=[Marked()]))
"""


def shown(*arguments: str) -> dict[str, list[str]]:
    """Invariant -> the tests, among those that ``arguments`` select, that say they show it."""
    done = subprocess.run([sys.executable, "-c", COLLECT, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)
    marked = [line.removeprefix("MARKED ") for line in done.stdout.splitlines() if line.startswith("MARKED ")]
    assert marked, done.stdout + done.stderr
    found = defaultdict(list)
    for test, numbers in json.loads(marked[0]):
        for number in numbers:
            found[number].append(test)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("which", ["invariant", "invariant and by_spark"])
def test_every_invariant_is_shown_by_a_test_that_is_not_nightly_and_by_one_that_leaves_its_steps_to_spark(which: str) -> None:
    documented = DOCUMENTED.findall((ROOT / "docs" / "architecture.md").read_text())
    assert documented == [f"I{n}" for n in range(1, 10)], "this test looks in the wrong place"
    files = [str(file) for file in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.invariant(" in file.read_text()]
    found = shown("-m", f"{which} and not nightly", *files)
    assert found.keys() == set(documented), "an invariant without a test in `make test`, or a mark of one that there is not"


def test_a_nightly_test_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "test_two.py"
    one = "@pytest.mark.invariant('I1')\ndef test_one():\n    pass\n"
    other = "@pytest.mark.nightly\n@pytest.mark.invariant('I2')\ndef test_other():\n    pass\n"
    file.write_text(f"import pytest\n\n{one}\n\n{other}")
    assert shown("-m", "invariant and not nightly", "-c", str(ROOT / "pyproject.toml"), str(file)).keys() == {"I1"}
