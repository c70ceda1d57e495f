"""Files of a directory."""

from collections.abc import Iterator

from rejoin.doctor.findings import Finding, ok, problem, warning
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import Meaning
from rejoin.sources.recognition import hint
from rejoin.sources.stored_files import Place, children, first_lines, format_of, place
from rejoin.sources.transports.layout import layout, reading_order
from rejoin.sources.transports.listing import FEW, reads_any_name
from rejoin.sources.transports.snapshot_files import beside_snapshots

_SAMPLE = 20
_BINARY = (".avro", ".parquet")


def findings(table: Table, root: str) -> Iterator[Finding]:
    """What is found below the path of a source. Lists names, and reads the first lines of the newest file.

    Raises:
        SourceError: the path cannot be looked at.
    """
    where = place(root, table.source.path)
    if table.source.meaning is Meaning.SNAPSHOT:
        entries = [where] if not where.is_directory() else list(children(root, where))
        files, others = [entry for entry in entries if entry.exists()], beside_snapshots(table, root, where)
    else:
        found = layout(root, table.source.path, lambda name: reads_any_name(table.source) or format_of(name) is not None)
        listed = [] if found is None else sorted(found.files.items(), key=lambda item: reading_order(item[0]))
        files, others = [file.place for _, file in listed], () if found is None else tuple(found.others)
    if not files and not where.exists():
        yield problem(table.name, "path", f"{table.source.path} is not there", "check the path and --root, or deliver the first files")
        return
    if not files:
        yield warning(
            table.name, "files", "there are none that are read", "deliver the first files, under names that docs/sources.md lists"
        )
    else:
        yield ok(table.name, "files", f"{len(files)}, the last of them {files[-1].name}")
    if others:
        shown = ", ".join(sorted(others)[:FEW]) + (f" and {len(others) - FEW} more" if len(others) > FEW else "")
        yield warning(table.name, "ignored", shown, "name the directory that holds the files, or a pattern: landing/**/*.json")
    if files and (told := _hint(table, files[-1])):
        yield problem(table.name, "records", told, "declare the source so")


def _hint(table: Table, newest: Place) -> str:
    """What the records of a feed are, if that is not what is declared."""
    if table.source.meaning is not Meaning.FEED or newest.name.endswith(_BINARY):
        return ""
    texts = [raw.decode(errors="replace") for raw in first_lines(newest, _SAMPLE)]
    return hint(table.source, texts).removesuffix("; else ")
