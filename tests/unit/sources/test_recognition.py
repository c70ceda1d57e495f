"""What a source refused, told by samples as the tools write them (their own documentation, and recorded by a connector)."""

import json

import pytest
from source_cases import CAPTURES

from rejoin.plan.model.sources import SOURCES, ChangesSource, DebeziumSource, FeedSource, RecordsSource, SnapshotSource
from rejoin.sources.recognition import hint, recognised

ENVELOPE = '{"before":null,"after":{"id":7},"source":{"connector":"postgresql","lsn":5},"op":"c","ts_ms":1}'
ROW = '{"id":7,"customer":3,"total":"12.50"}'
JDBC = """{"schema":{"type":"struct","fields":[{"field":"id","type":"int32"},{"field":"total","type":"bytes",
"name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}}]},"payload":{"id":7,"total":"BNI="}}"""
SAMPLES = {
    "change events of Debezium": [
        ENVELOPE,
        f'{{"schema":null,"payload":{ENVELOPE}}}',
        f'{{"key":{{"id":7}},"value":{ENVELOPE}}}',
        json.dumps({"key": None, "value": ENVELOPE, "headers": {}, "topic": "shop.orders"}),
    ],
    "flattened rows of Debezium (`__op`, `__deleted`, `__lsn`)": ['{"id":7,"total":1,"__deleted":"false","__op":"c","__lsn":5}'],
    "flattened rows of Debezium (`__deleted`)": ['{"id":7,"total":1,"__deleted":"true"}'],
    "messages of Kafka whose values are flattened rows of Debezium (`__deleted`)": ['{"key":{"id":7},"value":{"id":7,"__deleted":"true"}}'],
    "changes of Maxwell": [
        '{"database":"shop","table":"orders","type":"update","ts":1700000000,"xid":55,"commit":true,"data":{"id":7},"old":{"cust_id":null}}',
        '{"database":"shop","table":"orders","type":"bootstrap-start","ts":1450557744,"data":{}}',
    ],
    "changes of Canal": [
        (
            '{"id":9,"database":"shop","table":"orders","pkNames":["id"],"isDdl":false,"type":"UPDATE","es":1700000000000,"ts":1700000000150,'
            '"sql":"","sqlType":{"id":4},"mysqlType":{"id":"int"},"data":[{"id":"7"}],"old":[{"cust_id":null}],"gtid":""}'
        ),
        '{"id":0,"database":"test","table":"t","pkNames":["id"],"isDdl":true,"type":"CREATE","es":1,"ts":1,"sql":"create table t","data":null,"old":null}',
    ],
    "changes of GoldenGate": [
        '{"table":"SHOP.ORDERS","op_type":"I","op_ts":"2026-11-21 10:00:00.000000","current_ts":"2026-11-21T10:00:01","pos":"00000000010000002928","after":{"ID":7}}'
    ],
    "changes of AWS DMS": ['{"data":{"id":7},"metadata":{"timestamp":"2026-11-21T10:00:00Z","record-type":"data","operation":"insert"}}'],
    "CloudEvents": [
        '{"id":"name:test;lsn:29274832","source":"/debezium/postgresql/shop","specversion":"1.0","type":"io.debezium.connector.postgresql.DataChangeEvent","data":{}}'
    ],
    "change events without 'source', as Flink writes them": ['{"before":null,"after":{"id":7},"op":"c"}'],
    "rows that a tool landed (`_fivetran_deleted`)": ['{"id":7,"_fivetran_deleted":false,"_fivetran_synced":"2026-11-21T10:00:00Z"}'],
    "rows that a tool landed (`_ab_cdc_deleted_at`)": ['{"id":7,"_ab_cdc_lsn":5,"_ab_cdc_deleted_at":null}'],
    "rows that a tool landed (`Op`)": ['{"Op":"I","id":7}'],
    "rows without an envelope": [ROW, '{"id":7,"value":5,"key":"k","x":1}', '{"value":5}', '{"op":"c","id":7}'],
    "rows without an envelope, each with its schema,": [JDBC.replace("\n", "")],
    "arrays of JSON": [f"[{ROW},{ROW}]"],
    "JSON over several lines": ["{", '  "id": 7,', "}"],
    "CSV with ',' between fields": ["id,name", "I,7,Ann,2026-11-21"],
    "CSV with ';' between fields": ["id;name", "7;1,5"],
    "CSV with 'tab' between fields": ["7\tAnn"],
    "Avro in Confluent's wire format": ["\x00\x00\x00\x00\x01\x0e\x02"],
    "an Avro file": ["Obj\x01\x04\x16avro.schema"],
    "a Parquet file": ["PAR1\x15\x04"],
}


@pytest.mark.parametrize(("says", "text"), [(says, text) for says, texts in SAMPLES.items() for text in texts])
def test_a_record_is_told(says: str, text: str) -> None:
    form = recognised([text])
    assert form is not None and (form.says == says or (says.startswith("CSV") and form.says.startswith("CSV")))
    assert form.reads


@pytest.mark.parametrize("name", ["debezium_capture.jsonl", "debezium_capture_schemas.jsonl", "debezium_capture_string.jsonl"])
@pytest.mark.parametrize("bare", [False, True])
def test_what_a_connector_wrote_is_told(name: str, bare: bool) -> None:
    lines = (CAPTURES / name).read_text().splitlines()
    form = recognised(
        [json.dumps(json.loads(line)["value"] and json.loads(json.loads(line)["value"])) for line in lines] if bare else lines
    )
    assert form is not None and form.kinds == ("debezium",)


def test_most_of_the_records_decide() -> None:
    form = recognised([ROW, ENVELOPE, ENVELOPE, "", "{"])
    assert form is None
    assert recognised([ROW, ENVELOPE, ENVELOPE]) == recognised([ENVELOPE])
    assert [recognised(texts) for texts in ([], [""], ["x"], ['"x"'], ["5"], ["{"[:0]])] == [None] * 6


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (DebeziumSource("x"), ENVELOPE), (SnapshotSource("x"), ROW), (RecordsSource("x"), ROW), (SnapshotSource("x"), "1,2"),
        (FeedSource("x", "maxwell"), SAMPLES["changes of Maxwell"][0]), (FeedSource("x", "canal"), SAMPLES["changes of Canal"][0]),
    ],
)  # fmt: skip
def test_what_a_source_is_declared_as_is_no_hint(source: DebeziumSource, text: str) -> None:
    assert hint(source, [text]) == ""


def test_of_rows_that_are_declared_otherwise_the_fields_are_told() -> None:
    told = hint(ChangesSource("x", order=("t.`LSN`",)), ['{"id": 7, "lsn": 1}', '{"id": 8, "lsn": 2, "total": "1.50"}', "cut"])
    assert told == "they have the fields id, lsn, total: compare columns=, order_by= and deleted= with these; else "
    assert hint(ChangesSource("x"), ["cut"]) == ""


def test_a_hint_names_the_call_and_no_value() -> None:
    told = hint(SnapshotSource("x"), [ENVELOPE])
    assert told == 'they look like change events of Debezium: debezium("...") reads them; else '
    assert 'feed("...", "maxwell", only=...) reads them' in hint(DebeziumSource("x"), SAMPLES["changes of Maxwell"])
    assert "12.50" not in hint(DebeziumSource("x"), [ROW]) and 'snapshot("...")' in hint(DebeziumSource("x"), [ROW])
    assert ("changes(" in hint(DebeziumSource("x"), SAMPLES["rows that a tool landed (`Op`)"])) == ("changes" in SOURCES)
