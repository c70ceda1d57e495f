"""A lake whose ledger holds pins of the first version goes on, explains its rows, and takes no file twice."""

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from integration.shop import Shop
from sparkless import no_spark

from rejoin.lake.ledger import schema
from rejoin.steps.run.schedule import run_topology
from rejoin.why.trace import why


def as_it_was(text: str) -> str:
    """A pin as rejoin wrote it before pins had parts."""
    pin: dict[str, Any] | None = json.loads(text)
    if pin is None:
        return text
    files = [{"path": part["id"], "size": part["size"], **part["place"]} for part in pin["parts"]]
    return json.dumps({"kind": pin["kind"], "files": files, **{name: pin[name] for name in ("ordinal", "superseded", "columns")}})


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path)
    made.next_batch()
    run_topology(made.topology(), no_spark, "test")
    engine = sa.create_engine(made.topology().config.ledger)
    with engine.begin() as db:
        for row in db.execute(sa.select(schema.pins)).all():
            at = sa.and_(schema.pins.c.run == row.run, schema.pins.c.source == row.source)
            db.execute(sa.update(schema.pins).where(at).values(pin=as_it_was(row.pin)))
    engine.dispose()
    return made


def test_the_next_run_reads_what_is_new(shop: Shop) -> None:
    shop.next_batch()
    done = run_topology(shop.topology(), no_spark, "test")
    pins = shop.topology().ledger.pins(done.number)
    assert {name: [part["id"] for part in pin["parts"]] for name, pin in pins.items() if pin} == {
        "orders": ["landing/orders/0002.jsonl"],
        "customers": ["landing/customers/0002.csv"],
    }
    assert shop.topology().ledger.last_pin("customers")["ordinal"] == 2  # type: ignore[index]


def test_why_finds_the_record_that_the_old_pin_names(shop: Shop) -> None:
    topology = shop.topology()
    key = next(iter(topology.refs.require("orders", topology.ledger.states(1)["orders"]).scan().to_arrow()["id"].to_pylist()))
    found = why(topology.ledger, topology.refs, topology.access, "orders", (str(key),)).to_dict()
    assert found["record"]["file"] == "landing/orders/0001.jsonl"
