"""Snapshots within a feed, one after the other: how far they are after a cut. What becomes of rows: ``integration/test_snapshot_again``."""

from dataclasses import replace

import pytest

from rejoin.lake.ledger.generations import Generations
from rejoin.steps.ingest.generations import LOADED, Mark, Reads, followed, loaded, uneven


def at(number: int) -> str:
    return f"{number:020}.0.{0:020}"


def read(position: int, marks: str, rows: int = 3, origin: str = "t") -> Reads:
    """Rows at a position; ``marks``: whether they begin (``(``) and end (``)``)."""
    found = [Mark(at(position), origin, last, 0) for sign, last in (("(", False), (")", True)) if sign in marks]
    return Reads(tuple(found), {at(position): rows})


def both(*cuts: Reads) -> Reads:
    return Reads(tuple(m for c in cuts for m in c.marks), {p: n for c in cuts for p, n in c.rows.items()})


def after(*cuts: Reads, empty: bool = True) -> Generations | None:
    found: Generations | None = None
    for run, cut in enumerate(cuts, 1):
        found = followed(found, cut, run, empty=empty and run == 1)
        assert found is None or Generations.of(found.to_dict()) == found, "as the ledger keeps it"
    return found


@pytest.mark.parametrize(
    ("cuts", "incomplete", "floor", "only"),
    [
        pytest.param([read(1, "()")], {}, 1, 1, id="a whole one"),
        pytest.param([read(1, "("), read(1, ""), read(1, ")")], {}, 1, 1, id="a whole one over three runs"),
        pytest.param([read(1, "("), read(1, "")], {"t": 1}, 0, 1, id="one that is open"),
        pytest.param([read(1, "("), read(2, "(")], {"t": 2}, 0, None, id="two that are open"),
        pytest.param([both(read(1, "("), read(2, "("))], {"t": 1}, 0, None, id="two that are open in one run"),
        pytest.param([read(1, "()"), read(2, "(")], {"t": 2}, 1, None, id="a new one that is open"),
        pytest.param([read(1, "("), read(2, "()")], {}, 2, None, id="a new one that is whole"),
        pytest.param([read(1, ")", 1)], {}, 1, 1, id="an only row that ends it"),
        pytest.param([read(1, "(", 1)], {"t": 1}, 0, 1, id="an only row that begins it"),
        pytest.param([read(1, "(", 1), Reads(newest="~")], {}, 1, 1, id="an only row and changes after it"),
        pytest.param([read(1, "(", 2), Reads(newest="~")], {"t": 1}, 0, 1, id="two rows and changes after them"),
        pytest.param(
            [read(1, "()"), read(2, "(", 1), Reads(newest="~")], {"t": 2}, 1, None, id="an only row of a second one is not trusted"
        ),
        pytest.param([read(2, "("), read(1, "()")], {"t": 1}, 1, None, id="an older one that comes late"),
        pytest.param([read(1, "()"), read(2, "()", origin="u")], {}, 1, None, id="two captured tables: the older one counts"),
        pytest.param([read(1, "()"), read(2, "(", origin="u")], {"u": 2}, 0, None, id="two captured tables, one open"),
    ],
)
def test_how_far_snapshots_are(cuts: list[Reads], incomplete: dict[str, int], floor: int, only: int | None) -> None:
    found = after(*cuts)
    assert found is not None
    assert (found.incomplete, found.floor, found.only) == (incomplete, at(floor) if floor else "", at(only) if only else None)


def test_a_table_that_has_rows_already_may_have_older_ones() -> None:
    found = after(read(1, "()"), empty=False)
    assert found is not None and found.only is None
    older = Reads(read(5, "()").marks, {at(5): 3}, oldest=at(3), newest=at(9))
    for cuts in ([older], [read(5, "("), older]):
        found = after(*cuts)
        assert found is not None and found.only is None


def test_without_beginning_and_end_there_are_none() -> None:
    assert after(Reads(unmarked=at(1)), Reads(oldest=at(2), newest=at(3))) is None


def test_a_run_without_snapshots_leaves_them_as_they_are() -> None:
    assert after(read(1, "()"), read(2, "(")) == after(read(1, "()"), read(2, "("), Reads(newest="~"))


@pytest.mark.parametrize(
    ("found", "taken"),
    [
        ({}, True),
        ({"read_from": at(1), "read_to": at(1), "min_first": "first t", "max_first": "first t"}, True),
        ({"read_from": at(1), "read_to": at(1)}, True),
        ({"read_from": at(1), "read_to": at(2), "min_first": "first t", "max_first": "first t"}, False),
        ({"read_from": at(1), "read_to": at(1), "min_first": "first t", "max_first": "first u"}, False),
        ({"read_from": at(1), "read_to": at(1), "min_last": "last t", "max_last": "last t", "oldest": at(0)}, False),
    ],
    ids=["no snapshot", "one", "one without marks", "two", "of two tables", "and older changes"],
)
def test_a_first_load_in_one_pass_is_for_a_feed_of_one_snapshot(found: dict[str, str], taken: bool) -> None:
    assert (loaded({**dict.fromkeys(LOADED), **found}, 3, found.get("read_to")) is not None) == taken


@pytest.mark.parametrize(
    ("earlier", "cut", "wrong"),
    [
        pytest.param(None, read(1, "()"), False, id="a whole one"),
        pytest.param(read(1, "("), read(2, "()"), False, id="one after another that was not ended"),
        pytest.param(read(1, "()"), read(2, ")"), False, id="of a connector that says no beginnings"),
        pytest.param(None, read(1, ")"), False, id="the first one of such a connector"),
        pytest.param(read(1, "("), read(2, ")", rows=1), False, id="of the table one row is left"),
        pytest.param(read(1, "("), read(2, ")"), True, id="its beginning is late"),
        pytest.param(None, both(read(1, "(", rows=1), read(2, ")", rows=1)), True, id="two rows at two positions"),
        pytest.param(
            None, replace(both(read(1, "("), read(3, ")", rows=1)), unmarked=at(2)), True, id="a row between at a position of its own"
        ),
    ],
)
def test_rows_of_a_snapshot_that_have_positions_of_their_own_stop_the_run(earlier: Reads | None, cut: Reads, wrong: bool) -> None:
    before = None if earlier is None else after(earlier)
    assert uneven(before, cut) == wrong
