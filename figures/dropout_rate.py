"""Chapters 2 and 3: score against dropout rate, as reported for BERT and as measured in the trail world."""

import numpy as np
from lesson import chapter_values
from quoted_tables import TABLE_3_DROPOUT

from figures import _style


def data():
    """Rates and scores: the paper's Table 3 (quoted) and the recorded sweeps of chapter 3."""
    chapter = chapter_values("ch03")
    sweep = chapter["trails"].SWEEP
    masks = [k for k, name in enumerate(sweep) if name != "fixed 0.1"]
    fixed = list(sweep).index("fixed 0.1")
    quoted = {float(name): score for name, score in TABLE_3_DROPOUT.items() if not name.startswith("fixed")}
    return {
        "quoted_rate": np.array(list(quoted)),
        "quoted": np.array(list(quoted.values())),
        "quoted_fixed": np.array(TABLE_3_DROPOUT["fixed 0.1"]),
        "rate": np.array(list(sweep.values()))[masks],
        "with_junk": 100 * chapter["last"][masks, 2],
        "without_junk": 100 * chapter["tidy"][masks, 2],
        "fixed": 100 * np.array([chapter["last"][fixed, 2], chapter["tidy"][fixed, 2]]),
    }


def draw():
    shown = data()
    figure, (left, right) = _style.panels(columns=2, width=4.4, height=3.7)
    blue, red = _style.BLUE, _style.VERMILION
    left.plot(shown["quoted_rate"], shown["quoted"], "o-", color=blue, label="a mask per view")
    left.plot(0.1, shown["quoted_fixed"], "X", color=_style.INK, markersize=9, label="one mask for both views")
    left.set(xlabel="dropout rate p", ylabel="100 x Spearman, STS-B dev", ylim=(40, 86))
    left.set_title("BERT-base (quoted, SimCSE Table 3)", weight="normal")
    left.legend(loc="center right")
    right.plot(shown["rate"], shown["without_junk"], "s--", color=red, label="without the junk latent")
    right.plot(shown["rate"], shown["with_junk"], "o-", color=blue, label="with it")
    for score, colour, side in zip(shown["fixed"], (blue, red), (-1, 1), strict=True):  # side by side: both at 0.1
        right.plot(0.1 + 0.012 * side, score, "X", color=colour, markeredgecolor=_style.INK, markersize=10)
    right.plot([], [], "X", color="white", markeredgecolor=_style.INK, markersize=9, label="one mask for both views")
    right.set(xlabel="dropout rate p", ylabel="100 x Spearman, held-out pairs", ylim=(10, 92))
    right.set_title("trail world (measured, 3 seeds)", weight="normal")
    right.legend(loc="lower left", fontsize=9)
    figure.suptitle("Dropout twins help up to a point, then views share too little", x=0.01, ha="left", weight="bold")
    return figure
