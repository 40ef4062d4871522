"""Measures against hand values and brute force; the collapse guard on clouds that fool the mean cosine."""

import math

import numpy as np
import pytest
from scipy.special import hyp0f1

from nano_simcse import geometry
from nano_simcse.errors import InputError
from nano_simcse.geometry import (
    alignment,
    collapse_guard,
    effective_rank,
    geometry_report,
    max_pair_cosine,
    mean_pair_cosine,
    norm_of_mean,
    spectrum,
    spectrum_decay,
    uniformity,
)


def on_circle(*degrees):
    angle = np.radians(degrees)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


CONE, QUARTER, SQUARE = on_circle(0, 10, 20, 30), on_circle(0, 30, 60, 90), on_circle(0, 90, 180, 270)
ANTIPODAL = on_circle(0, 180, 0, 180)


def cloud(n=300, width=16, seed=0):
    return np.random.default_rng(seed).standard_normal((n, width))


@pytest.mark.parametrize(
    ("x", "distinct", "with_self"),
    [
        (CONE, -0.18641236163303151, -0.1364516874627673),
        (QUARTER, -1.076647140841716, -0.6821042993942005),
        (SQUARE, -4.396348967229015, -1.3499945052842712),
        (ANTIPODAL, -1.0979415883820347, None),
    ],
)
def test_uniformity_by_hand(x, distinct, with_self):
    assert uniformity(x) == pytest.approx(distinct, abs=1e-14)
    if with_self is not None:
        assert uniformity(x, include_self=True) == pytest.approx(with_self, abs=1e-14)


def test_uniformity_is_the_log_of_the_mean_not_the_mean_of_the_log():
    mean_potential = 0.8299312925874807
    assert math.exp(uniformity(CONE)) == pytest.approx(mean_potential, abs=0, rel=1e-14)
    x = cloud(9, 5)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    for t in (0.5, 2.0, 7.0):
        potentials = [math.exp(-t * ((unit[i] - unit[j]) ** 2).sum()) for i in range(9) for j in range(9) if i != j]
        assert uniformity(x, t) == pytest.approx(math.log(np.mean(potentials)), abs=0, rel=1e-12)
        everyone = math.log((sum(potentials) + 9) / 81)
        assert uniformity(x, t, include_self=True) == pytest.approx(everyone, abs=0, rel=1e-12)


def test_uniformity_of_a_collapse_and_of_two_opposite_points():
    assert uniformity(np.ones((5, 3))) == pytest.approx(0.0, abs=1e-14)
    assert uniformity(on_circle(0, 180)) == pytest.approx(-8.0, abs=1e-14)
    assert uniformity(on_circle(0, 180), t=500.0) == pytest.approx(-2000.0, abs=0, rel=1e-14)  # exp would be 0


def test_uniformity_of_random_rows_comes_near_the_law_of_the_sphere():
    # -4 + log 0F1(; d/2; 4) is the value of the uniform law
    for width in (3, 16):
        expected = -4 + math.log(hyp0f1(width / 2, 4.0))
        assert uniformity(cloud(1500, width)) == pytest.approx(expected, abs=0.02)


def test_alignment_by_hand():
    assert alignment(on_circle(0, 0), on_circle(5, 25)) == pytest.approx(
        (0.00761060381650891 + 0.18738442592670013) / 2, abs=0, rel=1e-13
    )
    assert alignment(on_circle(0), on_circle(180)) == pytest.approx(4.0, abs=0, rel=1e-15)
    assert alignment(CONE, CONE) == 0.0
    x, y = cloud(20, 6), cloud(20, 6, seed=1)
    cosines = (x * y).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    assert alignment(x, y) == pytest.approx(2 - 2 * cosines.mean(), abs=0, rel=1e-13)


@pytest.mark.parametrize(
    ("x", "expected"), [(CONE, 0.9499723173988134), (QUARTER, 0.599679368558886), (SQUARE, -1 / 3), (ANTIPODAL, -1 / 3)]
)
def test_mean_pair_cosine_by_hand(x, expected):
    assert mean_pair_cosine(x) == pytest.approx(expected, abs=1e-14)


def test_pair_cosines_equal_brute_force():
    x = cloud(30, 4)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = [unit[i] @ unit[j] for i in range(30) for j in range(30) if i != j]
    assert mean_pair_cosine(x) == pytest.approx(np.mean(cosines), abs=1e-14)
    assert max_pair_cosine(x) == pytest.approx(max(cosines), abs=1e-14)


def test_max_pair_cosine_by_hand():
    assert max_pair_cosine(CONE) == pytest.approx(math.cos(math.radians(10)), abs=1e-15)
    assert max_pair_cosine(on_circle(0, 180)) == pytest.approx(-1.0, abs=1e-15)
    assert max_pair_cosine(np.vstack([SQUARE, SQUARE[:1] * 3])) == pytest.approx(1.0, abs=1e-15)


def test_norm_of_mean_by_hand():
    assert norm_of_mean(CONE) ** 2 * 16 == pytest.approx(15.399667808785761, abs=0, rel=1e-14)
    assert norm_of_mean(QUARTER) ** 2 * 16 == pytest.approx(11.196152422706632, abs=0, rel=1e-14)
    assert norm_of_mean(SQUARE) == pytest.approx(0.0, abs=1e-15)
    assert norm_of_mean(np.ones((7, 3))) == pytest.approx(1.0, abs=0, rel=1e-15)


def test_spectrum_by_hand():
    np.testing.assert_allclose(spectrum(CONE), [1.962353983560725, 0.3862212360854245], rtol=1e-13)
    np.testing.assert_allclose(spectrum(CONE) ** 2, [3.8508331567966465, 0.14916684320335322], rtol=1e-12)
    np.testing.assert_allclose(spectrum(QUARTER) ** 2, [2.866025403784439, 1.1339745962155612], rtol=1e-13)
    np.testing.assert_allclose(spectrum_decay(CONE), [1.0, 0.3862212360854245 / 1.962353983560725], rtol=1e-13)
    assert (spectrum(cloud()) ** 2).sum() == pytest.approx(
        300.0, abs=0, rel=1e-13
    )  # unit rows: the trace is their number


def test_centred_spectrum():
    x = CONE - CONE.mean(axis=0)
    np.testing.assert_allclose(spectrum(CONE, centre=True), np.linalg.svd(x, compute_uv=False), rtol=1e-12)


@pytest.mark.parametrize(
    ("x", "expected"), [(CONE, 1.1726186550647817), (QUARTER, 1.8152491652334954), (SQUARE, 2.0), (ANTIPODAL, 1.0)]
)
def test_effective_rank_by_hand(x, expected):
    assert effective_rank(x) == pytest.approx(expected, abs=0, rel=1e-13)


def test_effective_rank_counts_equal_directions():
    for n in (1, 2, 5, 16):
        assert effective_rank(np.eye(16)[:n]) == pytest.approx(n, abs=0, rel=1e-13)
    assert effective_rank(np.eye(16), centre=True) == pytest.approx(15.0, abs=0, rel=1e-12)
    assert 15 < effective_rank(cloud(2000)) < 16


def test_a_single_point_has_no_centred_spectrum():
    for row in ([1.0, 1.0, 1.0], [0.1, 0.2, 0.3], [-3.0, 5.0, 1e-3]):
        assert effective_rank(np.tile(row, (40, 1)), centre=True) == 0.0
        assert effective_rank(np.tile(row, (40, 1))) == pytest.approx(1.0, abs=1e-12)


MEASURES = [uniformity, mean_pair_cosine, max_pair_cosine, norm_of_mean, effective_rank]


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_ignore_the_lengths_of_rows_return_floats_and_leave_x_alone(measure):
    x = cloud(40, 5)
    before = x.copy()
    lengths = np.random.default_rng(1).uniform(0.1, 50, (40, 1))
    assert measure(x * lengths) == pytest.approx(measure(x), abs=1e-13)
    assert type(measure(x)) is float
    assert measure(x.astype(np.float32)) == pytest.approx(measure(x), abs=1e-6)
    assert measure(x[np.random.default_rng(2).permutation(40)]) == pytest.approx(measure(x), abs=1e-13)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("measure", MEASURES)
def test_rows_in_float32_are_measured_in_float64(measure):
    x = cloud(40, 5).astype(np.float32)
    assert measure(x) == measure(x.astype(np.float64))
    assert measure(x.tolist()) == measure(x)


@pytest.mark.parametrize("block", [1, 7, 300, 5 * 300, 299 * 300])
def test_pairs_in_blocks_equal_pairs_at_once(monkeypatch, block):
    x = cloud()
    whole = [uniformity(x), uniformity(x, include_self=True), max_pair_cosine(x)]
    monkeypatch.setattr(geometry, "PAIR_BLOCK", block)
    assert [uniformity(x), uniformity(x, include_self=True), max_pair_cosine(x)] == pytest.approx(whole, abs=1e-13)


def test_report_holds_every_measure():
    x, y = cloud(50, 6), cloud(50, 6, seed=1)
    report = geometry_report(x, y)
    assert report.as_dict() == {
        "rows": 50,
        "alignment": alignment(x, y),
        "uniformity": uniformity(x),
        "mean_pair_cosine": mean_pair_cosine(x),
        "max_pair_cosine": max_pair_cosine(x),
        "norm_of_mean": norm_of_mean(x),
        "effective_rank": effective_rank(x),
        "centred_effective_rank": effective_rank(x, centre=True),
    }
    assert geometry_report(x).alignment is None


# --- collapse ---------------------------------------------------------------------------------------------------


def tight_cone(n=64, width=64, spread=0.0192, seed=0):
    """A common direction and small independent noise: mean cosine near .9775, yet every row its own."""
    generator = np.random.default_rng(seed)
    base = np.zeros(width)
    base[0] = 1.0
    anchors = base + spread * generator.standard_normal((n, width))
    return anchors, anchors + 0.2 * spread * generator.standard_normal((n, width))


def recall_at_one(x, y):
    x, y = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (x, y))
    return float(((x @ y.T).argmax(axis=1) == np.arange(len(x))).mean())


def test_two_antipodal_points_are_a_collapse_although_the_mean_cosine_is_zero():
    x = np.tile(on_circle(0, 180), (32, 1))
    assert mean_pair_cosine(x) == pytest.approx(-1 / 63, abs=1e-14)  # looks healthy
    assert uniformity(x) == pytest.approx(-0.7088, abs=5e-5)
    report = collapse_guard(np.hstack([x, np.zeros((64, 14))]))
    assert report.collapsed
    assert report.reasons == ("the rows vary in about 1.0 directions only (effective rank, centred)",)


def test_a_great_circle_is_a_collapse_although_the_mean_cosine_is_zero():
    x = np.zeros((64, 16))
    x[:, :2] = on_circle(*np.random.default_rng(0).uniform(0, 360, 64))
    assert abs(mean_pair_cosine(x)) < 0.05
    assert 1.9 < effective_rank(x) <= 2.0
    report = collapse_guard(x)
    assert report.collapsed and "about 2.0 directions only" in report.reasons[0]


def test_a_tight_cone_whose_rows_differ_is_no_collapse_although_the_mean_cosine_is_high():
    x, y = tight_cone()
    assert mean_pair_cosine(x) == pytest.approx(0.9775, abs=0.002)
    assert recall_at_one(x, y) == 1.0
    report = collapse_guard(x)
    assert not report.collapsed and report.reasons == ()


@pytest.mark.parametrize("row", [np.ones(16), np.arange(1.0, 17.0)])
@pytest.mark.parametrize("noise", [0.0, 1e-5])
def test_equal_rows_are_a_collapse(row, noise):
    report = collapse_guard(row + noise * cloud(64, 16))
    assert report.collapsed
    assert report.reasons[0].startswith("all rows lie within one point: their variance is")


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 6, 7, 8, 10])
def test_a_few_rows_that_differ_are_no_collapse(rows):
    """n rows vary in n - 1 directions at most, and never in all of them alike."""
    assert not any(collapse_guard(cloud(rows, 16, seed)).collapsed for seed in range(20))


def test_a_healthy_cloud_is_no_collapse():
    assert not collapse_guard(cloud()).collapsed
    assert not collapse_guard(cloud(), loss=0.4, candidates=64).collapsed


def test_a_loss_at_the_chance_level_is_a_sign_and_one_beside_it_is_not():
    report = collapse_guard(cloud(), loss=math.log(64) + 0.001, candidates=64)
    assert report.collapsed
    assert report.reasons == (f"the loss {math.log(64) + 0.001:.3f} is at the chance level log 64 = 4.159",)
    assert not collapse_guard(cloud(), loss=0.9 * math.log(64), candidates=64).collapsed
    assert not collapse_guard(cloud(), loss=1.1 * math.log(64), candidates=64).collapsed


def test_a_few_rows_or_columns_are_judged_by_what_they_can_span():
    assert not collapse_guard(SQUARE).collapsed  # two columns: rank 2 is all there is
    assert not collapse_guard(np.eye(3)).collapsed  # three rows, centred: rank 2
    assert not collapse_guard(np.eye(4)[:2]).collapsed


def test_a_list_of_rows_is_judged_like_an_array():
    assert collapse_guard(SQUARE.tolist()) == collapse_guard(SQUARE)
    assert collapse_guard(np.ones((4, 3)).tolist()).reasons == collapse_guard(np.ones((4, 3))).reasons


@pytest.mark.parametrize("candidates", [1, 0, -3, math.nan])
def test_chance_needs_two_candidates(candidates):
    with pytest.raises(InputError, match=f"candidates is {candidates}; expected at least 2"):
        collapse_guard(cloud(), loss=0.0, candidates=candidates)


# --- bad input --------------------------------------------------------------------------------------------------

BAD = cloud(5, 3)
BAD[3, 1] = math.nan


@pytest.mark.parametrize("measure", [*MEASURES, spectrum, collapse_guard, lambda x: alignment(x, x)])
@pytest.mark.parametrize(
    ("x", "message"),
    [
        (BAD, "embeddings row 3 holds a NaN or infinity"),
        (np.array([[1.0, 0.0], [0.0, 0.0]]), "embeddings row 1 is the zero vector"),
        (np.zeros((0, 3)), r"embeddings of shape \(0, 3\) are not a table"),
        (np.ones(3), r"embeddings must have shape \(n, D\) with D >= 1, got \(3,\)"),
    ],
)
def test_unusable_embeddings_are_named(measure, x, message):
    with pytest.raises(InputError, match=message):
        measure(x)


@pytest.mark.parametrize("measure", [uniformity, mean_pair_cosine, max_pair_cosine])
def test_pairs_need_two_rows(measure):
    with pytest.raises(InputError, match="at least two rows; got 1"):
        measure(np.ones((1, 3)))


def test_one_row_with_itself():
    assert uniformity(np.ones((1, 3)), include_self=True) == pytest.approx(0.0, abs=1e-14)


def test_alignment_needs_pairs():
    with pytest.raises(InputError, match=r"must have one shape, got \(4, 2\) and \(3, 2\)"):
        alignment(CONE, CONE[:3])
