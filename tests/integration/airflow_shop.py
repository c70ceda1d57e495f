"""The shop of these tests as a DAG file, with faults that a test can order: each fires once, and proves that it did."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from integration.shop import SOURCE, Shop

FAULTS = '''
import os, signal
import alert
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rejoin import crash
from rejoin.airflow import to_dag
from rejoin.errors import SetupError

ORDERED = Path({folder!r})


def point(name):
    """Does what a file of this name says, once."""
    order = ORDERED / name.replace(":", "@")
    try:
        what = order.read_text()
        order.rename(order.with_name(order.name + ".fired"))
    except FileNotFoundError:
        return
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        import time

        time.sleep(600)
    raise SetupError("ordered by a test") if what == "terminal" else RuntimeError("ordered by a test")


crash.point = point
'''

MISSED = 3
"""Daily intervals that ``shop_caught_up`` has missed when it is unpaused."""
DAGS = """
soon = dict(retries=3, retry_delay=timedelta(seconds=5))
dag = to_dag(shop, **soon)
often = to_dag(shop, dag_id="shop_often", schedule=timedelta(seconds=10), **soon)
daily = to_dag(shop, dag_id="shop_daily", schedule="@daily", **soon)
caught_up = to_dag(shop, dag_id="shop_caught_up", schedule="@daily", start_date=datetime({since}, tzinfo=UTC), catchup=True, **soon)
late = to_dag(shop, dag_id="shop_late", deadline=timedelta(seconds=1), on_deadline=alert.tell, **soon)
"""

ALERT = """
from pathlib import Path

def tell(context, what):
    Path({file!r}).write_text(f"{{context['dag_run']['dag_id']}}: {{what}}")
"""

READER = """
from airflow.sdk import dag, task
from rejoin.airflow import assets

@dag("reader", schedule=[assets.output("shop", "enriched")])
def reader():
    @task
    def seen(triggering_asset_events=None):
        return [e.extra for events in triggering_asset_events.values() for e in events]

    seen()

reader()
"""


SOLD = """
from datetime import timedelta

from rejoin import Topology, postgres, snapshot
from rejoin.airflow import to_dag

sold = Topology("sold")
customers = sold.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers", max_delete_share=0.9))
customers.filter("id > 0").named("people").to(postgres("public.people"))
dag = to_dag(sold, retries=0)
"""


class DagShop(Shop):
    """The shop under ``root``, and its DAG file in ``dags``."""

    def write_dags(self, dags: Path) -> None:
        """The DAGs ``shop`` (by hand), ``shop_often`` and ``shop_daily`` of the one topology, ``reader``, started by its output, and ``sold``, which has a sink."""
        self.faults.mkdir(exist_ok=True)
        since = datetime.now(UTC) - timedelta(days=MISSED)
        self.file.write_text(
            SOURCE + FAULTS.format(folder=str(self.faults)) + DAGS.format(since=f"{since.year}, {since.month}, {since.day}")
        )
        (dags / "shop.py").write_text(self.file.read_text())
        for folder in (dags, self.root):
            (folder / "alert.py").write_text(ALERT.format(file=str(self.alerted)))
        (dags / "reader.py").write_text(READER)
        (dags / "sold.py").write_text(SOLD)
        (dags / "operations.py").write_text((Path(__file__).parents[2] / "dags" / "operations.py").read_text())

    @property
    def alerted(self) -> Path:
        """What was told when a deadline was missed."""
        return self.root / "alerted.txt"

    @property
    def faults(self) -> Path:
        return self.root / "faults"

    def order(self, point: str, what: str) -> None:
        """The next attempt that reaches this point is killed (``kill``), fails (``fail``, ``terminal``) or hangs (``hang``)."""
        (self.faults / point.replace(":", "@")).write_text(what)

    def fired(self, point: str) -> bool:
        """Whether it did."""
        return (self.faults / (point.replace(":", "@") + ".fired")).exists()
