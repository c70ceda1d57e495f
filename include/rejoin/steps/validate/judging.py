"""Rows and tables meet their expectations: what is read for that, and what the answers come to."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rejoin.engines.relation import Engine, Relation
from rejoin.lake import validation_results
from rejoin.lake.read.reader import Reader
from rejoin.limits import limits
from rejoin.plan.model.expectations import Expectation, Level, Severity, Which
from rejoin.plan.model.plan import Node, Plan, Table
from rejoin.statements.dialect import Dialect
from rejoin.statements.own_columns import numbered
from rejoin.statements.relations import foreign_key, seen
from rejoin.steps.validate.great_expectations import Session
from rejoin.steps.validate.questions import (
    MEASURED,
    Answer,
    Question,
    Verdict,
    conditions,
    measure_question,
    reasons,
    row_questions,
    stop_if_needed,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Numbered = list[tuple[int, Expectation]]


class Judging:
    """The expectations of one table or node in one run.

    Args:
        engine: runs the statements.
        of: the table or node.
        run: the run's number.
        results: where the results are kept; None: only in the ledger.
    """

    def __init__(self, engine: Engine, of: Table | Node, run: int, results: Path | None) -> None:
        self._engine, self._of, self._run, self._results = engine, of, run, results
        self._session = Session(validation_results.emptied(results))
        self._verdicts: list[Verdict] = []

    def changed_rows(self, rows: Relation, count: int) -> Relation | None:
        """Judges the rows that the run would change.

        Args:
            rows: one row a key: ``_row``, a struct with all columns.
            count: how many they are, at most.

        Returns:
            The keys of rows to be held back, with ``_reason``; None if there are none.

        Raises:
            ValidationFailed: the run has to stop.
        """
        numbered = [(n, e) for n, e in enumerate(self._of.expectations) if e.asked and e.level is Level.ROW and e.rows is Which.CHANGED]
        if not numbered:
            return None
        shown, here = self._with_conditions(rows, numbered), None
        if limits().small(count):
            here = shown.here()
            answers = self._session.ask_rows("changed rows", here, row_questions(numbered)) if here.num_rows else []
        else:
            answers = self._session.ask_frame("changed rows", self._frame(shown), row_questions(numbered))
        self._judge(answers)
        wanting = {a.number for a in answers if not a.met and self._of.expectations[a.number].severity is Severity.QUARANTINE}
        broken = row_questions([(n, e) for n, e in numbered if n in wanting])
        if not broken:
            return None
        return self._bad_here(here, broken) if here is not None else self._bad(shown, broken)

    def computed(self, bad: int, rows: int) -> None:
        """Judges whether every row could be computed.

        Args:
            bad: how many could not.
            rows: of so many.

        Raises:
            ValidationFailed: these are more than may be held back.
        """
        self._judge([Answer(n, not bad, rows, bad) for n, e in enumerate(self._of.expectations) if not e.asked])

    def table(self, reader: Reader, rows: int, measures: dict[int, float | None]) -> None:
        """Judges the table as it would become.

        Args:
            reader: reads that state.
            rows: how many rows it has, at most.
            measures: number of an expectation -> what it is about, for those that ``measured`` names.

        Raises:
            ValidationFailed: the run has to stop.
        """
        every = list(enumerate(self._of.expectations))
        whole = [(n, e) for n, e in every if (e.level is Level.TABLE or e.rows is Which.ALL) and n not in measures]
        if whole:
            shown = self._with_conditions(reader.current(self._of.name), whole)
            questions = row_questions(whole)
            if limits().small(rows):
                self._judge(self._session.ask_rows("whole table", shown.here(), questions))
            else:
                self._judge(self._session.ask_frame("whole table", self._frame(shown), questions))
        if measures:
            row = pa.table({f"measure_{n}": pa.array([value], pa.float64()) for n, value in measures.items()})
            answers = self._session.ask_rows("measures", row, [measure_question(n, e) for n, e in every if n in measures])
            told = {n: None if value is None else f"{value:.4g}" for n, value in measures.items()}
            self._judge([Answer(a.number, a.met, 1, int(not a.met), told[a.number], a.error) for a in answers])

    def detail(self) -> dict[str, Any]:
        """What the ledger keeps of all that was judged."""
        if not self._verdicts:
            return {}
        report = validation_results.keep(self._results, [v.to_dict() for v in self._verdicts])
        return {"validation": [v.to_dict() for v in self._verdicts], "report": report}

    def _judge(self, answers: Sequence[Answer]) -> None:
        self._verdicts += [Verdict(self._of.expectations[a.number], a) for a in sorted(answers, key=lambda a: a.number)]
        report = validation_results.keep(self._results, [v.to_dict() for v in self._verdicts])
        what = f"{'table' if isinstance(self._of, Table) else 'output'} {self._of.name!r}"
        stop_if_needed(self._verdicts, what, self._run, report)

    def _bad_here(self, rows: pa.Table, questions: list[Question]) -> Relation:
        why = reasons(self._of.expectations, self._session.bad_rows(rows, questions))
        at = sorted(why)
        bad = rows.select(list(self._of.key)).take(at).append_column("_reason", pa.array([why[i] for i in at], pa.string()))
        return self._engine.rows(bad)

    def _bad(self, rows: Relation, questions: list[Question]) -> Relation:
        found = self._session.bad_keys(self._frame(rows), questions, self._of.key)
        keys = list(dict.fromkeys(k for bad in found.values() for k in bad))
        at = {key: i for i, key in enumerate(keys)}
        why = reasons(self._of.expectations, {n: [at[k] for k in bad] for n, bad in found.items()})
        columns = zip(*keys, strict=True) if keys else [()] * len(self._of.key)
        made = [pa.array(values, rows.schema.field(k).type) for k, values in zip(self._of.key, columns, strict=True)]
        return self._engine.rows(
            pa.table([*made, pa.array([why[i] for i in range(len(keys))], pa.string())], names=[*self._of.key, "_reason"])
        )

    def _frame(self, rows: Relation) -> "DataFrame":
        return self._engine.by_spark(f"rows of {self._of.name!r} are judged").frame(rows)

    def _with_conditions(self, rows: Relation, numbered: Numbered) -> Relation:
        """All columns of ``_row``, and what every condition says of it. NaN becomes null: pandas cannot tell them apart, so no engine must."""
        sql, kind = self._engine.sql, rows.schema.field("_row").type
        spoken = dict(zip((n for n, _ in numbered), self._engine.conditions(self._of, [e for _, e in numbered]), strict=True))
        columns = [f"{_value(sql, field)} AS {sql.name(field.name)}" for field in kind]
        made = [f"{text} AS {name}" for name, text in conditions(list(spoken.items())).items()]
        return self._engine.query(f"SELECT {', '.join([*columns, *made])} FROM (SELECT _row AS t FROM rows_)", rows_=rows)


def measured(of: Table | Node) -> Numbered:
    """The expectations that are about a measure of the table."""
    return [(n, e) for n, e in enumerate(of.expectations) if e.type in MEASURED]


def asks_of_rows(of: Table | Node) -> bool:
    """Whether Great Expectations is asked about rows, not about measures alone."""
    return any(e.asked and e.type not in MEASURED for e in of.expectations)


def share_matched(plan: Plan, node: Node, edge_name: str, reader: Reader) -> float | None:
    """The share of a node's left rows that find a right row on an edge; None if there are no left rows."""
    engine, sql = reader.engine, reader.engine.sql
    spoken = engine.node(node)
    edge = next(e for e in spoken.edges if e.name == edge_name)
    key = plan.key_of(edge.right.table)
    keys = numbered("fk", len(key))
    on = " AND ".join(f"{sql.get('l.fk', k)} = r.{k}" for k in keys)
    row = engine.one(
        f"""
WITH views AS (SELECT {seen(sql, spoken.left)} AS l FROM (SELECT _row AS t FROM lefts)),
asking AS (SELECT {foreign_key(sql, edge)} AS fk FROM views WHERE l IS NOT NULL),
known AS (SELECT {sql.names(keys)}, {seen(sql, edge.right)} AS found FROM (SELECT {sql.renamed(key, keys)}, _row AS t FROM rights))
SELECT count(*) AS every, count(r.found) AS matched FROM asking AS l LEFT JOIN known AS r ON {on}""",
        lefts=reader.lefts(node),
        rights=reader.current(edge.right.table),
    )
    return int(str(row["matched"])) / int(str(row["every"])) if row["every"] else None


def hours_since_newest(name: str, column: str, reader: Reader, opened_at: float) -> float | None:
    """The age of a column's newest value when the run was opened; None if there is none."""
    sql = reader.engine.sql
    newest = f"max({sql.get('_row', column)})"
    kind = reader.schema(name).field(column).type
    micros = (
        f"{sql.days(newest)} * 86400000000" if kind == pa.date32() else sql.time_micros(newest, zoned=getattr(kind, "tz", None) is not None)
    )
    found = reader.engine.one(f"SELECT {micros} AS newest FROM current_", current_=reader.current(name))["newest"]
    return None if found is None else (opened_at - int(str(found)) / 1e6) / 3600


def _value(sql: Dialect, field: pa.Field) -> str:
    value = sql.get("t", field.name)
    return f"CASE WHEN NOT isnan({value}) THEN {value} END" if pa.types.is_floating(field.type) else value
