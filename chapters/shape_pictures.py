"""Small pictures of coloured shapes, and captions that name some of what is in them.

A picture is 12 x 12 pixels in 3 colours (432 numbers): one or two copies of one of 5 shapes, in one of 4 colours, at
random places, with light of random strength and noise. Its caption is a bag of words: "a", the colour, the shape.
Unless it is asked to (`say`), it does not tell how many, so that the supervision does not contain "two".
"""

import numpy as np
from plain_encoder import PlainEncoder, train

from nano_simcse.grouping import zero_shot
from nano_simcse.losses import masked_lm
from nano_simcse.optim import Adam

SHAPES = {
    "square": ["####", "#..#", "#..#", "####"],
    "plus": [".##.", "####", "####", ".##."],
    "bar": ["####", "####", "....", "...."],
    "corner": ["#...", "#...", "#...", "####"],
    "diagonal": ["#...", ".#..", "..#.", "...#"],
}
COLOURS = {"red": (1, 0.1, 0.1), "green": (0.1, 1, 0.1), "blue": (0.1, 0.1, 1), "yellow": (0.9, 0.9, 0.1)}
COUNTS = ("one", "two")
WORDS = ["a", *COUNTS, *COLOURS, *SHAPES]
SIDE, PIXELS = 12, 432
_STAMPS = np.array([[[c == "#" for c in line] for line in drawing] for drawing in SHAPES.values()], float)
_RGB = np.array(list(COLOURS.values()))


def draw_pictures(rng, n):
    """pictures (n, PIXELS) and what is in them, int (n, 3): shape, colour, count - 1."""
    what = np.stack([rng.integers(len(SHAPES), size=n), rng.integers(len(COLOURS), size=n), rng.integers(2, size=n)], 1)
    pictures = np.zeros((n, SIDE, SIDE, 3))
    corners = np.array([(r, c) for r in (0, 4, 8) for c in (0, 4, 8)])
    for picture, (shape, colour, more) in zip(pictures, what, strict=True):
        for row, column in corners[rng.choice(9, more + 1, replace=False)]:
            picture[row : row + 4, column : column + 4] += _STAMPS[shape][:, :, None] * _RGB[colour]
    light = np.exp(0.2 * rng.standard_normal((n, 1)))
    return light * pictures.reshape(n, -1) + 0.05 * rng.standard_normal((n, PIXELS)), what


def captions(what, say=("colour", "shape")):
    """Bags of words (n, words) of the captions; say: which of colour, shape, count they mention."""
    bags = np.zeros((len(what), len(WORDS)))
    bags[:, 0] = 1
    names = {"shape": (list(SHAPES), 0), "colour": (list(COLOURS), 1), "count": (COUNTS, 2)}
    for part in say:
        words, column = names[part]
        bags[np.arange(len(what)), [WORDS.index(words[v]) for v in what[:, column]]] = 1
    return bags


def phrase(*words):
    """The bag of one description, for zero-shot labels."""
    bag = np.zeros((1, len(WORDS)))
    bag[0, [0, *(WORDS.index(word) for word in words)]] = 1
    return bag


def colour_jitter(rng, x):
    """Another colour: channels reordered at random and each scaled by 0.3 to 1, a row at a time."""
    image = x.reshape(len(x), -1, 3)
    order = np.argsort(rng.random((len(x), 3)), axis=1)
    mixed = np.take_along_axis(image, order[:, None, :].repeat(image.shape[1], axis=1), axis=2)
    return (mixed * rng.uniform(0.3, 1.0, (len(x), 1, 3))).reshape(len(x), -1)


def shift(rng, x):
    """The picture moved by whole cells, round the edge: each row by its own amount."""
    image = x.reshape(len(x), SIDE, SIDE, 3)
    rows, columns = 4 * rng.integers(3, size=(2, len(x)))
    place = np.arange(SIDE)
    r, c = (place + rows[:, None]) % SIDE, (place + columns[:, None]) % SIDE
    return image[np.arange(len(x))[:, None, None], r[:, :, None], c[:, None, :]].reshape(len(x), -1)


def with_captions(pool, steps=150, seed=0, say=("colour", "shape"), batch=64):
    """(picture encoder, caption encoder) trained on pairs from pool = (pictures, what), symmetric InfoNCE.

    Pictures with the same caption are struck out of each other's negatives.
    """
    pictures, texts = PlainEncoder(PIXELS, 16, 96, seed), PlainEncoder(len(WORDS), 16, 0, seed + 1)

    def draw(rng):
        rows = rng.choice(len(pool[0]), batch, replace=False)
        x, bags = pool[0][rows], captions(pool[1][rows], say)
        same = (bags @ bags.T == bags.sum(axis=1)) & ~np.eye(batch, dtype=bool)
        return x, bags, same

    train(pictures, draw, steps, other=texts, symmetric=True, seed=seed, lr=0.005)
    return pictures, texts


def two_views(pool, colour, steps=200, seed=0, batch=64):
    """A picture encoder trained on two views: moved, and with colour=True in other colours as well."""
    encoder = PlainEncoder(PIXELS, 16, 96, seed)

    def draw(rng):
        x = pool[0][rng.choice(len(pool[0]), batch, replace=False)]
        return tuple(colour_jitter(rng, shift(rng, x)) if colour else shift(rng, x) for _ in range(2))

    train(encoder, draw, steps, seed=seed, lr=0.005)
    return encoder


def named(pictures, texts, x, labels):
    """Number of the nearest label description for each picture."""
    return zero_shot(pictures.encode(x), texts.encode(np.concatenate([phrase(*label) for label in labels])))[0]


def probe(train_rows, train_labels, test_rows, test_labels, ridge=1e-2):
    """Percent right of a linear classifier (ridge regression on one-hot labels) on frozen rows."""
    mean, spread = train_rows.mean(axis=0), train_rows.std(axis=0) + 1e-9
    x, y = (np.c_[(rows - mean) / spread, np.ones(len(rows))] for rows in (train_rows, test_rows))
    targets = np.eye(train_labels.max() + 1)[train_labels]
    beta = np.linalg.solve(x.T @ x + ridge * len(x) * np.eye(x.shape[1]), x.T @ targets)
    return 100 * float(((y @ beta).argmax(axis=1) == test_labels).mean())


def fine_tuned(encoder, train_x, train_labels, test_x, test_labels, steps=120, lr=0.005, seed=0):
    """Percent right after all weights of a copy of the encoder were trained on the labels (softmax, full batch)."""
    copy = PlainEncoder(PIXELS, train_labels.max() + 1, encoder.hidden_units, seed)
    for name in ("w1", "b1"):
        copy.params[name][...] = encoder.params[name]
    copy.params["w2"][...] *= 0.1
    adam = Adam(copy.params)
    for _ in range(steps):
        logits, back = copy.forward(train_x)
        _, loss_back = masked_lm(logits, train_labels)
        adam.step(back(loss_back()), lr)
    return 100 * float((copy.encode(test_x).argmax(axis=1) == test_labels).mean())
