"""An edit gives a column of an output a narrower type: what is stored of it need not fit in there."""

import pytest

from rejoin import Topology, snapshot
from rejoin.testing import Driver


def shop(*columns: str) -> Topology:
    made = Topology("shop")
    numbers = made.table("numbers", key="id", schema="id BIGINT, n BIGINT", source=snapshot("landing/numbers"))
    numbers.select(["id", *columns]).named("seen")
    return made


@pytest.mark.slow
def test_old_values_that_do_not_fit_are_compared_and_replaced() -> None:
    wide, narrow = shop("n AS i", "CAST(n AS DECIMAL(18,2)) AS d"), shop("CAST(n % 1000 AS INT) AS i", "CAST(n % 100 AS DECIMAL(5,2)) AS d")
    with Driver(wide) as driver:
        driver.run(numbers="1 | 3000000001\n 2 | -6\n 3 | NULL\n 4 | -9223372036855")
        driver.restart(narrow)
        assert (
            driver.run()["seen"]
            == """
          op | id | i    | was            | d   | was
          U  | 1  | 1    | 3000000001     | 1   | 3000000001
          U  | 4  | -855 | -9223372036855 | -55 | -9223372036855
        """
        )
        assert (
            driver.run(numbers="1 | 2\n 2 | 4000000007")["seen"]
            == """
          op | id | i | was | d | was
          U  | 1  | 2 | 1   | 2 | 1
          U  | 2  | 7 | -6  | 7 | -6
        """
        )
        driver.restart(wide)
        driver.run()
        assert (
            driver.table("seen")
            == """
          id | i              | d
          1  | 2              | 2
          2  | 4000000007     | 4000000007
          3  | NULL           | NULL
          4  | -9223372036855 | -9223372036855
        """
        )
