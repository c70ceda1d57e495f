"""A small project to start from (``rejoin init``). What it consists of is in ``template/``, and is copied as it is there."""

from collections.abc import Mapping
from pathlib import Path

from rejoin.errors import FileExists, SetupError

TEMPLATE = Path(__file__).parent / "template"

FILES: Mapping[str, str] = {
    "README.md": "what to type",
    "shop.py": "the topology: two tables and a join",
    "test_shop.py": "its test",
    "landing/customers/0001.csv": "the first customers",
    "landing/orders/0001.csv": "the first orders",
}
"""Every file of the project, and what it is."""


def make(directory: Path) -> None:
    """Writes the files of the project into a directory, which is made if it is not there. Whatever else is in it stays as it is.

    Raises:
        FileExists: something is where a file or folder has to be; nothing was written.
        SetupError: the directory cannot be written.
    """
    if taken := _taken(directory):
        raise FileExists(
            f"{directory} already has {', '.join(taken)}; nothing was written",
            expected="a directory that has none of the project's files, or none yet",
            next_step="name another one: rejoin init DIRECTORY",
        )
    try:
        for name in FILES:
            file = directory / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as made:  # not what somebody else has made since
                made.write((TEMPLATE / name).read_bytes())
    except OSError as error:
        raise SetupError(
            f"{directory} cannot be written: {error.strerror}", next_step="name another directory: rejoin init DIRECTORY"
        ) from error


def _taken(directory: Path) -> list[str]:
    """What is in the way: files of the project that are there, and files where folders have to be."""
    folders = sorted({str(parent) for name in FILES for parent in Path(name).parents} - {"."})
    files = [name for name in FILES if (directory / name).exists() or (directory / name).is_symlink()]
    return [*files, *(name for name in folders if (directory / name).exists() and not (directory / name).is_dir())]
