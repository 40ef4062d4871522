"""Real text that may lie beside the checkout, for tests that can use it; nothing else reads it."""

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared"


def shared_path(name: str) -> Path:
    """The file `name` below ../shared, or a skipped test that says which file was absent.

    With NANO_SIMCSE_REQUIRE_SHARED set, as it is where the data are known to be there, absence is a failure.
    """
    path = FOLDER / name
    if not path.exists():
        absent = f"optional real data is absent: ../shared/{name}"
        pytest.fail(absent) if os.environ.get("NANO_SIMCSE_REQUIRE_SHARED") else pytest.skip(absent)
    return path
