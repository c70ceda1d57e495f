"""`rejoin repair`: what verify finds wrong is recomputed from what is stored, the rest is left alone."""

from pathlib import Path

import psycopg
import pytest
from integration.by_hand import edit, with_value, without
from integration.conftest import Sessions
from integration.texts import Lake
from limited import limited
from psycopg.rows import dict_row

from rejoin.errors import ChangeTooLarge
from rejoin.operate.compact import compact
from rejoin.operate.repair import Repaired, repair

pytestmark = pytest.mark.slow

SHOP = """
orders = t.table("orders", key="id", schema="id BIGINT, customer BIGINT, note STRING", source=snapshot("orders"))
customers = t.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("customers"))
enriched = orders.left_join(customers, "customer", select=["left.id", "left.note", "right.name"]).named("enriched"{options})
known = enriched.filter("name IS NOT NULL").select(["id", "{name} AS name"]).named("known")
customers.select(["*"]).named("people")
"""
ORDERS = "id,customer,note\n1,1,a\n2,2,b\n3,1,c\n4,,d\n5,2,e\n"


class Shop(Lake):
    """Two tables, their join, an output that is made of it and one that is not."""

    def __init__(self, root: Path, sessions: Sessions, options: str = "") -> None:
        self._options = options
        super().__init__(root, sessions, self._text("name"))
        self.land("orders/1.csv", ORDERS)
        self.land("customers/1.csv", "id,name\n1,Ann\n2,Bob\n")
        self.run()

    def deliver_to(self, table: str) -> None:
        self.declare(self._text("name") + f"enriched.to(postgres({table!r}))\n")

    def redefine_known(self) -> None:
        self.declare(self._text("upper(name)"))

    def repair(self, *, fast: bool = True) -> Repaired:
        topology = self.topology
        return repair(topology, lambda: self._sessions(topology), f"repair {len(topology.ledger.runs())}", fast=fast)

    def runs(self) -> int:
        return len(self.topology.ledger.runs())

    def outputs(self) -> list[dict[object, dict[str, object]]]:
        return [self.rows(name) for name in ("enriched", "known", "people")]

    def _text(self, name: str) -> str:
        return SHOP.replace("{name}", name).replace("{options}", self._options)


def found(differences: object) -> dict[str, int]:
    return {d.node: d.total for d in differences}  # type: ignore[attr-defined]


def changes(done: Repaired, output: str) -> tuple[int, int, int]:
    counts = done.steps[f"validate.{output}"].counts
    return counts["inserted"], counts["updated"], counts["deleted"]


def test_what_is_wrong_is_recomputed_and_nothing_else_and_new_input_waits_for_the_next_run(tmp_path: Path, sessions: Sessions) -> None:
    shop = Shop(tmp_path, sessions, ', refresh="incremental_strict"')
    before = shop.outputs()
    edit(shop.topology, "enriched", without(1))
    edit(shop.topology, "enriched", with_value(2, name="Eve", _hash=b"another"))
    edit(shop.topology, "enriched", lambda rows: [*rows, {**rows[0], "id": 99}])
    shop.land("orders/2.csv", ORDERS + "6,1,f\n")
    done = shop.repair()
    assert (found(done.before)["enriched"], found(done.before)["people"]) == (3, 0)
    assert set(found(done.after).values()) == {0}
    assert done.run is not None and "enriched" in done.run.rebuild and "people" not in done.run.rebuild
    assert changes(done, "enriched") == (1, 1, 1)
    assert done.steps["resolve.enriched"].detail["why"] == "the run repairs it"
    assert changes(done, "known") == changes(done, "people") == (0, 0, 0)
    assert shop.outputs() == before
    topology = shop.topology
    compact(topology, lambda: sessions(topology), "upkeep")
    assert shop.run()["ingest.orders"]["read"] == 6
    assert shop.topology.ledger.runs()[-1].rebuild == (), "neither the compaction nor the next run recomputes anything"
    assert len(shop.rows("enriched")) == 6


def test_where_nothing_is_wrong_no_run_is_opened(tmp_path: Path, sessions: Sessions) -> None:
    shop = Shop(tmp_path, sessions)
    for fast in (True, False):
        done = shop.repair(fast=fast)
        assert done.run is None and set(found(done.after).values()) == {0}
    assert shop.runs() == 1


def test_an_output_that_was_made_of_a_wrong_one_follows_however_much_of_it_changes(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, fuse_rows=1)
    shop = Shop(tmp_path, sessions)
    edit(shop.topology, "enriched", without(1, 2, 3))
    shop.redefine_known()
    shop.run()
    assert set(shop.rows("known")) == {5}, "it was built of what was left"
    done = shop.repair()
    assert found(done.before)["enriched"] > 0 and found(done.before)["known"] == 0
    assert changes(done, "enriched") == changes(done, "known") == (3, 0, 0)
    assert shop.rows("known") == {
        1: {"id": 1, "name": "ANN"},
        2: {"id": 2, "name": "BOB"},
        3: {"id": 3, "name": "ANN"},
        5: {"id": 5, "name": "BOB"},
    }
    assert set(found(shop.repair(fast=False).before).values()) == {0}
    shop.land("orders/2.csv", ORDERS.replace(",1,", ",2,").replace("2,2,b", "2,1,b"))
    with pytest.raises(ChangeTooLarge):
        shop.run()


def test_a_value_that_was_changed_in_the_files_is_found_and_repaired_when_all_values_are_compared(
    tmp_path: Path, sessions: Sessions
) -> None:
    shop = Shop(tmp_path, sessions)
    before = shop.outputs()
    edit(shop.topology, "enriched", with_value(2, name="Eve"))
    assert (shop.repair().run, shop.runs()) == (None, 1)
    done = shop.repair(fast=False)
    assert (found(done.before)["enriched"], set(found(done.after).values())) == (1, {0})
    assert shop.outputs() == before


def test_subscriptions_that_are_wrong_are_made_anew(tmp_path: Path, sessions: Sessions) -> None:
    shop = Shop(tmp_path, sessions)
    edit(shop.topology, "enriched__subscriptions__customers", lambda rows: [r for r in rows if r["pk_1"] != 1])
    done = shop.repair()
    assert (found(done.before)["enriched"], found(done.after)["enriched"], changes(done, "enriched")) == (1, 0, (0, 0, 0))
    shop.land("customers/2.csv", "id,name\n1,Anne\n2,Bob\n")
    shop.run(fuse="apply")
    assert shop.rows("enriched")[1]["name"] == "Anne"


@pytest.mark.postgres
def test_a_sink_gets_what_a_repair_has_changed(tmp_path: Path, sessions: Sessions, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database)
    shop = Shop(tmp_path, sessions)
    shop.deliver_to("repaired.enriched")
    shop.run()
    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as db:

        def delivered() -> dict[object, dict[str, object]]:
            return {row["id"]: row for row in db.execute("SELECT * FROM repaired.enriched").fetchall()}

        expected = shop.rows("enriched")
        assert delivered() == expected
        for change in (without(1), with_value(2, name="Eve", _hash=b"another"), lambda rows: [*rows, {**rows[0], "id": 99}]):
            edit(shop.topology, "enriched", change)
        db.execute("UPDATE repaired.enriched SET name = 'Eve' WHERE id = 2")  # as if the wrong row had been delivered
        done = shop.repair()
        assert done.behind is None and changes(done, "enriched") == (1, 1, 1)
        assert delivered() == expected == shop.rows("enriched")
