"""What shop.py has to do, tried with files and a lake of the test's own. It needs no Spark: the files are small."""

from pathlib import Path

from rejoin import Lake

TOPOLOGY = Path(__file__).with_name("shop.py")


def test_an_order_gets_the_name_of_its_customer_once_that_is_known(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")

    def run(name: str, orders: str, customers: str) -> dict[int, str | None]:
        """Lands a snapshot of each table, runs the topology, and returns the customer of each order."""
        for table, rows in (("orders", orders), ("customers", customers)):
            folder = tmp_path / "landing" / table
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(rows)
        lake.run(str(TOPOLOGY), root=tmp_path)
        return {row["order_id"]: row["customer"] for row in lake.read("orders_enriched").to_arrow().to_pylist()}

    orders = "order_id,customer_id,total\n1,7,12.50\n2,9,3.00\n"
    assert run("1.csv", orders, "customer_id,name\n7,Ann\n") == {1: "Ann", 2: None}
    assert run("2.csv", orders, "customer_id,name\n7,Anne\n9,Cleo\n") == {1: "Anne", 2: "Cleo"}
