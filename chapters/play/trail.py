"""Chapter 3's trails: an encoder in training, seen in the plane of uniformity and alignment."""

import numpy as np
import trails

from figures import _style

from .window import Window

TICK, PAUSE, END = 10, 60, 400  # steps between two points, milliseconds between them, where a run stops


class Trail(Window):
    """One trail per setting; the chosen one walks by button or by itself, the others stay for comparison."""

    def __init__(self):
        super().__init__("Trails of training: lower left is better")
        self.walks = {}
        self.slider("dropout rate p", np.arange(1, 15) / 20, 0.1)
        self.choice("views", tuple(trails.SETTINGS), "independent masks")
        self.buttons({"step": self.step, "run": self.run, "reset": self.reset}, in_a_row=3)
        self.numbers("steps", "training loss", "uniformity", "alignment", "100 x Spearman")
        self.timer = self.figure.canvas.new_timer(PAUSE, [(self.tick, (), {})])
        self.running = False
        self.ready()

    @property
    def walk(self):
        """The trail of the chosen setting; it starts anew when the rate has changed."""
        name, rate = self.settings["views"], self.settings["dropout rate p"]
        if name not in self.walks or self.walks[name].rate != rate:
            self.walks[name] = trails.Trail(name, rate=rate, every=TICK)
        return self.walks[name]

    def step(self):
        """Train on for ten steps."""
        self.walk.run(TICK)

    def run(self):
        """Walk by itself to END steps; pressed again, pause."""
        self.running = not self.running
        (self.timer.start if self.running else self.timer.stop)()

    def tick(self):
        """What the timer does."""
        if self.walk.steps < END:
            self.step()
        if self.walk.steps >= END:
            self.run()
        self.redraw()

    def reset(self):
        """The chosen trail back to its random encoder, standing still."""
        if self.running:
            self.run()
        self.walk.reset()

    def update(self):
        walk = self.walk
        losses, points = walk.losses, walk.points
        self.widget("run").label.set_text("pause" if self.running else "run")
        self.write({
            "steps": f"{walk.steps}",
            "training loss": f"{losses[-1]:.4f}" if len(losses) else "none yet",
            "uniformity": f"{points[-1, 0]:.4f}",
            "alignment": f"{points[-1, 1]:.4f}",
            "100 x Spearman": f"{100 * walk.score():.1f}",
        })
        axes = self.panels
        axes.clear()
        for k, name in enumerate(trails.SETTINGS):
            if name in self.walks:
                self._draw_walk(axes, name, self.walks[name].points, _style.COLOURS[k], _style.MARKERS[k])
        axes.plot(*points[0], "*", color=_style.INK, markersize=13)
        axes.annotate("start", points[0], (8, 6), textcoords="offset points")
        axes.set(xlim=(-3.8, -1.9), xticks=np.arange(-3.5, -1.9, 0.5), ylim=(-0.05, 1.75),
                 xlabel="uniformity (log mean potential), lower is better",
                 ylabel="alignment (squared distance), lower is better")
        axes.legend(loc="lower left", title="a point every 10 steps")

    def _draw_walk(self, axes, name, points, colour, marker):
        chosen = name == self.settings["views"]
        masked = trails.SETTINGS[name] != "off"
        look = {"color": colour, "alpha": 1 if chosen else 0.5}
        label = f"{name}, p = {self.walks[name].rate:g}" if masked else name
        axes.plot(*points.T, marker + "-", markersize=3, linewidth=1, label=label, **look)
        axes.plot(*points[-1], marker, color=colour, markersize=10, markeredgecolor=_style.INK if chosen else "none")
