"""Follows a page of the documentation as a reader does: makes the files that it shows, and types its commands.

``python tests/followed.py docs/tutorial.md`` puts what the commands print today into the page.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

BLOCK = re.compile(r"(?P<head>(?:`(?P<file>[\w./]+)`:\n\n)?^```(?P<kind>\w+)\n)(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
"""A fenced block. One that stands below a line ending with a file's name is that file; one of the kind ``console`` is typed."""
VARYING = [(r"\b\d+\.\d s\b", "0.0 s"), (r"\bin \d+\.\d\ds\b", "in 0.00s"), (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?Z?", "now")]
"""What differs from run to run: how long something took, and when it was."""
EMPTY = "/home/me/shop"
"""What the pages call the directory in which everything is typed."""
PROGRAM = f"#!{sys.executable}\nfrom rejoin.cli import main\nmain()\n"


def files(page: str) -> dict[str, str]:
    """Path -> content, of the files that a page shows."""
    return {b["file"]: b["text"] for b in BLOCK.finditer(page) if b["file"]}


def follow(page: str, where: Path, environment: Mapping[str, str]) -> None:
    """Does all that a page says, in this directory; fails where a command fails, or prints something else."""
    assert _plain(recorded(page, where, environment)) == _plain(page)


def recorded(page: str, where: Path, environment: Mapping[str, str]) -> str:
    """The page, with what its commands print when they are typed in this directory."""

    def do(block: re.Match[str]) -> str:
        if block["file"]:
            (where / block["file"]).write_text(block["text"])
        if block["kind"] != "console":
            return block[0]
        commands = re.findall(r"^\$ (.*)", block["text"], re.MULTILINE)
        return block["head"] + "".join(f"$ {c}\n{_printed(c, where, environment)}" for c in commands) + "```"

    return BLOCK.sub(do, page)


def checkout(programs: Path) -> dict[str, str]:
    """The environment variables of somebody who has this checkout's ``rejoin``, its ``python`` and ``pip`` in the PATH; puts them into that directory.

    What ``pip`` installs, without a network, is seen by the others and by nobody else.
    """
    programs.mkdir()
    installed = programs / "installed"
    pip = f'#!/bin/sh\nexec {sys.executable} -m pip "$@" --no-deps --no-build-isolation --no-index --target {installed}\n'
    for name, text in {"rejoin": PROGRAM, "python": f'#!/bin/sh\nexec {sys.executable} "$@"\n', "pip": pip}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("REJOIN_", "SPARK_REMOTE", "PYTEST_"))}
    return kept | {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": ":".join([*sys.path, str(installed)])}


def _printed(command: str, where: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(["bash", "-c", command], cwd=where, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.replace(str(where), EMPTY).strip("\n").splitlines())


def _plain(text: str) -> list[str]:
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text)
    return text.splitlines()


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as scratch:
            (empty := Path(scratch, "empty")).mkdir()
            path.write_text(recorded(path.read_text(), empty, checkout(Path(scratch, "bin"))))
