"""Files that others load by their path: Airflow DAGs and plugins, spark-submit jobs; and what the example of a shop reads.

In a checkout the folders are links to those at its top, where people, docker-compose.yaml and Airflow look for them; in an installed package they
are copies, since a build follows links. So each file is there once, and the same path is right in both.
"""

from pathlib import Path

_HERE = Path(__file__).parent

DAGS = (_HERE / "dags").resolve()
JOBS = (_HERE / "jobs").resolve()
PLUGINS = (_HERE / "plugins").resolve()
SHOP = _HERE / "shop.jsonl"
"""Change events for ``dags/shop.py``, as Debezium wrote them."""
