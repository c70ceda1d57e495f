"""Topologies that several tests compile."""

from rejoin import Topology, debezium, snapshot
from rejoin.declare.topology import Relation
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan


class Shop:
    """A topology with the tables of a small shop; a test adds what it is about."""

    def __init__(self) -> None:
        self.topology = Topology("shop")
        table = self.topology.table
        self.orders = table(
            "orders",
            key="order_id",
            schema="order_id BIGINT, customer_id BIGINT, gift_for BIGINT, product_id INT, total DECIMAL(10,2), note STRING",
            source=debezium("landing/orders/", topic="shop.public.orders", units={}),
        )
        self.customers = table(
            "customers",
            key="customer_id",
            schema="customer_id BIGINT, name STRING, region STRING, active BOOLEAN",
            source=snapshot("landing/customers/"),
        )
        self.products = table(
            "products", key="product_id", schema="product_id BIGINT, title STRING, maker_id INT", source=snapshot("landing/products/")
        )
        self.makers = table(
            "makers", key="maker_id", schema="maker_id INT, maker STRING, parent_id INT", source=snapshot("landing/makers/")
        )
        self.rates = table(
            "rates", key=["region", "year"], schema="region STRING, year INT, rate DOUBLE", source=snapshot("landing/rates/")
        )

    def compile(self) -> Plan:
        return compile(self.topology)


def star(shop: Shop) -> Relation:
    return (
        shop.orders.filter("total > 0")
        .join(shop.customers, "customer_id", ["left.*", "right.name AS customer", "region"])
        .filter("region <> 'x' OR note = 'keep'")
        .left_join(shop.products, "product_id", ["left.*", "right.title AS product"])
        .named("star")
    )


def chain(shop: Shop) -> Relation:
    return (
        shop.orders.join(shop.products, "product_id", ["order_id", "right.maker_id AS m"])
        .left_join(shop.makers, "m", ["order_id", "coalesce(maker, 'none') AS maker"])
        .named("chain")
    )


def everything() -> Plan:
    """Star, chain, a node as right side, self join, diamond, composite key, filter without join."""
    shop = Shop()
    star(shop)
    chain(shop)
    made = shop.products.left_join(shop.makers, "maker_id", ["product_id", "title", "maker"])
    shop.orders.left_join(made, "product_id", ["order_id", "title", "maker"]).named("right_chain")
    shop.makers.left_join(shop.makers.filter("maker <> 'Acme'"), "parent_id", ["left.maker_id", "right.maker AS parent"]).named("self")
    payer = shop.orders.join(shop.customers, "customer_id", ["left.*", "right.name AS payer"])
    payer.left_join(shop.customers, "gift_for", ["order_id", "payer", "right.name AS receiver"]).named("diamond")
    shop.customers.left_join(shop.rates, ["region", "2024"], ["customer_id", "rate"]).named("rated")
    shop.customers.filter("active").select(["customer_id AS id", "upper(name) AS name"]).named("active_customers")
    return shop.compile()
