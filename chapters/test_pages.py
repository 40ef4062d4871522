"""The pages and pictures made from the chapters are those the chapters would make now."""

import pytest
from lesson import errata_page, figure_files, runner

FIX_ERRATA = "ERRATA.md is stale: run python -m chapters --errata"
FIX_FIGURES = "run python -m chapters --figures"


def test_errata_page_is_current():
    results = [runner.run(path) for path in runner.paths()]
    assert errata_page.PATH.exists(), FIX_ERRATA
    assert errata_page.PATH.read_text(encoding="utf-8") == errata_page.render(results), FIX_ERRATA


@pytest.mark.parametrize("name", figure_files.names())
def test_figure_shows_the_current_data(name):
    entry = figure_files.manifest().get(name)
    assert entry is not None, f"figures/data.json has no {name}: {FIX_FIGURES}"
    stale = figure_files.differences(entry, figure_files.load(name).data())
    assert not stale, f"{name}: {', '.join(stale)} changed since it was drawn: {FIX_FIGURES}"
    for suffix in ("png", "svg"):
        path = figure_files.FOLDER / f"{name}.{suffix}"
        assert path.exists(), f"{path.name} is missing: {FIX_FIGURES}"
        drawn = figure_files.digest(entry).encode() in path.read_bytes()
        assert drawn, f"{path.name} was drawn from other data: {FIX_FIGURES}"
