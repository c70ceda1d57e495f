"""How the package is built, in numbers: modules, rooms, imports between rooms, and circles. ``python tests/architecture/count.py [PATH]``.

A room is a folder of the package; what stands in none is the hall. An import counts once per importing module and imported room. A circle is a
set of rooms, each of which reaches every other by imports; those inside functions, and those for type checkers, are counted apart: they are
no circle for Python, but they are one for a reader.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from checker import PACKAGE, ROOT, _imports, _imports_when_loaded

HALL = "(hall)"
Rooms = Mapping[str, set[str]]


def counted(root: Path) -> str:
    """The numbers of a checkout, a line each."""
    package = root / PACKAGE
    files = sorted(package.rglob("*.py"))
    rooms = [_room(package, file) for file in files]
    lines = sum(len(file.read_text().splitlines()) for file in files)
    every, loaded = imports(package), imports(package, loaded=True)
    said = [
        f"modules {len(files)}, of them in the hall {rooms.count(HALL)}; lines {lines:,}; rooms {len(set(rooms)) - 1}",
        f"imports between rooms {sum(every.values())} (when loaded {sum(loaded.values())}), pairs of rooms {len(every)}",
    ]
    for what, found in (("when loaded", loaded), ("of any kind", every)):
        circles = list(_circles(found))
        said.append(f"circles of rooms, by imports {what}: {len(circles)}" + "".join(f"\n  {', '.join(c)}" for c in circles))
    return "\n".join(said)


def circles(root: Path) -> list[list[str]]:
    """The circles of rooms of a checkout, by the imports that run when a module is loaded."""
    return list(_circles(imports(root / PACKAGE, loaded=True)))


def imports(package: Path, *, loaded: bool = False) -> Mapping[tuple[str, str], int]:
    """(Room, other room) -> how many modules of the one import something of the other. ``loaded``: as they are loaded; else any import counts."""
    found: dict[tuple[str, str], int] = defaultdict(int)
    for file in package.rglob("*.py"):
        own = _room(package, file)
        for room in {r for name in _names(file, loaded=loaded) if (r := _of(package, name)) not in (None, own)}:
            found[own, str(room)] += 1
    return found


def _room(package: Path, file: Path) -> str:
    """The folder of a module below the package: at most two names, since larger ones are rooms in rooms."""
    parts = file.relative_to(package).parts[:-1]
    return "/".join(parts[:2]) if parts else HALL


def _of(package: Path, name: str) -> str | None:
    """The room of what is imported by this name; None for other packages."""
    parts = name.split(".")
    if parts[0] != package.name:
        return None
    for end in range(len(parts), 1, -1):
        path = package.joinpath(*parts[1:end])
        if path.is_dir():
            return "/".join(parts[1 : min(end, 3)])
        if path.with_suffix(".py").is_file():
            return "/".join(parts[1 : end - 1][:2]) or HALL
    return HALL


def _names(file: Path, *, loaded: bool) -> Iterator[str]:
    tree = ast.parse(file.read_text())
    yield from (name for _, name in (_imports_when_loaded(tree) if loaded else _imports(tree)))


def _circles(found: Mapping[tuple[str, str], int]) -> Iterator[list[str]]:
    """The circles, each in alphabetical order; without the hall, which holds what has no room."""
    after: Rooms = defaultdict(set)
    for one, other in found:
        if HALL not in (one, other) and one.split("/")[0] != other.split("/")[0]:
            after[one.split("/")[0]].add(other.split("/")[0])
    reach = {room: _reached(after, room) for room in list(after)}
    left = set(reach)
    while left:
        room = min(left)
        circle = {other for other in reach[room] if room in reach.get(other, set())}
        left -= circle | {room}
        if len(circle) > 1:
            yield sorted(circle)


def _reached(after: Rooms, room: str) -> set[str]:
    seen, ahead = set[str](), [room]
    while ahead:
        for other in after.get(ahead.pop(), set()):
            if other not in seen:
                seen.add(other)
                ahead.append(other)
    return seen


if __name__ == "__main__":
    print(counted(Path(sys.argv[1]).resolve() if sys.argv[1:] else ROOT))
