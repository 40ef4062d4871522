"""A study to look at: one row an arm, one dot a seed, and the paper's figures beside them."""

import math
import statistics

from matplotlib.figure import Figure

from ..pictures import BLUE, GREY, ORANGE, save_picture


def published(plan):
    """{arm: figure} that the orderings of `plan` quote."""
    figures = {}
    for ordering in plan.orderings:
        if ordering.paper:
            figures.update(zip((ordering.better, ordering.worse), ordering.paper, strict=True))
    return figures


def draw_study(path, plan, rows, measure):
    """Write the picture of `rows` (table.COLUMNS) to the .png `path`; measure: what a score is, in words."""
    figures = published(plan)
    panels = 2 if figures else 1
    figure = Figure(figsize=(5.2 + 3.2 * panels, 1.9 + 0.36 * len(plan.arms)), layout="constrained")
    axes = figure.subplots(1, panels, sharey=True, squeeze=False, width_ratios=(2, 1)[:panels])[0]
    at = {arm.name: place for place, arm in enumerate(plan.arms)}
    for which, colour, offset in (("best", BLUE, -0.14), ("last", ORANGE, 0.14)):
        _dots(axes[0], at, rows, f"score_{which}", colour, offset, LABELS[which])
    axes[0].set_yticks(range(len(at)), list(at))
    axes[0].set_ylim(len(at) - 0.5, -0.5)
    axes[0].set(title=plan.title, xlabel=measure)
    if figures:
        axes[1].plot(list(figures.values()), [at[name] for name in figures], "D", color=GREY, markersize=5)
        for name, value in figures.items():
            axes[1].annotate(f"{value:g}", (value, at[name]), (6, 0), textcoords="offset points", va="center",
                             fontsize=8, color=GREY)  # fmt: skip
        tables = ", ".join(dict.fromkeys(o.table for o in plan.orderings if o.table))
        axes[1].set(title=f"Gao et al. 2021, {tables}", xlabel="as published")
        axes[1].margins(x=0.3)
    for panel in axes:
        panel.grid(axis="y", color="#E5E5E5", linewidth=0.8)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    if axes[0].get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
    save_picture(figure, path)


LABELS = {"best": "best checkpoint", "last": "last step"}


def _dots(axes, at, rows, column, colour, offset, label):
    for name, place in at.items():
        values = [row[column] for row in rows if row["arm"] == name and not math.isnan(row[column])]
        if values:
            y = place + offset
            axes.plot(values, [y] * len(values), "o", color=colour, markersize=4.5, alpha=0.65, label=label)
            axes.plot([statistics.fmean(values)], [y], "|", color=colour, markersize=13, markeredgewidth=2)
            label = None
