"""The sentences a chapter can assert."""

import os
import sys

import numpy as np
from lesson.claims import ClaimError, as_numbers, parse, show_number
from lesson.records import Erratum, recorder
from lesson.tables import table

REFUTED = "refuted: "  # before a statement of the lesson that is not true


def check(value, claimed, label):
    """Assert that value rounds to the digits of claimed; print, record and return value.

    value: a number or an array. claimed: text such as "0.8854", "9.453e-8", "64" (exact), "37.5%",
    "0.41 0.34 0.24" (a vector) or "1 0; 0 1" (a matrix, also as a list of row strings). The tolerance is half
    a unit of the last printed digit; shapes must match; nan and inf fail. label: what the number is.
    """
    claim = parse(claimed)
    _record(label, claim.text, f"computed {show_number(value)}", _disagreement(value, claim), kind="check")
    return value


def check_true(condition, label):
    """Assert one statement (an inequality, an order, a count) whose truth was computed; return it."""
    truth = _truth(condition, label)
    shown = f"computed {str(truth).lower()}"
    _record(label, "true", shown, "" if truth else "the statement is false", kind="check")
    return truth


def check_close(a, b, rtol, label, atol=0.0):
    """Assert that two computations agree: max|a - b| <= rtol * max(|a|, |b|) + atol, over the whole array.

    The scale is the largest entry, so exact zeros of one side do not spoil a gradient check. Returns a.
    """
    try:
        x, y = as_numbers(a), as_numbers(b)
    except ClaimError as error:
        _record(label, "equal", "", str(error), kind="check")
        return a
    problem, shown = "", ""
    if x.shape != y.shape:
        problem = f"shapes {x.shape} and {y.shape} differ"
    elif not (np.isfinite(x).all() and np.isfinite(y).all()):
        problem = "a value is not finite"
    else:
        gap, scale = float(np.max(np.abs(x - y))), float(max(np.abs(x).max(), np.abs(y).max()))
        shown = f"largest difference {gap:.1e} of {scale:.3g}"
        if gap > rtol * scale + atol:
            problem = f"the largest difference {gap:.3e} exceeds {rtol:g} x {scale:.3g} + {atol:g}"
    _record(label, "equal", shown, problem, kind="check")
    return a


def erratum(got, *, right, lesson, why, id, where="", says="", label=""):
    """Assert that got is right and is not what the lesson prints; put it on the errata page; return got.

    right, lesson: claims as for check. got must differ from the lesson's number by more than its own half
    unit (so that a rounding slip counts and a shorter rounding does not). why: one sentence. id: a short name
    of the mistake; several calls with one id share a line of the page, the later ones need no says or where.
    where: place in the lesson. says: the lesson's statement in other words. label: name of the check.
    """
    claim, wrong = parse(right), parse(lesson, integers_exact=False)
    problem = _disagreement(got, claim)
    if not problem and wrong.values.shape == claim.values.shape and wrong.agrees(got):
        problem = f"the lesson's {wrong.text} is reproduced by {show_number(got)}, so it is no error"
    page = Erratum(id, where, says or f"{label or id}: {wrong.text}", claim.text, why)
    shown = f"computed {show_number(got)} (the lesson: {wrong.text})"
    _record(label or says or id, claim.text, shown, problem, kind="erratum", erratum=page)
    return got


def erratum_claim(counterexample, *, right, why, id, where="", says="", label=""):
    """Assert that the computed counterexample to a statement of the lesson holds; put it on the errata page.

    counterexample: a boolean, true when the lesson's statement fails. right: the correct statement in words.
    label: name of the check; "refuted: " and the lesson's statement when there is none.
    """
    truth = _truth(counterexample, label or id)
    page = Erratum(id, where, says, right, why)
    problem = "" if truth else "the counterexample does not hold"
    shown = "the lesson's statement fails" if truth else ""
    _record(label or REFUTED + (says or id), "true", shown, problem, kind="erratum", erratum=page)
    return truth


def erratum_quoted(*, right, lesson, source, why, id, where="", says="", label=""):
    """Correct a figure the lesson cites and nobody can compute here: source prints right, the lesson lesson.

    Both are claims (numbers) or plain words; they must differ. Returns the right figure.
    """
    try:
        value = parse(right).values
        differ = not parse(lesson, integers_exact=False).agrees(value)
        value = float(value) if value.ndim == 0 else value
    except ClaimError:
        value, differ = right, right.strip().lower() != lesson.strip().lower()
    page = Erratum(id, where, says or f"{label or id}: {lesson}", right, why, source)
    problem = "" if differ else f"the lesson's {lesson} is what the source prints"
    shown = f"{source} (the lesson: {lesson})"
    _record(label or says or id, right, shown, problem, kind="erratum", erratum=page)
    return value


def quoted(figure, label, source):
    """A figure that is only reported: print it with its source, never as a result; return it as a number."""
    claim = parse(figure)
    _record(label, claim.text, source, "", kind="quoted")
    return float(claim.values) if claim.values.ndim == 0 else claim.values


def recorded(label, columns, rows, seeds, digits=3):
    """Print the results of the last --full run of a long study; return the numbers of rows as an array.

    rows: lists, the first entry of each a name. seeds: what they were run with. Compare a fresh --full run
    with what this returns.
    """
    _record(label, f"{len(rows)} rows", f"seeds {seeds}; again with --full", "", kind="recorded")
    table([row[1:] for row in rows], rows=[row[0] for row in rows], columns=columns[1:], digits=digits)
    return np.array([row[1:] for row in rows], dtype=np.float64)


def full():
    """Whether the long studies run too: --full on the command line or NANO_SIMCSE_FULL=1."""
    return os.environ.get("NANO_SIMCSE_FULL", "") not in ("", "0") or "--full" in sys.argv[1:]


def _disagreement(value, claim):
    try:
        deviation = claim.deviation(value)
    except ClaimError as error:
        return str(error)
    if deviation <= 1.0 + 1e-9:
        return ""
    if not np.isfinite(deviation):
        return f"{claim.text} is claimed, but the value {show_number(value)} is not finite"
    return f"{claim.text} is claimed, {show_number(value)} computed: {deviation:.3g} times the tolerance away"


def _truth(condition, label):
    array = np.asarray(condition)
    if array.shape != () or array.dtype != np.bool_:
        raise TypeError(f"{label}: a statement must be one boolean, got {condition!r}; use .all() or .any()")
    return bool(array)


def _record(label, claimed, shown, problem, *, kind, erratum=None):
    recorder().add(kind=kind, label=label, claimed=claimed, computed=shown, problem=problem, erratum=erratum)
