"""Chapter 16: a perfect second stage is as good as the first stage's recall at the cutoff it reads."""

from lesson import chapter_values

from figures import _style


def data():
    """Recall at the cutoff, and the share of queries answered first after reranking, by cutoff."""
    chapter = chapter_values("ch16")
    return {"cutoff": chapter["cutoffs"], "reached": chapter["reached"], "first": chapter["ends"]}


def draw():
    shown = data()
    figure, axis = _style.panels(width=5.4, height=3.6)
    axis.plot(shown["cutoff"], shown["reached"], "-", color=_style.BLUE, label="first stage: recall at the cutoff")
    axis.plot(shown["cutoff"], shown["first"], "D", color=_style.VERMILION, label="after reranking: right one first")
    axis.axhline(shown["reached"][0], color=_style.INK, linestyle=":", linewidth=1)
    axis.text(28, shown["reached"][0] - 3.6, "first stage alone", fontsize=8.5)
    axis.set_xscale("log")
    axis.set_xticks(shown["cutoff"], [str(c) for c in shown["cutoff"]])
    axis.minorticks_off()
    axis.set(xlabel="candidates the second stage reads", ylabel="queries (%)", ylim=(40, 104))
    axis.legend(loc="lower right", bbox_to_anchor=(1, 0.2))
    axis.set_title("A second stage cannot find what it is not given")
    return figure
