"""What a training step costs, by counting: the model behind `python -m benchmarks.growth`.

Floating-point operations of one step of B rows of T tokens in two views, M = 2 B T tokens, width D, L layers, P
parameters; a multiplication and an addition count as two, backward as twice the forward:

    linear layers    3 * 2 * 12 D^2 M L     W_q, W_k, W_v, W_o are 4 D^2, up and down 8 D^2
    attention        3 * 2 * 2 T D M L      Q K^T and A V for every token
    head             3 * 2 * D^2 * 2 B      on the pooled rows
    loss             3 * 2 * D B^2          cosines of all pairs of rows
    optimiser        16 P                   clipping and Adam, P = (V + positions + 4) D + L (12 D^2 + 13 D) + D^2 + D

Time is not in proportion to their sum. A step also passes over its activations, 22 D + 3 H T numbers a token and layer
(queries, keys and values 3 D, context, output projection and its norm 4 D, up, GELU and its slope 12 D, down and its
norm 3 D; probabilities, their mask, and their product with it 3 H T), an operation or two for every number read and
written; it passes over the parameters; and it makes calls, whose number grows with L alone.
"""

from dataclasses import dataclass

import numpy as np

from nano_simcse.architecture import parameter_shapes
from nano_simcse.encoder import EncoderConfig

from .workload import VOCABULARY

VIEWS, HEAD_WIDTH = 2, 64
PARTS = ("products", "activations", "parameters", "calls")


@dataclass(frozen=True)
class Point:
    """One training step: T, B, D, L, and the positions the model has (the same for all points)."""

    tokens: int
    rows: int
    width: int
    layers: int
    positions: int

    def encoder_config(self):
        return EncoderConfig(VOCABULARY, self.layers, self.width, self.heads, max_positions=self.positions, head=True)

    @property
    def heads(self):
        """H: one for every 64 columns."""
        return max(1, self.width // HEAD_WIDTH)

    @property
    def parameters(self):
        """P."""
        return sum(int(np.prod(shape)) for shape in parameter_shapes(self.encoder_config()).values())

    def operations(self):
        """{term: floating-point operations} of one step."""
        t, b, d, layers = self.tokens, self.rows, self.width, self.layers
        m = VIEWS * b * t
        return {
            "linear layers": 3 * 2 * 12 * d**2 * m * layers,
            "attention": 3 * 2 * 2 * t * d * m * layers,
            "head": 3 * 2 * d**2 * VIEWS * b,
            "loss": 3 * 2 * d * b**2,
            "optimiser": 16 * self.parameters,
        }

    def costs(self):
        """What the time of each of PARTS is in proportion to: operations, numbers, P, layers + 1."""
        counted = self.operations()
        a_token = 22 * self.width + 3 * self.heads * self.tokens
        activations = VIEWS * self.rows * self.tokens * self.layers * a_token
        return [sum(counted.values()) - counted["optimiser"], activations, self.parameters, self.layers + 1]


@dataclass(frozen=True)
class Axis:
    """A quantity that varies: its field in Point and the points, ascending."""

    name: str
    points: tuple

    @property
    def sizes(self):
        return np.array([getattr(point, self.name) for point in self.points])


def grid(quick):
    """The middle point and the four axes through it."""
    if quick:
        middle = {"tokens": 8, "rows": 8, "width": 64, "layers": 2}
        ranges = {"tokens": (4, 8, 16), "rows": (4, 8, 16), "width": (32, 64, 128), "layers": (1, 2, 4)}
    else:
        middle = {"tokens": 32, "rows": 32, "width": 256, "layers": 4}
        ranges = {
            "tokens": (8, 16, 32, 64, 128), "rows": (8, 16, 32, 64, 128), "width": (64, 128, 256, 512),
            "layers": (1, 2, 4, 8, 12),
        }  # fmt: skip
    positions = max(ranges["tokens"])
    axes = [
        Axis(name, tuple(Point(**(middle | {name: size}), positions=positions) for size in sizes))
        for name, sizes in ranges.items()
    ]
    return Point(**middle, positions=positions), axes


def exponent(sizes, values):
    """Slope of the least-squares line through (log size, log value)."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def fit_parts(points, times):
    """(points, 4) seconds of each of PARTS at each point: the sum fits `times` with the least relative error."""
    from scipy.optimize import nnls

    costs = np.array([point.costs() for point in points], float)
    scale = costs.max(axis=0)
    found, _ = nnls(costs / scale / times[:, None], np.ones(len(points)))
    return costs / scale * found
