"""Every mutant of the statements: one place of one SQL text made wrong, under a name that says where and how."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from operators import edits
from templates import Template, templates, with_text

PACKAGE = Path(__file__).resolve().parents[2] / "include" / "rejoin"
ROOMS = ("steps", "joins", "statements", "context", "lake/read")
"""Where statements of steps and joins are built."""
_AROUND = 28
"""So many characters on each side of what is made wrong make its name."""


@dataclass(frozen=True)
class Mutant:
    """A module with one thing made wrong.

    Attributes:
        name: where it is and what is other there, the same as long as that text is.
        file: the module, below the package.
        template: the SQL text.
        operator: the kind of mistake.
        text: the SQL text with the mistake.
    """

    name: str
    file: str
    template: Template
    operator: str
    text: str

    def tree(self) -> ast.Module:
        """The module with the mistake."""
        return with_text((PACKAGE / self.file).read_text(), self.template.number, self.text)


def mutants() -> Iterator[Mutant]:
    """All mutants, file by file."""
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            yield from _of(path)


def _of(path: Path) -> Iterator[Mutant]:
    file, seen = path.relative_to(PACKAGE).as_posix(), Counter[str]()
    for template in templates(path.read_text()):
        for (start, end, instead), operator in edits(template.text).items():
            text = template.text[:start] + instead + template.text[end:]
            name = f"{file} {template.function or 'module'}: {_place(template, start, end, instead)}"
            seen[name] += 1
            yield Mutant(name if seen[name] == 1 else f"{name} ({seen[name]})", file, template, operator, text)


def _place(template: Template, start: int, end: int, instead: str) -> str:
    before, after = template.text[max(0, start - _AROUND) : start], template.text[end : end + _AROUND]
    before = before if start <= _AROUND else before[before.find(" ") + 1 :]
    after = after if len(template.text) <= end + _AROUND else after[: after.rfind(" ") + 1]
    return " ".join(template.shown(f"{before}[{template.text[start:end]} -> {instead}]{after}").split())
