"""A plan for people: what is read, what is made of it, and the steps of a run. ``text`` and ``mermaid`` walk the same
``steps`` as a run does, so they cannot drift from it.
"""

import json

from rejoin.plan.change.stream_retention import why_kept
from rejoin.plan.model import durations
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.match import AsOf, JoinKind, Other, Window
from rejoin.plan.model.plan import Edge, Node, Plan, Projection, Table, View
from rejoin.plan.model.sinks import Sink
from rejoin.plan.model.sources import (
    ChangesSource,
    DebeziumSource,
    FeedSource,
    Format,
    InstalledFormat,
    NamedFields,
    OnIncomplete,
    RecordsSource,
    Snapshots,
    SnapshotSource,
    Source,
    WithSnapshots,
)
from rejoin.plan.model.steps import Step, Verb, steps
from rejoin.plan.sql.raw_fields import unqualified
from rejoin.plan.sql.unchecked import unchecked
from rejoin.plan.topic_path import names_topic


def text(plan: Plan) -> str:
    """The whole plan, readable: tables, nodes, and the steps in groups that can run in parallel. Ends with a newline."""
    lines = [f"topology {plan.topology}", "", "tables"]
    for table in plan.tables:
        lines += _table(plan, table)
    lines += ["", "nodes"]
    for node in plan.nodes:
        lines += _node(node)
    if left := unchecked(plan):
        lines += ["", "checked by Spark when it runs, before anything is read"]
        lines += [f"  {one.title}: {one.sql}" for one in left]
    lines += ["", "steps of a run (the steps of a group can run at the same time)"]
    for number, group in enumerate(groups(plan), start=1):
        lines += _group(number, group)
    return "\n".join(lines) + "\n"


def groups(plan: Plan) -> tuple[tuple[Step, ...], ...]:
    """The steps by the earliest time at which they can start: every step comes after the groups before its own."""
    level: dict[str, int] = {}
    made: list[list[Step]] = []
    for step in steps(plan):
        level[step.id] = 1 + max((level[before] for before in step.after), default=-1)
        if level[step.id] == len(made):
            made.append([])
        made[level[step.id]].append(step)
    return tuple(tuple(group) for group in made)


def _table(plan: Plan, table: Table) -> list[str]:
    types = ", ".join(f"{column.name} {column.type}" for column in table.columns)
    lines = [f"  {table.name}", f"    key      {', '.join(table.key)}", f"    columns  {types}"]
    if table.event_time is not None:
        kept = "" if table.retention is None else f", at most {durations.text(table.retention)} older than the newest"
        computed = "" if table.computed_time is None else f" = {table.computed_time}"
        lines += [f"    time     {table.event_time}{computed}{kept}"]
        lines += [] if table.retention is None else [f"    old      {_old(plan, table)}"]
    lines += [f"    versions of {table.versions_of}"] if table.versions_of is not None else []
    lines += [f"    used     {', '.join(table.used) or '(only the key)'}", f"    source   {_source(table.source)}"]
    lines += _promises(table.source) if isinstance(table.source, NamedFields) else []
    return lines + _expected(table)


def _old(plan: Plan, stream: Table) -> str:
    """What becomes of records that no later record can meet."""
    kept = why_kept(plan, stream)
    return "a compaction lets records go that no later one can meet" if kept is None else f"every record stays stored: {kept}"


def _source(source: Source) -> str:
    match source:
        case SnapshotSource():
            own = f", refused if more than {source.max_delete_share:.0%} would be deleted"
        case RecordsSource():
            own = ""
        case FeedSource():
            own = f", {source.dialect}" + (f", only {source.only}" if source.only is not None else "")
        case DebeziumSource():
            units = ", ".join(f"{name} in {unit}" for name, unit in source.units)
            own = (f", topic {source.topic}" if source.topic is not None else "") + (f", {units}" if units else "")
        case ChangesSource():
            own = ""
    if isinstance(source, WithSnapshots):
        own += f", {source.snapshots} snapshots" if source.snapshots is not Snapshots.COMPLETE else ""
        own += ", outputs wait for the end of a snapshot" if source.on_incomplete is OnIncomplete.WAIT else ""
    if isinstance(source, NamedFields) and source.format is not None:
        own += f", {written(source.format)}"
    return f"{source.kind} {source.path}{own}; bad records: {source.on_bad_record}, at most {source.max_bad_share:.0%}"


def _promises(source: NamedFields) -> list[str]:
    """What columns are made of; of changes also what decides about records, and what they never say."""
    made = [f"    {'made of' if not n else '':<9}{name} = {unqualified(sql)}" for n, (name, sql) in enumerate(source.columns)]
    if not isinstance(source, ChangesSource):
        return made
    topic = names_topic(source.path)
    arrival = "of messages in each partition" if topic else "of files by their names, and of records in them"
    order = ", then ".join(map(unqualified, source.order)) or f"{arrival}: nothing in a record says it"
    gone = [] if source.deleted is None else [f"where {unqualified(source.deleted)}"]
    gone += ["by a message without value"] if topic else []
    return [
        f"    order    {order}",
        f"    deleted  {', and '.join(gone) or 'never: the source says of no row that it is gone'}",
        *([] if source.loaded is None else [f"    loaded   where {unqualified(source.loaded)}: another full load stops a run"]),
        *made,
    ]


def written(format_: Format) -> str:
    """How files are written, as a user declares it."""
    if isinstance(format_, InstalledFormat):
        return f"installed_format({', '.join([repr(format_.kind), *(f'{k}={v!r}' for k, v in json.loads(format_.options).items())])})"
    said = [f"{name}={value!r}" for name, value in vars(format_).items() if name != "kind" and value != getattr(type(format_)(), name)]
    return f"{format_.kind}({', '.join(said)})"


def _node(node: Node) -> list[str]:
    lines = [f"  {node.name} ({'output' if node.published else 'intermediate'})", f"    key      {', '.join(node.key)}"]
    lines.append(f"    left     {_view(node.left)}")
    for number, edge in enumerate(node.edges, start=1):
        lines.append(f"    r{number:<8}{_edge(edge, number)}")
    lines += [] if node.grouping is None else _groups(node.grouping)
    lines.append(f"    columns  {_projections(node.columns, 'l')}")
    members = (
        f", or an array had more than {node.policy.max_members:,} elements" if node.grouping is not None and node.grouping.unlimited else ""
    )
    lines.append(
        f"    refresh  {node.policy.refresh}; stops if more than {node.policy.max_change_share:.0%} of the rows would change{members}"
    )
    if node.where is not None:
        lines.append(f"    where    {node.where}")
    lines += [f"    to       {_sink(sink)}" for sink in node.sinks]
    lines += [f"    used     {', '.join(node.used)}"] if node.used else []
    return lines + _expected(node)


def _groups(grouping: Grouping) -> list[str]:
    """What members have in common, and what is made of them."""
    keys, made = ([f"{n} = {sql}" for n, sql in some.items()] for some in grouping.written)
    return [f"    {'group by' if not at else '':<9}{text}" for at, text in enumerate(keys)] + [
        f"    {'made of' if not at else '':<9}{text}" for at, text in enumerate(made)
    ]


def _expected(of: Table | Node) -> list[str]:
    return [f"    expect   {one.title}, else {one.severity}" for one in of.expectations]


def _sink(sink: Sink) -> str:
    return f"{sink.kind} ({sink.name}), {sink.how}; starts with: {sink.start}, catches up with: {sink.catch_up}"


def _edge(edge: Edge, number: int) -> str:
    pairs = zip(edge.foreign_key, edge.on, strict=True)
    condition = " AND ".join(f"{part} = r{number}.`{key}`" for part, key in pairs)
    alias = "" if edge.name == edge.right.table else f" (as {edge.name})"
    return f"{edge.join} {_view(edge.right)}{alias} on {condition}{_time(edge)}"


def _time(edge: Edge) -> str:
    """What a join says about time."""
    match edge.match:
        case Other() as other:
            return f", by {other.kind}"
        case AsOf(left_time=None):
            return ", as of the run that reads the left row"
        case AsOf() as as_of:
            return f", as of {as_of.left_time}"
        case Window() as window:
            reach = f"from {durations.text(window.before)} before to {durations.text(window.after)} after"
            both = " in both streams" if window.each else ""
            alone = "at once" if window.at_once else f"once the window is over{both}, {durations.text(window.lateness)} late at most"
            clock = f", a clock for each {', '.join(window.left_clock)}" if window.left_clock else ""
            waits = "" if edge.kind is JoinKind.INNER else f"; without partner: {alone}{clock}"
            return f", {window.right_time} {reach} {window.left_time}{waits}"
        case _:
            return ""


def _view(view: View) -> str:
    where = f" where {view.where}" if view.where is not None else ""
    return f"{view.table}: {_projections(view.columns, 't')}{where}"


def _projections(columns: tuple[Projection, ...], alias: str) -> str:
    return ", ".join(c.name if c.sql == f"{alias}.`{c.name}`" else f"{c.sql} AS {c.name}" for c in columns)


def _group(number: int, group: tuple[Step, ...]) -> list[str]:
    lines = []
    for index, step in enumerate(group):
        head = f"  {number}." if index == 0 else ""
        lines.append(f"{head:<6}{step.id}" + (f"  after {', '.join(step.after)}" if step.after else ""))
    return lines


# --- mermaid ---------------------------------------------------------------------------------------------------------


def mermaid(plan: Plan) -> str:
    """A Mermaid flowchart: source tables, one subscription table an edge, intermediate nodes, outputs. Ends with a newline."""
    lines = ["flowchart LR"]
    lines += [f"  {_id(table.name)}[({table.name})]" for table in plan.tables]
    nodes = {node.name: node for node in plan.nodes}
    edges = {f"{node.name}.{edge.name}": (node, edge) for node in plan.nodes for edge in node.edges}
    for step in steps(plan):
        if step.verb == Verb.RESPOND:
            node, edge = edges[step.target]
            lines += _mermaid_edge(node, edge)
        elif step.verb == Verb.RESOLVE:
            node = nodes[step.target]
            shape = f"[[{node.name}]]" if node.published else f"[{node.name}]"
            left = "left" if node.grouping is None else "group by"
            lines += [f"  {_id(node.name)}{shape}", f"  {_id(node.left.table)} -->|{left}| {_id(node.name)}"]
            if node.match is not None:
                edge = node.edges[0]
                lines.append(f"  {_id(edge.right.table)} -->|{edge.join}| {_id(node.name)}")
    return "\n".join(lines) + "\n"


def _mermaid_edge(node: Node, edge: Edge) -> list[str]:
    subscriptions = f"s_{node.name}__{edge.name}"
    return [
        f"  {subscriptions}{{{{subscriptions {edge.name}}}}}",
        f"  {_id(node.left.table)} -->|subscribe| {subscriptions}",
        f"  {_id(edge.right.table)} -->|respond| {subscriptions}",
        f"  {subscriptions} -->|{edge.join}| {_id(node.name)}",
    ]


def _id(name: str) -> str:
    """A Mermaid id: words such as ``end`` are reserved, so every name gets a prefix."""
    return f"t_{name}"
