"""Three pairs of points to drag (chapter 11's three pairs): the cosines and the loss follow."""

import numpy as np

from figures import _style
from nano_simcse.layers import normalize
from nano_simcse.losses import info_nce

from .from_chapter import from_chapter
from .window import TEMPERATURES, Window, digits

REACH = 14  # a press within so many pixels takes a point
EDGE, CENTRE = 1.45, 0.05  # no point leaves the square, none comes closer to the origin, where it has no direction
ROWS, BOTH = "circles ask", "both directions"


class Drag(Window):
    """Circle i should be most like square i. Only directions count: the lines show them."""

    def __init__(self):
        super().__init__("Drag the points: each circle wants its own square", columns=2, width_ratios=(1.2, 1))
        self.start = np.stack(from_chapter("ch11", "a3", "b3"))  # (circles or squares, pair, plane)
        self.points, self.held = self.start.copy(), None
        self.slider("temperature tau", TEMPERATURES, 0.1, form="{:g}")
        self.choice("loss", (ROWS, BOTH), ROWS)
        self.buttons({"reset": self.reset})
        self.numbers("InfoNCE loss", "a guess, ln 3", *(f"loss of circle {i}" for i in (1, 2, 3)))
        canvas = self.figure.canvas
        canvas.mpl_connect("button_press_event", self.take)
        canvas.mpl_connect("motion_notify_event", self.move)
        canvas.mpl_connect("button_release_event", self.drop)
        self.ready()

    def reset(self):
        """The three pairs as chapter 11 has them."""
        self.points = self.start.copy()

    def take(self, event):
        """Hold the point under the mouse, if there is one."""
        busy = self.figure.canvas.widgetlock.locked()  # the toolbar's pan or zoom has the mouse
        if busy or event.inaxes is not self.panels[0] or event.button != 1:
            return
        places = self.panels[0].transData.transform(self.points.reshape(6, 2))
        gaps = np.hypot(*(places - (event.x, event.y)).T)
        if gaps.min() <= REACH:
            self.held = divmod(int(gaps.argmin()), 3)

    def move(self, event):
        """Carry the held point along."""
        if self.held is None or event.inaxes is not self.panels[0]:
            return
        target = np.clip([event.xdata, event.ydata], -EDGE, EDGE)
        if np.hypot(*target) >= CENTRE:
            self.points[self.held] = target
            self.redraw()

    def drop(self, event):
        """Let go."""
        self.held = None

    def update(self):
        circles, squares = self.points
        tau, symmetric = self.settings["temperature tau"], self.settings["loss"] == BOTH
        cosines = normalize(circles)[0] @ normalize(squares)[0].T
        self.write({
            "InfoNCE loss": digits(info_nce(circles, squares, tau, symmetric=symmetric)[0]),
            "a guess, ln 3": digits(np.log(3)),
        })
        for i in range(3):
            others = np.delete(squares, i, axis=0)
            alone = info_nce(circles[i : i + 1], squares[i : i + 1], tau, hard_negatives=others)[0]
            self.write({f"loss of circle {i + 1}": digits(alone)})
        self._draw_points(self.panels[0])
        self._draw_table(self.panels[1], cosines)

    def _draw_points(self, axes):
        axes.clear()
        axes.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
        turn = np.linspace(0, 2 * np.pi, 200)
        axes.plot(np.cos(turn), np.sin(turn), color=_style.PALE, linewidth=1)
        for side, marker in zip(self.points, "os", strict=True):
            for i, (x, y) in enumerate(side):
                axes.plot([0, x], [0, y], color=_style.COLOURS[i], linewidth=0.8, alpha=0.6)
                axes.plot(x, y, marker, color=_style.COLOURS[i], markersize=15, markeredgecolor=_style.INK)
                axes.text(x, y, i + 1, ha="center", va="center", fontsize=9, color="white", weight="bold")

    def _draw_table(self, axes, cosines):
        axes.clear()
        names = [f"{k}" for k in (1, 2, 3)]
        _style.heat_map(axes, np.round(cosines, 3) + 0.0, names, names, -1, 1, form="{:+.3f}")
        axes.set(xlabel="square", ylabel="circle")
        axes.set_title("cosines", weight="normal", fontsize=10)
