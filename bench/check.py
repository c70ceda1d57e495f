"""Does every engine come to the same result? One small curve, then count and checksum of each engine's live rows."""

import duckdb
import pyarrow as pa
from curve import Curve
from measure import CONSOLE
from work import COLUMNS


def differences(curve: Curve) -> list[str]:
    """Names of the engines whose result differs from a recomputation in DuckDB; prints them all."""
    curve.work.refresh()
    for full in curve.full:
        full.clear()
        full.recompute()
    results = {engine.name: fingerprint(engine.result()) for engine in (*curve.full, *curve.engines)}
    right = results["duckdb full"]
    for name, found in results.items():
        CONSOLE.print(f"{name:26} {found[0]:,} rows, checksum {found[1]}: {'the same' if found == right else 'DIFFERENT'}", highlight=False)
    return [name for name, found in results.items() if found != right]


def fingerprint(rows: pa.Table) -> tuple[int, int]:
    """Count and checksum of rows, whatever their order."""
    with duckdb.connect() as db:
        db.register("rows", rows)
        values = ", ".join(f"{c}::VARCHAR" for c in COLUMNS["enriched"])
        found = db.execute(f"SELECT count(*), coalesce(sum(hash({values})), 0)::VARCHAR FROM rows").fetchone()
    assert found is not None
    return found[0], int(found[1])
