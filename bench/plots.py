"""The results as small pictures."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from curve import NAMES
from curve_grids import changes
from measure import Row

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

DPI = 80
_STYLES = {"rejoin": ("tab:blue", 2.5), "spark merge, upsert": ("tab:orange", 1.2), "spark merge, update only": ("tab:brown", 1.2)}
_STYLES |= {"rejoin, spark": ("tab:cyan", 1.2), "duckdb indexed": ("tab:green", 1.2)}
_FULL = dict(zip((*NAMES["duckdb"], *NAMES["spark"]), ("black", "tab:red", "tab:pink", "tab:purple"), strict=True))


def plot_curves(curves: dict[int, list[Row]], file: Path) -> None:
    """Seconds against changes, one panel a size: solid for left, dashed for right changes, dotted for recomputing everything."""
    figure, panels = plt.subplots(1, len(curves), figsize=(1.5 + 4.3 * len(curves), 4.8), sharey=True, squeeze=False, layout="constrained")
    for panel, (n, rows) in zip(panels[0], curves.items(), strict=True):
        _panel(panel, rows)
        panel.set(title=f"{n:,} left rows", xlabel="changed rows k", xscale="log", yscale="log")
    panels[0][0].set_ylabel("seconds")
    labels = {label: line for panel in panels[0] for line, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=2 if len(curves) == 1 else 3, fontsize=8, frameon=False)
    _store(file)


def _panel(panel: Axes, rows: list[Row]) -> None:
    for engine, (color, width) in _STYLES.items():
        for side, line in (("left", "-"), ("right", "--")):
            points = [(r.k, r.seconds) for r in changes(rows, engine, side) if r.k]
            if points:
                label = f"{engine} ({side})"
                panel.plot(*zip(*points, strict=True), line, color=color, lw=width, marker="o", ms=width + 1, label=label)
    for r in rows:
        if r.side == "full" and r.engine in _FULL:
            panel.axhline(r.seconds, ls=":", color=_FULL[r.engine], lw=1.5, label=r.engine)
    panel.grid(visible=True, alpha=0.3)


def plot_steady(found: dict[int, list[dict[str, Any]]], file: Path) -> None:
    """Seconds of every run, and of the compactions between them."""
    _, panels = plt.subplots(len(found), 1, figsize=(8, 0.8 + 2.8 * len(found)), squeeze=False, layout="constrained")
    for panel, (n, rows) in zip(panels[:, 0], found.items(), strict=True):
        for kind, style in (("run", "-"), ("compaction", "x")):
            points = [(r["run"], r["seconds"]) for r in rows if r["kind"] == kind]
            if points:
                panel.plot(*zip(*points, strict=True), style, label=kind)
        panel.set(title=f"{n:,} left rows", xlabel="run", ylabel="seconds", yscale="log")
        panel.grid(visible=True, alpha=0.3)
        panel.legend(fontsize=8)
    _store(file)


def _store(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    plt.savefig(file, dpi=DPI)
    plt.close()
