"""What records look like that a source refused, and which call of a topology file would read them. Pure; looks at names of members, and tells no values."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rejoin.errors import BadRecord
from rejoin.plan.model.sources import SOURCES, FeedSource, Source
from rejoin.sources.formats.json_text import loads
from rejoin.sources.shapes.debezium.message import has_schema, is_bookkeeping, named_by

SAMPLE = 20
"""Records that are enough to tell."""
FLATTENED = (
    "__op",
    "__deleted",
    "__lsn",
    "__table",
    "__db",
    "__ts_ms",
    "__source_ts_ms",
    "__source_lsn",
    "__file",
    "__pos",
    "__change_lsn",
)
"""What ``ExtractNewRecordState`` adds to rows, as it is told."""
_MARKS = re.compile(r"_fivetran_\w+|_airbyte_\w+|_ab_cdc_\w+|_sdc_\w+|Op")
"""What tools add to rows that they land: Fivetran, Airbyte, Stitch, AWS DMS."""
_MESSAGE = {"key", "value", "headers", "topic", "partition", "offset", "timestamp"}
_DELIMITERS = (",", ";", "\t", "|")
_ROWS = 'snapshot("...") reads them where a file has all rows that there are, records("...") where each file adds some'
_DIALECTS = {"canal": "Canal", "maxwell": "Maxwell", "goldengate": "GoldenGate"}


@dataclass(frozen=True)
class Form:
    """What records are.

    Attributes:
        says: in words.
        reads: how a topology would read them.
        kinds: the kinds of sources, or the dialects, that do.
    """

    says: str
    reads: str
    kinds: tuple[str, ...] = ()


def about(text: str) -> str | None:
    """The topic or table that a change event says it is of, as ``topic=`` and ``only=`` name it; None of a record that is about no rows, or does not say it."""
    with suppress(BadRecord):
        line = loads(text)
        value = line.get("value", line) if isinstance(line, dict) else None
        value = loads(value) if isinstance(value, str) else value
        value = value["payload"] if isinstance(value, dict) and has_schema(value) else value
        topic = line.get("topic") if isinstance(line, dict) else None
        if isinstance(value, dict) and is_bookkeeping(value, topic):
            return None
        return topic if isinstance(topic, str) else _table_of(value) if isinstance(value, dict) else None
    return None


def _table_of(value: Mapping[str, Any]) -> str | None:
    source = value.get("source")
    if isinstance(source, dict):
        value, names = source, named_by(source.get("connector"))
    else:
        names = ("table",) if dialect_of(value) == "goldengate" else ("database", "table")
    found = [part for name in names if isinstance(part := value.get(name), str)]
    return ".".join(found) if found and len(found) == len(names) else None


def hint(source: Source, records: Iterable[str]) -> str:
    """A sentence on what refused records are and what would read them; an empty text where that is not told, or is what the source is declared as.

    Args:
        source: as declared.
        records: the texts of some of them.
    """
    texts = list(records)
    form, declared = recognised(texts), source.dialect if isinstance(source, FeedSource) else source.kind
    if form is not None and declared not in form.kinds:
        return f"they look like {form.says}: {form.reads}; else "
    names = _members(texts) if declared == "changes" else ()
    return f"they have the fields {', '.join(names)}: compare columns=, order_by= and deleted= with these; else " if names else ""


def _members(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of the first records' members, in their order."""
    found: dict[str, None] = {}
    for text in texts:
        with suppress(BadRecord):
            found |= dict.fromkeys(record) if isinstance(record := loads(text), dict) else {}
    return tuple(found)


def recognised(records: Iterable[str]) -> Form | None:
    """What most of some records are; None if that is not told."""
    texts = [text for text in records if text.strip() not in ("", "null")]
    found = Counter(form for text in texts if (form := _of_text(text)) is not None)
    if found and (most := found.most_common(1)[0])[1] * 2 > len(texts):
        return most[0]
    return _of_csv(texts)


def _of_text(text: str) -> Form | None:
    if text.startswith("\x00"):
        return Form("Avro in Confluent's wire format", "write JSON (JsonConverter), which debezium(...) reads")
    if text.startswith("Obj\x01"):
        return Form("an Avro file", "write JSON (JsonConverter), which debezium(...) reads")
    if text.startswith("PAR1"):
        return Form("a Parquet file", f"under a name that ends in .parquet, {_ROWS}", ("snapshot", "records"))
    try:
        found = loads(text)
    except BadRecord:
        several = text.strip() in ("{", "[") or re.match(r'\s+"[^"]*"\s*:|\s*[\]}],?\s*$', text)
        return Form("JSON over several lines", "write an object a line") if several else None
    if isinstance(found, list):
        return Form("arrays of JSON", "write an object a line")
    return _of_object(found) if isinstance(found, dict) else None


def _of_object(line: dict[str, Any]) -> Form:
    value = line.get("value") if line.keys() <= _MESSAGE else None
    if isinstance(value, str):
        with suppress(BadRecord):
            value = loads(value)
    if not isinstance(value, dict):
        return _of_value(line)
    form = _of_value(value)
    return form if "debezium" in form.kinds else Form(f"messages of Kafka whose values are {form.says}", form.reads, form.kinds)


def _of_value(value: dict[str, Any]) -> Form:
    names = value.keys()
    if has_schema(value) and isinstance(value["payload"], dict):
        form = _of_value(value["payload"])
        return form if "debezium" in form.kinds else Form(f"{form.says}, each with its schema,", form.reads, form.kinds)
    if {"op", "source"} <= names or (value and is_bookkeeping(value, None)):
        return Form("change events of Debezium", 'debezium("...") reads them', ("debezium",))
    return _of_tool(value) or _of_row(names)


def _of_tool(value: dict[str, Any]) -> Form | None:
    """What tools write that wrap rows otherwise than Debezium."""
    names = value.keys()
    if (dialect := dialect_of(value)) is not None:
        return Form(f"changes of {_DIALECTS[dialect]}", f'feed("...", "{dialect}", only=...) reads them', (dialect,))
    if {"specversion", "type", "source", "id"} <= names:
        return Form("CloudEvents", 'debezium("...") reads those that the converter of Debezium writes (iodebeziumop)')
    if "metadata" in names and isinstance(value["metadata"], dict) and {"operation", "record-type"} & value["metadata"].keys():
        return Form("changes of AWS DMS", "a dialect of a package of yours would read them (docs/extending.md)")
    if {"before", "after", "op"} == names:
        return Form(
            "change events without 'source', as Flink writes them", "nothing in them tells which of two is newer; take those of Debezium"
        )
    return None


def dialect_of(value: Mapping[str, Any]) -> str | None:
    """The dialect of ``feed(...)`` that a record is in; None if that is not told."""
    names = value.keys()
    if {"database", "table", "type"} <= names and (isinstance(value.get("data"), list) or names & {"isDdl", "mysqlType"}):
        return "canal"
    if {"database", "table", "type", "ts"} <= names:
        return "maxwell"
    return "goldengate" if {"table", "op_type", "op_ts"} <= names else None


def _of_row(names: Iterable[str]) -> Form:
    flattened = [name for name in FLATTENED if name in names]
    if flattened:
        told = ", ".join(f"`{name}`" for name in flattened)
        whole = 'without ExtractNewRecordState the connector writes envelopes, which debezium("...") reads'
        return Form(f"flattened rows of Debezium ({told})", _changes(f"{whole}"), ("changes",))
    marks = sorted(filter(_MARKS.fullmatch, names))
    if marks:
        return Form(f"rows that a tool landed (`{marks[0]}`)", _changes(_ROWS), ("changes",))
    return Form("rows without an envelope", _changes(_ROWS), ("snapshot", "records", "changes"))


def _changes(otherwise: str) -> str:
    """What reads rows each of which is how a row is now."""
    if "changes" not in SOURCES:
        return otherwise
    return f'changes("...", order_by=...) reads them where each says how a row is now; {otherwise}'


def _of_csv(texts: list[str]) -> Form | None:
    for delimiter in _DELIMITERS:
        counts = {text.count(delimiter) for text in texts}
        if len(counts) == 1 and counts != {0}:
            told = "tab" if delimiter == "\t" else delimiter
            return Form(f"CSV with {told!r} between fields", f"under a name that ends in .csv, {_ROWS}", ("snapshot", "records"))
    return None
