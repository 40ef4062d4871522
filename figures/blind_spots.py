"""Which anomalies a detector sees, by the augmentations it was trained with (chapter 17)."""

from lesson import chapter_values

from figures._style import heat_map, panels


def data():
    """areas (detectors, kinds): area under the curve of chapter 17's detectors."""
    return {"areas": chapter_values("ch17")["detected"]}


def draw():
    chapter, areas = chapter_values("ch17"), data()["areas"]
    figure, axes = panels(width=6.8, height=3.9)
    kinds = [kind.replace(" ", "\n") for kind in chapter["KINDS"]]
    image = heat_map(axes, areas, list(chapter["detectors"]), kinds, 0.5, 1.0)
    axes.set(xlabel="kind of anomaly", ylabel="augmentations in training")
    figure.colorbar(image, ax=axes, label="area under the curve (0.5 is blind)")
    title = "Brightness as an augmentation hides the level;\nthe gain is hidden although no augmentation names it"
    figure.suptitle(title, fontsize=11, fontweight="bold")
    return figure
