"""Chapter 11: loss against scale for a clean, a middling and a hard batch, each with the scale it settles at."""

import numpy as np
from lesson import chapter_values

from figures import _style


def data():
    """Scales, the loss of three batches at each, their best scales and losses there, and the share of mistakes."""
    chapter = chapter_values("ch11")
    best = np.minimum(chapter["best"], 100.0)
    pairs, loss = chapter["batches"].values(), chapter["clip_loss"]
    return {
        "scale": chapter["scales"],
        "loss": chapter["sweep"],
        "best": best,
        "best_loss": np.array([float(loss(*pair, np.log(s))[0]) for pair, s in zip(pairs, best, strict=True)]),
        "wrong": chapter["wrong"],
    }


def draw():
    shown = data()
    figure, axis = _style.panels(width=6.6, height=4.2)
    for k, name in enumerate(("clean", "middling", "hard")):
        label = f"{name}: {100 * shown['wrong'][k]:.0f} % mistakes"
        axis.plot(shown["scale"], shown["loss"][k], linestyle=_style.DASHES[k], color=_style.COLOURS[k], label=label)
        axis.plot(shown["best"][k], shown["best_loss"][k], _style.MARKERS[k], color=_style.COLOURS[k], markersize=9)
        place = (0, 9) if k else (18, 2)
        axis.annotate(f"{shown['best'][k]:.0f}", (shown["best"][k], shown["best_loss"][k]), place,
                      textcoords="offset points", ha="center", fontsize=9)
    axis.axvspan(100, 300, color=_style.PALE, alpha=0.4, linewidth=0, label="beyond the ceiling of 100")
    axis.set_xscale("log")
    axis.set_xticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
    axis.minorticks_off()
    axis.set_xlim(1, 300)
    axis.set_ylim(-0.25, 8)
    axis.set(xlabel="scale 1 / temperature", ylabel="loss, rows and columns (nats)")
    axis.legend(loc="upper left", bbox_to_anchor=(0.02, 0.99))
    axis.set_title("Mistakes decide where a learned scale stops")
    return figure
