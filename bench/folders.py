"""Where the measurements work, and where their results and the report go."""

import shutil
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Folders:
    """All below one folder, by default the project."""

    out: Path = PROJECT

    @property
    def results(self) -> Path:
        return self.out / "bench" / "results"

    @property
    def page(self) -> Path:
        return self.out / "docs" / "benchmarks.md"

    @property
    def images(self) -> Path:
        return self.out / "docs" / "images"

    def empty(self, name: str) -> Path:
        """An empty folder for one measurement's tables and files."""
        root = self.out / "build" / "bench" / name
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        return root
