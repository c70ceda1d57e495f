"""One SQL expression as text, tokens and syntax tree; what may not stand in any expression is refused here.

Function names are taken from the tokens, as the user wrote them: a syntax tree gives several functions one node.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from rejoin.plan.model.problems import BAD_EXPRESSION, FORBIDDEN_FUNCTION, Reporter, did_you_mean
from rejoin.plan.sql import functions

_SELECT: Final = "SELECT "
_WORD: Final = re.compile(r"`[^`]*`|[A-Za-z_]\w*")
_TYPES_WITH_PARAMETERS: Final = frozenset(("decimal", "dec", "numeric", "varchar", "char"))
_TEXTS: Final = (exp.Literal, exp.RawString)
_REFUSED_TOKENS: Final = {
    TokenType.SELECT: (FORBIDDEN_FUNCTION, "a subquery may not stand in an expression; write a join"),
    TokenType.OVER: (FORBIDDEN_FUNCTION, "a window function reads many rows; an expression may read one row only"),
    TokenType.ARROW: (
        FORBIDDEN_FUNCTION,
        "a lambda (->) is not allowed; lines.price is the array of what all elements have as price, for array_contains, array_min and the like",
    ),
    TokenType.COLON: (BAD_EXPRESSION, "parameters (:name) and paths (a:b) are not allowed; format the value into the text"),
    TokenType.SEMICOLON: (BAD_EXPRESSION, "one expression is expected, without a semicolon"),
}


@dataclass(frozen=True)
class ColumnToken:
    """Where a column stands in the text. ``names``: those that dots join, a qualifier, the column, fields of it: which is which, the columns that there are tell.

    ``text[start:ends[n]]`` is the text up to the name ``n``.
    """

    start: int
    names: tuple[str, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True)
class Item:
    """One expression: its text without alias, its tree, its columns by position.

    ``star``: the qualifier of ``left.*`` ("" for ``*``), None for an expression. ``is_about_time``: a date or timestamp is
    made or read. ``special_dates``: a text such as 'now' stands in it. ``computed``: for each text that is made of others,
    such as ``concat('to', 'day')``, where its columns stand. ``loose``: words that are neither a column, a
    function, a type nor an alias.
    """

    text: str
    node: exp.Expr
    alias: str | None
    star: str | None
    columns: tuple[ColumnToken, ...]
    special_dates: bool
    computed: tuple[frozenset[int], ...]
    is_about_time: bool
    loose: tuple[str, ...]

    @property
    def is_column(self) -> bool:
        """Whether it is nothing but a column, or a field of one."""
        return len(self.columns) == 1 and (self.columns[0].start, self.columns[0].ends[-1]) == (0, len(self.text))

    def start_of(self, node: exp.Column) -> int:
        return _column_token(node).start

    def is_keyword_function(self, token: ColumnToken) -> bool:
        """Whether a column token is a word such as ``current_date``, which means a function unless there is such a column."""
        return self.text[token.start : token.ends[-1]].lower() in functions.KEYWORD_FUNCTIONS

    def check(self, is_column: Callable[[str], bool], report: Reporter) -> bool:
        """False after a report: a word that could be a column stands where the parser saw none, or a function without
        parentheses is called. Replacing only the columns that were seen would then change the meaning.
        """
        calls = [token.names[0] for token in self.columns if self.is_keyword_function(token) and not is_column(token.names[0])]
        for word in (*self.loose, *calls):
            name = word.strip("`")
            if word.lower() in functions.KEYWORD_FUNCTIONS:
                report(FORBIDDEN_FUNCTION, f"{name} is not allowed: {functions.refusal(name)}")
                return False
            if word.startswith("`") or is_column(name):
                hint = "rename the column in a select before"
                report(BAD_EXPRESSION, f"in {self.text!r} the word {word} may be a column or a keyword; {hint}")
                return False
        return True


def parse(text: object, report: Reporter) -> Item | None:
    """One expression, with or without a name. None after at least one report."""
    if not isinstance(text, str) or not text.strip():
        report(BAD_EXPRESSION, "a text with one SQL expression is expected")
        return None
    text = text.strip()
    try:
        tokens = Spark().tokenize(text)
        refused = _refused(text, tokens)
        for code, message in refused:
            report(code, message)
        return None if refused else _item(text, tokens, sqlglot.parse_one(_SELECT + text, dialect="spark"))
    except _NotOneExpressionError as error:
        report(BAD_EXPRESSION, str(error))
    except ParseError as error:
        report(BAD_EXPRESSION, f"not valid SQL: {_reason(error)}")
    except SqlglotError:
        report(BAD_EXPRESSION, "not valid SQL: a quote or comment is not closed")
    return None


def _reason(error: ParseError) -> str:
    description = str(error.errors[0]["description"]) if error.errors else "it cannot be parsed"
    return "an operand is missing" if "<class" in description else description


class _NotOneExpressionError(Exception):
    """The text is SQL, but not one expression over columns."""


def _refused(text: str, tokens: list[Token]) -> list[tuple[str, str]]:
    found = [_REFUSED_TOKENS[token.token_type] for token in tokens if token.token_type in _REFUSED_TOKENS]
    ends = [0, *(token.end + 1 for token in tokens)]
    starts = [*(token.start for token in tokens), len(text)]
    if any(text[end:start].strip() for end, start in zip(ends, starts, strict=True)):
        found.append((BAD_EXPRESSION, "comments are not allowed in an expression; write them in Python"))
    for index in _calls(text, tokens):
        name = tokens[index].text
        if index and tokens[index - 1].token_type == TokenType.DOT:
            found.append((FORBIDDEN_FUNCTION, f"{name}() is not allowed: functions of a catalog or schema are not known to rejoin"))
        elif (reason := functions.refusal(name)) is not None:
            hint = did_you_mean(name, functions.ALLOWED) if reason == functions.UNKNOWN else ""
            found.append((FORBIDDEN_FUNCTION, f"{name}() is not allowed: {reason}{hint}"))
        elif name.lower() in functions.NEEDS_ARGUMENT and _types(tokens[index + 2 : index + 3]) == [TokenType.R_PAREN]:
            found.append((FORBIDDEN_FUNCTION, f"{name}() without an argument is not allowed: it gives another result each time"))
    return list(dict.fromkeys(found))


def _calls(text: str, tokens: list[Token]) -> list[int]:
    """Positions of the tokens that name a called function: a word right before a parenthesis, unless an operator or type."""
    calls = []
    for index, (token, after) in enumerate(pairwise(tokens)):
        word = _WORD.match(text[token.start : token.end + 1])
        if word is None or after.token_type != TokenType.L_PAREN or token.token_type in _REFUSED_TOKENS:
            continue
        name, before = token.text.lower(), _types(tokens[max(index - 1, 0) : index])
        quantifier = name in functions.QUANTIFIERS and before in ([TokenType.LIKE], [TokenType.ILIKE])
        typed = name in _TYPES_WITH_PARAMETERS and before in ([TokenType.ALIAS], [TokenType.DCOLON])
        if not quantifier and not typed and name not in functions.OPERATORS:
            calls.append(index)
    return calls


def _types(tokens: list[Token]) -> list[TokenType]:
    return [token.token_type for token in tokens]


def _item(text: str, tokens: list[Token], tree: exp.Expr) -> Item:
    others = {key for key, value in tree.args.items() if value and key != "expressions"}
    if tree.find(exp.Placeholder, exp.Parameter):
        raise _NotOneExpressionError("parameters and variables are not allowed; format the value into the text")
    if not isinstance(tree, exp.Select) or others or len(tree.expressions) != 1:
        raise _NotOneExpressionError("one SQL expression over columns is expected, not a list or a query")
    node, alias, length = tree.expressions[0], None, len(text)
    if isinstance(node, exp.Alias):
        alias, length = _alias(text, tokens, node)
        node = node.this
    star = _star(node)
    stars = [] if star is not None else list(node.find_all(exp.Star, exp.Aliases))
    if stars or (star is not None and alias):
        raise _NotOneExpressionError("a star stands alone: *, left.* or right.*")
    columns = {} if star is not None else {(found := _column_token(c)).start: found for c in node.find_all(exp.Column)}
    return Item(
        text=text[:length].rstrip(),
        node=node,
        alias=alias,
        star=star,
        columns=tuple(columns[start] for start in sorted(columns)),
        special_dates=any((n.is_string or isinstance(n, exp.RawString)) and _is_special(n.name) for n in node.find_all(*_TEXTS)),
        computed=tuple(_computed(text, tokens, node)) if star is None else (),
        is_about_time=_is_about_time(text, tokens, node),
        loose=_loose(text[:length], tokens, columns),
    )


def _is_special(literal: str) -> bool:
    """'now', ' Today ', 'today UTC' ...; Spark allows blanks and control characters before the word, and a time zone after it."""
    return re.split(r"\W", re.sub(r"^\W+", "", literal.lower()), maxsplit=1)[0] in functions.SPECIAL_DATES


def _computed(text: str, tokens: list[Token], node: exp.Expr) -> Iterator[frozenset[int]]:
    """Where the columns stand in each text that is made of other values: by a function, texts beside each other, ``||``, or bytes as text."""
    starts = [_column_token(c).start for c in node.find_all(exp.Column)]
    for index in _calls(text, tokens):
        if tokens[index].text.lower() in functions.TEXT_FUNCTIONS:
            first, last = tokens[index].start, tokens[_closing(tokens, index + 1)].start
            yield frozenset(start for start in starts if first < start < last)
    for made in node.find_all(exp.DPipe, exp.Concat, exp.Cast):
        if not isinstance(made, exp.Cast) or (made.args["to"].this == exp.DType.TEXT and made.find(exp.HexString)):
            yield frozenset(_column_token(c).start for c in made.find_all(exp.Column))


def _closing(tokens: list[Token], opening: int) -> int:
    """The position of the parenthesis that closes the one at ``opening``."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[index].token_type, 0)
        if depth == 0:
            return index
    return len(tokens) - 1


def _alias(text: str, tokens: list[Token], node: exp.Alias) -> tuple[str, int]:
    """The alias and where the expression before it ends."""
    start = tokens[-1].start
    identifier = node.args["alias"]
    if identifier.meta.get("start") != start + len(_SELECT) or text[start] in "'\"":
        raise _NotOneExpressionError("the name after AS must be a plain column name")
    return node.alias, tokens[-2].start if tokens[-2].token_type == TokenType.ALIAS else start


def _star(node: exp.Expr) -> str | None:
    star = node.this if isinstance(node, exp.Column) else node
    if not isinstance(star, exp.Star):
        return None
    if any(star.args.values()):
        raise _NotOneExpressionError("a star stands alone, without EXCEPT; list the columns that you want")
    return node.table.lower() if isinstance(node, exp.Column) else ""


def _column_token(node: exp.Column) -> ColumnToken:
    names = [name for part in ("catalog", "db", "table", "this") if (name := node.args.get(part)) is not None]
    if not all(isinstance(name, exp.Identifier) and {"start", "end"} <= name.meta.keys() for name in names):
        raise _NotOneExpressionError(f"{node.sql('spark')} is not a column; write column, left.column or right.column")
    ends = tuple(name.meta["end"] + 1 - len(_SELECT) for name in names)
    return ColumnToken(names[0].meta["start"] - len(_SELECT), tuple(name.name for name in names), ends)


def _is_about_time(text: str, tokens: list[Token], node: exp.Expr) -> bool:
    casts = any(cast.args["to"].this in exp.DataType.TEMPORAL_TYPES for cast in node.find_all(exp.Cast))
    return casts or any(functions.is_about_time(tokens[index].text) for index in _calls(text, tokens))


def _loose(text: str, tokens: list[Token], columns: dict[int, ColumnToken]) -> tuple[str, ...]:
    inside = [(c.start, c.ends[-1]) for c in columns.values()]
    calls = set(_calls(text, tokens))
    loose = []
    for index, token in enumerate(tokens):
        word = _WORD.fullmatch(text[token.start : token.end + 1])
        if word is None or index in calls or any(start <= token.start < end for start, end in inside):
            continue
        before = _types(tokens[max(index - 1, 0) : index])
        of_literal = token.text.lower() in ("date", "timestamp") and _types(tokens[index + 1 : index + 2]) == [TokenType.STRING]
        if before not in ([TokenType.ALIAS], [TokenType.DCOLON], [TokenType.DOT]) and not of_literal:
            loose.append(word[0])
    return tuple(loose)
