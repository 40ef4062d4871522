"""The embedded corpus: what is read, under which name, and what a training run may not see of it."""

import ast
import gzip
import re
import sys
import warnings
from pathlib import Path

import pytest

from nano_simcse.data import docstrings
from nano_simcse.data.docstrings import Corpus, Entry, load_corpus, read_corpus
from nano_simcse.data.held_out import hold_out, sentences_of
from nano_simcse.data.prose import is_prose, plain, read_docstring, same_text, sentences
from nano_simcse.errors import InputError

DOCSTRING = r"""
    factor(a, full=True) -> tuple

    Factor a matrix into two `~toy.Triangle` objects.

    The product of the *two* gives back ``a`` up to rounding [1]_. It needs
    :math:`n^3` operations. See :func:`toy.other` and `the manual <https://example.org>`_
    for the theory, e.g. for Hermitian input. This is based on [2]_::

        some code that is not a sentence of the text

    .. versionadded:: 1.2
       It was added in the second release.

    .. note:: The rows of the result are sorted.

    ======  ==========
    name    a meaning of the name
    ======  ==========

    %(extra)s
    - The items of a list are prose as well,
      even over two lines.

    Parameters
    ----------
    a : (M, N) array_like
        The matrix that is to be factored.

    Notes
    -----
    The method is stable for all input.

    >>> factor(the_matrix_of_the_example)
    This is the output of the example.

    References
    ----------
    .. [1] A. Author, "The title of the paper", 1999.
"""


def test_a_docstring_becomes_prose():
    prose = read_docstring(DOCSTRING)
    assert prose.summary == "Factor a matrix into two Triangle objects."
    assert prose.description == [
        "The product of the two gives back a up to rounding.",
        "See toy.other and the manual for the theory, e.g. for Hermitian input.",
        "The rows of the result are sorted.",
        "The items of a list are prose as well, even over two lines.",
    ]
    others = ["The matrix that is to be factored.", "The method is stable for all input."]
    assert prose.sentences == [prose.summary, *prose.description, *others]


def test_where_the_description_comes_from():
    parameters = "\n\nParameters\n----------\na : list\n    The list to be sorted."
    notes = read_docstring(f"Sort it.{parameters}\n\nNotes\n-----\nThe sort is stable for lists")
    assert (notes.summary, notes.description) == ("Sort it.", ["The sort is stable for lists."])
    definitions = read_docstring("Sort it.\n\nReturns\n-------\nb : list\n    The sorted copy of the list.")
    assert definitions.description == ["The sorted copy of the list."]
    one = read_docstring("Sort the list. It is sorted in place.")
    assert (one.summary, one.description) == ("Sort the list.", ["It is sorted in place."])


@pytest.mark.parametrize(
    ("marked", "clean"),
    [
        ("Use ``x`` or `y` or :class:`.Axes`.", "Use x or y or Axes."),
        ("See :meth:`~a.b.C.run` and :ref:`the guide <guide>`.", "See run and the guide."),
        ("Of **all** the *kept* 2 * 3 * 4 values.", "Of all the kept 2 * 3 * 4 values."),
        ("As shown before [1]_ and later [Foo99]_.", "As shown before and later."),
        (r"A \*star and a\nline", r"A *star and a\nline"),
    ],
)
def test_inline_markup(marked, clean):
    assert plain(marked) == clean


def test_sentences_end_where_sentences_end():
    assert sentences("Pass x. It is, e.g. A list of pp. 3 (or so). See Fig. 2! Why? 3 reasons.") == [
        "Pass x.", "It is, e.g. A list of pp. 3 (or so).", "See Fig. 2!", "Why?", "3 reasons.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Return the length of the list.", True),
        ("Return the length of the list", True),
        ("Return length.", False),  # too short
        ("The value is defined by", False),  # ran into a formula
        ("It takes the following values:", False),
        ("x : array of the values", False),
        ("The result is f(x=1, y=2) of it", False),
        ("def a the in of", False),
        ("The \N{OBJECT REPLACEMENT CHARACTER} of the matrix is found.", False),
        ("The 1 2 3 4 5 6 7 8 9 10 11 12 of it", False),
        ("Gamma beta alpha delta", False),  # no common word
        ("The " + "very " * 60 + "long one.", False),
    ],
)
def test_is_prose(text, verdict):
    assert is_prose(text) is verdict


FILES = {
    "__init__.py": '''"""A toy package for the tests."""
from ._work import shout as shout
from ._work import Loud
raise RuntimeError("this must not be run")
''',
    "_work.py": '''"""Private module of the toy."""
import nowhere_to_be_found
def shout(text):
    """Say the text in capitals.

    The text is returned as it would be shouted. Digits are not shouted at all.
    """
def unpublished(text):
    """Say nothing of the text.

    This stands in a private module and is not public.
    """
class Loud:
    """A voice that is heard far away.

    It carries over the hills and the valleys.
    """
    def _hidden(self):
        """Keep the secret of the voice."""
    @property
    def volume(self):
        """The loudness of the voice.

        It is measured in decibels, as the engineers do.
        """
''',
    "twins.py": '''
"""Twins of other functions. A backslash as in \\d is warned of."""
if True:
    def same(text):
        """Say the text in capitals.

        The text is returned as it would be shouted. Digits are not shouted at all.
        """
    def other(text):
        """Say the text in capitals.

        All letters of it are changed to capitals.
        """
add_newdoc("toy.twins", "compiled", ("part", """Part of a compiled thing.

    It is written in another language."""))
''',
    "echo.py": '''"""An echo repeats what was said in the valley."""
def echo(text):
    """Repeat the text a little later.

    In the hills the text is returned as it would be shouted, but later. It fades.
    """
''',
    "broken.py": "def this is not Python:\n",
    "tests/test_toy.py": '"""These tests are not documentation of the toy."""\n',
}


@pytest.fixture
def toy(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_corpus({"toy": tmp_path / "toy"}, {"toy": "1.0"}, progress=False)


def test_entries_have_public_names_and_distinct_texts(toy):
    assert {entry.name: bool(entry.description) for entry in toy.entries} == {
        "toy": False,
        "toy.shout": True,  # and not toy.twins.same, whose text is the same
        "toy.Loud": True,
        "toy.Loud.volume": True,
        "toy.echo": False,
        "toy.echo.echo": True,
        "toy.twins": True,
        "toy.twins.other": True,
        "toy.twins.compiled.part": True,
    }
    assert "toy" not in sys.modules
    assert toy.entries[[e.name for e in toy.entries].index("toy.Loud.volume")] == Entry(
        "toy.Loud.volume", "The loudness of the voice.", "It is measured in decibels, as the engineers do."
    )


def test_sentences_are_distinct_and_tests_are_not_read(toy):
    keys = [same_text(sentence) for sentence in toy.sentences]
    assert len(keys) == len(set(keys))
    assert "keep the secret of the voice" in keys
    assert not any("these tests" in key for key in keys)


def test_reading_is_quiet_and_repeats(toy, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = read_corpus({"toy": tmp_path / "toy"}, {"toy": "1.0"}, progress=False)
    assert again == toy


def assert_unseen(split):
    """No held-out side, and no sentence in one, occurs word for word in any training text."""
    training = [*split.train_sentences, *(side for pair in split.train_pairs for side in pair)]
    everything = "\n".join(f" {same_text(text)} " for text in training)
    for entry in split.held_out_entries:
        for text in sentences_of(entry):
            assert f" {same_text(text)} " not in everything


def test_nothing_of_a_held_out_pair_is_left_in_training(toy):
    shout = next(pair for pair in toy.pairs if pair.name == "toy.shout")
    seeds = [seed for seed in range(50) if shout in hold_out(toy, 1, seed).held_out_entries]
    split = hold_out(toy, 1, seeds[0])
    # Gone are the pair itself, other (the same summary) and echo (it quotes a sentence in the middle of its own).
    assert {entry.name for entry in toy.pairs} - {entry.name for entry in split.train_entries} == {
        "toy.shout", "toy.twins.other", "toy.echo.echo",
    }  # fmt: skip
    assert "Digits are not shouted at all." in toy.sentences
    assert "Digits are not shouted at all." not in split.train_sentences
    assert_unseen(split)
    with pytest.raises(AssertionError):
        assert_unseen(type(split)([*split.train_sentences, "So: digits are NOT shouted at all!"], [], [shout]))


def test_equal_sides_are_not_held_out_together():
    entries = [Entry(f"f{i}", f"Summary number {i % 3}.", f"The description number {i}.") for i in range(9)]
    entries += [Entry(f"g{i}", f"Summary of g {i}.", "The one description of all.") for i in range(9)]
    split = hold_out(Corpus([], entries, {}), 4, seed=3)
    summaries, descriptions = zip(*split.held_out_pairs, strict=True)
    assert len(set(summaries)) == len(set(descriptions)) == 4
    assert hold_out(Corpus([], entries, {}), 4, seed=3) == split
    assert hold_out(Corpus([], entries, {}), 4, seed=4) != split
    with pytest.raises(InputError, match="cannot hold out 5 pairs; the corpus has 4"):
        hold_out(Corpus([], entries, {}), 5)
    with pytest.raises(InputError, match="cannot hold out 0 pairs"):
        hold_out(Corpus([], entries, {}), 0)


def test_cache_is_used_rebuilt_when_damaged_and_done_without(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("NANO_SIMCSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(docstrings, "package_folder", lambda name: tmp_path / "toy")
    first = load_corpus(["toy"], progress=False)
    (file,) = (tmp_path / "cache").iterdir()
    whole = file.read_bytes()
    monkeypatch.setattr(docstrings, "_parse", lambda path: pytest.fail("the sources were read again"))
    assert load_corpus(["toy"]) == first
    monkeypatch.undo()

    monkeypatch.setenv("NANO_SIMCSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(docstrings, "package_folder", lambda name: tmp_path / "toy")
    for damage in (b"", whole[:-20], b"not gzip", gzip.compress(b"[]"), gzip.compress(b'{"sentences": [1]}')):
        file.write_bytes(damage)
        assert load_corpus(["toy"], progress=False) == first
        assert file.read_bytes() == whole
    (tmp_path / "blocked").write_text("a file, not a folder", encoding="utf-8")
    monkeypatch.setenv("NANO_SIMCSE_CACHE", str(tmp_path / "blocked"))
    assert load_corpus(["toy"], progress=False) == first


@pytest.mark.parametrize("name", ["surely_not_installed", "numpy.linalg", "", "../numpy"])
def test_a_package_that_is_not_there(name):
    with pytest.raises(InputError, match="is not installed"):
        load_corpus([name])


def test_the_real_corpus_is_large_clean_and_well_named(default_corpus):
    assert len(default_corpus.sentences) > 30_000
    assert len(default_corpus.pairs) > 4_000
    assert set(default_corpus.versions) == {"stdlib", "numpy", "scipy", "matplotlib"}
    names = [entry.name for entry in default_corpus.entries]
    assert len(names) == len(set(names))
    assert {"numpy.linalg.svd", "scipy.optimize.minimize", "json.dumps", "matplotlib.axes.Axes.plot"} <= set(names)
    assert not any(part.startswith("_") for name in names for part in name.split("."))
    text = "\n".join(default_corpus.sentences)
    for markup in ("``", ":func:", ":class:", ":math:", ">>>", "]_", "%(name", "\N{OBJECT REPLACEMENT CHARACTER}"):
        assert markup not in text, markup
    # A description is cut again exactly where its sentences were joined.
    pieces = [piece for pair in default_corpus.pairs for piece in sentences(pair.description)]
    assert all(re.search(r"[.!?][\"')]*$", piece) for piece in pieces)


def test_the_real_training_text_has_seen_nothing_of_the_held_out_pairs(default_corpus):
    split = hold_out(default_corpus, 1000, seed=0)
    assert len(split.held_out_pairs) == 1000
    assert len({same_text(summary) for summary, _ in split.held_out_pairs}) == 1000
    assert len({same_text(description) for _, description in split.held_out_pairs}) == 1000
    assert len(split.train_sentences) > 0.8 * len(default_corpus.sentences)
    assert len(split.train_pairs) > 0.6 * len(default_corpus.pairs)
    training = {same_text(s) for s in split.train_sentences}
    training |= {same_text(s) for entry in split.train_entries for s in sentences_of(entry)}
    held_out = {same_text(s) for entry in split.held_out_entries for s in sentences_of(entry)}
    assert len(held_out) > 3000
    assert training.isdisjoint(held_out)


def test_nothing_is_imported_or_executed():
    tree = ast.parse(Path(docstrings.__file__).read_text(encoding="utf-8"))
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {getattr(function, "id", getattr(function, "attr", "")) for function in calls}
    assert called.isdisjoint({"exec", "eval", "__import__", "import_module", "exec_module"})
