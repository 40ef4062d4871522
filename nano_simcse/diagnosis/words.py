"""The measures of a cloud in plain words: what is wrong with it, and what training changed.

Every sentence follows from numbers by the thresholds below. They are conventions, drawn where the consequences become
visible in practice, and printed numbers are the measurement; the words are for reading it.
"""

from typing import NamedTuple

NARROW, WIDE = 0.5, 0.2  # mean cosine of two random sentences: a narrow cone above the first, none below the second
LEADING = 0.25  # share of the variance around the mean in one direction
DOMINATING = 0.1  # share of the squared length in one coordinate, if it is also
UNEVEN_COORDINATE = 5  # times what an even cloud has, 1 / D
CONSTANT = 0.8  # of that share due to the coordinate's mean: it is much the same in every row
FEW = 0.1  # effective rank around the mean, as a share of the directions that there are
OFFSET = 2  # times the effective rank grows by centring: what was flat was the offset
UNEVEN = 0.5  # uniformity above that of an even cloud
DUPLICATE = 0.999  # largest cosine of two different texts
# What counts as a change: of the mean cosine, the uniformity, a coordinate's share, the share of the random distance,
# the effective rank (a ratio), STS x 100.
COSINE, UNIFORMITY, SHARE, DISTANCE, RANK, STS = 0.05, 0.1, 0.05, 0.03, 1.1, 0.5


class Finding(NamedTuple):
    """name of what was looked at; text: sentences; wrong: whether it is a fault."""

    name: str
    text: str
    wrong: bool


def findings(report):
    """[Finding] of a CloudReport, in the order to read them in; of a collapsed cloud that alone."""
    if report.collapse:
        reasons = "; ".join(report.collapse)
        return [Finding("collapse", f"Collapsed: {reasons}. Such embeddings cannot tell texts apart.", True)]
    parts = (_cone, _coordinate, _rank, _direction, _spread, _duplicates, _pairs)
    found = [finding for part in parts if (finding := part(report))]
    if not any(finding.wrong for finding in found):
        found.append(Finding("sound", "Nothing stands out: no cone, no dominating coordinate or direction.", False))
    return found


def changes(before, after, repairs=()):
    """[Finding] of what training changed, from the CloudReport of the same text before and after.

    repairs: [(name, CloudReport)] of what needs no training, to compare the gain in STS with.
    """
    if before.collapse or after.collapse:
        return [_collapsed(before, after)]
    parts = [_opened(before, after), _spread_changed(before, after), _rank_changed(before, after)]
    parts += [_coordinate_changed(before, after), _closer(before, after), _scored(before, after, repairs)]
    found = [part for part in parts if part]
    return found or [Finding("unchanged", "No measure changed by more than its threshold.", False)]


def dominating(report):
    """The coordinates that dominate the cosines, largest first."""
    least = max(DOMINATING, UNEVEN_COORDINATE / report.width)
    return [coordinate for coordinate in report.coordinates if coordinate.share >= least]


def _cone(r):
    cosine = f"two random sentences have cosine {_two(r.mean_pair_cosine)} on average"
    if r.mean_pair_cosine <= WIDE:
        return Finding("cone", f"Well spread: {cosine}.", False)
    length = f"The mean of the unit rows is {r.norm_of_mean:.2f} long"
    shared = f"{length}: {_percent(r.norm_of_mean**2)} of their squared length is one vector that all share."
    if r.mean_pair_cosine <= NARROW:
        return Finding("cone", f"A wide cone: {cosine}. {shared}", True)
    hint = "so absolute similarities mean little; ranking may still work"
    return Finding("cone", f"Narrow cone: {cosine}, {hint}. {shared}", True)


def _coordinate(r):
    large = dominating(r)
    if not large:
        return None
    share = sum(c.share for c in large)
    names = ", ".join(str(c.index) for c in large)
    subject = f"Coordinate {names} alone holds" if len(large) == 1 else f"Coordinates {names} alone hold"
    even = f"an even share of {r.width} is {_percent(len(large) / r.width)}"
    text = f"{subject} {_percent(share)} of the squared length ({even})"
    if min(c.constant for c in large) >= CONSTANT:
        text += ", with much the same value in every row: it raises every cosine and tells no texts apart"
    return Finding("coordinate", text + ".", True)


def _rank(r):
    there = min(r.rows - 1, r.width)
    text = (
        f"The rows use about {r.effective_rank:.0f} of {r.width} directions (effective rank), and about "
        f"{r.centred_effective_rank:.0f} around their mean"
    )
    if r.centred_effective_rank < FEW * there:
        return Finding("rank", f"{text}: the variation itself is confined to few directions.", True)
    if r.centred_effective_rank >= OFFSET * r.effective_rank:
        return Finding("rank", f"{text}: what is narrow is the offset, and centring takes that away.", True)
    return Finding("rank", text + ".", False)


def _direction(r):
    if r.centred_first_share < LEADING:
        return None
    share = _percent(r.centred_first_share)
    return Finding("direction", f"One direction carries {share} of the variance around the mean.", True)


def _spread(r):
    text = f"Uniformity is {r.uniformity:.2f}; rows spread evenly over this sphere have {r.even_uniformity:.2f}"
    return Finding("uniformity", text + ".", r.uniformity > r.even_uniformity + UNEVEN)


def _duplicates(r):
    if r.max_pair_cosine <= DUPLICATE:
        return None
    text = "Some different texts have the same embedding to three digits: look for near-duplicates."
    return Finding("duplicates", text, False)


def _pairs(r):
    if r.alignment is None:
        return None
    share = f"{100 * pair_share(r):.0f} % of the squared distance of random pairs"
    return Finding("alignment", f"Positive pairs lie at {share} (lower is better).", False)


def pair_share(r):
    """Mean squared distance of positive pairs over that of random pairs: alignment / (2 - 2 mean cosine)."""
    return r.alignment / (2 - 2 * r.mean_pair_cosine)


def _collapsed(a, b):
    if not b.collapse:
        return Finding("collapse", "Training undid the collapse.", False)
    verb = "left the rows collapsed" if a.collapse else "collapsed the rows"
    return Finding("collapse", f"Training {verb}: {'; '.join(b.collapse)}.", True)


def _opened(a, b):
    change = b.mean_pair_cosine - a.mean_pair_cosine
    if abs(change) < COSINE:
        return None
    verb = "opened the cone" if change < 0 else "narrowed the cone"
    text = f"Training {verb}: the mean cosine went from {_two(a.mean_pair_cosine)} to {_two(b.mean_pair_cosine)}."
    return Finding("cone", text, change > 0)


def _spread_changed(a, b):
    change = b.uniformity - a.uniformity
    if abs(change) < UNIFORMITY:
        return None
    more = "more" if change < 0 else "less"
    text = f"Rows are spread {more} evenly: uniformity went from {a.uniformity:.2f} to {b.uniformity:.2f}."
    return Finding("uniformity", text, change > 0)


def _rank_changed(a, b):
    if max(a.effective_rank, b.effective_rank) < RANK * min(a.effective_rank, b.effective_rank):
        return None
    more = "more" if b.effective_rank > a.effective_rank else "fewer"
    text = f"They use {more} directions: the effective rank went from {a.effective_rank:.0f} to {b.effective_rank:.0f}."
    return Finding("rank", text, more == "fewer")


def _coordinate_changed(a, b):
    before, after = ({c.index: c.share for c in dominating(r)} for r in (a, b))
    if a.width != b.width:
        return None
    parts, worse = [], False
    for index in sorted(before | after):
        if index not in after:
            parts.append(f"Coordinate {index} no longer dominates.")
        elif index not in before or abs(after[index] - before[index]) >= SHARE:
            earlier = f"{_percent(before[index])} before" if index in before else "and did not dominate before"
            parts.append(f"Coordinate {index} holds {_percent(after[index])} of the squared length, {earlier}.")
            worse |= after[index] > before.get(index, 0)
    return Finding("coordinate", " ".join(parts), worse) if parts else None


def _closer(a, b):
    if a.alignment is None or b.alignment is None:
        return None
    before, after = pair_share(a), pair_share(b)
    text = (
        f"alignment went from {a.alignment:.2f} to {b.alignment:.2f}, which is {100 * before:.0f} % and "
        f"{100 * after:.0f} % of the squared distance of random pairs"
    )
    if abs(after - before) < DISTANCE:
        return Finding("alignment", f"Positive pairs lie as they did beside random ones: {text}.", False)
    side = "closer" if after < before else "farther"
    return Finding("alignment", f"Beside random pairs, positive ones lie {side}: {text}.", after > before)


def _scored(a, b, repairs):
    if a.sts is None or b.sts is None:
        return None
    gain = b.sts - a.sts
    if abs(gain) < STS:
        text = f"STS did not change: {a.sts:.1f} and {b.sts:.1f}."
    else:
        text = f"STS {'rose' if gain > 0 else 'fell'} by {abs(gain):.1f}, from {a.sts:.1f} to {b.sts:.1f}."
    if repairs:
        name, best = max(repairs, key=lambda pair: pair[1].sts)
        side = "above" if b.sts > best.sts else "below"
        text += f" Without training, {name} embeddings reach {best.sts:.1f}: {abs(b.sts - best.sts):.1f} {side} that."
    return Finding("sts", text, gain <= -STS)


def _two(value):
    return f"{round(value, 2) + 0.0:.2f}"  # no minus before a zero


def _percent(share):
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"
