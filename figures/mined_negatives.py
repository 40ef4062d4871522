"""Chapter 12: recall@1 along training, with in-batch negatives alone and with 16 more candidates of four kinds."""

import numpy as np
from lesson import chapter_values

from figures import _style

NAMES = {"+ BM25": "mined by BM25, without answers", "+ random": "drawn at random",
         "+ BM25 with answers, masked": "mined, answers masked",
         "+ BM25 with answers, left in": "mined, answers left in", "in-batch only": "none"}


def data():
    """Training step, and recall@1 (percent of 900 unseen questions) per kind of extra candidate, in NAMES' order."""
    chapter = chapter_values("ch12")
    return {"step": chapter["steps"], "recall": np.array([chapter["learnt"][name] for name in NAMES])}


def draw():
    shown = data()
    figure, axis = _style.panels(1, width=6.6, height=4.0)
    for k, (name, recall) in enumerate(zip(NAMES.values(), shown["recall"], strict=True)):
        axis.plot(shown["step"], recall, color=_style.COLOURS[k], linestyle=_style.DASHES[k], marker=_style.MARKERS[k],
                  label=name)
    axis.set(xlabel="training step (16 questions each)", ylabel="recall@1 (percent of 900)", ylim=(0, 92))
    axis.legend(title="16 more passages per batch", loc="lower right", fontsize=8.5, title_fontsize=8.5)
    axis.set_title("Passages that look right teach what random ones leave out")
    return figure
