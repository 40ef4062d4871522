"""Recall by popularity and spread of exposure, by the rule that draws the negatives (chapter 17)."""

from lesson import chapter_values

from figures._style import COLOURS, INK, MARKERS, panels


def data():
    """board (lists, 6): recall in percent of head, middle, tail and all items, coverage, effective items."""
    return {"board": chapter_values("ch17")["board"]}


def draw():
    board, names = data()["board"], list(chapter_values("ch17")["lists"])
    figure, (left, right) = panels(2, width=5.0, height=3.8)
    for k, (name, row) in enumerate(zip(names, board, strict=True)):
        dash = ":" if name.startswith("true") else "--" if name == "best sellers" else "-"
        left.plot(range(3), row[:3], ls=dash, marker=MARKERS[k], color=COLOURS[k], label=name)
        right.plot(row[5], row[3], MARKERS[k], ms=8, color=COLOURS[k])
        above = name not in ("true log p", "popularity, corrected")
        right.annotate(name, (row[5], row[3]), (0, 8 if above else -14), textcoords="offset points", fontsize=8,
                       color=INK, ha="left" if row[5] < 100 else "center")
    left.set_xticks(range(3), ["head", "middle", "tail"])
    left.set(xlabel="items, each group a third of all purchases", ylabel="recall at 30 candidates, percent")
    left.set(ylim=(-5, 148), yticks=range(0, 101, 20))
    left.legend(fontsize=8, ncols=2, loc="upper center")
    right.set(xlabel="effective number of items shown", ylabel="recall of all, percent", xlim=(25, 262), ylim=(20, 75))
    figure.suptitle("Uncorrected popularity negatives give up the head; the correction gives it back",
                    fontsize=11, fontweight="bold")
    return figure
