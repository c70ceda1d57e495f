"""Records in quarantine that are decoded again: only those whose text is all that was written."""

from typing import Any

from source_cases import decode, table

from rejoin.sources import read_again_here
from rejoin.sources.events import RAW_BYTES

PEOPLE = table("id BIGINT; name STRING; n INT")
AFTER = b'{"key":{"id":1},"value":{"op":"c","source":{"connector":"postgresql","lsn":5},"after":{"id":1,"name":"%s","n":%s}}}'
LATER = table("id BIGINT; name STRING; n BIGINT")
BIG = b"3000000000"  # no INT, but a BIGINT


def again(raw: bytes) -> list[Any]:
    """The names that a record that is refused today has when it is decoded by the table of later."""
    refused = decode(PEOPLE, raw)[0]
    assert refused["_kind"] == "quarantined"
    return read_again_here(LATER, [{**refused, "_arrival": -2}])["name"].to_pylist()


def test_what_was_refused_for_a_type_that_the_table_has_no_more_is_decoded_and_a_written_replacement_character_is_text() -> None:
    assert again(AFTER % (b"Ann", BIG)) == ["Ann"]
    assert again(AFTER % ("M\ufffdller".encode(), BIG)) == ["M\ufffdller"]


def test_fault_a_record_that_is_not_utf8_is_not_applied_with_replacement_characters() -> None:
    assert again(AFTER % (b"M\xfcller", b"1")) == []


def test_fault_a_record_that_was_cut_is_not_decoded() -> None:
    assert again(AFTER % (b"Ann", BIG) + b" " * RAW_BYTES + b"garbage") == []


def test_a_record_without_text_says_nothing() -> None:
    assert read_again_here(LATER, [{"_file": "f", "_line": 1, "_reason": "no", "_raw": None, "_arrival": -2}]).num_rows == 0
