"""What shop.py has to do, tried with rows and a lake of the test's own. It needs no Spark."""

from rejoin.testing import Driver, fixture

shop = fixture("shop.py")


def test_an_order_gets_the_name_of_its_customer_once_that_is_known(shop: Driver) -> None:
    shop.run(
        orders="""
          order_id | customer_id | total
          1        | 7           | 12.50
          2        | 9           | 3.00
        """,
        customers="""
          customer_id | name
          7           | Ann
        """,
    )
    assert shop.table("orders_enriched") == """
      order_id | customer
      1        | Ann
      2        | NULL
    """
    changes = shop.run(customers="7 | Anne\n9 | Cleo")
    assert changes["orders_enriched"] == """
      op | order_id | customer | was
      U  | 1        | Anne     | Ann
      U  | 2        | Cleo     | NULL
    """
