"""What decides small or large stands in one place, and the table of docs/architecture.md says the same."""

import ast
import re
from dataclasses import asdict
from itertools import pairwise

from checker import PACKAGE, ROOT, project_files

from rejoin.limits import Limits

ROW = re.compile(r"^\| `(\w+)` \| ([\d.,]+) \| .+ \|$", re.MULTILINE)


def test_the_table_of_bounds_says_what_the_code_does() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text[text.index("| limit | value |") : text.index("## Following the changes or recomputing")]
    said = {name: float(value.replace(",", "")) for name, value in ROW.findall(table)}
    assert said == asdict(Limits())


def test_every_limit_is_asked_for_somewhere() -> None:
    asked = {node.attr for file in project_files() for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)}
    assert set(asdict(Limits())) <= asked


def test_every_limit_gives_the_reason_for_its_value() -> None:
    body = next(n for n in ast.parse((ROOT / PACKAGE / "limits.py").read_text()).body if isinstance(n, ast.ClassDef)).body
    named = [n for n, after in pairwise(body) if isinstance(n, ast.AnnAssign) and isinstance(after, ast.Expr)]
    assert len(named) == len(asdict(Limits()))
