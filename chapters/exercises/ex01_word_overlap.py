"""Exercise 1 (chapter 0): share of common words.

The crudest measure of similarity: of all distinct words that two sentences use, which share do they have in common?
1 for a sentence and itself, 0 for two sentences without a common word. Chapter 0 shows what it gets wrong.
"""


def word_overlap(a: str, b: str):
    """Overlap of two sentences, words separated by blanks: a number from 0 to 1."""
    raise NotImplementedError
