"""A table of results, once as data: printed by rich, written as Markdown."""

from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Grid:
    """A titled table of texts; all columns but the first ``left`` are numbers."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    left: int = 1

    def rich(self) -> Table:
        """For a terminal."""
        table = Table(title=self.title, title_justify="left", box=None)
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="left" if number < self.left else "right")
        for cells in self.rows:
            table.add_row(*cells)
        return table

    def markdown(self) -> str:
        """For a page."""
        line = "|".join("---" if number < self.left else "---:" for number in range(len(self.columns)))
        rows = [f"| {' | '.join(cells)} |" for cells in (self.columns, *self.rows)]
        return "\n".join([f"**{self.title}**", "", rows[0], f"|{line}|", *rows[1:], ""])


def seconds(value: float | None) -> str:
    """Two decimals below ten seconds, one above; a dash for nothing."""
    return "-" if value is None else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def megabytes(value: float) -> str:
    """MB with one decimal, without from a hundred on."""
    return f"{value / 1e6:,.1f}" if value < 1e8 else f"{value / 1e6:,.0f}"
