"""Where the results of a run's validation are kept: ``<lake>/validation/<topology>/<run>/<table or node>/``.

``result.json`` has all verdicts, ``docs/index.html`` the Data Docs of Great Expectations, also of a run that was stopped.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rejoin.lake.config import LakeConfig
from rejoin.lake.locations import native


def directory(config: LakeConfig, topology: str, run: int, name: str) -> Path | None:
    """Where the results of one table or node are; None if the warehouse is not on this machine's file system."""
    local = native(config.warehouse)
    return None if local is None else Path(local).parent / "validation" / topology / str(run) / name


def emptied(results: Path | None) -> Path | None:
    """The directory, without what an earlier attempt left in it; the directory of its Data Docs."""
    if results is None:
        return None
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True, exist_ok=True)  # another attempt may be at it, too
    return results / "docs"


def keep(results: Path | None, verdicts: Sequence[Mapping[str, Any]]) -> str | None:
    """Writes ``result.json``, of verdicts as data; its path."""
    if results is None:
        return None
    path = results / "result.json"
    path.write_text(json.dumps(verdicts, indent=1, ensure_ascii=False) + "\n")
    return str(path)
