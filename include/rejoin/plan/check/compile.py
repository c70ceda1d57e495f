"""Topology -> plan. Checks everything, and reports all mistakes in one error, each with the user's own line."""

from dataclasses import replace

from rejoin.declare.declarations import (
    AggregateDeclaration,
    Declaration,
    ExpectDeclaration,
    FilterDeclaration,
    JoinDeclaration,
    NameDeclaration,
    ReferenceDeclaration,
    SelectDeclaration,
    TableDeclaration,
    ToDeclaration,
)
from rejoin.declare.topology import Relation, Topology, inputs
from rejoin.errors import TopologyError
from rejoin.plan.check import assemble, expectations, groups, sinks, sources, tables
from rejoin.plan.check.foreign_key_joins import check_join, check_select
from rejoin.plan.check.other_joins import by_foreign_key, check
from rejoin.plan.check.relations import (
    Draft,
    Join,
    Materialised,
    Rows,
    Shape,
    filtered,
    joined,
    rows_of,
    selected,
    side,
    stands_alone,
)
from rejoin.plan.model import problems
from rejoin.plan.model.added_columns import PLACE, VERSION_COLUMNS, versions
from rejoin.plan.model.expectations import Expectation
from rejoin.plan.model.match import AsOf
from rejoin.plan.model.plan import Column, Plan, Table
from rejoin.plan.model.problems import Problems, did_you_mean
from rejoin.plan.sql.expressions import Scope, Side, column, expression


def compile(topology: Topology) -> Plan:
    """The plan of a topology; the same topology always gives the same plan.

    Raises:
        TopologyError: with every ``Problem`` that was found.
    """
    compiler = _Compiler(topology)
    plan, found = compiler.run(), compiler.problems.in_order()
    if found or plan is None:
        raise TopologyError(str(topology.name), found)
    return plan


class _Compiler:
    """One compilation. ``shapes`` holds what every declaration came to; None after a mistake that hides its columns."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.problems = Problems()
        self.shapes: dict[Declaration, Shape | None] = {}
        self.being_made: list[Declaration] = []
        self.by_name: dict[str, TableDeclaration | NameDeclaration] = {}
        self.tables: dict[str, Table] = {}
        self.outputs: dict[NameDeclaration, Draft] = {}
        self.materialised = Materialised()
        self.sinks = sinks.Sinks(self.problems)
        self.expected: dict[str, list[Expectation]] = {}

    def run(self) -> Plan | None:
        declarations = [relation.declaration for relation in self.topology.relations]
        tables.check_name(self.topology.name, "topology", self.problems.at(self.topology.place))
        self._check_names(declarations)
        for declaration in declarations:
            self._shape(declaration)
        self._check_use(declarations)
        if self.problems.found:
            return None
        outputs = [self.outputs[d] for d in declarations if isinstance(d, NameDeclaration)]
        plan = self._with_expectations(assemble.plan(self.topology.name, self.tables.values(), outputs))
        for declaration in declarations:
            if isinstance(declaration, ExpectDeclaration):
                self._check_node(plan, declaration)
        return plan

    def _with_expectations(self, plan: Plan) -> Plan:
        return replace(
            plan,
            tables=tuple(replace(t, expectations=tuple(self.expected.get(t.name, ()))) for t in plan.tables),
            nodes=tuple(replace(n, expectations=tuple(self.expected.get(n.name, ()))) for n in plan.nodes),
        )

    # --- what every declaration comes to ---------------------------------------------------------------------------------

    def _shape(self, declaration: Declaration) -> Shape | None:
        if declaration in self.shapes:
            return self.shapes[declaration]
        if declaration in self.being_made:
            self._report_cycle(self.being_made[self.being_made.index(declaration) :])
            return None
        self.being_made.append(declaration)
        shape = self._make(declaration)
        self.being_made.pop()
        self.shapes[declaration] = shape
        return shape

    def _make(self, declaration: Declaration) -> Shape | None:
        match declaration:
            case TableDeclaration():
                return self._table(declaration)
            case JoinDeclaration():
                return self._join(declaration)
            case FilterDeclaration():
                return self._filter(declaration)
            case SelectDeclaration():
                return self._select(declaration)
            case AggregateDeclaration():
                return self._aggregate(declaration)
            case NameDeclaration():
                return self._name(declaration)
            case ReferenceDeclaration():
                return self._reference(declaration)
            case ToDeclaration():
                return self._to(declaration)
            case ExpectDeclaration():
                return self._expect(declaration)

    def _table(self, declaration: TableDeclaration) -> Rows:
        report = self.problems.at(declaration.place, f"table {declaration.name!r}: ")
        before = len(self.problems.found)
        columns, named = tables.columns(declaration.schema, report), declaration.key
        if named is None and declaration.stream is not None:
            columns, named = tables.with_place(columns, report), PLACE.name
        complete = len(self.problems.found) == before
        key = tables.key(named, columns, report, complete=complete)
        complete = len(self.problems.found) == before
        source = sources.source(declaration, columns, report, complete=complete)
        optional = tables.optional(declaration.optional, key, columns, report, complete=complete)
        table = Table(str(declaration.name), key, columns, source or sources.NO_SOURCE, (), optional=optional)
        table, timed = tables.timed(table, declaration.stream, report, complete=complete)
        if self.by_name.get(table.name) is declaration:
            self.tables[table.name] = table
        return replace(rows_of(table, Side(table.name, _types(table.columns), complete), key), timed=timed)

    def _join(self, declaration: JoinDeclaration) -> Shape | None:
        report = self.problems.at(declaration.place)
        left, right = self._shape(declaration.left.declaration), None
        if not isinstance(declaration.right, Relation):
            report(problems.BAD_OPTION, "join: the right side must be a relation: a table, a join, or topology.relation(name)")
        elif declaration.right.topology is not self.topology:
            other = declaration.right.topology.name
            report(
                problems.OTHER_TOPOLOGY, f"join: the right side belongs to topology {other!r}; both sides must be of {self.topology.name!r}"
            )
        else:
            right = self._shape(declaration.right.declaration)
        if left is None or right is None:
            return None
        if by_foreign_key(declaration, left, right):
            join: Join | None = check_join(declaration, left, right, report)
        else:
            join = check(declaration, left, right, report)
        if join is None:
            return None
        rights = self._versions(self.materialised.rows(right), join)
        star = self.materialised.alone(left) if stands_alone(join) else self.materialised.star(left, join.foreign_key)
        return joined(star, rights, join)

    def _versions(self, right: Rows, join: Join) -> Rows:
        """The right side of a join: all versions of its rows, where the join looks among them."""
        if not isinstance(join.match, AsOf) or join.match.right_time is None or not isinstance(right.base, Table):
            return right
        table = versions(right.base)
        self.tables.setdefault(table.name, table)
        added = {c.name: column("t", c.name, c.type) for c in VERSION_COLUMNS}
        return replace(right, base=self.tables[table.name], columns={**right.columns, **added}, key=(*right.key, join.match.right_time))

    def _filter(self, declaration: FilterDeclaration) -> Shape | None:
        shape = self._shape(declaration.input.declaration)
        if shape is None:
            return None
        report = self.problems.at(declaration.place, f"filter {declaration.condition!r}: ")
        condition = expression(declaration.condition, Scope({"": side(shape)}), report)
        if condition is not None and condition.known not in (None, "BOOLEAN"):
            report(problems.BAD_EXPRESSION, f"a filter must be BOOLEAN, this is {condition.known}")
        return filtered(shape, condition) if condition else shape

    def _select(self, declaration: SelectDeclaration) -> Shape | None:
        shape = self._shape(declaration.input.declaration)
        if shape is None:
            return None
        report = self.problems.at(declaration.place, "select: ")
        chosen = check_select(declaration.items, Scope({"": side(shape)}), shape, "", report)
        return selected(shape, chosen.items, chosen.key, complete=chosen.complete)

    def _aggregate(self, declaration: AggregateDeclaration) -> Shape | None:
        shape = self._shape(declaration.input.declaration)
        if shape is None:
            return None
        return groups.check(declaration, self.materialised.rows(shape), self.problems.at(declaration.place))

    def _name(self, declaration: NameDeclaration) -> Shape | None:
        shape = self._shape(declaration.input.declaration)
        if shape is None:
            return None
        report = self.problems.at(declaration.place, f"output {declaration.name!r}: ")
        policy = tables.policy(declaration, report)
        draft = self.outputs[declaration] = Draft(str(declaration.name), shape, policy)
        rows = rows_of(draft, replace(side(shape), label=str(declaration.name)), shape.key)
        return replace(rows, timed=shape.timed)

    def _reference(self, declaration: ReferenceDeclaration) -> Shape | None:
        found = self.by_name.get(str(declaration.name))
        if found is None:
            hint = did_you_mean(str(declaration.name), self.by_name)
            self.problems.add(problems.UNKNOWN_RELATION, f"no table or output is named {declaration.name!r}{hint}", declaration.place)
            return None
        return self._shape(found)

    def _to(self, declaration: ToDeclaration) -> Shape | None:
        shape, named = self._shape(declaration.input.declaration), declaration.input.declaration
        if isinstance(named, ReferenceDeclaration):
            named = self.by_name.get(str(named.name), named)
        draft = self.outputs.get(named) if isinstance(named, NameDeclaration) else None
        if shape is not None and draft is None:
            message = "to(...): only an output has changes to deliver; name it first, with .named(...)"
            self.problems.add(problems.BAD_OPTION, message, declaration.place)
        elif draft is not None and shape is not None:
            columns = tuple(side(shape).columns)
            draft.sinks = self.sinks.of(declaration, str(draft.name), shape.key, columns, draft.sinks)
        return shape

    def _expect(self, declaration: ExpectDeclaration) -> Shape | None:
        shape, of = self._shape(declaration.input.declaration), self._named(declaration.input.declaration)
        report = self.problems.at(declaration.place)
        if of is None:
            report(problems.BAD_OPTION, "expect: only tables and named outputs are checked; call it after .named(...)")
        elif shape is not None:
            found = expectations.check(declaration, side(shape), report.about(f"expect on {of!r}: "))
            if any(e.type == "computable" for e in found) and of in self.tables:
                report(problems.BAD_OPTION, f"expect on {of!r}: computable: a table has no expressions; only outputs can expect it")
            self.expected.setdefault(of, []).extend(found)
        return shape

    def _named(self, declaration: Declaration) -> str | None:
        """The name of the table or output that a declaration stands for."""
        if isinstance(declaration, ReferenceDeclaration):
            declaration = self.by_name.get(str(declaration.name), declaration)
        return str(declaration.name) if isinstance(declaration, TableDeclaration | NameDeclaration) else None

    # --- checks of the whole ---------------------------------------------------------------------------------------------

    def _check_names(self, declarations: list[Declaration]) -> None:
        for declaration in declarations:
            if not isinstance(declaration, (TableDeclaration, NameDeclaration)):
                continue
            report = self.problems.at(declaration.place)
            tables.check_name(declaration.name, "table" if isinstance(declaration, TableDeclaration) else "output", report)
            first = self.by_name.setdefault(str(declaration.name), declaration)
            if first is not declaration:
                where = f"{first.place.file}:{first.place.line}"
                report(problems.DUPLICATE_NAME, f"the name {declaration.name!r} is taken already at {where}")

    def _check_use(self, declarations: list[Declaration]) -> None:
        read = {relation.declaration for d in declarations for relation in inputs(d)}
        ends = [d for d in declarations if d not in read]
        unused = [d for d in ends if isinstance(d, (JoinDeclaration, FilterDeclaration, SelectDeclaration, AggregateDeclaration))]
        for declaration in unused:
            what = type(declaration).__name__.removesuffix("Declaration").lower()
            self.problems.add(
                problems.UNUSED, f"this {what} is never used: name it with .named(...) to make it an output", declaration.place
            )
        if not unused and not any(isinstance(d, NameDeclaration) for d in declarations):
            message = f"topology {self.topology.name!r} makes nothing: name at least one relation with .named(...)"
            self.problems.add(problems.EMPTY_TOPOLOGY, message, self.topology.place)

    def _check_node(self, plan: Plan, declaration: ExpectDeclaration) -> None:
        name = self._named(declaration.input.declaration)
        for node in plan.nodes:
            if node.name == name:
                expectations.check_node(node, self.problems.at(declaration.place, f"expect on {name!r}: "))

    def _report_cycle(self, cycle: list[Declaration]) -> None:
        names = [d.name for d in cycle if isinstance(d, NameDeclaration)]
        place = next((d.place for d in cycle if isinstance(d, ReferenceDeclaration)), cycle[0].place)
        path = " reads ".join(map(repr, [*names, names[0]]))
        self.problems.add(problems.CYCLE, f"a relation cannot be made of itself: {path}", place)


def _types(columns: tuple[Column, ...]) -> dict[str, str | None]:
    return {column.name: column.type for column in columns}
