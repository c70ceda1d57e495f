"""The wheel of this checkout, and environments that have it instead of the checkout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).parent / "uv"
SOURCES = ("include", "dags", "jobs", "plugins", "tests/data/captures")
"""What the wheel is made of, links included."""


def wheel(directory: Path) -> Path:
    """Builds it of a copy: setuptools leaves files behind, and takes what an earlier build has left."""
    source = directory / "source"
    for name in SOURCES:
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [UV, "build", "--wheel", "--quiet", "--no-build-isolation", "--python", sys.executable, "--out-dir", directory / "dist", source]
    subprocess.run(build, check=True)
    [made] = (directory / "dist").glob("*.whl")
    return made


def environment(directory: Path, made: Path, *extras: str) -> Path:
    """A new environment with the wheel and the locked versions of what it needs; returns its directory of programs."""
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, directory], check=True)
    wanted = f"{made}[{','.join(extras)}]" if extras else str(made)
    into = ["--python", directory / "bin" / "python", "--constraints", ROOT / "requirements.txt"]
    subprocess.run([UV, "pip", "install", "--quiet", *into, wanted], check=True)
    return directory / "bin"


def outside(programs: Path, **more: str) -> dict[str, str]:
    """The environment variables of somebody who has only that: nothing of the checkout or of the tests' own settings."""
    ours = ("PYTHON", "REJOIN", "AIRFLOW", "SPARK", "VIRTUAL_ENV")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return kept | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"} | more
