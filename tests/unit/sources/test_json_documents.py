"""Files of JSON that are not a document a line become such, and nothing of them is lost; files of lines stay what they are."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pinning import EVENTS, RECORDS, SNAPSHOTS, decode_pin, pinned, put
from source_cases import event, rows

from rejoin.errors import SourceCorrupt, SourceFileChanged
from rejoin.plan.model.plan import Table
from rejoin.sources.access import SourceAccess
from rejoin.sources.formats.json_documents import document_lines
from rejoin.sources.transports.registry import transport


def pieces(data: bytes, size: int = 1 << 20) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def as_lines(data: bytes | str, size: int = 1 << 20) -> bytes:
    return b"".join(document_lines(pieces(data.encode() if isinstance(data, str) else data, size), "f"))


A, B = '{"a": "}{", "b": [{"c": "\\"}"}, {}]}', '{"a": 2}'


@pytest.mark.parametrize(
    "text",
    [
        A + B,
        f"{A} {B}",
        f"{A}{B}\n",
        f"{A}\t{B}\r\n\n",
        f"[{A},{B}]",
        f" [\n  {A},\n  {B}\n]\n",
        f"[{A}][{B}]",
        f"[{A}]\n[{B}]\n",
        f"[]{A}{B}",
        f"[{A}] {B}",
        json.dumps(json.loads(A), indent=2) + json.dumps(json.loads(B), indent=1),
        "\ufeff" + A + B,
        f"\ufeff[{A},{B}]",
    ],
)
@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_documents_without_line_feeds_and_arrays_of_them_become_lines(text: str, size: int) -> None:
    assert [json.loads(line) for line in as_lines(text, size).splitlines()] == [json.loads(A), json.loads(B)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        A,
        f"{A}\n{B}\n",
        f"{A} \r\n{B}{B}\n",
        f"\n\n{A}\n",
        f"{A},\n{B},\n",
        f"{A} garbage\n{B}\n",
        f"{A[:-3]}\n{B}\n{B}\n",
        f'{{"a":\n{B}\n{B}\n',
        '{"a": 1',
        "[1, 2]\n[3, 4]\n",
        "[2026-11-27] a line of text\n",
        "id,name\n1,a\n",
        '"text"\n',
    ],
)
@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_files_of_lines_stay_as_they_are_also_if_their_first_line_is_cut(text: str, size: int) -> None:
    assert as_lines(text, size) == text.encode()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=4), values, min_size=1, max_size=4)


@given(found=st.lists(objects, min_size=2, max_size=8), data=st.data())
def test_any_documents_are_found_however_they_are_laid_out(found: list[dict[str, Any]], data: st.DataObject) -> None:
    indent = data.draw(st.sampled_from([None, 1]))
    texts = [json.dumps(o, ensure_ascii=data.draw(st.booleans()), indent=indent) for o in found]
    blank = data.draw(st.sampled_from(["", " ", "\n\n"]))
    text = f"[{(blank + ',' + blank).join(texts)}]" if data.draw(st.booleans()) else blank.join(texts)
    assert [json.loads(line) for line in as_lines(text, data.draw(st.sampled_from([1, 7, 1 << 20]))).splitlines() if line.strip()] == found


def test_documents_that_are_deep_or_long_are_found() -> None:
    deep = '{"a":' * 40 + "1" + "}" * 40
    long = json.dumps({"a": "\\" * 3_000_000 + '"}{'})
    assert as_lines(B + deep + long + B).splitlines() == [B.encode(), deep.encode(), long.encode(), B.encode()]


# --- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ['{"a": nope}', '{"a": NaN}', '{"a": 1, "a": 2}', "{}", '{"a" 1}'])
def test_fault_a_document_that_is_wrong_in_itself_is_one_line(bad: str) -> None:
    assert as_lines(A + bad + B).decode().splitlines() == [A, bad, B]
    assert as_lines(f"[{A},{bad},{B}]").decode().splitlines() == [A, bad, B]


def test_fault_values_in_an_array_that_are_no_objects_are_lines_of_their_own() -> None:
    assert as_lines(f'[{A}, null, 12.5e3, "}}{{,", true ]').decode().splitlines() == [A, "null", "12.5e3", '"}{,"', "true"]


@pytest.mark.parametrize(
    "text",
    [
        f"{A}{B[:-1]}",
        f"{A}{B}{B[:4]}",
        f'{B}{{"a": "x}}{B}',
        f'{B}{{"a": "x}}{B}{{"a": "y}}{B}',
        f'{B}{{"a": {{"b": 1}}{B}{B}',
        f"{A}{B}}}{B}",
        f"{A}}}{B}",
        f"{A},{B}",
        f"{A}{B},{B}",
        f"{A}{B} 5 {B}",
        f"[{A},{B}",
        f"[{A},{B},",
        f"[{A},{B},]",
        f"[{A},,{B}]",
        f"[{A} {B}]",
        f"[{A},[{B}]]",
        f"[{A}]]",
        f"[{A}],{B}",
        f"[{A}, nope",
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_fault_a_file_in_which_it_is_not_certain_where_documents_end_is_refused(text: str, size: int) -> None:
    with pytest.raises(SourceCorrupt, match="not certain"):
        as_lines(text, size)


@given(data=st.data())
def test_fault_damage_never_makes_documents_vanish(data: st.DataObject) -> None:
    """Behind the first document: every one that is not touched comes out as it was, or the file is refused."""
    found = [json.dumps({"id": i, "text": "x" * (i % 7), "in": {"n": [i]}}) for i in range(12)]
    text = bytearray(("[" + ",".join(found) + "]" if (array := data.draw(st.booleans())) else "".join(found)).encode())
    at = data.draw(st.integers(len(found[0]) + 1 + array, len(text) - 1))
    text[at : at + data.draw(st.integers(0, 3))] = data.draw(
        st.sampled_from([b"", b"{", b"}", b'"', b"\\", b"\n", b"[", b"]", b",", b"\x00"])
    )
    try:
        lines = as_lines(bytes(text)).decode("utf-8", "replace").splitlines()
    except SourceCorrupt:
        return
    kept = [line for line in lines if line in found]
    assert kept == sorted(kept, key=found.index) and len(kept) >= len(found) - 2
    assert len(lines) >= len(found) - 1


# --- as sources -------------------------------------------------------------------------------------------------------

ROWS = [{"id": i, "name": f"n{i}"} for i in range(5)]


def laid_out(of: list[dict[str, Any]]) -> dict[str, str]:
    texts = [json.dumps(o) for o in of]
    return {"lines": "\n".join(texts), "concatenated": "".join(texts), "array": json.dumps(of), "pretty": json.dumps(of, indent=2)}


@pytest.mark.parametrize("of", [EVENTS, SNAPSHOTS, RECORDS], ids=["events", "snapshot", "records"])
@pytest.mark.parametrize("layout", ["concatenated", "array", "pretty"])
def test_a_source_reads_the_same_of_every_layout_and_finds_its_records_again(tmp_path: Any, of: Table, layout: str) -> None:
    many = ROWS * 1_000 if of is RECORDS else ROWS  # enough for the fast way
    found = [event(after=row, key={"id": row["id"]}, lsn=i) for i, row in enumerate(ROWS)] if of is EVENTS else many
    both = []
    for how in ("lines", layout):
        put(tmp_path / how, **{"src/1.json": laid_out(found)[how]})
        pin = pinned(of, tmp_path / how)
        both.append(rows(decode_pin(of, pin, str(tmp_path / how))))
        again = dict(transport(of, SourceAccess(str(tmp_path / how))).raw(pin.parts[0], [3]))
        assert json.loads(again[3]) == found[2]
    assert both[0] == both[1] and len(both[0]) == len(found)
    assert [row["_line"] for row in both[1]] == list(range(1, len(found) + 1))


def test_fault_a_bad_document_of_a_feed_is_quarantined_by_its_number(tmp_path: Any) -> None:
    first, last = (json.dumps(event(after={"id": i, "name": "a"}, lsn=i)) for i in (1, 2))
    put(tmp_path, **{"src/1": first + '{"key": nope}' + last})
    found = rows(decode_pin(EVENTS, pinned(EVENTS, tmp_path), str(tmp_path)))
    assert [(r["_kind"], r["_line"], r["_code"], r["_raw"]) for r in found][1] == ("quarantined", 2, "BAD_JSON", '{"key": nope}')
    assert [r["_kind"] for r in found] == ["upsert", "quarantined", "upsert"]


def test_fault_a_file_of_documents_that_changed_is_said_to_have_changed(tmp_path: Any) -> None:
    put(tmp_path, **{"src/1": A + B})
    pin = pinned(EVENTS, tmp_path)
    put(tmp_path, **{"src/1": A + B[:-1] + " "})
    with pytest.raises(SourceFileChanged):
        rows(decode_pin(EVENTS, pin, str(tmp_path)))


def test_the_columns_of_an_array_are_found(tmp_path: Any) -> None:
    put(tmp_path, **{"src/1.json": json.dumps(ROWS, indent=1)})
    assert pinned(SNAPSHOTS, tmp_path).columns == ("id", "name")
