"""subscribe, respond and resolve of a star: orders of two shops with their customers, inner and left."""

import pytest
from statement_tables import SQL, check, spoken

from rejoin import Topology, snapshot
from rejoin.joins.foreign_key import respond, subscribe
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Edge, Node
from rejoin.statements.relations import foreign_key, seen


def _plan():  # type: ignore[no-untyped-def]
    made = Topology("shop")
    orders = made.table("orders", ["s", "o"], "s INT, o INT, c INT, total INT", snapshot("orders")).filter("total > 0")
    everyone = made.table("customers", ["s", "c"], "s INT, c INT, name STRING", snapshot("customers"))
    customers = everyone.filter("name <> 'gone'")
    select = ["left.s", "left.o", "left.total", "right.name"]
    orders.left_join(customers, foreign_key=["s", "c"], select=select, name="left_")
    orders.join(customers, foreign_key=["s", "c"], select=select, name="inner_")
    lent = everyone.select(["s", "c", "coalesce(name, 'nobody') AS name"]).filter("coalesce(name, '') <> 'gone'")
    orders.left_join(lent, foreign_key=["coalesce(s, 1)", "coalesce(c, 0)"], select=["left.s", "left.o", "right.name"], name="computed")
    return compile(made)


PLAN = _plan()
LEFT, INNER, COMPUTED = (spoken(PLAN, name) for name in ("left_", "inner_", "computed"))
KEY, RIGHT_KEY = ("s", "o"), ("s", "c")
ORDER = "STRUCT(s INT, o INT, c INT, total INT, _hash BLOB)"
CUSTOMER = "STRUCT(s INT, c INT, name VARCHAR, _hash BLOB)"


def order(s: int, o: int, c: str | int, total: int = 1, hashed: str = "h") -> str:
    return f"{{s: {s}, o: {o}, c: {c}, total: {total}, _hash: {hashed}}}"


def customer(s: int, c: int, name: str) -> str:
    return f"{{s: {s}, c: {c}, name: {name}, _hash: {name}}}"


NAMED = "struct_extract(\"right\", 'name')"


def edge(node: Node) -> Edge:
    return node.edges[0]


CHANGES = f"""
  s INT | o INT | _before {ORDER}     | _after {ORDER}
  1     | 1     | NULL                | {order(1, 1, 7)}
  1     | 2     | {order(1, 2, 7)}    | {order(1, 2, 8, hashed="i")}
  1     | 3     | {order(1, 3, 7)}    | {order(1, 3, 7, 2, "j")}
  1     | 4     | {order(1, 4, 7)}    | NULL
  1     | 5     | {order(1, 5, 7)}    | {order(1, 5, "NULL")}
  1     | 6     | {order(1, 6, "NULL")} | {order(1, 6, 7)}
  1     | 7     | {order(1, 7, 7)}    | {order(1, 7, 7, 0)}
  1     | 8     | {order(1, 8, 7, 0)} | {order(1, 8, 7)}
  1     | 9     | NULL                | {order(1, 9, "NULL")}
"""
MOVED = """
  fk_1 | fk_2 | pk_1 | pk_2 | _run | _op | _hash | _instruction
  1    | 7    | 1    | 1    | 5    | S   | h     | {new}
  1    | 7    | 1    | 2    | 5    | D   | i     | {left_or_moved}
  1    | 8    | 1    | 2    | 5    | S   | i     | PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
  1    | 7    | 1    | 3    | 5    | S   | j     | {new}
  1    | 7    | 1    | 4    | 5    | D   | NULL  | DELETE_KEY_AND_PROPAGATE
  1    | 7    | 1    | 5    | 5    | D   | h     | {to_null}
  1    | 7    | 1    | 6    | 5    | S   | h     | {new}
  1    | 7    | 1    | 7    | 5    | D   | h     | DELETE_KEY_AND_PROPAGATE
  1    | 7    | 1    | 8    | 5    | S   | h     | {new}
"""
SENT = {
    "left_": {
        "new": "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE",
        "left_or_moved": "DELETE_KEY_NO_PROPAGATE",
        "to_null": "DELETE_KEY_NO_PROPAGATE",
    },
    "inner_": {
        "new": "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE",
        "left_or_moved": "DELETE_KEY_NO_PROPAGATE",
        "to_null": "DELETE_KEY_AND_PROPAGATE",
    },
}


@pytest.mark.parametrize("node", [LEFT, INNER], ids=SENT)
def test_a_changed_order_ends_its_old_subscription_and_begins_a_new_one(node: Node) -> None:
    check(subscribe.subscribe(SQL, node.left, edge(node), KEY, 5), MOVED.format(**SENT[node.name]), changes=CHANGES)


def test_where_there_is_no_row_nothing_is_computed_of_it() -> None:
    rows = f"l {ORDER} | t {CUSTOMER}\n NULL | NULL\n {order(1, 1, 'NULL')} | {customer(1, 7, 'NULL')}"
    text = f"SELECT {foreign_key(SQL, edge(COMPUTED))} AS fk, {seen(SQL, edge(COMPUTED).right)} AS r FROM rows_"
    check(text, "fk IS NULL | fk.fk_2 | r IS NULL | r.name\n true | NULL | true | NULL\n false | 0 | false | nobody", rows_=rows)


SUBSCRIPTIONS = """
  fk_1 INT | fk_2 INT | pk_1 INT | pk_2 INT | _run INT | _op | _hash | _instruction
  1        | 7        | 1        | 1        | 5        | S   | a     | PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
  1        | 8        | 1        | 2        | 5        | S   | b     | PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
  1        | 7        | 1        | 3        | 5        | S   | c     | PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE
  1        | 9        | 1        | 4        | 5        | S   | d     | PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE
  1        | 7        | 1        | 5        | 5        | D   | e     | DELETE_KEY_NO_PROPAGATE
  1        | 7        | 1        | 6        | 5        | D   | f     | DELETE_KEY_AND_PROPAGATE
  2        | 7        | 2        | 1        | 5        | S   | g     | PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
  2        | 8        | 2        | 2        | 5        | D   | h     | DELETE_KEY_NO_PROPAGATE
"""


def test_only_new_subscriptions_ask_for_right_rows_and_once() -> None:
    check(respond.wanted(SQL, edge(LEFT), RIGHT_KEY), "s | c\n 1 | 7\n 1 | 8\n 1 | 9\n 2 | 7", subscriptions=SUBSCRIPTIONS)


def test_the_right_side_answers_as_the_instruction_says() -> None:
    rights = f"s INT | c INT | _row {CUSTOMER}\n 1 | 7 | {customer(1, 7, 'Ann')}\n 1 | 9 | {customer(1, 9, 'gone')}"
    expected = f"""
      fk_1 | fk_2 | pk_1 | pk_2 | left_hash | {NAMED}
      1    | 7    | 1    | 1    | a         | Ann
      1    | 8    | 1    | 2    | b         | NULL
      1    | 7    | 1    | 3    | c         | Ann
      1    | 7    | 1    | 6    | f         | NULL
      2    | 7    | 2    | 1    | g         | NULL
    """
    check(
        respond.answer_subscriptions(SQL, edge(LEFT), RIGHT_KEY, 2),
        expected,
        subscriptions=SUBSCRIPTIONS,
        rights=rights,
    )


def test_a_right_row_that_the_view_shows_before_or_after_has_moved() -> None:
    changes = f"""
      s INT | c INT | _before {CUSTOMER}      | _after {CUSTOMER}
      1     | 1     | NULL                    | {customer(1, 1, "Ann")}
      1     | 2     | {customer(1, 2, "Bob")} | NULL
      1     | 3     | {customer(1, 3, "gone")} | {customer(1, 3, "Cleo")}
      1     | 4     | {customer(1, 4, "Dan")} | {customer(1, 4, "gone")}
      1     | 5     | {customer(1, 5, "gone")} | NULL
      1     | 6     | NULL                    | {customer(1, 6, "gone")}
      1     | 7     | {customer(1, 7, "Eve")} | {customer(1, 7, "Eva")}
    """
    check(
        respond.moved(SQL, edge(LEFT), RIGHT_KEY),
        f"fk_1 | fk_2 | {NAMED}\n 1 | 1 | Ann\n 1 | 2 | NULL\n 1 | 3 | Cleo\n 1 | 4 | NULL\n 1 | 7 | Eva",
        changes=changes,
    )


def test_a_moved_right_row_tells_its_subscribers_of_earlier_runs() -> None:
    moved = "fk_1 INT | fk_2 INT | right STRUCT(name VARCHAR)\n 1 | 7 | {name: Ann}\n 1 | 8 | NULL"
    subscribers = """
      fk_1 INT | fk_2 INT | pk_1 INT | pk_2 INT | _run INT | _hash
      1        | 7        | 1        | 1        | 4        | a
      1        | 7        | 1        | 2        | 5        | b
      1        | 8        | 1        | 3        | 3        | c
      2        | 7        | 2        | 1        | 3        | d
      1        | 9        | 1        | 4        | 3        | e
    """
    check(
        respond.answer_right_changes(SQL, edge(LEFT), 2, 5),
        f"fk_1 | fk_2 | pk_1 | pk_2 | left_hash | {NAMED}\n 1 | 7 | 1 | 1 | a | Ann\n 1 | 8 | 1 | 3 | c | NULL",
        moved=moved,
        subscribers=subscribers,
    )
