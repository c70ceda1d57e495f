"""What a user writes for how files are written: ``json``, ``csv``, ``parquet``, ``installed_format``. Recorded; ``plan.check.formats`` checks."""

from collections.abc import Sequence
from dataclasses import dataclass

from rejoin.declare.declarations import Place, here


@dataclass(frozen=True, eq=False)
class FormatDeclaration:
    """A format as written: ``kind``, the name of the function that was called or of an installed format, and its keyword arguments, unchecked."""

    kind: str
    options: tuple[tuple[str, object], ...]
    place: Place
    installed: bool = False


def json() -> FormatDeclaration:
    """Lines of JSON, one object each."""
    return FormatDeclaration("json", (), here())


def parquet() -> FormatDeclaration:
    """Parquet files."""
    return FormatDeclaration("parquet", (), here())


def csv(
    *,
    delimiter: str = ",",
    quote: str | None = '"',
    escape: str | None = None,
    header: bool = True,
    names: Sequence[str] = (),
    encoding: str = "utf-8",
    null: str = "",
    trim: bool = False,
) -> FormatDeclaration:
    r"""CSV as its writer writes it.

    Args:
        delimiter: the character between fields, such as ``";"`` or ``"\t"``.
        quote: the character around a field that holds delimiters or line ends; None: there are no quotes.
        escape: the character before a quote inside such a field, such as ``"\\"``; None: a quote is doubled.
        header: the first line names the fields. With ``names`` it is left out.
        names: the fields in their order, if there is no header or its names are not to be used.
        encoding: such as ``"latin-1"`` or ``"utf-16"``.
        null: the text that means NULL.
        trim: white space around a field does not count.
    """
    options = (("delimiter", delimiter), ("quote", quote), ("escape", escape), ("header", header), ("names", names))
    return FormatDeclaration("csv", (*options, ("encoding", encoding), ("null", null), ("trim", trim)), here())


def installed_format(name: str, **options: object) -> FormatDeclaration:
    """A format that an installed package brings.

    Args:
        name: the name of its entry point.
        options: its own options: texts, numbers, True, False, None, lists and dicts of these.
    """
    return FormatDeclaration(name, tuple(options.items()), here(), installed=True)
