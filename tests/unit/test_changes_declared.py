"""``changes(...)`` in a topology file: what is wrong is told at once, with the line of the source, and what is right is in the plan and told by explain."""

from typing import Any

import pytest

from rejoin import Topology, arrival, captured, changes, csv, debezium, iceberg, json, kafka, parquet, snapshot
from rejoin.declare.declarations import SourceDeclaration
from rejoin.errors import TopologyError
from rejoin.plan import explain
from rejoin.plan.change.edits import table_edits
from rejoin.plan.check.compile import compile
from rejoin.plan.model import json_form
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.sources import CsvFormat

SCHEMA = "id BIGINT, total DECIMAL(10,2), note STRING, n INT"


def plan(kind: str = "files", **options: Any) -> Plan:
    topology = Topology("t")
    source = changes(kafka("orders") if kind == "kafka" else "bronze", **{"order_by": "lsn", **options})
    topology.table("orders", key="id", schema=SCHEMA, source=source).named("out")
    return compile(topology)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order_by": None}, "order_by: expected what says which of two records of a key is newer"),
        ({"order_by": []}, "order_by: expected what says"),
        ({"order_by": "lsn +"}, "order_by: 'lsn +': not valid SQL"),
        ({"order_by": "lsn = '1'"}, "is BOOLEAN; expected a whole number"),
        ({"order_by": ["concat(a, b)", "lsn"]}, "is a text, which can only be the last of several"),
        ({"order_by": "current_timestamp"}, None),
        ({"order_by": "now()"}, "now"),
        ({"deleted": "__deleted"}, "it is a field, and so a text; expected what is true or false"),
        ({"deleted": "concat(a, b)"}, "it is STRING; expected what is true or false"),
        ({"deleted": "a.b = 'x'"}, "columns are written without a qualifier here"),
        ({"columns": ["total"]}, "columns must be a dict"),
        ({"columns": {"totl": "amount"}}, "columns['totl']: the schema has no such column; did you mean 'total'?"),
        ({"columns": {"total": "CAST(amount AS DECIMAL(12,2))"}}, "it is DECIMAL(12,2), and the column DECIMAL(10,2); write a CAST"),
        ({"columns": {"n": "CAST(amount AS BIGINT)"}}, "it is BIGINT, and the column INT"),
        ({"columns": {"n": "sum(amount)"}}, "sum"),
        ({"columns": {"total": "regexp_replace(amount, 'a', 'b')"}}, "it is computed where files are read, without Spark"),
        ({"columns": {"n": "CAST(A AS INT) + CAST(a AS INT)"}}, "two ways"),
        ({"columns": {"note": "NOTE", "n": "note"}}, "names of fields that are read must differ in more than case"),
        ({"columns": {"note": "_file"}}, "a field named '_file' cannot be read"),
        ({"columns": {"note": 5}}, "a text with one SQL expression is expected"),
        ({"format": "csv"}, "format must be json(...), csv(...), parquet(...) or installed_format(...), not 'csv'"),
        ({"format": csv(delimiter=";;")}, "csv: delimiter must be one character"),
        ({"format": csv(quote=",")}, "csv: delimiter and quote are both ','"),
        ({"format": csv(header=False)}, "csv: without a header, names=[...]"),
        ({"format": csv(names=["a", "A"])}, "csv: names must be"),
        ({"format": csv(encoding="klingon")}, "csv: encoding 'klingon' is not known"),
        ({"format": csv(header="no")}, "csv: header must be True or False"),  # type: ignore[arg-type]
        ({"format": csv(escape="\\", null=r"\N")}, "has the escape in it: behind it nothing tells NULL from a text"),
        ({"format": csv(null=None)}, "csv: null must be a text"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_a_mistake_is_told_when_the_topology_file_is_read(options: dict[str, Any], message: str | None) -> None:
    if message is None:  # a field may have any name
        assert plan(**options).table("orders").source.order == ("t.`current_timestamp`",)  # type: ignore[union-attr]
        return
    with pytest.raises(TopologyError) as found:
        plan(**options)
    [problem] = found.value.problems
    assert message in problem.message
    assert problem.message.startswith("table 'orders': ")
    assert problem.file == __file__


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (snapshot("in", columns={"totl": "a"}), "columns['totl']: the schema has no such column"),
        (snapshot("in", null="-", format=csv()), "null stands in csv(...), where a format is given"),
        (snapshot(iceberg("a.b"), format=csv()), "format= is about files: a table of Iceberg has columns"),
        (snapshot(kafka("orders"), columns={"total": "a"}), "a topic has changes(...), debezium(...) or feed(...), or records(...)"),  # type: ignore[arg-type]
        (snapshot("in", columns={"note": "NOTE", "n": "note"}), "must differ in more than case"),
        (snapshot("in", format="csv"), "format must be json(...)"),  # type: ignore[arg-type]
        (changes(iceberg("a.b")), "order_by: expected what says which of two records of a key is newer"),
        (changes(iceberg("a.b"), order_by=arrival()), "rows of a table arrive in no order"),
        (changes(captured("a.b", at="shop"), order_by="n"), "changes(...) reads files, topics of Kafka and tables of Iceberg"),
        (changes("bronze", order_by="n", columns={"total": "_key.total"}), "_key.total is of the key, or a header, of a message"),
        (changes(iceberg("a.b"), order_by="`_header.at`"), "_header.at is of the key, or a header, of a message"),
        (changes(kafka("orders"), format=csv()), "values of a topic are JSON, or Avro with the registry's schemas"),
        (changes(kafka("orders"), deleted="_keys.x = '1'"), "columns are written without a qualifier here"),
        (debezium(iceberg("a.b")), "changes(iceberg(...), order_by=...), if each change is a row that is added"),
    ],
)
def test_snapshots_say_the_same_of_fields(source: SourceDeclaration, message: str) -> None:
    topology = Topology("t")
    topology.table("orders", key="id", schema=SCHEMA, source=source).named("out")
    with pytest.raises(TopologyError) as found:
        compile(topology)
    assert message in str(found.value)


def test_explain_says_what_the_source_promises() -> None:
    said = explain.text(
        plan(deleted="Op = 'D'", order_by=["at", "lsn"], columns={"id": "`Order No`"}, format=csv(delimiter=";", names=["a"]))
    )
    assert "source   changes bronze, csv(delimiter=';', names=('a',)); bad records: quarantine, at most 5%\n" in said
    assert "    order    at, then lsn\n    deleted  where Op = 'D'\n    made of  id = `Order No`\n" in said
    said = explain.text(plan(order_by=arrival(), format=json()))
    assert "order    of files by their names, and of records in them: nothing in a record says it\n    deleted  never" in said


def test_a_topic_needs_no_order_and_its_keys_and_headers_have_names() -> None:
    made = plan(
        "kafka", order_by=None, columns={"note": "concat(_key.note, _header.`ce-id`)", "n": "_key", "total": "_header.total"}, format=json()
    )
    source = made.table("orders").source
    assert source.columns == (("n", "t.`_key`"), ("note", "concat(t.`_key.note`, t.`_header.ce-id`)"), ("total", "t.`_header.total`"))  # type: ignore[union-attr]
    said = explain.text(made)
    assert "    order    of messages in each partition: nothing in a record says it\n    deleted  by a message without value\n" in said
    assert "note = concat(`_key.note`, `_header.ce-id`)" in said
    assert json_form.from_json(json_form.to_json(made)) == made
    again = Topology("t")
    again.table("orders", key="id", schema=SCHEMA, source=source).named("out")
    assert compile(again) == made
    assert "deleted  where a = 'x', and by a message without value" in explain.text(plan("kafka", deleted="a = 'x'"))


@pytest.mark.parametrize("format_", [None, json(), parquet(), csv(delimiter="\t", quote=None, names=["a", "b"], null=r"\N", trim=True)])
def test_a_plan_comes_back_from_its_text(format_: Any) -> None:
    made = plan(format=format_, deleted="gone IS NOT NULL", columns={"note": "concat(a, 'x')"}, order_by=["a", "b"])
    assert json_form.from_json(json_form.to_json(made)) == made


def test_an_edit_is_told_in_sentences() -> None:
    old, new = (
        plan(columns={"total": sql}, format=f).table("orders") for sql, f in (("amount", None), ("CAST(amount AS DECIMAL(10,2))", csv()))
    )
    said = table_edits(old, new)
    assert said[0].startswith("column total is made of CAST(amount AS DECIMAL(10,2)), and was of amount: stored rows keep it")
    assert isinstance(new.source.format, CsvFormat)  # type: ignore[union-attr]
