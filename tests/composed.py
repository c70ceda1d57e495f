"""docker-compose.yaml as data: read, and with its variables filled in from an environment file of its own script."""

import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docker-compose.yaml"
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?:(?P<how>:[?-])(?P<text>[^}]*))?\}")


@cache
def secrets() -> dict[str, str]:
    """One set of what ``make compose-env`` would write."""
    made: dict[str, str] = runpy.run_path(str(ROOT / "docker" / "make_env.py"))["settings"]()
    return made


@cache
def raw() -> dict[str, Any]:
    """The file with its anchors resolved and its variables as they stand."""
    read: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return read


def filled(value: Any, environment: dict[str, str]) -> Any:
    """A part of the file as compose would see it."""
    if isinstance(value, dict):
        return {k: filled(v, environment) for k, v in value.items()}
    if isinstance(value, list):
        return [filled(v, environment) for v in value]
    return VARIABLE.sub(lambda m: environment.get(m["name"]) or _default(m), value) if isinstance(value, str) else value


def _default(match: re.Match[str]) -> str:
    assert match["how"] == ":-", f"{match[0]} has no value"
    return match["text"]


def services() -> dict[str, dict[str, Any]]:
    """The services with every variable filled in."""
    made: dict[str, dict[str, Any]] = filled(raw()["services"], secrets())
    return made


def mounts(service: dict[str, Any]) -> dict[str, str]:
    """Path in the container -> path or volume outside."""
    return {part[1]: part[0] for volume in service.get("volumes", []) if (part := volume.split(":"))}
