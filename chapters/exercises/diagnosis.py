"""Which mistake a wrong value shows.

In this order: the value of a Slip; the transposed matrix; another output; the right value up to sign, a named factor or
a constant; a Slip up to a factor; and if none fits, where the value is wrong.
"""

import copy
import functools
import itertools

import numpy as np


def outputs_of(value, key):
    """What a function returned as a list of arrays, one per output of the key."""
    values = value if len(key.outputs) > 1 else (value,)
    return [_array(one) for one in values]


def _array(one):
    try:
        return np.asarray(one)
    except ValueError:  # rows of different lengths
        return np.asarray(None)


def explain(wrong, theirs, right, key, cases):
    """Hints for the wrong outputs; outputs with the same mistake share a line."""
    found = {}

    @functools.cache
    def values_of(slip):
        with np.errstate(all="ignore"):
            return [outputs_of(slip.function(*copy.deepcopy(case.arguments)), key) for case in cases]

    for o in wrong:
        found.setdefault(_mistake(o, theirs, right, values_of, key, cases), []).append(key.outputs[o])
    hints = [f"{', '.join(names)}: {hint}" for hint, names in found.items()]
    fine = [name for o, name in enumerate(key.outputs) if o not in wrong]
    return [*hints, f"right already: {', '.join(fine)}"] if fine else hints


def _mistake(o, theirs, right, values_of, key, cases):
    tolerance, name = key.tolerance, key.outputs[o]
    slips = [slip for slip in key.slips if not slip.only or name in slip.only]
    for slip in slips:
        if all_same(theirs, values_of(slip), o, tolerance):
            return slip.hint
    if right[0][o].dtype.kind == "U":
        return "that is not what the numbers say, or not one of the words asked for."
    pairs = [(got[o], asked[o]) for got, asked in zip(theirs, right, strict=True)]
    if all(got.ndim == 2 and same(got.T, asked, tolerance) for got, asked in pairs):
        return "this is the transposed matrix."
    for other in range(len(key.outputs)):
        if other != o and all(same(t[o], r[other], tolerance) for t, r in zip(theirs, right, strict=True)):
            return f"this is {key.outputs[other]}; the order of the outputs is ({', '.join(key.outputs)})."
    if words := _factor(pairs, cases, tolerance):
        return words
    for slip in slips:  # two mistakes at once
        both = [(mine[o], slipped[o]) for mine, slipped in zip(theirs, values_of(slip), strict=True)]
        if words := _factor(both, cases, tolerance, bare=False):
            return f"{slip.hint} And then {words}"
    return _unknown(pairs, cases, key)


def _factor(pairs, cases, tolerance, bare=True):
    """Words for got = c x asked, where c is a sign, a product of named factors, or (bare) one constant."""
    informative = [(pair, case) for pair, case in zip(pairs, cases, strict=True) if pair[0].any() or pair[1].any()]
    pairs, cases = [pair for pair, _ in informative], [case for _, case in informative]
    ratios = [_ratio(got, asked, tolerance) for got, asked in pairs]
    if not ratios or any(r is None for r in ratios):
        return ""
    names = sorted(set.intersection(*(set(case.factors) for case in cases)))
    powers = sorted(itertools.product(range(-2, 3), repeat=len(names)), key=lambda e: (sum(map(abs, e)), e))
    for exponents in powers:
        for sign in (1, -1):
            products = [
                sign * np.prod([case.factors[n] ** -e for n, e in zip(names, exponents, strict=True)]) for case in cases
            ]
            if np.allclose(ratios, products, rtol=tolerance, atol=0):
                return _words(sign, dict(zip(names, exponents, strict=True)))
    numbers = sum(asked.size for _, asked in pairs)
    if bare and numbers > 1 and np.allclose(ratios, ratios[0], rtol=tolerance, atol=0):
        return f"a constant factor: in every case this is the right value times {ratios[0]:.4g}."
    if bare and all(asked.size > 1 for _, asked in pairs):
        return "right but for a factor that differs from case to case: does it grow with a size of the arguments?"
    return ""


def _ratio(got, asked, tolerance):
    size = (asked * asked).sum()
    if size == 0:
        return None
    c = float((got * asked).sum() / size)
    return c if c and same(got, c * asked, tolerance) else None


def _words(sign, exponents):
    parts = ["the sign is the opposite one"] if sign < 0 else []
    for name, e in exponents.items():
        if e > 0:
            parts.append(f"the factor {name} is missing{' twice' if e == 2 else ''}")
        elif e < 0:
            parts.append(f"the factor {name} is there {'once' if e == -1 else 'twice'} too often")
    return " and ".join(parts) + "." if parts else ""


def _unknown(pairs, cases, key):
    bad = [
        (case, got, asked)
        for case, (got, asked) in zip(cases, pairs, strict=True)
        if not same(got, asked, key.tolerance)
    ]
    if all(same(got, asked, 1e-3) for got, asked in pairs):
        return "right to three digits only: are differences taken, is something rounded or float32?"
    case, got, asked = bad[0]
    if len(bad) < len(cases):
        fine = next(c.what for c in cases if all(c is not b[0] for b in bad))
        return f"right in the case '{fine}', wrong in the case '{case.what}'. {case.hint or key.advice}"
    apart = np.abs(got - asked) > key.tolerance * max(np.abs(asked).max(), 1e-300)
    share = f" ({int(apart.sum())} of {apart.size} entries)" if apart.size > 1 else ""
    return f"wrong in every case{share}. {key.advice}"


def all_same(first, second, o, tolerance):
    """Whether output o agrees in every case."""
    return all(same(a[o], b[o], tolerance) for a, b in zip(first, second, strict=True))


def same(a, b, tolerance):
    """Whether two outputs agree, relative to their largest entry; words must be equal, nan agrees with nothing."""
    if a.shape != b.shape:
        return False
    if a.dtype.kind == "U" or b.dtype.kind == "U":
        return bool((a == b).all()) if a.dtype.kind == b.dtype.kind else False
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    scale = max(np.abs(a).max(initial=0), np.abs(b).max(initial=0))
    return bool(np.abs(a - b).max(initial=0) <= tolerance * scale + 1e-12)
