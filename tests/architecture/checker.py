"""The architecture as data, and a checker that reads source text; nothing here imports the project.

ruff says the same more coarsely while one types (pyproject.toml, TID251 and TID253): it lifts all bans of a file at once.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
PACKAGE = "include/rejoin"


STATEMENTS = (
    "statements",
    *("steps/resolve/statements.py", "steps/validate/held_rows.py"),
    *(f"steps/ingest/{file}.py" for file in ("statements", "stream_records", "held_versions", "fates")),
)
"""Where statements are, beside those of the joins."""
FOUND = (
    *("kind", "registry", "time_spans", "foreign_key/right_rows"),
    *(f"{kind}/changes" for kind in ("as_of", "foreign_key", "group", "outer", "same_key", "window")),
)
"""Modules of the joins that say how a run uses statements; all others are statements."""


@dataclass(frozen=True)
class ImportRule:
    """Files under one of ``where`` do not import any of ``never``."""

    where: tuple[str, ...]
    never: tuple[str, ...]
    because: str
    anywhere: bool = True
    """False: imports inside functions, and those for type checkers only, are allowed."""
    but: tuple[str, ...] = ()
    """Files that the rule is not about."""


ROOMS = (
    *("cli", "demo", "airflow", "page", "replay", "testing", "project", "report"),
    *("operate", "why", "discover", "doctor"),
    *("steps", "joins", "context"),
    *("capture", "connect", "sinks", "lake", "sources"),
    *("engines", "statements"),
    *("failures", "plan", "declare", "errors", "deployed"),
)
"""The rooms of the package, from top to bottom: imports, of any kind, lead down. How a row passes: steps, joins, lake, engines."""

IMPORT_RULES = (
    ImportRule(
        (*(f"{PACKAGE}/{place}" for place in STATEMENTS), f"{PACKAGE}/joins"),
        ("airflow", "duckdb", "pyiceberg", "pyspark", "sqlalchemy", "rejoin.context", "rejoin.engines", "rejoin.lake", "rejoin.sinks"),
        "statements are text: a plan in, SQL out; engines run them",
        but=tuple(f"{PACKAGE}/joins/{file}.py" for file in FOUND),
    ),
    ImportRule(
        (f"{PACKAGE}/joins",),
        ("airflow", "pyiceberg", "pyspark", "rejoin.sinks"),
        "a join is found by statements and by lookups, whoever runs them",
    ),
    ImportRule(
        (f"{PACKAGE}/sources", f"{PACKAGE}/sinks", f"{PACKAGE}/lake"),
        ("airflow",),
        "storage does not know who uses it",
    ),
    ImportRule(
        (f"{PACKAGE}/engines",),
        ("airflow", "pyiceberg"),
        "an engine runs what it is given",
        but=(f"{PACKAGE}/engines/object_stores.py", f"{PACKAGE}/engines/iceberg_nulls.py"),
    ),
    ImportRule(
        (f"{PACKAGE}/steps", f"{PACKAGE}/context", f"{PACKAGE}/engines/duckdb_engine.py", f"{PACKAGE}/engines/placement.py"),
        ("pandas", "pyspark"),
        "a step that this process does starts without Spark",
        anywhere=False,
    ),
    ImportRule(
        (f"{PACKAGE}/declare", f"{PACKAGE}/plan", f"{PACKAGE}/__init__.py"),
        ("airflow", "pandas", "pyiceberg", "pyspark"),
        "a plan is data that is built without Spark, Airflow or a lake",
    ),
    ImportRule(
        ("dags", "plugins", f"{PACKAGE}/airflow"),
        ("great_expectations", "pandas", "pyspark"),
        "Airflow parses these files every few seconds, in under one",
        anywhere=False,
    ),
    ImportRule(
        (f"{PACKAGE}/page",),
        ("great_expectations", "pyspark", "rejoin.joins", "rejoin.sinks", "rejoin.sources", "rejoin.statements", "rejoin.steps"),
        "the page reads the ledger and Iceberg's tables, never Spark",
    ),
    ImportRule((f"{PACKAGE}/why",), ("airflow", "pyspark", "rejoin.sinks", "rejoin.steps"), "where a row comes from is told without Spark"),
    ImportRule(
        (f"{PACKAGE}/page",),
        ("airflow", "fastapi", "starlette"),
        "pages are made without a server: routes.py alone knows Airflow",
        but=(f"{PACKAGE}/page/routes.py",),
    ),
)

CLIENTS = ("confluent_kafka", "opensearchpy", "psycopg")
CLIENTS_RULE = "only sinks/ talks to Kafka, OpenSearch and PostgreSQL as sinks, and to Kafka as a source only sources/transports/kafka/"
OF_TOPICS = f"{PACKAGE}/sources/transports/kafka"
CAPTURING = ("adbc_driver_manager", "adbc_driver_postgresql", "psycopg2")
CAPTURING_RULE = "only capture/ reads PostgreSQL's log and tables"
ENGINE = f"{PACKAGE}/steps/validate/great_expectations.py"
ENGINE_RULE = "only steps/validate/great_expectations.py imports Great Expectations, inside functions: it takes five seconds"

STORAGE = (
    *(f"{PACKAGE}/{room}" for room in ("lake", "sources", "sinks")),
    *(f"{PACKAGE}/engines/{file}.py" for file in ("iceberg_nulls", "object_stores", "spark/engine")),
    f"{PACKAGE}/operate/verify/recomputation.py",
)
"""What reads or writes tables and files with Spark or PyIceberg: the storage, the engine that hands statements to Spark, and what outputs are compared
with, which is computed by Spark alone."""
STORAGE_RULE = "only lake/, sources/ and sinks/ touch storage"
FACES = frozenset(f"{kind}Relation" for kind in ("Counted", "Deferred", "Kept", "Local", "Picked", "SmallDeferred", "Spark")) | {
    "DuckdbEngine",
    "SparkEngine",
    "TaskEngine",
}
FACES_RULE = "what a relation or an engine is, it says itself: Relation.local, Engine.in_process, Engine.by_spark"

SESSIONS = frozenset({"session", "spark"})
OF_A_SESSION = frozenset(
    {"read", "readStream", "sql", "table"}
)  # only of a session: sqlglot's expression.sql() and a file's read() are something else
OF_A_FRAME = frozenset({"write", "writeStream"})  # a frame's write is no call (frame.write.parquet(...)), a file's is
ALWAYS_STORAGE = frozenset({"insertInto", "saveAsTable", "writeTo"})


def violations(path: str, source: str) -> list[str]:
    """All breaches of the rules in one file, as ``path:line ...: reason``; ``path`` is relative to the project."""
    tree = ast.parse(source, path)
    everywhere = list(imports_of(tree))
    found = [
        f"{path}:{line} imports {name}: {rule.because}"
        for rule in IMPORT_RULES
        if _within(path, rule.where) and not _within(path, rule.but)
        for line, name in (everywhere if rule.anywhere else _imports_when_loaded(tree))
        if _matches(name, rule.never)
    ]
    if not _within(path, (f"{PACKAGE}/sinks",)):
        banned = tuple(client for client in CLIENTS if client != "confluent_kafka" or not _within(path, (OF_TOPICS,)))
        found += [f"{path}:{line} imports {name}: {CLIENTS_RULE}" for line, name in everywhere if _matches(name, banned)]
    if not _within(path, (f"{PACKAGE}/capture",)):
        found += [f"{path}:{line} imports {name}: {CAPTURING_RULE}" for line, name in everywhere if _matches(name, CAPTURING)]
    if not _within(path, STORAGE):
        found += [f"{path}:{line} imports {name}: {STORAGE_RULE}" for line, name in everywhere if _matches(name, ("pyiceberg",))]
        found += [f"{path}:{line} uses {used}: {STORAGE_RULE}" for line, used in _storage_uses(tree)]
    if not _within(path, (f"{PACKAGE}/engines",)):
        found += [f"{path}:{line} asks whether something is a {name}: {FACES_RULE}" for line, name in _faces_asked_for(tree)]
    known = _imports_when_loaded(tree) if path == ENGINE else everywhere
    found += [f"{path}:{line} imports {name}: {ENGINE_RULE}" for line, name in known if _matches(name, ("great_expectations",))]
    return list(dict.fromkeys(found))


def project_files() -> list[Path]:
    """Every Python file that the rules are about."""
    return sorted(path for folder in (PACKAGE, "dags", "jobs", "plugins") for path in (ROOT / folder).rglob("*.py"))


def _within(path: str, places: tuple[str, ...]) -> bool:
    return any(PurePosixPath(path).is_relative_to(place) for place in places)


def _matches(name: str, banned: tuple[str, ...]) -> bool:
    return any(name == ban or name.startswith(f"{ban}.") for ban in banned)


def imports_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that is imported anywhere in a file."""
    for node in ast.walk(tree):
        yield from _imported(node)


def _imported(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Import):
        yield from ((node.lineno, alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _imports_when_loaded(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Imports that run when the file is loaded: not those in functions, nor in ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield from _imported(node)
        yield from _imports_when_loaded(node)


def _storage_uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    continued = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        of_a_session = node.attr in OF_A_SESSION and _last_name(node.value).strip("_") in SESSIONS
        of_a_frame = node.attr in OF_A_FRAME and id(node) in continued
        if of_a_session or of_a_frame or node.attr in ALWAYS_STORAGE:
            yield node.lineno, ast.unparse(node)


def _faces_asked_for(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            yield from ((node.lineno, name) for part in ast.walk(node.args[1]) if (name := getattr(part, "id", "")) in FACES)


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
        case _:
            return ""
