"""A lake as runs leave it, made without Spark: two committed runs of a shop, one by a DAG, and a third that failed half-way."""

from pathlib import Path

import pyarrow as pa

from rejoin import Topology, debezium, snapshot
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import StepRecord, Write
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan

NASTY = "<script>alert('x')</script>"
SUBSCRIPTIONS = "enriched__subscriptions__customers"
DAG_RUN = "manual__2026-11-21T10:00:00+00:00"

_VALUES = pa.struct([("customer_id", pa.int64()), ("note", pa.string())])
_ROW = pa.struct([("id", pa.int64()), ("note", pa.string()), ("customer", pa.string())])
REFUSED = ("id", "_run", "_op", "_code", "_reason", "_source_file", "_line", "_raw")
SCHEMAS = {
    "orders": pa.schema(
        [
            ("id", pa.int64()),
            ("_run", pa.int64()),
            ("_op", pa.string()),
            ("customer_id", pa.int64()),
            ("note", pa.string()),
            ("_before", _VALUES),
            ("_version", pa.string()),
            ("_hash", pa.binary()),
        ]
    ),
    "orders__quarantine": pa.schema([(n, pa.int64() if n in ("_run", "_line") else pa.string()) for n in (*REFUSED, "_version")]),
    SUBSCRIPTIONS: pa.schema([("fk_1", pa.int64()), ("pk_1", pa.int64()), ("_run", pa.int64()), ("_op", pa.string())]),
    "enriched": pa.schema(
        [("id", pa.int64()), ("note", pa.string()), ("customer", pa.string()), ("_run", pa.int64()), ("_hash", pa.binary())]
    ),
    "enriched__changes": pa.schema([("_run", pa.int64()), ("_op", pa.string()), ("id", pa.int64()), ("_before", _ROW), ("_after", _ROW)]),
}


def plan() -> Plan:
    shop = Topology("shop")
    orders = shop.table("orders", key="id", schema="id BIGINT, customer_id BIGINT, note STRING", source=debezium("landing/orders"))
    customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers"))
    orders.left_join(customers, foreign_key="customer_id", select=["left.id", "note", "right.name AS customer"]).named("enriched")
    return compile(shop)


def prints() -> dict[str, str]:
    return {n.name: fingerprint(plan(), n) for n in plan().nodes}


def make(root: Path) -> str:
    """Makes the lake; returns its location."""
    location = str(root / "lake")
    config = lake_config(location)
    ledger, refs = Ledger(config.ledger, "shop"), Refs(config, "shop")
    refs.ensure_namespace()
    for name, schema in SCHEMAS.items():
        refs.create(name, schema, {})
    _first(ledger, refs)
    _second(ledger, refs)
    third = ledger.open("process:elsewhere:1:2.0", plan(), prints())
    ledger.register(third.number, StepRecord("cut", {"files": 0, "bytes": 0}, 0.1, 0), "a", ())
    ledger.fail(third.number, f"SOURCE_CORRUPT {NASTY}")
    return location


def append(refs: Refs, table: str, rows: list[dict[str, object]]) -> Write:
    """One more snapshot of a table."""
    found = refs.table(table)
    assert found is not None
    found.append(pa.Table.from_pylist(rows, SCHEMAS[table]))
    written = refs.table(table)
    assert written is not None
    current = written.current_snapshot()
    assert current is not None
    return Write(table, current.snapshot_id)


def _first(ledger: Ledger, refs: Refs) -> None:
    run = ledger.open("process:here:1:2.0", plan(), prints())
    file = {"path": "landing/orders/1.jsonl", "size": 2048, "sha256": "s"}
    pin = {"kind": "debezium", "files": [file], "ordinal": 1, "superseded": 0, "columns": []}
    ledger.pin(run.number, {"orders": pin, "customers": None})
    ledger.register(run.number, StepRecord("cut", {"files": 1, "bytes": 2048}, 0.1, 0), "a", ())
    orders = [{"id": i, "_run": 1, "_op": "U", "customer_id": 7 if i < 4 else i, "note": "first"} for i in range(1, 7)]
    wrote = append(refs, "orders", orders)
    bad = append(
        refs,
        "orders__quarantine",
        [{"_run": 1, "_code": "VALUE_TYPE", "_reason": "no BIGINT", "_source_file": "1.jsonl", "_line": 3, "_raw": NASTY}],
    )
    counts = {"read": 7, "applied": 6, "quarantined": 1, "changes": 6}
    ledger.register(run.number, StepRecord("ingest.orders", counts, 1.5, 3), "a", (wrote, bad))
    sent = append(refs, SUBSCRIPTIONS, [{"fk_1": o["customer_id"], "pk_1": o["id"], "_run": 1, "_op": "S"} for o in orders])
    ledger.register(run.number, StepRecord("subscribe.enriched", {"subscribed": 6}, 0.5, None), "a", (sent,))
    rows = [{"id": o["id"], "note": "first", "customer": None, "_run": 1} for o in orders]
    made = append(refs, "enriched", rows)
    after = [{"_run": 1, "_op": "I", "id": r["id"], "_before": None, "_after": {k: r[k] for k in ("id", "note", "customer")}} for r in rows]
    detail = {"refresh": "full", "why": "the definition is new", "reads": [{"table": "orders", "path": "scan", "why": "all", "rows": None}]}
    counts = {"inserted": 6, "updated": 0, "deleted": 0, "changes": 6}
    changed = append(refs, "enriched__changes", after)
    ledger.register(run.number, StepRecord("resolve.enriched", counts, 2.0, 4, detail), "a", (made, changed))
    verdict = {"expectation": f"note is not {NASTY}", "severity": "warn", "met": False, "checked": 6, "unexpected": 2}
    judged = {"validation": [verdict], "report": "validation/shop/1/enriched/result.json"}
    ledger.register(run.number, StepRecord("validate.enriched", counts | {"held_back": 0}, 0.3, 0, judged), "a", ())
    ledger.publish(run.number)


def _second(ledger: Ledger, refs: Refs) -> None:
    """Order 1 gets another note, order 2 is deleted."""
    run = ledger.open(f"airflow:shop_dag:{DAG_RUN}", plan(), prints())
    ledger.pin(run.number, {"orders": None, "customers": None})
    ledger.register(run.number, StepRecord("cut", {"files": 0, "bytes": 0}, 0.1, 0), "a", ())
    before = {"customer_id": 7, "note": "first"}
    versions = [
        {"id": 1, "_run": 2, "_op": "U", "customer_id": 7, "note": NASTY, "_before": before},
        {"id": 2, "_run": 2, "_op": "D", "_before": before},
    ]
    wrote = append(refs, "orders", versions)
    freed = append(refs, "orders__quarantine", [{"id": "1", "_run": 2, "_op": "R", "_code": "EXPECTATION"}])
    ledger.register(
        run.number, StepRecord("ingest.orders", {"read": 2, "applied": 2, "quarantined": 0, "changes": 2}, 0.2, 1), "a", (wrote, freed)
    )
    gone = append(refs, SUBSCRIPTIONS, [{"fk_1": 7, "pk_1": 2, "_run": 2, "_op": "D"}])
    ledger.register(run.number, StepRecord("subscribe.enriched", {"unsubscribed": 1}, 0.5, 1), "a", (gone,))
    rows = {n: {"id": 1, "note": n, "customer": None} for n in ("first", NASTY)}
    changes = append(
        refs,
        "enriched__changes",
        [
            {"_run": 2, "_op": "U", "id": 1, "_before": rows["first"], "_after": rows[NASTY]},
            {"_run": 2, "_op": "D", "id": 2, "_before": {"id": 2, "note": "first", "customer": None}},
        ],
    )
    counts = {"inserted": 0, "updated": 1, "deleted": 1, "changes": 2}
    ledger.register(
        run.number, StepRecord("resolve.enriched", counts, 0.4, 2, {"refresh": "incremental", "why": "2 rows"}), "a", (changes,)
    )
    ledger.publish(run.number)
