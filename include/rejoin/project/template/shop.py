"""Orders with the names of their customers. `rejoin explain shop.py` prints what this comes to."""

from rejoin import Topology, snapshot

shop = Topology("shop")

# A snapshot is a file with all rows of its table. The newest one in the folder counts, by its name: a row that it lacks was deleted.
# Are your files change events of a database? Then the source is debezium("landing/orders").
orders = shop.table(
    "orders",
    key="order_id",
    schema="order_id BIGINT, customer_id BIGINT, total DECIMAL(10,2)",
    source=snapshot("landing/orders"),
)
customers = shop.table(
    "customers",
    key="customer_id",
    schema="customer_id BIGINT, name STRING",
    source=snapshot("landing/customers"),
)

# One row an order. An order whose customer is not known has null there; orders.join(...) would leave it out.
orders.left_join(customers, foreign_key="customer_id", select=["left.*", "right.name AS customer"]).named("orders_enriched")
