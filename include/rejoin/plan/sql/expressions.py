"""A user's SQL expression, checked and with its columns resolved.

The text stays the user's own: only the column tokens are replaced, at their positions. Nothing is printed from a syntax
tree, because a round trip through another engine's model of SQL may change what an expression means in Spark.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from rejoin.plan.model import problems
from rejoin.plan.model.column_names import spelled
from rejoin.plan.model.problems import Reporter, did_you_mean
from rejoin.plan.sql import nested, types
from rejoin.plan.sql.syntax import ColumnToken, Item, parse
from rejoin.plan.sql.typing import check as typing

LEFT, RIGHT = "left", "right"
_ROW = "t"
"""What stands before the columns of the only relation, where an expression is typed."""


@dataclass(frozen=True)
class Ref:
    """A column of one of the relations that an expression reads (``t``, ``l``, ``r1`` in a plan; a side while resolving)."""

    alias: str
    column: str


@dataclass(frozen=True)
class Expression:
    """SQL text with holes where the columns are, so that a column can be replaced by the expression that makes it.

    ``total``: known not to fail for any row. Everything else may be computed only for rows that the filters before it have left.
    ``type``: what the plan states. It is part of a definition's fingerprint, so it never becomes known later on.
    ``known``: what ``plan.sql.typing`` finds, for checks.
    """

    parts: tuple[str | Ref, ...]
    type: str | None
    total: bool = False
    known: str | None = None

    @property
    def refs(self) -> tuple[Ref, ...]:
        return tuple(part for part in self.parts if isinstance(part, Ref))

    @property
    def plain(self) -> Ref | None:
        """The column, if the expression is nothing but a column."""
        return self.parts[0] if len(self.parts) == 1 and isinstance(self.parts[0], Ref) else None

    @property
    def sql(self) -> str:
        return "".join(f"{p.alias}.`{p.column}`" if isinstance(p, Ref) else p for p in self.parts)

    def replace(self, by: Callable[[Ref], "Expression"]) -> "Expression":
        """This expression over what the columns are made of. Whatever is not a plain column goes into parentheses."""
        parts: list[str | Ref] = []
        total = self.total
        for part in self.parts:
            made = by(part) if isinstance(part, Ref) else None
            if made is None:
                parts.append(part)
            else:
                parts += made.parts if made.plain or len(self.parts) == 1 else ("(", *made.parts, ")")
                total = total and made.total
        return Expression(tuple(parts), self.type, total, self.known)

    @property
    def aliases(self) -> frozenset[str]:
        """The relations that it reads."""
        return frozenset(ref.alias for ref in self.refs)


def column(alias: str, name: str, of_type: str | None, known: str | None = None) -> Expression:
    return Expression((Ref(alias, name),), of_type, total=True, known=known or of_type)


def both(first: Expression | None, second: Expression) -> Expression:
    """``first AND second``; ``second`` if there is no first. ``second`` is computed only where ``first`` is true.

    An engine computes the parts of an AND in their order, but first moves each to the relation that it reads. So a part that reads fewer
    relations than the one before it, which protects it, has to stay with it. Not as a bare CASE: Spark makes an AND of that again.
    """
    if first is None:
        return second
    if second.total or first.aliases <= second.aliases:
        return Expression(("(", *first.parts, ") AND (", *second.parts, ")"), types.BOOLEAN, first.total and second.total, types.BOOLEAN)
    return Expression(("coalesce(CASE WHEN ", *first.parts, " THEN ", *second.parts, " END, false)"), types.BOOLEAN, known=types.BOOLEAN)


def guarded(part: Expression, where: Expression | None) -> Expression:
    """An expression that is computed only where the condition is true, and null elsewhere."""
    if where is None or part.total:
        return part
    return Expression(("CASE WHEN ", *where.parts, " THEN ", *part.parts, " END"), part.type, known=part.known)


# --- what an expression may read -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """The columns of one relation. ``complete`` is False after a mistake in it: then a missing column is no new mistake.

    ``constant``: columns that are a text, or made of one, and of no column of a table.
    ``known``: types that are known of columns, beside those that the plan states.
    """

    label: str
    columns: Mapping[str, str | None]
    complete: bool = True
    constant: frozenset[str] = frozenset()
    known: Mapping[str, str | None] = field(default_factory=dict)

    def type_of(self, name: str) -> str | None:
        """The type of a column in its declared spelling."""
        return self.known.get(name) or self.columns.get(name)

    def find(self, name: str) -> str | None:
        """The declared spelling of a column."""
        return spelled(name, self.columns)


@dataclass(frozen=True)
class Found:
    """A column as written: where it ends in the text, and the type of it, or of the field that is read of it."""

    ref: Ref
    end: int
    type: str | None


@dataclass(frozen=True)
class Scope:
    """The sides that an expression reads, by qualifier: only ``""`` for a filter or select, ``left`` for a foreign key,
    ``left`` and ``right`` for the select of a join.
    """

    sides: Mapping[str, Side]

    @property
    def complete(self) -> bool:
        return all(side.complete for side in self.sides.values())

    def holds(self, name: str) -> bool:
        return any(side.find(name) for side in self.sides.values())

    def known_type(self, alias: str, name: str) -> str | None:
        """The type of a column that was found, whose alias is ``_ROW`` where there is one relation."""
        side = self.sides.get("" if alias == _ROW else alias)
        return side.type_of(name) if side is not None and alias else None

    def resolve(self, token: ColumnToken, report: Reporter) -> Found | None:
        """The column that stands there; None after a report (or silently, where an earlier mistake hides it)."""
        at = 1 if len(token.names) > 1 and token.names[0].lower() in self.sides else 0
        keys, name = [token.names[0].lower()] if at else list(self.sides), token.names[at]
        found = [Ref(key, known) for key in keys if (known := self.sides[key].find(name))]
        if len(found) == 1:
            return self._found(found[0], token, at)
        if found:
            report(problems.AMBIGUOUS_COLUMN, f"ambiguous column {name!r}: both sides have it; write left.{name} or right.{name}")
        elif all(self.sides[key].complete for key in keys):
            hint = did_you_mean(name, [known for key in keys for known in self.sides[key].columns])
            if len(token.names) > 1 and not at:
                report(problems.UNKNOWN_COLUMN, f"{'.'.join(token.names)}: {self._qualifiers()}{hint}")
            else:
                labels = " or ".join(self.sides[key].label for key in keys)
                report(problems.UNKNOWN_COLUMN, f"unknown column {name!r} of {labels}{hint}")
        return None

    def _found(self, ref: Ref, token: ColumnToken, at: int) -> Found:
        side, fields = self.sides[ref.alias], token.names[at + 1 :]
        of = side.type_of(ref.column) if fields else side.columns[ref.column]
        for name in fields:
            of = None if of is None else nested.field(of, name)
        return Found(ref, token.ends[at], of)

    def _qualifiers(self) -> str:
        if "" in self.sides:
            return "columns are written without a qualifier here"
        if RIGHT not in self.sides:
            return "a foreign key reads only the left row, as column or left.column"
        return "the only qualifiers are left. and right."


# --- from text to expression -----------------------------------------------------------------------------------------


def expression(text: object, scope: Scope, report: Reporter) -> Expression | None:
    """One expression without a name (a filter, a foreign key). None after at least one report."""
    item = parse(text, report)
    if item is None:
        return None
    if item.alias is not None or item.star is not None:
        report(problems.BAD_EXPRESSION, "an expression without AS is expected here, and no star")
        return None
    return _resolve(item, scope, report)


def select_item(text: object, scope: Scope, report: Reporter) -> list[tuple[str, Expression | None]]:
    """The named columns that one text of a select makes: one, for a star all. The expression is None after a report."""
    item = parse(text, report)
    if item is None:
        return []
    if item.star is not None:
        return _star(item.star, scope, report)
    made = _resolve(item, scope, report)
    if made is not None and made.known is not None and types.canonical(made.known) is None:
        report(problems.BAD_TYPE, types.refused(made.known))
        made = None
    if item.alias is not None:
        return [(item.alias, made)]
    if not item.is_column:
        report(problems.BAD_EXPRESSION, f"the column {item.text} needs a name: write {item.text} AS name")
        return []
    return [(made.plain.column if made and made.plain else item.columns[0].names[-1], made)]


def _star(qualifier: str, scope: Scope, report: Reporter) -> list[tuple[str, Expression | None]]:
    if qualifier not in scope.sides:
        wanted = " or ".join(f"{key}.*" if key else "*" for key in scope.sides)
        report(problems.BAD_EXPRESSION, f"{qualifier + '.*' if qualifier else '*'} is not possible here; write {wanted}")
        return []
    side = scope.sides[qualifier]
    return [(name, column(qualifier, name, of_type, side.type_of(name))) for name, of_type in side.columns.items()]


def _resolve(item: Item, scope: Scope, report: Reporter) -> Expression | None:
    refs: dict[int, Found] = {}
    for token in item.columns:
        if not item.is_keyword_function(token) or scope.holds(token.names[0]):
            ref = scope.resolve(token, report)
            refs |= {token.start: ref} if ref else {}
    if not item.check(scope.holds, report) or len(refs) < len(item.columns):
        return None

    def of_column(node: exp.Column) -> str | None:
        return refs[item.start_of(node)].type

    found = types.infer(item.node, of_column)
    if unsupported := types.unsupported(item.node):
        report(problems.BAD_EXPRESSION, types.refused(unsupported))
        return None
    about_time = item.is_about_time or any(map(types.holds_time, (found, *(ref.type for ref in refs.values()))))
    if about_time and (reason := _present_time(item, scope, refs)):
        report(problems.FORBIDDEN_FUNCTION, reason)
        return None
    parts = _parts(item, refs)
    typed = typing.check(Expression(tuple(_read(part) for part in parts), None).sql, scope.known_type)
    for mistake in typed.mistakes:
        report(*((problems.BAD_EXPRESSION, f"not valid SQL: {mistake}") if typed.is_syntax else (problems.BAD_TYPE, mistake)))
    if typed.mistakes:
        return None
    if found == types.STRING and types.holds_bytes(item.node, of_column):
        # Spark casts bytes to text as they are, and what is no UTF-8 no other engine reads. The rule is that of its own function.
        parts = ("make_valid_utf8(", *parts, ")")
    return Expression(parts, found, total=item.is_column, known=typed.type or found)


def _read(part: str | Ref) -> str | Ref:
    return Ref(part.alias or _ROW, part.column) if isinstance(part, Ref) else part


def _present_time(item: Item, scope: Scope, refs: Mapping[int, Found]) -> str | None:
    """Why an expression about time may mean the present time: Spark computes a text that is the same for all rows before it looks for these
    words. A text that comes from a row is never one of them.
    """
    words = "beside dates Spark reads 'now', 'today', 'tomorrow' and 'yesterday' as the present time"
    if item.special_dates:
        return words
    constant = {start for start, found in refs.items() if found.ref.column in scope.sides[found.ref.alias].constant}
    if constant or any(columns <= constant for columns in item.computed):
        return f"{words}, also in a text that is computed from texts alone: write it as one literal"
    return None


def _parts(item: Item, refs: Mapping[int, Found]) -> tuple[str | Ref, ...]:
    parts: list[str | Ref] = []
    position = 0
    for token in item.columns:
        found = refs[token.start]
        parts += [item.text[position : token.start], found.ref]
        position = found.end
    parts.append(item.text[position:])
    return tuple(part for part in parts if part != "")
