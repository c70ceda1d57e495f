"""Tables of an Iceberg catalog."""

from collections.abc import Iterator
from datetime import timedelta

from rejoin.doctor.findings import Finding, ok, problem, warning
from rejoin.plan.model.plan import Table
from rejoin.sources.access import SourceAccess
from rejoin.sources.transports.iceberg_catalog import tables


def findings(table: Table, access: SourceAccess, every: timedelta) -> Iterator[Finding]:
    """What is found of a table.

    Raises:
        SourceMissing: nothing says where the catalog is.
    """
    at, _, name = table.source.path.partition("://")[2].partition("/")
    found = next((one for one in tables(access, at, name) if one.name == name), None)
    if found is None:
        yield problem(table.name, "table", f"the catalog {at} has no {name}", "check its name and its catalog, or let its job run first")
        return
    if found.unread:
        yield problem(
            table.name, "files", found.unread, "let its job run first, or compact it (rewrite_data_files with delete-file-threshold=1)"
        )
    else:
        yield ok(table.name, "files", "they can be read")
    if found.kept_ms is None:
        yield ok(table.name, "snapshots", "the table does not say how long they are kept")
    elif (kept := timedelta(milliseconds=found.kept_ms)) <= every:
        yield warning(
            table.name, "snapshots", f"they are kept for {kept}, and runs are {every} apart: each run reads all rows and compares them",
            "raise history.expire.max-snapshot-age-ms, or run more often",
        )  # fmt: skip
    else:
        yield ok(table.name, "snapshots", f"they are kept for {kept}")
