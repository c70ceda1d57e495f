"""Orders, their customers and their items, from Debezium's change events of a PostgreSQL database: one landing directory, a topic a table."""

from rejoin import Topology, debezium
from rejoin.airflow import to_dag

LANDING = "landing/shop"

shop = Topology("shop")

customers = shop.table(
    "customers",
    key="id",
    schema="id STRING, name STRING, birth DATE, created TIMESTAMP",
    source=debezium(LANDING, topic="e6.shop.customers"),
)
orders = shop.table(
    "orders",
    key="id",
    schema="id BIGINT, customer_id STRING, total DECIMAL(12,2), qty INT, st STRING, big STRING",
    source=debezium(LANDING, topic="e6.shop.orders"),
)
items = shop.table(
    "items",
    key=["order_id", "line"],
    schema="order_id BIGINT, line INT, sku STRING, note STRING",
    optional=["note"],  # the database got this column later: older events do not have it
    source=debezium(LANDING, topic="e6.shop.items"),
)

enriched = orders.left_join(
    customers,
    foreign_key="customer_id",
    select=["left.id", "left.customer_id", "left.total", "left.qty", "left.st AS status", "left.big AS remarks", "right.name AS customer"],
).named("orders_enriched")

# A chain: the join reads another output, so a renamed customer reaches the items through the orders.
items.left_join(
    enriched,
    foreign_key="order_id",
    select=["left.*", "right.customer", "right.total AS order_total"],
).named("items_enriched")

dag = to_dag(shop, schedule="@hourly")
