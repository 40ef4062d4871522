"""Chapter 16: how much of the exact result an approximate index finds, against how much of the corpus it reads."""

from lesson import chapter_values

from figures import _style


def data():
    """Share of rows compared and share of the exact ten found, by number of opened cells."""
    chapter = chapter_values("ch16")
    return {"cells": chapter["probes"], "compared": 100 * chapter["compared"], "found": 100 * (1 - chapter["gaps"])}


def draw():
    shown = data()
    figure, axis = _style.panels(width=5.8, height=3.6)
    axis.axhline(100, color=_style.PALE, linewidth=1)
    axis.plot(shown["compared"], shown["found"], "o-", color=_style.BLUE)
    for cells, x, y in zip(shown["cells"], shown["compared"], shown["found"], strict=True):
        name = f"{cells} cell{'s' if cells > 1 else ''}"
        below = y > 95
        axis.annotate(name, (x, y), xytext=(6, -14 if below else -4), textcoords="offset points", fontsize=8.5)
    axis.text(60, 100.7, "exact search", fontsize=8.5, color=_style.INK)
    axis.set(xlabel="rows compared with a query (% of 3,000)", ylabel="of the exact ten nearest, found (%)",
             xlim=(0, 118), ylim=(50, 104))
    axis.set_title("A sixth of the rows read, 98 % of the neighbours found")
    return figure
