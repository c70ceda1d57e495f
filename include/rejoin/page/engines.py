"""Who did a step, or the steps of a run, in words. Pure."""

from rejoin.lake.ledger.history import RunLine
from rejoin.lake.ledger.records import StepRecord
from rejoin.report.history import many


def of_step(record: StepRecord) -> str:
    """Who did a step: the process, a task of Spark, or Spark SQL with so many jobs (which a Spark Connect server does not tell)."""
    made_by = record.detail.get("engine")
    if made_by in ("local", "task"):
        return "process" if made_by == "local" else "Spark task"
    if record.jobs is None:
        return "Spark SQL"
    return f"Spark SQL, {many(record.jobs, 'job')}" if record.jobs or made_by == "spark" else ""


def of_run(line: RunLine) -> str:
    """Who did the steps of a run, in short; empty: nobody had to."""
    records = [s.record for s in line.steps]
    found = {of_step(r).partition(" ")[0] for r in records}
    jobs = None if any(r.jobs is None for r in records) else sum(r.jobs or 0 for r in records)
    spark = f"Spark, {many(jobs, 'job')}" if jobs else "Spark"
    return " and ".join(said for name, said in (("process", "process"), ("Spark", spark)) if name in found)
