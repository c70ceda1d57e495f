"""No file over 300 lines, no function over 40, at most six arguments. What is larger is listed, and may only shrink."""

import ast
from collections.abc import Iterator
from functools import cache

from checker import PACKAGE, ROOT

LINES, FUNCTION, ARGUMENTS = 300, 40, 6
FILES: dict[str, int] = {}
FUNCTIONS = {
    "airflow/dag.py:build": 89,  # what a user may say of a DAG, and its documentation: 45 lines
}
TAKEN = {
    # What a user calls, with keywords.
    "airflow/dag.py:build": 17,
    "cli/runs.py:explain": 7,
    "cli/runs.py:run": 11,
    "cli/sql.py:head": 8,
    "cli/sql.py:sql": 7,
    "cli/why.py:why": 7,
    "declare/changes.py:changes": 8,
    "declare/formats.py:csv": 8,
    "declare/sinks.py:kafka": 13,
    "declare/sources.py:snapshot": 7,
    "declare/sources.py:debezium": 9,
    "declare/sources.py:feed": 8,
    "declare/topology.py:stream": 8,
    # One too many.
}


def files() -> Iterator[tuple[str, str]]:
    package = ROOT / PACKAGE
    for file in sorted(package.rglob("*.py")):
        yield file.relative_to(package).as_posix(), file.read_text()


@cache
def functions() -> list[tuple[str, int, int]]:
    """Each with its lines and arguments."""
    return [
        (f"{name}:{found.name}", (found.end_lineno or 0) - found.lineno + 1, taken(found))
        for name, text in files()
        for found in ast.walk(ast.parse(text))
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def taken(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many arguments it takes, without ``self``."""
    every = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return len(every) - (every[:1] in (["self"], ["cls"]))


def compared(found: dict[str, int], known: dict[str, int]) -> list[str]:
    """A line for everything that is new or has grown, and for what is listed without need."""
    grown = [f"{name} has {size}, allowed are {known.get(name, 'fewer')}" for name, size in found.items() if size > known.get(name, 0)]
    return grown + [
        f"{name} is listed with {size}, and has {found.get(name, 'few enough')}" for name, size in known.items() if found.get(name) != size
    ]


def test_files_fit_on_a_few_screens() -> None:
    assert not compared({name: n for name, text in files() if (n := len(text.splitlines())) > LINES}, FILES)


def test_functions_fit_on_a_screen() -> None:
    assert not compared({name: lines for name, lines, _ in functions() if lines > FUNCTION}, FUNCTIONS)


def test_functions_take_few_arguments() -> None:
    assert not compared({name: n for name, _, n in functions() if n > ARGUMENTS}, TAKEN)


def test_the_comparison_sees_what_is_new_what_grew_and_what_is_listed_without_need() -> None:
    assert compared({"a": 301, "b": 310, "c": 320}, {"b": 305, "c": 320, "d": 400}) == [
        "a has 301, allowed are fewer",
        "b has 310, allowed are 305",
        "b is listed with 305, and has 310",
        "d is listed with 400, and has few enough",
    ]
