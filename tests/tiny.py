"""Small made-up text for tests of training: enough words to learn something from, made in microseconds."""

import itertools

SUBJECTS = ("the cat", "a dog", "my teacher", "the old sailor", "a young girl", "the king", "our neighbour", "a robot")
VERBS = ("watches", "paints", "follows", "remembers", "repairs", "draws")
OBJECTS = ("the red house", "a broken clock", "the river", "an empty street", "two birds", "the last train")


def sentences(count=240):
    """`count` distinct sentences of at least eight words, in a fixed order."""
    made = (
        f"in the morning {s} {v} {o} near the sea" for v, o, s in itertools.product(VERBS, OBJECTS, SUBJECTS)
    )
    return list(itertools.islice(made, count))


def pairs(count=240):
    """(sentence, paraphrase) pairs."""
    return [(text, text.replace("in the morning ", "") + " in the morning") for text in sentences(count)]


def translations(count=240):
    """(sentence, its words in a foreign language) pairs without a word in common: every word spelled backwards."""
    return [(text, " ".join(word[::-1] + "o" for word in text.split())) for text in sentences(count)]


def write_sentences(path, count=240):
    path.write_text("\n".join(sentences(count)) + "\n", encoding="utf-8")
    return path


TINY = {"layers": 1, "width": 16, "heads": 2, "vocab": 150, "batch": 8, "steps": 12, "eval_every": 5, "max_length": 24,
        "threads": 1}  # fmt: skip
