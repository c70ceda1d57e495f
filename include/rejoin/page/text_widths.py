"""About how wide a text is. A browser's font is not known here, so the widths are those of a wide one (DejaVu Sans). Pure."""

from unicodedata import east_asian_width

NARROW, WIDE = frozenset(" .,:;'|!`iIjltfr()[]-/"), frozenset("mwMWOQ~+=<>%@&…")
SHARES = {"narrow": 0.4, "wide": 0.98, "other": 0.68, "full": 1.05}
"""Widths of letters, as shares of the font's size."""
BOLD = 1.1


def wide(text: str, size: int, *, bold: bool = False) -> float:
    """Pixels, rather too many than too few."""
    return sum(SHARES[_kind(letter)] for letter in text) * size * (BOLD if bold else 1)


def cut(text: str, pixels: float, size: int, *, bold: bool = False) -> str:
    """As much of a text as there is room for, with a sign that there is more."""
    if wide(text, size, bold=bold) <= pixels:
        return text
    most = next(n for n in range(len(text), -1, -1) if wide(f"{text[:n]}…", size, bold=bold) <= pixels or not n)
    return f"{text[:most]}…"


def _kind(letter: str) -> str:
    if east_asian_width(letter) in "WF":
        return "full"
    return "narrow" if letter in NARROW else "wide" if letter in WIDE else "other"
