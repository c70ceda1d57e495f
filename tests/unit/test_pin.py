"""What the ledger keeps of a cut, in both versions."""

import json

from rejoin.plan.pin import Part, Pin

FIRST = {
    "kind": "snapshot",
    "files": [{"path": "landing/c/2.csv", "size": 7, "sha256": "ab"}, {"path": "landing/c/10.csv", "size": 5, "sha256": "cd"}],
    "ordinal": 4,
    "superseded": 1,
    "columns": ["id", "name"],
}


def test_a_pin_of_the_first_version_is_one_of_files() -> None:
    parts = (Part("landing/c/2.csv", 7, {"sha256": "ab"}), Part("landing/c/10.csv", 5, {"sha256": "cd"}))
    found = Pin.from_dict(FIRST)
    assert found == Pin("snapshot", parts, 4, 1, ("id", "name"))
    assert (found.files, found.size, found.transport, found.mark) == (parts, 12, "files", {})


def test_a_pin_comes_back_from_json_as_it_was() -> None:
    parts = (Part("kafka://shop/orders/0", 900, {"partition": 0, "from": 3, "to": 9}),)
    made = Pin("debezium", parts, 2, transport="kafka", mark={"next": {"0": 9}})
    assert Pin.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    assert made.files == (), "no part of it is a file that was taken"
