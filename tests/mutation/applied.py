"""How a mutant takes the place of what this process has imported."""

import ast
import gc
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from mutants import PACKAGE, Mutant


def known_functions() -> dict[tuple[str, str], list[FunctionType]]:
    """The functions of the package by file and name, also those that are cached or decorated."""
    found = defaultdict(list)
    for known in gc.get_objects():
        if isinstance(known, FunctionType) and known.__code__.co_filename.startswith(str(PACKAGE)):
            found[known.__code__.co_filename[len(str(PACKAGE)) + 1 :], known.__code__.co_qualname].append(known)
    return found


def apply(mutant: Mutant, functions: Mapping[tuple[str, str], list[FunctionType]]) -> None:
    """Puts the mutant in place of what this process has imported."""
    tree = mutant.tree()
    if not mutant.template.function:
        (statement,) = (one for one in tree.body if (one.lineno, one.end_lineno) == mutant.template.lines)
        _assign(sys.modules[_module(mutant.file)], statement)
        return
    (made,) = (c for c in _inner(compile(tree, str(PACKAGE / mutant.file), "exec")) if c.co_qualname == mutant.template.function)
    for function in functions[mutant.file, mutant.template.function]:
        function.__code__ = made


def _module(file: str) -> str:
    return ".".join(["rejoin", *file.removesuffix(".py").split("/")])


def _assign(module: ModuleType, statement: ast.stmt) -> None:
    """Runs an assignment of a module again; then those of all modules that were made of what it assigns."""
    old = dict(vars(module))
    exec(compile(ast.Module([statement], []), "", "exec"), vars(module))
    changed = [(old[name], new) for name, new in vars(module).items() if name in old and old[name] is not new]
    for user in [m for name, m in sys.modules.items() if name.startswith("rejoin.")]:
        names = {name for name, value in vars(user).items() if any(value is was for was, _ in changed)}
        vars(user).update({name: new for name in names for was, new in changed if vars(user)[name] is was})
        if user is module:
            names |= {name for name, new in vars(module).items() if any(new is now for _, now in changed)}
        for other in _assignments(user) if names else ():
            if other.lineno != statement.lineno and names & {n.id for n in ast.walk(other) if isinstance(n, ast.Name)}:
                _assign(user, other)


def _assignments(module: ModuleType) -> list[ast.stmt]:
    return [one for one in ast.parse(Path(str(module.__file__)).read_text()).body if isinstance(one, ast.Assign | ast.AnnAssign)]


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)
