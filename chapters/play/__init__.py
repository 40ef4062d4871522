"""Windows to play with: `python -m chapters.play NAME` opens one.

Each window is one file and one class of that name (twins.py: Twins). `window.py` has the sliders, buttons and
readouts they share; `from_chapter.py` fetches a chapter's own functions, so a window shows the chapter's numbers.
"""

import importlib

#: name -> what the window shows.
WINDOWS = {
    "quiz": "one question of the contrastive quiz: which of the shuffled keys belongs to this query?",
    "twins": "one vector under two dropout masks, and how alike the two views are",
    "masks": "the keep masks of one sentence as 0/1 pictures, view A beside view B",
    "trail": "an encoder in training, walking through the plane of uniformity and alignment",
    "temperature": "the softmax of one row, its loss and its pull, from warm to cold",
    "cone": "a narrow cone of vectors, then centred, whitened or contrastively trained",
    "drag": "three pairs of points to drag, with their cosines and their InfoNCE loss",
}


def build(name):
    """A fresh window (its figure is `.figure`) by its name in WINDOWS."""
    module = importlib.import_module(f"chapters.play.{name}")
    return getattr(module, name.capitalize())()
