"""What identifies a node's definition: while it stays the same, the stored output can be kept up to date by changes."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable

from rejoin.plan.model.plan import Node, Plan, View

DEFINITION = ("left", "edges", "columns", "where", "key", "grouping")
"""The fields of a node that are its definition."""
HASH_VERSION = 2
"""Version of the value hash's encoding (``statements.value_hash``). Another version rebuilds every node, so hashes of two versions never meet."""


def columns_print(columns: Iterable[str]) -> str:
    """16 hex digits of the names of hashed columns, in order, and of ``HASH_VERSION``: they are hashed with the values, which stand there by place."""
    return hashlib.sha256(json.dumps([HASH_VERSION, *columns]).encode("ascii")).hexdigest()[:16]


def fingerprint(plan: Plan, node: Node, hash_version: int = HASH_VERSION) -> str:
    """SHA-256 (hex) of a node's own part of the plan.

    A node that keeps what it saw has the first ``hash_version`` for ever: made anew, it would take today's right rows.

    It changes with the node's views, joins, filter, columns or key, with the name, key, or a read column's type of a table or
    node that it reads directly, and with ``hash_version``. It does not change with source paths and options, with the refresh policy, with
    sinks, with expectations, with columns
    that the node does not read, with what reads the node, or with how the nodes that it reads are made (their changes arrive
    as changes).
    """
    whole = dataclasses.asdict(node)
    own = {name: whole[name] for name in DEFINITION}
    if node.grouping is None:  # no plan said it before there were groups
        del own["grouping"]
    own["edges"] = [{n: v for n, v in edge.items() if (n, v) != ("match", None)} for edge in own["edges"]]  # what no plan said before
    content = {
        "hash_version": 1 if node.keeps_what_it_saw else hash_version,
        "node": own,
        "inputs": [_input(plan, view) for view in node.views],
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _input(plan: Plan, view: View) -> dict[str, object]:
    """Name, key and the types of the read columns of a table or node. A column of the input is read where it stands in a text
    as ``t.`name` `` (column names hold no backticks).
    """
    read = "\n".join([*(column.sql for column in view.columns), view.where or ""])
    types = {column.name: column.type for column in plan.columns_of(view.table) if f"t.`{column.name}`" in read}
    return {"name": view.table, "key": plan.key_of(view.table), "columns": types}
