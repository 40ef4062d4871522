"""Exercise 1 (chapter 0): share of common words."""


def word_overlap(a: str, b: str):
    """Overlap of two sentences, words separated by blanks: a number from 0 to 1."""
    first, second = set(a.split()), set(b.split())
    return len(first & second) / len(first | second)
