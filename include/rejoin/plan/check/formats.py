"""How the files of a source are written, checked."""

import codecs
import json
from typing import Final

from rejoin.declare.formats import FormatDeclaration
from rejoin.plan.check.tables import texts
from rejoin.plan.extensions import formats
from rejoin.plan.model.column_names import repeated
from rejoin.plan.model.problems import BAD_OPTION, Reporter, did_you_mean
from rejoin.plan.model.sources import FORMATS, CsvFormat, Format, InstalledFormat

_ASCII: Final = bytes(range(32, 127))


def format_of(written: object, report: Reporter) -> Format | None:
    """The plan's format; None if none is declared, or after a report."""
    if written is None or isinstance(written, Format):
        return written
    if not isinstance(written, FormatDeclaration):
        report(BAD_OPTION, f"format must be {', '.join(f'{kind}(...)' for kind in FORMATS)} or installed_format(...), not {written!r}")
        return None
    report = Reporter(report.problems, written.place, report.prefix)
    if written.installed:
        return _installed(written.kind, dict(written.options), report)
    return FORMATS[written.kind]() if written.kind != "csv" else _csv(dict(written.options), report)


def _installed(name: str, options: dict[str, object], report: Reporter) -> Format | None:
    """The format is made once here, so that it refuses its options where they are written."""
    if name not in (there := formats.known()):
        hint = did_you_mean(name, there) or f"; there are: {', '.join(sorted(there)) or 'none'}"
        report(BAD_OPTION, f"format {name!r} is not installed{hint}")
        return None
    try:
        made = InstalledFormat(name, json.dumps(options, ensure_ascii=False))
        formats.row_format(made)
    except (TypeError, ValueError) as error:
        report(BAD_OPTION, f"format {name!r} refuses its options: {error}")
        return None
    return made


def _csv(options: dict[str, object], report: Reporter) -> Format | None:
    before = len(report.problems.found)
    signs = {name: _sign(name, options[name], report, or_none=name != "delimiter") for name in ("delimiter", "quote", "escape")}
    for one, other in (("delimiter", "quote"), ("delimiter", "escape"), ("quote", "escape")):
        if signs[one] is not None and signs[one] == signs[other]:
            report(BAD_OPTION, f"csv: {one} and {other} are both {signs[one]!r}; a quote that is doubled is escape=None")
    for name in ("header", "trim"):
        if not isinstance(options[name], bool):
            report(BAD_OPTION, f"csv: {name} must be True or False, not {options[name]!r}")
    names = () if options["names"] in ((), [], None) else texts(options["names"])
    if names is None or repeated(names):
        report(BAD_OPTION, "csv: names must be a list of the names of all fields, none of them twice")
    elif not names and options["header"] is False:
        report(BAD_OPTION, "csv: without a header, names=[...] has to say which fields there are")
    if not isinstance(options["null"], str):
        report(BAD_OPTION, f"csv: null must be a text, not {options['null']!r}")
    elif signs["escape"] is not None and signs["escape"] in str(options["null"]):
        report(BAD_OPTION, f"csv: null {options['null']!r} has the escape in it: behind it nothing tells NULL from a text")
    encoding = _encoding(options["encoding"], report)
    if len(report.problems.found) > before:
        return None
    return CsvFormat(
        delimiter=str(signs["delimiter"]),
        quote=signs["quote"],
        escape=signs["escape"],
        header=bool(options["header"]),
        names=names or (),
        encoding=encoding,
        null=str(options["null"]),
        trim=bool(options["trim"]),
    )


def _sign(name: str, value: object, report: Reporter, *, or_none: bool) -> str | None:
    if value is None and or_none:
        return None
    if (
        isinstance(value, str)
        and len(value) == 1
        and (value in "\t|\x1f\x01" or (value.isascii() and value.isprintable() and not value.isalnum()))
    ):
        return value
    report(BAD_OPTION, f"csv: {name} must be one character of ASCII, and no letter or digit, not {value!r}")
    return None


def _encoding(value: object, report: Reporter) -> str:
    """Its usual name: the one of Python."""
    try:
        found = codecs.lookup(value) if isinstance(value, str) else None
        if found is not None and isinstance(_ASCII.decode("ascii").encode(found.name), bytes):
            return "utf-8" if found.name == "utf-8-sig" else found.name
    except (LookupError, UnicodeError):
        pass
    report(BAD_OPTION, f"csv: encoding {value!r} is not known; expected one such as 'utf-8', 'latin-1', 'cp1252' or 'utf-16'")
    return "utf-8"
