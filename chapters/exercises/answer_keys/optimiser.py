"""Key of the exercise on Adam."""

import numpy as np

from chapters.exercises.grading import Case, Key, Slip
from nano_simcse.optim import Adam
from nano_simcse.parameters import Parameters


def _adam_right(theta, g, m, v, t, lr, beta1, beta2, eps):
    parameters = Parameters({"x": theta.shape}, dtype=np.float64)
    gradients = parameters.zeros_like()
    parameters["x"][...], gradients["x"][...] = theta, g
    adam = Adam(parameters, betas=(beta1, beta2), eps=eps)
    adam.m["x"][...], adam.v["x"][...], adam.steps = m, v, t - 1
    adam.step(gradients, lr)
    return parameters["x"], adam.m["x"], adam.v["x"]


def _adam_slip(kind):
    def run(theta, g, m, v, t, lr, beta1, beta2, eps):
        if kind == "betas":
            beta1, beta2 = beta2, beta1
        m = beta1 * m + (1 if kind == "1 - beta" else 1 - beta1) * g
        v = beta2 * v + (1 if kind == "1 - beta" else 1 - beta2) * (np.abs(g) if kind == "square" else g**2)
        age = t - 1 if kind == "t" else t
        mhat = m if kind in ("no correction", "no m") else m / (1 - beta1**age)
        vhat = v if kind in ("no correction", "no v") else v / (1 - beta2**age)
        root = {"eps": np.sqrt(vhat + eps), "root": vhat + eps}.get(kind, np.sqrt(vhat) + eps)
        step = lr * (g if kind == "momentum" else mhat) / root
        stored = (mhat, vhat) if kind == "stored" else (m, v)
        return theta + step if kind == "ascent" else theta - step, *stored

    return run


def _adam_cases():
    found = []
    for k, (t, lr, beta1, beta2, eps) in enumerate(((2, 0.01, 0.9, 0.999, 1e-2), (5, 0.1, 0.8, 0.95, 1e-1),
                                                    (40, 1.0, 0.7, 0.9, 1e-3))):
        rng = np.random.default_rng([33, k])
        theta, g, m = rng.standard_normal((3, 7))
        found.append(Case(f"step {t}", (theta, g, m, rng.random(7), t, lr, beta1, beta2, eps)))
    return found


ADAM = Key(
    ("theta", "m", "v"),
    _adam_right,
    _adam_cases,
    (
        Slip("the correction for the moments' start at zero is missing.", _adam_slip("no correction"), ("theta",)),
        Slip("the first moment is not corrected for its start at zero.", _adam_slip("no m"), ("theta",)),
        Slip("the second moment is not corrected for its start at zero.", _adam_slip("no v"), ("theta",)),
        Slip("the correction is one step behind: t counts this step, the first is 1.", _adam_slip("t"), ("theta",)),
        Slip("eps stands under the root; it is added to the root.", _adam_slip("eps"), ("theta",)),
        Slip("the root of the second moment is missing.", _adam_slip("root"), ("theta",)),
        Slip("the step goes uphill.", _adam_slip("ascent"), ("theta",)),
        Slip("the step follows the gradient itself, not its running mean.", _adam_slip("momentum"), ("theta",)),
        Slip("the second moment averages g squared.", _adam_slip("square")),
        Slip("a running mean: old and new weights must add up to 1.", _adam_slip("1 - beta")),
        Slip("beta1 and beta2 are exchanged.", _adam_slip("betas")),
        Slip("the corrected moment is returned; the next step needs the plain one.", _adam_slip("stored"), ("m", "v")),
    ),
    tolerance=1e-8,
    advice="Work one step out with a pencil for a single number.",
)

KEYS = {"adam_step": ADAM}
