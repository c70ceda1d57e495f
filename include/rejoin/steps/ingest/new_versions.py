"""ingest, its second half: what the new versions of a source table come to is judged, written and counted."""

from dataclasses import replace
from pathlib import Path

from rejoin.context.outcome import Outcome
from rejoin.context.work import Cut, Work
from rejoin.engines.relation import KeySpread, LocalRelation, Relation
from rejoin.lake import table_names
from rejoin.lake.ledger.records import Write
from rejoin.limits import limits
from rejoin.plan.model.expectations import Level, Which, of_level
from rejoin.plan.model.plan import Table
from rejoin.plan.model.step_results import Ingested
from rejoin.statements.dialect import counted, text
from rejoin.statements.own_columns import RECONCILED
from rejoin.steps.ingest import held_versions as hold
from rejoin.steps.ingest import statements
from rejoin.steps.ingest.event_counts import EventCounts, RecordCount
from rejoin.steps.ingest.fates import Fate
from rejoin.steps.ingest.raw_records import raw_of
from rejoin.steps.ingest.record_checks import check_any_applied, check_conservation, check_policy
from rejoin.steps.validate.judging import Judging


class Storing:
    """What one attempt to ingest a source table leaves behind.

    Args:
        work: what the attempt works with.
        table: the source table.
        cut: what the run reads of it.
        results: where the results of the table's validation are kept; None: only in the ledger.
    """

    def __init__(self, work: Work, table: Table, cut: Cut, results: Path | None) -> None:
        self._work, self._facts, self._table, self._cut, self._results = work, work.facts, table, cut, results
        self._engine, self._sql = work.engine, work.engine.sql
        self._judge: Judging | None = None
        self._held_rows, self._again = work.facts.held(table), work.facts.judged_again(table)

    def store(self, made: Relation, kinds: EventCounts, refused: Relation, spread: KeySpread, held: Relation | None) -> Outcome[Ingested]:
        """Judges the new versions and appends those that pass; appends what is kept aside; counts every record's fate and checks that none is lost (I4).

        Args:
            made: what ``ingest.versions`` gives.
            kinds: counts of the cut.
            refused: records that could not be decoded.
            spread: how the keys of ``made`` lie, and how many rows it has at most.
            held: what the quarantine table holds back of the keys of this cut.
        """
        if not of_level(self._table.expectations, Level.ROW, Which.CHANGED):
            return self._append(made, kinds, refused, spread, held)
        small = limits().small(spread.rows)
        with self._engine.kept(LocalRelation(made.here()) if small else made) as kept:
            judging = self.judging()
            bad = judging.changed_rows(self._engine.query(hold.new_rows(self._sql, self._table), made=kept), spread.rows)
            marked = kept
            if bad is not None:
                statement = hold.held_back(self._sql, self._table, kept.columns)
                marked = self._engine.query(statement, made=kept, bad=self._engine.everywhere(bad))
            return replace(self._append(marked, kinds, refused, spread, held), detail=judging.detail())

    def write(self, made: Relation, spread: KeySpread) -> tuple[Ingested, int, Write]:
        """Appends the new versions, and counts the fate of every record among them, what changes, and the lines of what is refused."""
        effective = "(_op IN ('I', 'U') OR (_op = 'D' AND _before IS NOT NULL))"
        conditions = {str(fate): f"_real AND _fate = {text(fate)}" for fate in Fate} | {
            "changes": effective,
            "deleted": f"{effective} AND _op = 'D'",
            "implied": f"{effective} AND NOT _real",
            "reconciled": f"{effective} AND NOT _real AND _version LIKE {text(f'%{RECONCILED}_%')}",
            "live": f"_alive AND _fate IN ({text(Fate.APPLIED)}, {text(Fate.NOOP)})",
        }
        bad = f"coalesce(sum(CASE WHEN _real AND _fate = {text(Fate.QUARANTINED)} THEN _lines END), 0)"
        stored = self._engine.query(statements.table_rows(self._sql, self._table, self._facts.run.number), made=made)
        observed, seen = self._engine.counted(stored, {**counted(conditions), "bad_lines": bad})
        rows = self._engine.picked(observed, statements.appended(self._table), statements.APPENDED)
        rows = self._engine.ranged(self._engine.small(rows, spread.rows), self._table.order, spread)
        write = self._work.writer.append(self._table.name, rows, self._table.order)
        counts = {k: int(v) for k, v in seen().items()}
        bad_lines = counts.pop("bad_lines")
        return Ingested.of(counts), bad_lines, write

    def accounted(self, fates: Ingested, kinds: EventCounts) -> Ingested:
        """The result of the step: the fates of ``write``, and of the records that never came so far."""
        quarantined = fates.quarantined + kinds.quarantined
        done = replace(fates, read=kinds.read, skipped=kinds.skipped, truncates=kinds.truncates, quarantined=quarantined)
        check_conservation(self._table.name, done, self._facts.run.number)
        return done

    def _append(self, made: Relation, kinds: EventCounts, refused: Relation, spread: KeySpread, held: Relation | None) -> Outcome[Ingested]:
        fates, late_lines, write = self.write(made, spread)
        late, writes = fates.quarantined, [write]
        done = self.accounted(fates, kinds)
        judged = self._engine.query(f"SELECT * FROM made WHERE {statements.COUNTED['_real']}", made=made)
        if done.quarantined:
            bad = self._bad(refused, judged) if late else refused
            all_bad = RecordCount(done.quarantined, kinds.quarantined_lines + late_lines)
            check_policy(self._engine, self._table, kinds.whole, all_bad, bad, self._facts.run.number)
            check_any_applied(self._engine, self._table, done, bad, self._facts.run.number)
        if done.quarantined or held is not None or self._again:
            inputs = {"refused": refused, "judged": self._as_written(judged) if late else judged, "made": made}
            statement = hold.records_aside(self._sql, self._table, self._facts.run.number, held=held is not None)
            aside = self._engine.query(statement, **inputs, **({} if held is None else {"held": held}))
            at_most = done.quarantined + self._held_rows
            writes.append(
                self._work.writer.append(table_names.quarantine(self._table.name), self._engine.small(aside, at_most), self._table.key)
            )
        return Outcome(done, tuple(writes))

    def _bad(self, refused: Relation, judged: Relation) -> Relation:
        """Where and why records of the cut are refused: those that could not be decoded, and those that were refused later."""
        where = "SELECT _code, _file, _line, _reason FROM"
        late = f"{where} judged WHERE _fate = {text(Fate.QUARANTINED)}"
        return self._engine.query(f"{where} refused UNION ALL {late}", refused=refused, judged=judged)

    def _as_written(self, judged: Relation) -> Relation:
        """The records of the cut that were refused after they were decoded, with their text."""
        bad = self._engine.query(f"SELECT * FROM judged WHERE _fate = {text(Fate.QUARANTINED)}", judged=judged)
        places = self._engine.query("SELECT _file, _line FROM bad", bad=bad)
        texts = raw_of(self._engine, self._table, self._cut.given, self._cut.access, places)
        line = ", ".join("t._raw AS _raw" if c == "_raw" else f"b.{self._sql.name(c)}" for c in bad.columns)
        met = f"SELECT {line} FROM bad AS b LEFT JOIN texts AS t ON b._file = t._file AND b._line = t._line"
        written = self._engine.query(met, bad=bad, texts=texts)
        # Put off, Spark 4.1 loses the texts in the union with the records that could not be decoded.
        return written if self._engine.in_process else self._engine.rows(written.here(), many=True)

    def judging(self) -> Judging:
        """One for the table's rows and the table, so that the results are kept together."""
        if self._judge is None:
            self._judge = Judging(self._engine, self._table, self._facts.run.number, self._results)
        return self._judge
