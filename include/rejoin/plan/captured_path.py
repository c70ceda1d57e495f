"""The path of a table that ``rejoin capture`` reads from a database: ``capture://<connection>/<schema>.<table>``, and where its files land."""

import re
from dataclasses import dataclass
from typing import Final

SCHEME: Final = "capture"
LANDING: Final = "landing"
_PATH = re.compile(rf"{SCHEME}://(?P<at>[A-Za-z0-9_-]{{1,40}})/(?P<schema>[^/.\s]+)\.(?P<table>[^/.\s]+)")


@dataclass(frozen=True)
class CapturedPath:
    """A table of a database. ``at``: the name of its connection, as ``[sources.<name>]`` of the lake's file has it."""

    at: str
    schema: str
    table: str

    @property
    def name(self) -> str:
        """As PostgreSQL knows it: schema and table."""
        return f"{self.schema}.{self.table}"

    @property
    def directory(self) -> str:
        """Where its files are, below the root that relative paths start from."""
        return f"{LANDING}/{self.at}/{self.name}"

    def __str__(self) -> str:
        return f"{SCHEME}://{self.at}/{self.name}"


def names_captured(path: str) -> bool:
    """Whether a path has the scheme of captured tables."""
    return path.lower().startswith(f"{SCHEME}://")


def captured_path(path: str) -> CapturedPath | None:
    """What a path of that scheme names; None if it names no table."""
    found = _PATH.fullmatch(path)
    return None if found is None else CapturedPath(found["at"], found["schema"], found["table"])
