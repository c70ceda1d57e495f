"""Rows and tables meet their expectations: what is read for that, and what the answers come to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StringType, StructField, StructType

from rejoin.lake import probe
from rejoin.lake.local import LocalRows, collected
from rejoin.lake.reader import Reader
from rejoin.plan.model import Node, Plan, Table
from rejoin.plan.rules import Expectation, Level, Rows, Severity
from rejoin.stages.frames import viewed
from rejoin.stages.subscribe import foreign_key
from rejoin.validation import reports
from rejoin.validation.engine import Session
from rejoin.validation.judge import (
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

Numbered = list[tuple[int, Expectation]]


class Judging:
    """The expectations of one table or node in one run.

    Args:
        spark: the session.
        of: the table or node.
        run: the run's number.
        place: where the results are kept; None: only in the ledger.
    """

    def __init__(self, spark: SparkSession, of: Table | Node, run: int, place: Path | None) -> None:
        self._spark, self._of, self._run, self._place = spark, of, run, place
        self._session = Session(reports.emptied(place))
        self._verdicts: list[Verdict] = []

    def changed_rows(self, rows: DataFrame, count: int) -> DataFrame | None:
        """Judges the rows that the run would change.

        Args:
            rows: one row a key: ``_row``, a struct with all columns.
            count: how many they are, at most.

        Returns:
            The keys of rows to be held back, with ``_reason``; None if there are none.

        Raises:
            ValidationFailed: the run has to stop.
        """
        numbered = [(n, e) for n, e in enumerate(self._of.expectations) if _asked(e) and e.level is Level.ROW and e.rows is Rows.CHANGED]
        if not numbered:
            return None
        frame, here = _with_conditions(rows, numbered), None
        if count <= probe.LOCAL_ROWS:
            here = collected(frame)
            answers = self._session.ask_rows("changed rows", here.arrow, row_questions(numbered)) if here.arrow.num_rows else []
        else:
            answers = self._session.ask_frame("changed rows", frame, row_questions(numbered))
        self._judge(answers)
        wanting = {a.number for a in answers if not a.met and self._of.expectations[a.number].severity is Severity.QUARANTINE}
        broken = row_questions([(n, e) for n, e in numbered if n in wanting])
        if not broken:
            return None
        return self._bad_here(here, broken) if here is not None else self._bad(frame, broken)

    def computed(self, bad: int, rows: int) -> None:
        """Judges whether every row could be computed.

        Args:
            bad: how many could not.
            rows: of so many.

        Raises:
            ValidationFailed: these are more than may be held back.
        """
        self._judge([Answer(n, not bad, rows, bad) for n, e in enumerate(self._of.expectations) if not _asked(e)])

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
        whole = [(n, e) for n, e in every if (e.level is Level.TABLE or e.rows is Rows.ALL) and n not in measures]
        if whole:
            frame = _with_conditions(reader.current(self._of.name), whole)
            questions = row_questions(whole)
            if rows <= probe.LOCAL_ROWS:
                self._judge(self._session.ask_rows("whole table", collected(frame).arrow, questions))
            else:
                self._judge(self._session.ask_frame("whole table", frame, questions))
        if measures:
            row = pa.table({f"measure_{n}": pa.array([value], pa.float64()) for n, value in measures.items()})
            answers = self._session.ask_rows("measures", row, [measure_question(n, e) for n, e in every if n in measures])
            told = {n: None if value is None else f"{value:.4g}" for n, value in measures.items()}
            self._judge([Answer(a.number, a.met, 1, int(not a.met), told[a.number], a.error) for a in answers])

    def detail(self) -> dict[str, Any]:
        """What the ledger keeps of all that was judged."""
        if not self._verdicts:
            return {}
        report = reports.keep(self._place, self._verdicts)
        return {"validation": [v.to_dict() for v in self._verdicts], "report": report}

    def _judge(self, answers: Sequence[Answer]) -> None:
        self._verdicts += [Verdict(self._of.expectations[a.number], a) for a in sorted(answers, key=lambda a: a.number)]
        report = reports.keep(self._place, self._verdicts)
        what = f"{'table' if isinstance(self._of, Table) else 'output'} {self._of.name!r}"
        stop_if_needed(self._verdicts, what, self._run, report)

    def _bad_here(self, rows: LocalRows, questions: list[Question]) -> DataFrame:
        why = reasons(self._of.expectations, self._session.bad_rows(rows.arrow, questions))
        at = sorted(why)
        bad = rows.arrow.select(list(self._of.key)).take(at).append_column("_reason", pa.array([why[i] for i in at], pa.string()))
        return LocalRows(bad, self._reasoned(rows.schema)).frame(self._spark)

    def _bad(self, frame: DataFrame, questions: list[Question]) -> DataFrame:
        found = self._session.bad_keys(frame, questions, self._of.key)
        keys = list(dict.fromkeys(k for bad in found.values() for k in bad))
        at = {key: i for i, key in enumerate(keys)}
        why = reasons(self._of.expectations, {n: [at[k] for k in bad] for n, bad in found.items()})
        return self._spark.createDataFrame([(*key, why[i]) for i, key in enumerate(keys)], self._reasoned(frame.schema))

    def _reasoned(self, schema: StructType) -> StructType:
        return StructType([*(schema[k] for k in self._of.key), StructField("_reason", StringType())])


def _asked(one: Expectation) -> bool:
    """Whether Great Expectations is asked: of what cannot be computed there is nothing to look at."""
    return one.type != "computable"


def measured(of: Table | Node) -> Numbered:
    """The expectations that are about a measure of the table."""
    return [(n, e) for n, e in enumerate(of.expectations) if e.type in MEASURED]


def share_matched(plan: Plan, node: Node, edge_name: str, reader: Reader) -> float | None:
    """The share of a node's left rows that find a right row on an edge; None if there are no left rows."""
    edge = next(e for e in node.edges if e.name == edge_name)
    lefts = viewed(reader.lefts(node), "_row", node.left, "l").where("l IS NOT NULL")
    rights = viewed(reader.current(edge.right.table), "_row", edge.right, "right").where("right IS NOT NULL")
    asked = lefts.withColumn("fk", F.expr(foreign_key(edge)))
    on = [F.col(f"l.fk.fk_{i}") == F.col(f"r.`{k}`") for i, k in enumerate(plan.key_of(edge.right.table), start=1)]
    met = asked.alias("l").join(rights.withColumn("_found", F.lit(1)).alias("r"), on=on, how="left")
    row = met.agg(F.count(F.lit(1)).alias("all"), F.count("_found").alias("found")).first()
    assert row is not None
    return row["found"] / row["all"] if row["all"] else None


def hours_since_newest(name: str, column: str, reader: Reader, opened_at: float) -> float | None:
    """The age of a column's newest value when the run was opened; None if there is none."""
    row = reader.current(name).agg(F.max(F.col(f"_row.`{column}`")).cast("double").alias("newest")).first()
    return None if row is None or row["newest"] is None else (opened_at - row["newest"]) / 3600


def _with_conditions(rows: DataFrame, numbered: Numbered) -> DataFrame:
    """All columns of ``_row``, and what every condition says of it. NaN becomes null: pandas cannot tell them apart, so Spark must not."""
    kind = rows.schema["_row"].dataType
    assert isinstance(kind, StructType)
    columns = [F.col(f"t.`{f.name}`") if f.dataType not in (DoubleType(), FloatType()) else _number(f.name) for f in kind.fields]
    made = [F.expr(sql).alias(name) for name, sql in conditions(numbered).items()]
    return rows.select(F.col("_row").alias("t")).select(*columns, *made)


def _number(name: str) -> Column:
    column = F.col(f"t.`{name}`")
    return F.when(~F.isnan(column), column).alias(name)
