"""Grade a function: call it, check the form of what comes back, compare with the right values.

diagnosis.py names the mistake where they differ.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from chapters.exercises import catalogue
from chapters.exercises.diagnosis import all_same, explain, outputs_of


@dataclass(frozen=True)
class Case:
    """One call. what: a name the reader may see; factors: name -> value of factors the right value contains;
    hint: what to think of where other cases are right and this one is not."""

    what: str
    arguments: tuple
    factors: dict = field(default_factory=dict)
    hint: str = ""


@dataclass(frozen=True)
class Slip:
    """A wrong variant of the function and what to tell whoever wrote it. only: the outputs it is about (or all)."""

    hint: str
    function: Callable
    only: tuple = ()


@dataclass(frozen=True)
class Key:
    """The answer key of an exercise. outputs: names of the values returned; right: the function itself;
    tolerance: of the largest entry; advice: what to try when no mistake is recognised."""

    outputs: tuple
    right: Callable
    cases: Callable
    slips: tuple
    tolerance: float = 1e-6
    advice: str = "Compare with lesson.numeric_gradient on a small example."


@dataclass
class Grade:
    """status: not started, failing or solved; hints: one line each."""

    status: str
    hints: list = field(default_factory=list)


def grade(exercise, key, folder=catalogue.FOLDER):
    """Grade the reader's file."""
    try:
        return grade_function(catalogue.load(exercise, folder), key)
    except catalogue.NotStarted:
        return Grade("not started")
    except catalogue.ReaderError as error:
        return Grade("failing", [str(error)])


def grade_function(function, key):
    """Grade a function. What it raises passes through."""
    with threadpool_limits(1):  # small matrices: more threads only get in each other's way
        return _grade(function, key)


def _grade(function, key):
    cases = key.cases()
    theirs, right = [], []
    for case in cases:
        given = copy.deepcopy(case.arguments)
        with np.errstate(all="ignore"):
            value = function(*given)
        if problem := _changed(case, given) or _form(value, key):
            return Grade("failing", [problem])
        theirs.append(outputs_of(value, key))
        right.append(outputs_of(key.right(*copy.deepcopy(case.arguments)), key))
        if problem := _shapes(theirs[-1], right[-1], key, case):
            return Grade("failing", problem)
    wrong = [o for o in range(len(key.outputs)) if not all_same(theirs, right, o, key.tolerance)]
    if not wrong:
        return Grade("solved")
    return Grade("failing", explain(wrong, theirs, right, key, cases))


# ---- the form of what came back -----------------------------------------------------------------------------------


def _changed(case, given):
    for before, after in zip(case.arguments, given, strict=True):
        if isinstance(before, np.ndarray) and not np.array_equal(before, after, equal_nan=True):
            return "The function changes one of its arguments in place; work on a copy."
    return ""


def _form(value, key):
    asked = f"the task asks for ({', '.join(key.outputs)})" if len(key.outputs) > 1 else f"asked is {key.outputs[0]}"
    if value is None:
        return f"The function returns nothing; {asked}."
    if len(key.outputs) > 1 and (not isinstance(value, tuple | list) or len(value) != len(key.outputs)):
        got = f"{len(value)} values" if isinstance(value, tuple | list) else "one value"
        return f"The function returns {got}; {asked}."
    for name, one in zip(key.outputs, outputs_of(value, key), strict=True):
        if one.dtype.kind not in "iufU":
            what = "None or a list of unequal rows" if one.dtype.kind == "O" else f"of type {one.dtype.name}"
            return f"{name} is {what}; real numbers are asked for."
    return ""


def _shapes(theirs, right, key, case):
    problems = []
    for name, got, asked in zip(key.outputs, theirs, right, strict=True):
        if got.dtype.kind == "U" or asked.dtype.kind == "U":
            if got.dtype.kind != asked.dtype.kind:
                problems.append(f"{name} should be {'a word' if asked.dtype.kind == 'U' else 'numbers'}.")
        elif got.shape != asked.shape:
            turned = " It is transposed." if got.shape == asked.shape[::-1] and got.ndim == 2 else ""
            problems.append(f"{name} has the wrong shape: {got.shape} came back, {asked.shape} is asked for.{turned}")
        elif not np.isfinite(got).all():
            cure = case.hint or "An exponential of a large number, a logarithm of 0, or 0 / 0?"
            problems.append(f"{name} is not finite in the case '{case.what}'. {cure}")
    return problems
