"""What a chapter writes with: checks, errata, quoted figures, tables, central differences.

    from lesson import check, erratum, quoted, table

Every function prints one line, records it for the runner and for pytest, and raises CheckFailed when a
claim does not hold (a chapter run by the runner or by pytest carries on, so that one failure hides no other).
"""

import pathlib
import sys

from lesson.claims import Claim, ClaimError
from lesson.differences import numeric_gradient
from lesson.records import CheckFailed
from lesson.statements import (
    check,
    check_close,
    check_true,
    erratum,
    erratum_claim,
    erratum_quoted,
    full,
    quoted,
    recorded,
)
from lesson.tables import table

__all__ = [
    "CheckFailed",
    "Claim",
    "ClaimError",
    "chapter_values",
    "check",
    "check_close",
    "check_true",
    "erratum",
    "erratum_claim",
    "erratum_quoted",
    "full",
    "numeric_gradient",
    "quoted",
    "recorded",
    "table",
]

# A chapter run as a script or in a notebook has its own folder on the path; the package lies one above.
_ROOT = str(pathlib.Path(__file__).resolve().parents[2])
if _ROOT not in sys.path:
    sys.path.append(_ROOT)


def chapter_values(name):
    """The arrays a chapter ends with, by the names it gave them (for figures; run once per process)."""
    from lesson.runner import find, run  # the runner imports this package

    result = run(find([name])[0])
    if result.error:
        raise RuntimeError(f"{result.name} did not reach its end:\n{result.error}")
    return result.namespace
