"""Keep masks: one bit pattern for ever, whatever the batch; and bits that behave like independent draws."""

import math

import numpy as np
import pytest
from scipy import stats

from nano_simcse.errors import InputError
from nano_simcse.masks import FIRST, GOLDEN, HASHED_WORDS, SECOND, WORD, Masks, hash_key, keep_mask, mix, row_labels

LABELS = np.arange(64, dtype=np.uint64)


def splitmix_finaliser(z):
    """Written from the published constants and shifts, on Python integers."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def keep_bit_by_bit(seed, step, site, label, column, rate):
    """The mask's definition, one unit at a time, without arrays."""
    golden = 0x9E3779B97F4A7C15
    key = splitmix_finaliser((seed + golden) % 2**64)
    for number in (step, site):
        key = splitmix_finaliser(key ^ splitmix_finaliser((number + 1) * golden % 2**64))
    row = splitmix_finaliser((label * golden % 2**64) ^ key)
    word = splitmix_finaliser((row + (column // 4) * golden) % 2**64)
    lane = (word >> 16 * (column % 4)) & 0xFFFF
    return lane >= round(rate * 65536)


def test_finaliser_reproduces_the_published_splitmix64_stream():
    # first outputs of splitmix64 from state 0, and from state 1234567 (Rosetta Code, Vigna's reference program)
    assert (GOLDEN, FIRST, SECOND, WORD) == (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 2**64 - 1)
    assert mix(GOLDEN) == 0xE220A8397B1DCDAF
    assert mix(2 * GOLDEN & WORD) == 0x6E789E6AA1B965F4
    assert mix(1234567 + GOLDEN & WORD) == 6457827717110365317


def test_mask_equals_its_definition_bit_by_bit():
    masks = Masks(seed=11, step=4, rate=0.3)
    labels = row_labels([0, 1, 70000], [0, 1, 2]) + np.array([0, 3, 9], np.uint64)
    keep = masks.keep(5, labels, 11)
    expected = [[keep_bit_by_bit(11, 4, 5, int(label), j, 0.3) for j in range(11)] for label in labels]
    np.testing.assert_array_equal(keep, expected)


@pytest.mark.parametrize(
    ("seed", "step", "site", "rate", "frozen"),
    [
        (0, 0, 0, 0.1, "e9fffff9dffdfefffbefffffbefffdbf"),
        (0, 0, 0, 0.5, "28ef67919fd57e345844e27da664e080"),
        (7, 1000, 3, 0.1, "a7ffdefffffbdbf7fefffdfe9ffff7fb"),
        (2**40 + 1, 5, 36, 0.25, "fbbdff4eeb0e78dbf6fb6dff2bedbbff"),
    ],
)
def test_frozen_bits(seed, step, site, rate, frozen):
    """If this fails the mask function has changed, and no saved run can be resumed or repeated."""
    labels = row_labels([0, 0, 1, 1], [0, 1, 0, 1])
    assert np.packbits(Masks(seed, step, rate).keep(site, labels, 32)).tobytes().hex() == frozen


def test_bits_do_not_depend_on_order_split_or_width():
    masks = Masks(seed=3, step=9, rate=0.2)
    whole = masks.keep(2, LABELS, 37)
    order = np.random.default_rng(0).permutation(64)
    np.testing.assert_array_equal(masks.keep(2, LABELS[order], 37), whole[order])
    np.testing.assert_array_equal(np.concatenate([masks.keep(2, part, 37) for part in np.split(LABELS, 4)]), whole)
    for width in (1, 3, 4, 36):
        np.testing.assert_array_equal(masks.keep(2, LABELS, width), whole[:, :width])
    np.testing.assert_array_equal(masks.keep(2, LABELS, 101)[:, :37], whole)


@pytest.mark.parametrize("mode", ["independent", "shared", "off"])
def test_masks_made_together_are_those_made_one_by_one(mode, monkeypatch):
    masks, widths = Masks(3, 1, 0.4, mode), (5, 5, 8, 30, 2, 31)
    labels = [LABELS[i : i + 3] + np.uint64(i << 56) for i in range(len(widths))]
    alone = [masks.keep(2, *pair) for pair in zip(labels, widths, strict=True)]
    calls, honest = [], Masks.keep
    monkeypatch.setattr(Masks, "keep", lambda self, *asked: calls.append(asked[2]) or honest(self, *asked))
    for words, made in ((1 << 15, [31]), (24, [8, 30, 2, 31]), (1, widths)):  # a block of so many hashed words
        calls.clear()
        monkeypatch.setattr("nano_simcse.masks.HASHED_WORDS", words)
        for keep, wanted in zip(masks.keep_each(2, labels, widths), alone, strict=True):
            assert (keep is wanted is None) if mode == "off" else np.array_equal(keep, wanted)
        assert calls == ([] if mode == "off" else list(made))



def test_bits_do_not_depend_on_the_block_the_hash_runs_in():
    labels = np.arange(3 * HASHED_WORDS // 64 + 5, dtype=np.uint64)  # 64 words a row: four blocks
    whole = keep_mask(hash_key(1, 2, 3), labels, 256, 9000)
    rows = [0, 1, HASHED_WORDS // 64 - 1, HASHED_WORDS // 64, len(labels) - 1]
    for row in rows:
        np.testing.assert_array_equal(whole[[row]], keep_mask(hash_key(1, 2, 3), labels[[row]], 256, 9000))


def test_a_row_of_more_words_than_a_block_holds():
    width = 4 * HASHED_WORDS + 6
    keep = keep_mask(hash_key(1, 2, 3), LABELS[:2], width, 9000)
    assert keep.shape == (2, width)
    np.testing.assert_array_equal(keep[:, :50], keep_mask(hash_key(1, 2, 3), LABELS[:2], 50, 9000))


def test_no_rows_give_an_empty_mask():
    assert Masks(0, 0, 0.1).keep(0, np.zeros(0, np.uint64), 8).shape == (0, 8)


def test_independent_views_differ_and_shared_views_agree():
    a, b, c = (row_labels(np.arange(8), np.full(8, view)) for view in range(3))
    independent, shared = Masks(1, 2, 0.3), Masks(1, 2, 0.3, "shared")
    for first, second in ((a, b), (a, c), (b, c)):
        differ = (independent.keep(0, first, 64) != independent.keep(0, second, 64)).mean()
        assert 0.3 < differ < 0.55  # 2 p (1 - p) = .42
        np.testing.assert_array_equal(shared.keep(0, first, 64), shared.keep(0, second, 64))
    np.testing.assert_array_equal(shared.keep(0, b, 64), independent.keep(0, a, 64))
    assert (shared.keep(0, a, 64)[0] != shared.keep(0, a, 64)[1]).any()  # sentences still differ


def test_every_part_of_the_key_and_label_matters():
    base = Masks(1, 2, 0.5).keep(0, LABELS, 64)
    for other in (
        Masks(2, 2, 0.5).keep(0, LABELS, 64),
        Masks(1, 3, 0.5).keep(0, LABELS, 64),
        Masks(2, 1, 0.5).keep(0, LABELS, 64),  # seed and step exchanged
        Masks(1, 2, 0.5).keep(1, LABELS, 64),
        Masks(1, 2, 0.5).keep(0, LABELS + np.uint64(1 << 16), 64),  # head
        Masks(1, 2, 0.5).keep(0, LABELS + np.uint64(1 << 24), 64),  # sentence
        Masks(1, 2, 0.5).keep(0, LABELS + np.uint64(1 << 56), 64),  # view
    ):
        assert stats.binom.ppf(1e-9, 4096, 0.5) <= (base != other).sum() <= stats.binom.isf(1e-9, 4096, 0.5)


@pytest.mark.parametrize("masks", [Masks(0, 0, 0.3, "off"), Masks(0, 0, 0.0), Masks(0, 0, 1e-6)])
def test_off_and_rate_zero_draw_nothing(masks):
    assert masks.keep(0, LABELS, 8) is None
    assert masks.scale == 1.0


@pytest.mark.parametrize(
    ("rate", "threshold"), [(0.1, 6554), (0.5, 32768), (0.3, 19661), (1 / 65536, 1), (0.9999999, 65535)]
)
def test_rate_is_rounded_to_a_multiple_of_1_over_65536_and_the_scale_follows(rate, threshold):
    masks = Masks(0, 0, rate)
    assert masks.threshold == threshold
    assert masks.scale == 65536 / (65536 - threshold)
    assert masks.scale * (1 - threshold / 65536) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, math.nan, math.inf])
def test_a_rate_outside_zero_to_one_is_named(rate):
    with pytest.raises(InputError, match=rf"dropout rate {rate} is outside \[0, 1\)"):
        Masks(0, 0, rate)


def test_an_unknown_mode_is_named():
    with pytest.raises(InputError, match="mask mode 'both' is not one of independent, shared, off"):
        Masks(0, 0, 0.1, "both")


@pytest.mark.parametrize("number", [np.int64, np.int32, np.uint64])
def test_seed_step_and_site_may_be_integers_of_numpy(number):
    expected = Masks(5, 3, 0.3).keep(2, LABELS, 8)
    for seed, step, site in ((number(5), 3, 2), (5, number(3), 2), (5, 3, number(2))):
        np.testing.assert_array_equal(Masks(seed, step, 0.3).keep(site, LABELS, 8), expected)


def test_row_labels_keep_views_and_sentences_apart():
    labels = row_labels([0, 1, 2**32 - 1], [0, 1, 2])
    assert [int(x) for x in labels] == [0, 1 << 56 | 1 << 24, 2 << 56 | (2**32 - 1) << 24]


# --- behaviour as random numbers, on fixed seeds ----------------------------------------------------------------


@pytest.mark.parametrize("rate", [1 / 65536, 0.01, 0.1, 0.3, 0.5, 0.9])
def test_share_of_kept_units_lies_within_exact_binomial_bounds(rate):
    n = 2000 * 512
    for seed in range(3):
        masks = Masks(seed, 0, rate)
        dropped = n - int(masks.keep(0, np.arange(2000, dtype=np.uint64), 512).sum())
        p = masks.threshold / 65536
        assert stats.binom.ppf(1e-5, n, p) <= dropped <= stats.binom.isf(1e-5, n, p)


def dropped_units(seed=0, rate=0.25, rows=2000, width=512):
    return ~Masks(seed, 0, rate).keep(0, np.arange(rows, dtype=np.uint64), width)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_and_columns_are_dropped_equally_often(axis):
    counts = dropped_units().sum(axis=axis)
    n, p = 2000 * 512 // len(counts), 0.25
    statistic = ((counts - n * p) ** 2).sum() / (n * p * (1 - p))
    assert 1e-4 < stats.chi2.sf(statistic, len(counts)) < 1 - 1e-4


def correlation_in_sigmas(a, b):
    return np.corrcoef(a.reshape(-1), b.reshape(-1))[0, 1] * math.sqrt(a.size)


def test_neighbours_are_uncorrelated():
    x = dropped_units().astype(float)
    for lag in (1, 2, 3, 4, 5, 8):  # a word holds four lanes
        assert abs(correlation_in_sigmas(x[:, :-lag], x[:, lag:])) < 4
        assert abs(correlation_in_sigmas(x[:-lag], x[lag:])) < 4


def test_sites_steps_seeds_heads_and_views_are_uncorrelated():
    labels = np.arange(2000, dtype=np.uint64)
    base = Masks(0, 0, 0.25).keep(0, labels, 256).astype(float)
    others = [Masks(0, 0, 0.25).keep(site, labels, 256) for site in (1, 2, 3)]
    others += [Masks(0, step, 0.25).keep(0, labels, 256) for step in (1, 2)]
    others += [Masks(seed, 0, 0.25).keep(0, labels, 256) for seed in (1, 2)]
    others += [Masks(0, 0, 0.25).keep(0, labels + np.uint64(1 << shift), 256) for shift in (16, 24, 56)]
    for other in others:
        assert abs(correlation_in_sigmas(base, other.astype(float))) < 4


def test_lanes_are_spread_over_all_values():
    # thresholds cut the lanes into 64 equal bins: the count in each is a difference of two masks
    labels = np.arange(1000, dtype=np.uint64)
    kept = [keep_mask(hash_key(0, 0, 0), labels, 256, t).sum() for t in range(0, 65536, 1024)] + [0]
    counts = -np.diff(kept)
    assert counts.sum() == 256_000
    assert 1e-4 < stats.chisquare(counts).pvalue < 1 - 1e-4


def test_two_units_are_dropped_together_as_often_as_chance_says():
    x = dropped_units(rate=0.5)
    pairs = x[:, 0::2].astype(int) * 2 + x[:, 1::2]
    assert 1e-4 < stats.chisquare(np.bincount(pairs.reshape(-1), minlength=4)).pvalue < 1 - 1e-4
