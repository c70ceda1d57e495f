"""A topology file -> its plan."""

import re
import runpy
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from rejoin.declare.topology import Topology
from rejoin.errors import RejoinError, TopologyFileError
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan

_loading: ContextVar[bool] = ContextVar("rejoin_loading", default=False)


def is_loading() -> bool:
    """Whether a topology file is being read by rejoin itself, and not by Airflow or as a script."""
    return _loading.get()


def load(file: str) -> Plan:
    """Runs a topology file and compiles its topology.

    Args:
        file: ``dags/shop.py``, or ``dags/shop.py:name`` where the file holds several topologies; ``name`` is the topology's
            name or the variable that holds it.

    Raises:
        TopologyFileError: the file is missing, fails, or does not hold exactly the one topology that is asked for.
        TopologyError: the topology has mistakes.
    """
    path, name = _split(file)
    if not Path(path).is_file():
        raise TopologyFileError(f"topology file {path!r} does not exist", next_step="check the path")
    return compile(_chosen(path, name, _run(path)))


def _split(file: str) -> tuple[str, str | None]:
    match = re.fullmatch(r"(.+):([A-Za-z_]\w*)", file)
    return (match[1], match[2]) if match and not Path(file).is_file() else (file, None)


def _run(path: str) -> dict[str, object]:
    """The globals of the file after it ran, with its own directory importable as for a script."""
    try:
        with _importable(str(Path(path).resolve().parent)):
            token = _loading.set(True)
            try:
                return runpy.run_path(path)
            finally:
                _loading.reset(token)
    except RejoinError:
        raise
    except (Exception, SystemExit) as error:
        line = _line(path, error)
        where = f"{path}:{line}" if line else path
        what = f"topology file {where} failed: {type(error).__name__}: {error}"
        raise TopologyFileError(what, next_step="run the file with python to see the whole trace") from error


@contextmanager
def _importable(directory: str) -> Iterator[None]:
    sys.path.insert(0, directory)
    try:
        yield
    finally:
        if directory in sys.path:
            sys.path.remove(directory)


def _line(path: str, error: BaseException) -> int | None:
    """The innermost line of the file itself in the trace."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else None


def _chosen(path: str, name: str | None, variables: dict[str, object]) -> Topology:
    found = {variable: value for variable, value in variables.items() if isinstance(value, Topology)}
    distinct = list(dict.fromkeys(found.values()))
    names = ", ".join(sorted(str(topology.name) for topology in distinct))
    if not distinct:
        raise TopologyFileError(
            f"topology file {path!r} holds no topology", next_step='write `shop = Topology("shop")` at the top level of the file'
        )
    if name is None:
        if len(distinct) == 1:
            return distinct[0]
        raise TopologyFileError(f"topology file {path!r} holds several topologies: {names}", next_step=f"name one: {path}:NAME")
    chosen = [topology for topology in distinct if topology.name == name] or [found[name] for _ in range(name in found)]
    if len(chosen) == 1:
        return chosen[0]
    what = f"topology file {path!r} holds no topology {name!r}" if not chosen else f"topology file {path!r} holds {name!r} more than once"
    raise TopologyFileError(what, expected=f"one of {names}")
