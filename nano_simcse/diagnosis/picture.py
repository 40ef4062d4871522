"""One picture of a text read in several ways: spectra, cosines of random pairs, and the alignment-uniformity plane."""

import numpy as np
from matplotlib.figure import Figure

from ..geometry import spectrum_decay, unit_rows
from ..pictures import AMBER, BLACK, BLUE, GREY, ORANGE, PINK, SKY, save_picture

COLOURS = (GREY, SKY, BLUE, AMBER, PINK, BLACK)
LINES = ("-", "--", ":", "-.")
SMALLEST = 1e-3  # singular values below this share of the largest are not drawn
PAIRED = 1000  # rows whose pairs make the histogram


def draw_diagnosis(path, readings, title):
    """Write the picture of `Readings` to `path`, a PNG."""
    clouds, reports = readings.clouds, readings.reports
    figure = Figure(figsize=(13, 4.3), layout="constrained")
    spectra, cosines, plane = figure.subplots(1, 3)
    lowest, styles = 0.0, {name: _style(i, name) for i, name in enumerate(clouds)}
    for name, x in clouds.items():
        decay = spectrum_decay(x)
        seen = decay > SMALLEST
        spectra.plot(np.flatnonzero(seen) + 1, decay[seen], label=name, **styles[name])
        drawn = pair_cosines(x)
        lowest = min(lowest, float(drawn.min()))
        cosines.hist(drawn, bins=np.linspace(-1, 1, 101), density=True, histtype="step", **styles[name])
    spectra.set(title="Decay of the spectrum", xlabel="direction", ylabel="singular value / largest", yscale="log")
    spectra.set_xscale("log")
    spectra.legend(frameon=False)
    cosines.set(title="Cosine of two random sentences", xlabel="cosine", ylabel="density")
    cosines.set_xlim(max(-1, lowest - 0.05), 1)
    if all(report.alignment is not None for report in reports.values()):
        _draw_plane(plane, reports, styles)
    else:
        _draw_ranks(plane, reports, styles)
    for axes in (spectra, cosines, plane):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title)
    save_picture(figure, path)


def pair_cosines(x, most=PAIRED):
    """Cosines of all pairs i < j among at most `most` rows of x (N, D), taken at even steps: one vector."""
    x = unit_rows(x)
    x = x[np.unique(np.linspace(0, len(x) - 1, most).astype(int))]
    return (x @ x.T)[np.triu_indices(len(x), 1)]


def _style(i, name):
    if name == "trained":
        return {"color": ORANGE, "linestyle": "-", "linewidth": 2}
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i % len(LINES)]}


def _draw_plane(axes, reports, styles):
    # labels below and above in turn, from the bottom up, so that neighbours do not cover each other
    for i, (name, report) in enumerate(sorted(reports.items(), key=lambda item: item[1].alignment)):
        score = "" if report.sts is None else f" ({report.sts:.1f})"
        axes.scatter(report.uniformity, report.alignment, color=styles[name]["color"], s=45, zorder=3)
        axes.annotate(f"{name}{score}", (report.uniformity, report.alignment), xytext=(6, 5 if i % 2 else -12),
                      textcoords="offset points", fontsize=9)  # fmt: skip
    scored = " (with STS)" if any(report.sts is not None for report in reports.values()) else ""
    axes.set(title=f"Alignment and uniformity{scored}", xlabel="uniformity (lower is better)",
             ylabel="alignment (lower is better)")  # fmt: skip
    axes.margins(0.25, 0.15)
    axes.set_ylim(bottom=0)


def _draw_ranks(axes, reports, styles):
    for i, (name, report) in enumerate(reports.items()):
        axes.barh(i, report.effective_rank, color=styles[name]["color"])
    axes.set_yticks(range(len(reports)), list(reports))
    axes.invert_yaxis()
    axes.set(title="Effective rank (no pairs: alignment is not known)", xlabel="directions")
