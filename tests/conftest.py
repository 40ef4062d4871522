"""Fixtures that several test files share."""

import pytest

from nano_simcse.data.docstrings import Corpus, load_corpus


@pytest.fixture(scope="session")
def default_corpus() -> Corpus:
    """The embedded corpus, from the user's cache when it is there (about ten seconds when it is not)."""
    return load_corpus(progress=False)
