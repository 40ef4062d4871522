"""Chapter 12: recall@1 of an encoder that only pulls, against its alignment, read in three ways."""

from lesson import chapter_values

from figures import _style

READINGS = ("cosine, float32", "cosine, float64", "difference, float64")


def data():
    """What does not hang on the last bit: alignments, and recall@1 (percent) well above the spacing of the numbers."""
    chapter = chapter_values("ch12")
    run, rows = chapter["pull_run"], chapter["shrunk_rows"]
    return {"alignment": run[:, 1], "recall": run[run[:, 1] > 1e-9, 4], "shrunk_alignment": rows[:, 0],
            "shrunk_recall": rows[rows[:, 0] > 1e-9, 2], "quiz": chapter["quiz_run"][-1, 4]}


def draw():
    chapter = chapter_values("ch12")
    run, rows, quiz = chapter["pull_run"], chapter["shrunk_rows"][:-2], chapter["quiz_run"][-1, 4]
    figure, (left, right) = _style.panels(2, width=4.8, height=3.7, sharey=True)
    for axis, x, y in ((left, run[:, 1], run[:, 3:6]), (right, rows[:, 0], rows[:, 1:])):
        for k, name in enumerate(READINGS):
            axis.plot(x, y[:, k], color=_style.COLOURS[k], linestyle=_style.DASHES[k], marker=_style.MARKERS[k],
                      markersize=4, label=name)
        axis.set(xscale="log", xlim=(3, 1e-33), xlabel="alignment: mean squared distance of pairs")
        axis.set_xticks([1e0, 1e-8, 1e-16, 1e-24, 1e-32])
        axis.minorticks_off()
        axis.axhline(0.2, color=_style.PALE, linewidth=1, zorder=0)
    left.axhline(quiz, color=_style.INK, linewidth=1, linestyle=":")
    left.text(1e-32, quiz - 1.5, "InfoNCE, trained", ha="right", va="top", fontsize=9)
    left.text(1.5, 1.2, "blind guess", va="bottom", fontsize=8.5)
    for value, name in zip((chapter["eps_32"], chapter["eps_64"]), ("float32", "float64"), strict=True):
        right.axvline(value, color=_style.PALE, linewidth=1, zorder=0)
        right.text(value * 0.4, 96, f"eps of\n{name}", fontsize=8.5, va="top")
    left.set(ylabel="recall@1 (percent of 500)", ylim=(-2, 100))
    left.set_title("trained to pull only, time runs to the right", fontsize=10, fontweight="normal")
    right.set_title("not trained, only shrunk", fontsize=10, fontweight="normal")
    left.legend(loc="upper right", bbox_to_anchor=(1.0, 0.84), fontsize=8.5)
    figure.suptitle("A collapsed cloud keeps its order until the number format loses it", fontweight="bold")
    return figure
