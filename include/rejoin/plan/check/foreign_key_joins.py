"""What a join or a select says, checked: the output columns, the key that must stay, the foreign key and its types."""

from collections.abc import Mapping
from dataclasses import dataclass

from rejoin.declare.declarations import JoinDeclaration
from rejoin.plan.check import tables
from rejoin.plan.check.relations import Join, Shape, side
from rejoin.plan.model import problems
from rejoin.plan.model.column_names import repeated, spelled
from rejoin.plan.model.match import JoinKind, Match
from rejoin.plan.model.problems import Reporter
from rejoin.plan.sql import types
from rejoin.plan.sql.expressions import LEFT, RIGHT, Expression, Ref, Scope, expression, select_item


@dataclass(frozen=True)
class Chosen:
    """The columns of a select. ``key``: what the key columns of the relation (of the left side) are called in it."""

    items: Mapping[str, Expression]
    key: tuple[str, ...]
    complete: bool


def check_select(written: object, scope: Scope, keyed: Shape, key_side: str, report: Reporter) -> Chosen:
    """The columns that a select makes.

    Args:
        written: the texts of the select.
        scope: what they may read.
        keyed: the relation whose key must stay; ``key_side`` is its side in the scope.
        report: takes the mistakes; with one, ``complete`` is False.
    """
    before = len(report.problems.found)
    texts = tables.texts(written)
    if texts is None:
        report(problems.BAD_OPTION, "a list of texts is expected, such as ['left.*', 'right.name AS customer_name']")
        texts = ()
    made: list[tuple[str, Expression | None]] = []
    for text in texts:
        item_report = report.about(f"{text!r}: ")
        columns = select_item(text, scope, item_report)
        made += [(name, column) for name, column in columns if tables.check_column_name(name, item_report)]
    for name in repeated(name for name, _ in made):
        report(problems.DUPLICATE_NAME, f"two output columns are named {name!r}; rename one with AS")
    items = {name: column for name, column in made if column is not None}
    complete = len(report.problems.found) == before and scope.complete
    key = _key(items, keyed, key_side, report) if complete else ()
    return Chosen(items, key, complete and len(key) == len(keyed.key))


def _key(items: Mapping[str, Expression], keyed: Shape, key_side: str, report: Reporter) -> tuple[str, ...]:
    """What the key columns are called in the select: the first column that is the key column and nothing else."""
    names: list[str] = []
    for key in keyed.key:
        name = next((name for name, item in items.items() if item.plain == Ref(key_side, key)), None)
        if name is not None:
            names.append(name)
            continue
        written = f"{key_side}.{key}" if key_side else key
        report(problems.KEY_LOST, f"the key column {key!r} of {keyed.label} is lost; add {written!r} (AS another name is fine)")
    return tuple(names)


def kind_of(declaration: JoinDeclaration) -> JoinKind:
    """Which rows without a partner the declared join keeps."""
    return JoinKind(declaration.kind)


def check_join(declaration: JoinDeclaration, left: Shape, right: Shape, report: Reporter) -> Join:
    """The join with its expressions resolved and its foreign key of the type of the right key."""
    by = foreign_key(declaration.foreign_key, Scope({LEFT: side(left)}), right, report)
    chosen = check_items(declaration, left, right, () if kind_of(declaration).keeps_right else right.key, report)
    return made(declaration, by, chosen)


def made(declaration: JoinDeclaration, by: tuple[Expression, ...], chosen: Chosen, match: Match | None = None) -> Join:
    """The join of what was checked."""
    label = f"the join at line {declaration.place.line}"
    return Join(by, chosen.items, chosen.key, kind_of(declaration), label, chosen.complete, match)


def check_items(declaration: JoinDeclaration, left: Shape, right: Shape, needless: tuple[str, ...], report: Reporter) -> Chosen:
    """The output columns of a join: those of the select, else both sides without the columns ``needless`` of the right.

    The result has the left key; where ``needless`` does not have the right key, the result is one of pairs, and has the right key, too.
    """
    items = declaration.select if declaration.select is not None else _default_items(left, right, needless, report)
    about = report.about("select: ")
    chosen = check_select(items, Scope({LEFT: side(left), RIGHT: side(right)}), left, LEFT, about)
    if needless or not chosen.complete:
        return chosen
    key = _key(chosen.items, right, RIGHT, about)
    return Chosen(chosen.items, (*chosen.key, *key), len(key) == len(right.key))


def _default_items(left: Shape, right: Shape, needless: tuple[str, ...], report: Reporter) -> list[str]:
    added = [name for name in right.columns if name not in needless]
    for name in added:
        if spelled(name, left.columns):
            hint = f"give select=[...] and rename one, such as 'right.{name} AS {name}_2'"
            report(problems.AMBIGUOUS_COLUMN, f"join: ambiguous column {name!r}: both {left.label} and {right.label} have it; {hint}")
    return ["left.*", *(f"right.`{name}`" for name in added if not spelled(name, left.columns))]


def foreign_key(written: object, scope: Scope, right: Shape, report: Reporter) -> tuple[Expression, ...]:
    """The foreign key, one expression for each key column of the right; empty after a report."""
    texts = tables.texts(written)
    if texts is None:
        report(problems.BAD_OPTION, "foreign_key: a column, an SQL expression, or a list of them is expected")
        return ()
    made = [expression(text, scope, report.about(f"foreign_key {text!r}: ")) for text in texts]
    if len(texts) != len(right.key):
        if right.complete:
            keys = ", ".join(right.key)
            message = f"foreign_key has {len(texts)} expression(s), but the key of {right.label} has {len(right.key)}: {keys}"
            report(problems.FK_COUNT, f"{message}; give a list in that order")
        return ()
    typed = [
        of_type(part, right.columns[key].known, f"key column {key!r} of {right.label}", report.about(f"foreign_key {text!r}: "))
        for text, part, key in zip(texts, made, right.key, strict=True)
        if part is not None and key in right.columns
    ]
    return tuple(typed) if len(typed) == len(texts) else ()


def of_type(part: Expression, wanted: str | None, key: str, report: Reporter) -> Expression:
    """The foreign key in the type of the right key. Only INT becomes BIGINT by itself: that loses nothing."""
    if part.known == wanted or wanted is None:
        return part
    if part.known == types.INT and wanted == types.BIGINT:
        return Expression(("CAST(", *part.parts, " AS BIGINT)"), types.BIGINT, part.total, types.BIGINT)
    if part.known is None:
        report(problems.FK_TYPE, f"the type is not certain, the {key} is {wanted}; write CAST(... AS {wanted})")
    else:
        report(problems.FK_TYPE, f"the type is {part.known}, the {key} is {wanted}; write CAST(... AS {wanted}) if no value changes by it")
    return part
