"""An aggregate as a user writes it, taken apart: ``sum(amount) FILTER (WHERE paid)``, ``collect(struct(line, product) ORDER BY line LIMIT 20)``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from rejoin.plan.model.grouping import COLLECT, COUNT, COUNT_DISTINCT
from rejoin.plan.model.problems import BAD_EXPRESSION, Reporter, did_you_mean

ARGUMENTS: Final = dict.fromkeys((COUNT, COUNT_DISTINCT, "sum", "avg", "min", "max", "bool_and", "bool_or"), 1) | {
    "min_by": 2,
    "max_by": 2,
    COLLECT: 1,
}
"""The aggregates, and how many arguments each takes; ``count`` also takes a star."""


@dataclass(frozen=True)
class Call:
    """An aggregate as written. ``arguments``: their texts, none for ``count(*)``; ``where``: the text of its filter.

    Of ``collect``: whether its arguments are the fields of a struct, the texts that its members are ordered by, each with whether it descends, and how many it keeps.
    """

    function: str
    arguments: tuple[str, ...]
    where: str | None
    is_struct: bool = False
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None


def call(text: object, report: Reporter) -> Call | None:
    """The aggregate that a text is. None after a report."""
    if not isinstance(text, str):
        report(BAD_EXPRESSION, "a text with one aggregate is expected, such as 'sum(amount)'")
        return None
    try:
        tokens = Spark().tokenize(text)
    except SqlglotError:
        report(BAD_EXPRESSION, "not valid SQL: a quote or comment is not closed")
        return None
    closing = _closing(tokens, 1)
    if closing is None:
        report(BAD_EXPRESSION, "one aggregate is expected, such as 'sum(amount)' or 'count(*) FILTER (WHERE paid)'")
        return None
    where = _filter(text, tokens[closing + 1 :])
    if closing + 1 < len(tokens) and where is None:
        report(
            BAD_EXPRESSION, "an aggregate stands alone, with FILTER (WHERE ...) behind it at most; compute with it in a select that follows"
        )
        return None
    function, inside, end = tokens[0].text.lower(), tokens[2:closing], tokens[closing].start
    if function == COLLECT:
        return _collect(text, inside, end, where, report)
    return _checked(function, _arguments(text, inside, end), where, report)


def _checked(function: str, arguments: tuple[str, ...], where: str | None, report: Reporter) -> Call | None:
    if function not in ARGUMENTS:
        report(
            BAD_EXPRESSION, f"{function}() is no aggregate of rejoin{did_you_mean(function, ARGUMENTS)}; there are {', '.join(ARGUMENTS)}"
        )
        return None
    if arguments == ("*",) and function == COUNT:
        return Call(COUNT, (), where)
    if len(arguments) == 1 and arguments[0].split(maxsplit=1)[0].lower() == "distinct":
        if function == COUNT:
            return Call(COUNT_DISTINCT, (arguments[0][len("distinct") :].strip(),), where)
        report(BAD_EXPRESSION, f"{function}() takes no DISTINCT; only count does")
        return None
    if len(arguments) != ARGUMENTS[function]:
        report(BAD_EXPRESSION, f"{function}() takes {ARGUMENTS[function]} argument(s), not {len(arguments)}")
        return None
    return Call(function, arguments, where)


def _collect(text: str, tokens: Sequence[Token], end: int, where: str | None, report: Reporter) -> Call | None:
    """``collect(element ORDER BY ... LIMIT n)``; ``tokens`` are those in its parentheses, which close at ``end``."""
    rest, limit, limit_end = _cut(tokens, TokenType.LIMIT, end)
    element, order, order_end = _cut(rest, TokenType.ORDER_BY, limit_end)
    wrong = (order is not None and not order) or (
        limit is not None and (len(limit) != 1 or not limit[0].text.isdigit() or int(limit[0].text) < 1)
    )
    if wrong:
        report(BAD_EXPRESSION, "collect(element ORDER BY ... LIMIT n) is expected, n being a whole number from 1")
        return None
    by = tuple(_ordered(part) for part in _arguments(text, order or (), limit_end))
    most = None if limit is None else int(limit[0].text)
    if len(element) > 3 and [t.text.lower() for t in element[:2]] == ["struct", "("] and _closing(element, 1) == len(element) - 1:
        return Call(COLLECT, _arguments(text, element[2:-1], element[-1].start), where, True, by, most)
    checked = _checked(COLLECT, _arguments(text, element, order_end), where, report)
    return None if checked is None else replace(checked, order=by, limit=most)


def _cut(tokens: Sequence[Token], word: TokenType, end: int) -> tuple[Sequence[Token], Sequence[Token] | None, int]:
    """The tokens before a word that stands in no parentheses, those behind it (None without it), and where the text of the first ones ends."""
    at = next((at for at, depth in enumerate(_depths(tokens)) if depth == 0 and tokens[at].token_type == word), None)
    return (tokens, None, end) if at is None else (tokens[:at], tokens[at + 1 :], tokens[at].start)


def _ordered(text: str) -> tuple[str, bool]:
    """What is ordered by, and whether it descends."""
    by, _, word = text.rpartition(" ")
    return (by.strip(), word.upper() == "DESC") if by.strip() and word.upper() in ("ASC", "DESC") else (text, False)


def _closing(tokens: Sequence[Token], opening: int) -> int | None:
    """The position of the parenthesis that closes the one at ``opening``; None if there is none."""
    depth = 0
    for index, token in enumerate(tokens[opening:], start=opening):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 0:
            return index if index > opening else None
    return None


def _arguments(text: str, tokens: Sequence[Token], end: int) -> tuple[str, ...]:
    """The texts between commas. ``end``: where the parenthesis that closes, or the word that follows, stands."""
    if not tokens:
        return ()
    ends = [token.start for token, depth in zip(tokens, _depths(tokens), strict=True) if token.token_type == TokenType.COMMA and depth == 0]
    starts = [tokens[0].start, *(at + 1 for at in ends)]
    return tuple(text[a:b].strip() for a, b in zip(starts, [*ends, end], strict=True))


def _depths(tokens: Sequence[Token]) -> Iterator[int]:
    """In how many brackets each token stands."""
    depth = 0
    for token in tokens:
        depth += {TokenType.L_PAREN: 1, TokenType.L_BRACKET: 1, TokenType.R_PAREN: -1, TokenType.R_BRACKET: -1}.get(token.token_type, 0)
        yield depth


def _filter(text: str, tokens: Sequence[Token]) -> str | None:
    """The condition of ``FILTER (WHERE condition)``; None if that is not what the tokens are."""
    words = [token.text.lower() for token in tokens[:3]]
    if words != ["filter", "(", "where"] or _closing(tokens, 1) != len(tokens) - 1 or len(tokens) < len("f(w)") + 1:
        return None
    return text[tokens[3].start : tokens[-1].start].strip()
