"""The SQL texts of a module: every string and f-string that has SQL in it, as a text in which a character stands for each part that Python fills in."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_FIRST_PART = 0xE000  # a private character of Unicode stands for the first part that is filled in, the next one for the second
_SQL = re.compile(
    r"\b(SELECT|FROM|WHERE|AND|OR|NOT|NULL|JOIN|UNION|CASE|WHEN|ELSE|END|EXISTS|DISTINCT|BETWEEN|IN|OVER|LIKE|LEFT|FULL)\b"
    r"|^(true|false)$| (=|<>|<|<=|>|>=) |coalesce\(|\b(min|max|count|sum)\("
)


@dataclass(frozen=True)
class Template:
    """One SQL text.

    Attributes:
        number: which of its module it is, in the order of ``ast.walk``.
        function: the outermost function or method that builds it, as Python names it; empty for a statement of the module itself.
        lines: from the first to the last line of the statement that it is part of.
        text: the SQL, with a private character for each part that is filled in.
        parts: the Python text of each of these.
    """

    number: int
    function: str
    lines: tuple[int, int]
    text: str
    parts: tuple[str, ...]

    def shown(self, text: str) -> str:
        """A text with the parts as Python writes them."""
        return "".join(f"{{{self.parts[ord(c) - _FIRST_PART]}}}" if ord(c) >= _FIRST_PART else c for c in text)


def templates(source: str) -> Iterator[Template]:
    """The SQL texts of a module. What only Spark is given (``SparkSql``), what ``explain`` calls statements (``shown``) and errors are left out."""
    tree = ast.parse(source)
    for number, (node, (function, lines)) in enumerate(_candidates(tree)):
        text = _text(node)
        if _SQL.search(text):
            yield Template(number, function, lines, text, tuple(ast.unparse(getattr(part, "value", part)) for part in _filled(node)))


def with_text(source: str, number: int, text: str) -> ast.Module:
    """The module with another text in place of one of its SQL texts; ``text`` has the same private characters, or fewer."""
    tree = ast.parse(source)
    node = next(node for i, (node, _) in enumerate(_candidates(tree)) if i == number)
    filled = _filled(node)
    pieces = re.split(f"([{chr(_FIRST_PART)}-\uf8ff])", text)
    values: list[ast.expr] = [ast.Constant(piece) if i % 2 == 0 else filled[ord(piece) - _FIRST_PART] for i, piece in enumerate(pieces)]
    new = ast.copy_location(ast.JoinedStr(values), node)
    _Replaced(node, new).visit(tree)
    return ast.fix_missing_locations(tree)


class _Replaced(ast.NodeTransformer):
    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else self.generic_visit(node)


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    part = iter(range(_FIRST_PART, 0xF8FF))
    return "".join(str(value.value) if isinstance(value, ast.Constant) else chr(next(part)) for value in node.values)


def _filled(node: ast.Constant | ast.JoinedStr) -> list[ast.expr]:
    return [value for value in node.values if not isinstance(value, ast.Constant)] if isinstance(node, ast.JoinedStr) else []


def _candidates(tree: ast.Module) -> Iterator[tuple[ast.Constant | ast.JoinedStr, tuple[str, tuple[int, int]]]]:
    """Every text of the module, with the function and the lines of the statement that it is part of."""

    def within(
        node: ast.AST, function: str, lines: tuple[int, int], *, inside: bool
    ) -> Iterator[tuple[ast.Constant | ast.JoinedStr, tuple[str, tuple[int, int]]]]:
        if _is_no_sql(node):
            return
        if isinstance(node, ast.stmt):
            last = node.lineno if isinstance(node, ast.FunctionDef | ast.If | ast.For | ast.With | ast.Try) else node.end_lineno
            lines = node.lineno, last or node.lineno
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not inside:
            function = f"{function}.{node.name}" if function else node.name
            inside = isinstance(node, ast.FunctionDef)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            yield node, (function, lines)
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):
                yield from within(child, function, lines, inside=inside)

    yield from within(tree, "", (0, 0), inside=False)


def _is_no_sql(node: ast.AST) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return (
        docstring
        or isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom)
        or getattr(node, "name", "") in ("SparkSql", "shown")
    )
