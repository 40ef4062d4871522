"""What the windows share: plots on the left; sliders, buttons and numbers in a column on the right.

A window sets its controls up in __init__, ends it with ready(), and draws itself in update() from self.settings,
which holds the value of every slider and choice by its name. A control that moves calls update().
"""

import numpy as np
from matplotlib.widgets import Button, Slider

from figures import _style

RIGHT, WIDTH = 0.745, 0.235  # the column of controls, in shares of the figure's width
PLAIN, CHOSEN = "#EEEEEE", "#B9D9EE"

#: Temperatures from 0.01 to 1 in equal ratios, rounded to two digits.
TEMPERATURES = np.array([float(f"{tau:.2g}") for tau in np.geomspace(0.01, 1, 81)])


class Window:
    """A figure with controls.

    figure, panels   matplotlib's, in the look of the lesson's figures; panels as plt.subplots gives them
    settings         name -> value of each slider and choice
    stops            name -> the values at which a slider stops
    """

    def __init__(self, title, columns=1, rows=1, size=(10.6, 6.0), **options):
        self.figure, self.panels = _style.panels(columns, rows, size[0] / columns, size[1] / rows, **options)
        self.figure.get_layout_engine().set(rect=(0.01, 0.02, RIGHT - 0.045, 0.91), wspace=0.06, hspace=0.06)
        self.figure.text(0.02, 0.965, title, weight="bold", fontsize=11, va="center")
        self.figure.canvas.manager.set_window_title(title)
        self.settings, self.stops = {}, {}
        self._widgets = {}  # matplotlib keeps no reference: a widget that nothing refers to falls silent
        self._numbers = {}
        self._height = size[1]
        self._top = 0.92

    def update(self):
        """Draw the window anew from self.settings; each window has its own."""
        raise NotImplementedError

    def ready(self):
        """Draw for the first time, then keep every panel where the layout has put it."""
        self.update()
        self.figure.draw_without_rendering()
        self.figure.set_layout_engine("none")

    def slider(self, name, values, start, form="{:.2f}"):
        """A slider over a list of values (evenly spaced or not), standing at start."""
        values = np.asarray(values)
        self._label(name)
        axes = self._room(0.2, WIDTH - 0.05)
        at = int(np.argmin(np.abs(values - start)))
        knob = Slider(axes, "", 0, len(values) - 1, valinit=at, valstep=1, color=_style.BLUE, initcolor="none")
        knob.valtext.set(fontsize=9, x=1.06)  # clear of the handle at the right end

        def moved(position):
            value = values[int(position)].item()
            self.settings[name] = value
            knob.valtext.set_text(form.format(value))

        moved(at)
        knob.on_changed(lambda position: (moved(position), self.redraw()))
        self._widgets[name], self.stops[name] = knob, values

    def choice(self, name, options, start, in_a_row=2):
        """Buttons of which one is chosen."""
        self._label(name)

        def press(option):
            self.settings[name] = option
            self._mark(name)
            self.redraw()

        self._buttons({option: lambda option=option: press(option) for option in options}, in_a_row)
        self._widgets[name] = [self._widgets[option] for option in options]
        self.settings[name] = start
        self._mark(name)

    def buttons(self, actions, in_a_row=2):
        """Buttons that do something: label -> function without arguments."""
        redrawn = {label: lambda act=act: (act(), self.redraw()) for label, act in actions.items()}
        self._buttons(redrawn, in_a_row)

    def numbers(self, *names):
        """Lines for numbers; write() fills them in."""
        self._top -= 0.1 / self._height
        for name in names:
            self._top -= 0.23 / self._height
            self.figure.text(RIGHT, self._top, name, fontsize=9)
            self._numbers[name] = self.figure.text(RIGHT + WIDTH, self._top, "", fontsize=9, weight="bold", ha="right")
        self._top -= 0.1 / self._height

    def write(self, numbers):
        """Show numbers: name -> text."""
        for name, text in numbers.items():
            self._numbers[name].set_text(text)

    def shown(self, name):
        """The text that stands beside a name now."""
        return self._numbers[name].get_text()

    def widget(self, name):
        """matplotlib's Slider of a setting, or the Button with this label."""
        return self._widgets[name]

    def redraw(self):
        """After a change that no control made: a drag, a timer."""
        self.update()
        self.figure.canvas.draw_idle()

    def _label(self, name):
        self._top -= 0.27 / self._height
        self.figure.text(RIGHT, self._top + 0.05 / self._height, name, fontsize=9)

    def _room(self, inches, width):
        """Axes for a control: the next `inches` of the column."""
        self._top -= inches / self._height
        axes = self.figure.add_axes((RIGHT, self._top, width, inches / self._height))
        self._top -= 0.05 / self._height
        return axes

    def _buttons(self, actions, in_a_row):
        labels = list(actions)
        for start in range(0, len(labels), in_a_row):
            row, top = labels[start : start + in_a_row], self._top
            width = WIDTH / in_a_row
            for place, label in enumerate(row):
                self._top = top
                axes = self._room(0.28, width - 0.006)
                left, bottom, *size = axes.get_position().bounds
                axes.set_position((left + place * width, bottom, *size))
                button = Button(axes, label, color=PLAIN, hovercolor="#DDDDDD")
                button.label.set_fontsize(8)
                axes.spines[:].set_visible(True)
                axes.spines[:].set_color(_style.PALE)
                button.on_clicked(lambda event, act=actions[label]: act())
                self._widgets[label] = button

    def _mark(self, name):
        for button in self._widgets[name]:
            button.color = CHOSEN if button.label.get_text() == self.settings[name] else PLAIN
            button.ax.set_facecolor(button.color)


def digits(x):
    """A number for a readout: six decimals, or a power of ten where those would show nothing."""
    return f"{x:.6f}" if x == 0 or 1e-4 <= abs(x) < 1e4 else f"{x:.4e}"
