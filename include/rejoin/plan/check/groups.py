"""What ``group_by(...).aggregate(...)`` says, checked: the keys of the groups, and the columns that are made of their members."""

from collections.abc import Sequence
from dataclasses import replace

from rejoin.declare.declarations import AggregateDeclaration
from rejoin.plan.check import tables
from rejoin.plan.check.relations import Groups, Rows, Star, grouped, side
from rejoin.plan.model import problems
from rejoin.plan.model.column_names import repeated
from rejoin.plan.model.grouping import COLLECT, Aggregate, Collect
from rejoin.plan.model.problems import Reporter
from rejoin.plan.sql import aggregates, calls, types
from rejoin.plan.sql.calls import Call
from rejoin.plan.sql.expressions import Expression, Ref, Scope, column, expression, guarded, select_item
from rejoin.plan.sql.nested import STRUCT, Nested, is_nested
from rejoin.plan.sql.typing.coercion import FRACTIONS


def check(declaration: AggregateDeclaration, members: Rows, report: Reporter) -> Star:
    """The groups of some rows."""
    before, scope = len(report.problems.found), Scope({"": side(members)})
    if members.timed is not None:
        report(
            problems.BAD_OPTION, f"group_by: {members.label} is a stream, and only rows of tables and of what is made of them are grouped"
        )
    keys = _keys(declaration.keys, scope, report.about("group_by: "))
    values: dict[str, Expression] = {}
    made = [
        _aggregate(name, text, scope, values, report.about(f"aggregate {name}={text!r}: ")) for name, text in declaration.columns.items()
    ]
    if not declaration.columns:
        report(problems.BAD_OPTION, "aggregate: at least one column is expected, such as n='count(*)'")
    found = tuple(a for a in made if a is not None)
    for name in repeated([*keys, *declaration.columns]):
        report(problems.DUPLICATE_NAME, f"two columns of the groups are named {name!r}; give the group key another name with AS")
    kinds = {name: key.known or "" for name, key in keys.items()} | {a.name: a.type for a in found}
    complete = len(report.problems.found) == before and members.complete
    groups = Groups({name: _of_member(key, members) for name, key in keys.items()}, _named(values, members), found)
    return grouped(members, groups, kinds, f"the groups at line {declaration.place.line}", complete=complete)


def _keys(declared: Sequence[object], scope: Scope, report: Reporter) -> dict[str, Expression]:
    """What members of a group have in common."""
    if not declared:
        report(problems.BAD_OPTION, "at least one column or expression is expected")
    found: dict[str, Expression] = {}
    for text in declared:
        about = report.about(f"{text!r}: ")
        for name, item in select_item(text, scope, about):
            key = None if item is None else _typed(item, about)
            if not tables.check_column_name(name, about) or key is None:
                continue
            if key.known in FRACTIONS:
                about(problems.BAD_TYPE, f"it is {key.known}, and rounded numbers cannot be keys; use DECIMAL or BIGINT")
            elif is_nested(key.known or ""):
                about(problems.BAD_TYPE, f"it is {key.known}, and a group key is a single value")
            elif name in found:
                about(problems.DUPLICATE_NAME, f"two group keys are named {name!r}")
            else:
                found[name] = key
    return found


def _aggregate(name: str, text: object, scope: Scope, values: dict[str, Expression], report: Reporter) -> Aggregate | None:
    """One column of the groups. ``values``: takes what it needs of a member, by its text."""
    call = calls.call(text, report)
    if not tables.check_column_name(name, report) or call is None:
        return None
    where = None if call.where is None else expression(call.where, scope, report.about("FILTER: "))
    if where is not None and where.known not in (None, types.BOOLEAN):
        report(problems.BAD_EXPRESSION, f"a filter must be BOOLEAN, this is {where.known}")
    if where is None and call.where is not None:
        return None
    if call.function == COLLECT:
        return _collect(name, call, scope, where, values, report)
    given = [expression(argument, scope, report) for argument in call.arguments]
    found = [typed for made in given if made is not None and (typed := _typed(made, report)) is not None]
    if len(found) < len(call.arguments):
        return None
    kind = aggregates.result(call.function, [made.known or "" for made in found])
    if kind is None:
        report(problems.BAD_TYPE, f"{call.function}() does not take {' and '.join(made.known or '' for made in found)}")
        return None
    return Aggregate(name, call.function, tuple(_value(made, where, values) for made in _taken(call, found)), kind)


def _collect(
    name: str, call: Call, scope: Scope, where: Expression | None, values: dict[str, Expression], report: Reporter
) -> Aggregate | None:
    """An array of what members have: of values, or of structs."""
    before = len(report.problems.found)
    elements = _fields(call, scope, report) if call.is_struct else [("", expression(call.arguments[0], scope, report))]
    found = [(field, typed) for field, made in elements if made is not None and (typed := _typed(made, report)) is not None]
    order = [_order(text, scope, report.about("ORDER BY: ")) for text, _ in call.order]
    if len(report.problems.found) > before or not found or len(found) < len(elements) or None in order:
        return None
    parts = tuple((field, made.known or "") for field, made in found)
    written = aggregates.result(COLLECT, [Nested(STRUCT, parts).text if call.is_struct else parts[0][1]]) or ""
    kind = types.canonical(written)
    if kind is None:
        report(problems.BAD_TYPE, types.refused(written))
        return None
    taken = tuple(_value(guarded(made, where), None, values) for _, made in found)
    by = tuple(
        (_value(guarded(made, where), None, values), descending) for made, (_, descending) in zip(order, call.order, strict=True) if made
    )
    kept = None if where is None else _value(_TRUE, where, values)
    return Aggregate(name, COLLECT, taken, kind, Collect(tuple(field for field, _ in parts if field), by, call.limit, kept))


def _fields(call: Call, scope: Scope, report: Reporter) -> list[tuple[str, Expression | None]]:
    """The fields of a struct."""
    found = [item for text in call.arguments for item in select_item(text, scope, report)]
    names = [name for name, _ in found if tables.check_column_name(name, report)]
    for name in repeated(names):
        report(problems.DUPLICATE_NAME, f"two fields of the struct are named {name!r}")
    return found


def _order(text: str, scope: Scope, report: Reporter) -> Expression | None:
    """What members are ordered by."""
    made = expression(text, scope, report)
    typed = None if made is None else _typed(made, report)
    if typed is not None and is_nested(typed.known or ""):
        report(problems.BAD_TYPE, f"it is {typed.known}, and members are ordered by single values")
    return typed


_TRUE = Expression(("true",), types.BOOLEAN, total=False, known=types.BOOLEAN)


def _taken(call: Call, found: list[Expression]) -> list[Expression]:
    """What an aggregate takes of a member: with a filter ``count(*)`` counts those for which something is true."""
    return found if found or call.where is None else [_TRUE]


def _value(made: Expression, where: Expression | None, values: dict[str, Expression]) -> str:
    """The name of a value of members; the same text has one name."""
    if where is not None:
        made = Expression(("CASE WHEN ", *where.parts, " THEN ", *made.parts, " END"), made.type, known=made.known)
    name = next((name for name, other in values.items() if other.parts == made.parts), f"v_{len(values) + 1}")
    values.setdefault(name, made)
    return name


def _typed(made: Expression, report: Reporter) -> Expression | None:
    """The expression with a type that is known and that a column can have; None after a report. Of what is cast the plan states it."""
    kind = made.known or made.type
    if kind is not None and types.canonical(kind) is not None:
        return replace(made, known=kind)
    report(problems.BAD_TYPE, f"its type is {kind or 'not certain'}; write CAST(... AS type) with one of: {types.ALLOWED}")
    return None


def _named(values: dict[str, Expression], members: Rows) -> dict[str, Expression]:
    return {name: _of_member(made, members) for name, made in values.items()}


def _of_member(made: Expression, members: Rows) -> Expression:
    """An expression over the columns of a relation, as one over ``l``."""

    def of_left(ref: Ref) -> Expression:
        return column("l", ref.column, members.columns[ref.column].type, members.columns[ref.column].known)

    return made.replace(of_left)
