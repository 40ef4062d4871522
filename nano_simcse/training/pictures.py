"""What people would rather look at than read: the course of a run, and runs side by side."""

import math

from matplotlib.figure import Figure

from ..pictures import BLUE, GREEN, GREY, ORANGE, save_picture


def draw_training(folder, candidates):
    """training.png of a run: loss against ln of the candidates of a row, alignment and uniformity, effective rank, dev
    score."""
    lines = folder.read_metrics()
    steps = [line for line in lines if "loss" in line]
    scores = [line for line in lines if "score" in line]
    if not steps:
        return
    x = [line["step"] for line in steps]
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    (loss, plane), (rank, dev) = figure.subplots(2, 2)

    loss.plot(x, [line["loss"] for line in steps], color=BLUE)
    chance = math.log(candidates)
    loss.axhline(chance, color=GREY, linestyle="--")
    loss.annotate(f"chance: ln {candidates:,} = {chance:.2f}", (x[-1], chance), ha="right", va="bottom", color=GREY)
    loss.set(title="InfoNCE loss", xlabel="step", ylabel="nats")
    loss.set_ylim(bottom=0)

    plane.plot(x, [line["alignment"] for line in steps], color=ORANGE, label="alignment (0 is best)")
    spread = [line["uniformity"] for line in steps]
    plane.plot(x, spread, color=BLUE, linestyle="--", label="uniformity (lower is better)")
    plane.set(title="Alignment and uniformity of the batch", xlabel="step", ylabel="value")
    plane.legend(frameon=False)

    rank.plot(x, [line["effective_rank"] for line in steps], color=GREEN)
    rank.set(title="Effective rank of the batch", xlabel="step", ylabel="directions")
    rank.set_ylim(bottom=0)

    if scores:
        dev.plot([s["step"] for s in scores], [s["score"] for s in scores], color=BLUE, marker="o", markersize=4)
        dev.set(title="Score the checkpoint is chosen by", xlabel="step", ylabel="recall@1 (%) or Spearman x 100")
    else:
        dev.set_axis_off()
        dev.text(0.5, 0.5, "no dev file and nothing held out", ha="center", va="center", color=GREY)
    for axes in (loss, plane, rank, dev):
        axes.spines[["top", "right"]].set_visible(False)
    save_picture(figure, folder.picture)


def draw_comparison(path, reports):
    """Bars of recall@1 before and after for several runs, with BM25 as a line."""
    reports = [r for r in reports if "recall_at_1" in r["after"]]
    if not reports:
        return
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for i, report in enumerate(reports):
        before, after = report["before"]["recall_at_1"], report["after"]["recall_at_1"]
        fused = report["search"]["fused"]
        bars = [(-0.27, before, "#BBBBBB", "untrained"), (0, after, BLUE, "trained"), (0.27, fused, GREEN, "with BM25")]
        for offset, value, colour, label in bars:
            axes.bar(i + offset, value, 0.25, color=colour, label=label if i == 0 else None)
            axes.annotate(f"{value:.1f}", (i + offset, value), ha="center", va="bottom", fontsize=9)
    bm25 = reports[0]["search"]["bm25"]
    axes.axhline(bm25, color=ORANGE, linestyle="--", label=f"BM25 alone: {bm25:.1f}")
    names = [f"{r['positives']}\n{r['steps']} steps, {r['seconds']:.0f} s" for r in reports]
    axes.set_xticks(range(len(reports)), names)
    axes.set(title=f"Finding {reports[0]['task']}, among {reports[0]['held_out']}", ylabel="recall@1 (%)")
    axes.set_ylim(top=1.25 * max(bm25, *(r["search"]["fused"] for r in reports)))
    axes.legend(frameon=False, ncols=4, loc="upper center", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    save_picture(figure, path)
