"""How the package is built, in numbers: modules, lines, rooms, imports between rooms, climbs and circles. ``python tests/architecture/count.py [PATH]``.

A room is a folder of the package, or a folder in such a folder; what stands in none is the hall. Every import counts: those that run when a module is
loaded, those inside functions, and those for type checkers. A climb is an import of a room that stands higher in ``checker.ROOMS``. A circle is a set of
modules, or of rooms side by side, each of which reaches every other by imports.
"""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from checker import PACKAGE, ROOMS, ROOT, imports_of

Graph = Mapping[str, set[str]]


def modules(package: Path) -> dict[str, Path]:
    """The modules by their names in the package; a folder stands for its ``__init__``, and ``""`` for that of the package."""
    found = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package).with_suffix("").parts
        if (package.joinpath(*parts[:-1]) / "__init__.py").is_file():  # else a file that somebody copies, and no module
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(package: Path) -> Graph:
    """Module -> the modules of the package that it imports."""
    known = modules(package)
    return {name: {m for m in _imported(file, package.name, known) if m != name} for name, file in known.items()}


def _imported(file: Path, package: str, known: Mapping[str, Path]) -> set[str]:
    found = set()
    for _, name in imports_of(ast.parse(file.read_text())):
        if name.partition(".")[0] == package:
            parts = name.split(".")[1:]
            found.add(next(m for end in range(len(parts), -1, -1) if (m := ".".join(parts[:end])) in known))
    return found


def climbs(graph: Graph) -> list[str]:
    """Imports that lead up, or to a room that is not listed; without the hall, which holds what has no room."""
    level = {room: number for number, room in enumerate(ROOMS)}
    return [
        f"{module} imports {other}"
        for module in sorted(graph)
        for other in sorted(graph[module])
        if not _in_the_hall(module) and not _in_the_hall(other) and not level.get(_room(module), -1) <= level.get(_room(other), -2)
    ]


def rooms(graph: Graph, folders: set[str]) -> Graph:
    """The same of rooms: each with the rooms beside it, in the same folder, that its modules import."""
    found = defaultdict[str, set[str]](set)
    for module, others in graph.items():
        for other in others:
            one, two = _way(module, folders), _way(other, folders)
            for own, its in zip(one, two, strict=False):
                if own != its:
                    found[own].add(its)
                    break
    return found


def _way(module: str, folders: set[str]) -> list[str]:
    """The folders that lead to a module, from the outermost to its own."""
    parts = module.split(".")
    return [name for end in range(1, len(parts) + 1) if (name := ".".join(parts[:end])) in folders]


def circles(graph: Graph) -> list[list[str]]:
    """The circles of a graph, each in alphabetical order."""
    reach = {name: reached(graph, name) for name in graph}
    left, found = set(graph), []
    while left:
        name = min(left)
        circle = {other for other in reach[name] if name in reach.get(other, set())}
        left -= circle | {name}
        if len(circle) > 1:
            found.append(sorted(circle))
    return found


def reached(graph: Graph, name: str) -> set[str]:
    seen, ahead = set[str](), [name]
    while ahead:
        for other in graph.get(ahead.pop(), set()) - seen:
            seen.add(other)
            ahead.append(other)
    return seen


def sizes(package: Path) -> dict[str, int]:
    """Folder -> how many modules it has, without its ``__init__`` and what stands in folders of its own; ``""``: the hall, with its ``__init__``."""
    found = modules(package)
    inits = {name for name, file in found.items() if file.name == "__init__.py"}
    return dict(Counter(name.rpartition(".")[0] for name in found if name not in inits)) | {
        "": sum("." not in name and (name not in inits or not name) for name in found)
    }


def code_lines(text: str) -> int:
    """The lines of a module that are neither blank nor belong to a docstring or an import."""
    lines = {number for number, line in enumerate(text.splitlines(), start=1) if line.strip()}
    for node in ast.walk(ast.parse(text)):
        said = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if said or isinstance(node, ast.Import | ast.ImportFrom):
            assert isinstance(node, ast.stmt) and node.end_lineno is not None
            lines -= set(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def counted(root: Path) -> str:
    """The numbers of a checkout, a line each."""
    package = root / PACKAGE
    found, graph, size = modules(package), imports(package), sizes(package)
    folders = {name for name, file in found.items() if file.name == "__init__.py" and name}
    beside = rooms(graph, folders)
    largest = max(sorted(size), key=lambda folder: size[folder])
    texts = [file.read_text() for file in found.values()]
    said = [
        f"modules {len(found)}, of them in the hall {size['']}",
        f"lines {sum(len(t.splitlines()) for t in texts):,}, of code {sum(map(code_lines, texts)):,}",
        f"rooms {sum('.' not in f for f in folders)}, with those in them {len(folders)}; largest {largest} with {size[largest]} modules",
        f"imports between rooms side by side {sum(len(others) for others in beside.values())}; climbs {len(climbs(graph))}",
    ]
    for what, these in (("modules", circles(graph)), ("rooms side by side", circles(beside))):
        said.append(f"circles of {what}: {len(these)}" + "".join(f"\n  {', '.join(c)}" for c in these))
    return "\n".join(said)


def _in_the_hall(module: str) -> bool:
    return "." not in module and module not in ROOMS


def _room(module: str) -> str:
    return module.partition(".")[0]


if __name__ == "__main__":
    print(counted(Path(sys.argv[1]).resolve() if sys.argv[1:] else ROOT))
