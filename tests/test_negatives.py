"""Samplers, mining, memory and the objective that joins them."""

import csv
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from nano_simcse.errors import (
    DegenerateTemperature,
    InputError,
    RepresentationCollapse,
    TooFewNegatives,
)
from nano_simcse.gradient_check import numeric_gradient
from nano_simcse.losses import candidate_info_nce
from nano_simcse.losses.candidate_info_nce import pair_log_weights
from nano_simcse.memory import MemoryBank, MemoryQueue, follow
from nano_simcse.mining import hardest, mine
from nano_simcse.negatives import (
    InBatchSampler,
    MinedSampler,
    NegativeSampler,
    PopularitySampler,
    UniformSampler,
)
from nano_simcse.objective import ContrastiveObjective, refuse_collapse
from nano_simcse.parameters import Parameters


def rng(seed=0):
    return np.random.default_rng(seed)


def views(n=20, width=8, seed=0):
    a = rng(seed).standard_normal((n, width))
    return a, a + 0.5 * rng(seed + 1).standard_normal((n, width))


# ---- samplers ----


def test_in_batch_leaves_out_the_anchor_and_its_duplicates_both_ways():
    sampler = InBatchSampler([(0, 1)])
    sets = [sampler.candidates(np.zeros((20, 3)), i).tolist() for i in range(3)]
    assert sets == [list(range(2, 20)), list(range(2, 20)), [0, 1, *range(3, 20)]]


def test_uniform_draws_each_other_row_equally_often():
    sampler, counts = UniformSampler(4, rng()), np.zeros(10)
    for _ in range(3000):
        drawn = sampler.candidates(np.zeros((10, 2)), 3)
        assert len(set(drawn.tolist())) == 4
        counts[drawn] += 1
    assert counts[3] == 0 and chisquare(np.delete(counts, 3)).pvalue > 1e-3
    assert UniformSampler(99, rng()).candidates(np.zeros((5, 2)), 0).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("power", [0.0, 0.75, 1.0])
def test_popularity_draws_by_the_power_of_the_counts(power):
    counts = np.array([1.0, 16.0, 81.0, 256.0])
    sampler = PopularitySampler(counts, 20000, rng(), power)
    np.testing.assert_allclose(sampler.probabilities, counts**power / (counts**power).sum(), rtol=1e-13)
    drawn = np.bincount(sampler.candidates(np.zeros((4, 1)), 0), minlength=4)
    assert drawn[0] == 0
    expected = sampler.probabilities[1:] / sampler.probabilities[1:].sum() * drawn.sum()
    assert chisquare(drawn[1:], expected).pvalue > 1e-3


@pytest.mark.parametrize("cap, mined", [(0.0, 0), (0.24, 2), (0.5, 5), (1.0, 10)])
def test_mined_share_is_a_share_of_what_is_returned(cap, mined):
    hard = [[7, 3, 3, 0, 9, 1, 2, 4, 5, 6, 8, 11]] * 20
    sampler = MinedSampler(hard, 10, rng(), cap)
    got = sampler.candidates(np.zeros((20, 2)), 0)
    assert len(set(got.tolist())) == len(got) == 10 and 0 not in got
    assert got[:mined].tolist() == [7, 3, 9, 1, 2, 4, 5, 6, 8, 11][:mined]


def test_mined_fills_at_random_and_skips_duplicates_and_padding():
    sampler = MinedSampler([[1, -1, 2]] + [[]] * 9, 4, rng(), 1.0, duplicates=[(0, 1)])
    draws = [sampler.candidates(np.zeros((10, 2)), 0) for _ in range(50)]
    assert all(d[0] == 2 and 1 not in d and len(set(d.tolist())) == 4 for d in draws)
    assert len({tuple(d) for d in draws}) > 10


@pytest.mark.parametrize("make, message", [
    (lambda: MinedSampler([[1]], 2, rng(), 1.5), "cap is 1.5; expected a share in"),
    (lambda: MinedSampler([[1]], 2, rng(), math.nan), "cap is nan"),
    (lambda: MinedSampler([[9]], 2, rng()).candidates(np.zeros((3, 1)), 0), "mined row 9 of anchor 0 lies outside"),
    (lambda: MinedSampler([[1]], 2, rng()).candidates(np.zeros((3, 1)), 2), "row 2 has no list of mined rows"),
    (lambda: UniformSampler(0, rng()), "count is 0; expected an integer >= 1"),
    (lambda: PopularitySampler([1.0, 0.0], 2, rng()), "finite numbers above 0"),
    (lambda: PopularitySampler([1.0, 2.0], 2, rng(), math.inf), "power is inf"),
    (lambda: PopularitySampler([1.0, 2.0], 2, rng()).candidates(np.zeros((3, 1)), 0), "has 2 counts, the batch 3 rows"),
    (lambda: InBatchSampler([(1, 1)]).candidates(np.zeros((3, 1)), 0), "would remove the positive"),
    (lambda: InBatchSampler().candidates(np.zeros((3, 1)), 3), "anchor 3 lies outside 0 to 2"),
])  # fmt: skip
def test_samplers_name_what_they_cannot_use(make, message):
    with pytest.raises(InputError, match=message):
        make()


# ---- mining ----


@pytest.mark.parametrize("k", [1, 3, 7, 8, 50])
def test_hardest_gives_any_k_in_order_and_never_what_is_excluded(k):
    scores = np.round(rng().standard_normal((5, 8)), 1)
    exclude = rng(1).random((5, 8)) < 0.3
    rows, best = hardest(scores, k, exclude=exclude)
    for i in range(5):
        expected = sorted((j for j in range(8) if not exclude[i, j]), key=lambda j: (-scores[i, j], j))[:k]
        assert [r for r in rows[i].tolist() if r >= 0] == expected
        assert best[i, : len(expected)].tolist() == scores[i, expected].tolist()
        assert (best[i, len(expected) :] == -np.inf).all()


def test_hardest_drops_what_a_better_judge_calls_right():
    scores = np.array([[0.9, 0.8, 0.7]])
    assert hardest(scores, 2, second_opinion=np.array([[0.99, 0.1, 0.2]]), ceiling=0.5)[0].tolist() == [[1, 2]]


def test_mine_searches_both_blocks_and_leaves_out_self_own_and_duplicates():
    a, p = views(12)
    exclude = np.zeros((12, 12), bool)
    exclude[2, 5] = True
    mined = mine(a, p, 30, duplicates=[(0, 1)], exclude=exclude)
    assert mined.columns.shape == (12, 24)
    kept = [set(row[row >= 0].tolist()) for row in mined.columns]
    assert kept[0] == set(range(2, 12)) | set(range(14, 24))
    assert kept[2] == set(range(24)) - {2, 14, 5, 17}
    assert (np.diff(np.where(mined.cosines > -np.inf, mined.cosines, -2), axis=1) <= 0).all()
    assert mine(a, p, 3, candidates="cross").columns.max() < 12
    assert mine(a, p, 3, candidates="same-view").columns.min() >= 12
    assert set(mined.rows()[0].tolist()) == {-1, *range(2, 12)}


def test_mine_finds_a_planted_duplicate_and_the_audit_lists_it_first(tmp_path):
    a, p = views(10)
    p = a + 0.1 * (p - a)
    a[4] = p[4] = a[7]  # row 4 says what row 7 says
    mined = mine(a, p, 3)
    assert mined.columns[7, 0] == 4 and mined.suspects()[7, 0]
    lines = mined.export(tmp_path / "audit.tsv", [f"a{i}\tx" for i in range(10)], [f"p{i}" for i in range(10)])
    with open(tmp_path / "audit.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    assert lines == 30 and len(rows) == 31
    assert rows[1][:5] == ["7", "a7\tx", "positive", "4", "p4"] and rows[1][-1] == "?"
    leads = [float(row[6]) for row in rows[1:]]
    assert leads == sorted(leads, reverse=True)


def test_a_tilde_in_the_place_of_the_audit_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    mine(*views(4), 1).export("~/audit.tsv", list("abcd"), list("efgh"))
    assert [path.name for path in tmp_path.iterdir()] == ["audit.tsv"]


@pytest.mark.parametrize("call, message", [
    (lambda: hardest(np.zeros(3), 1), "shape"), (lambda: hardest(np.zeros((2, 3)), 0), "k is 0"),
    (lambda: hardest(np.full((2, 3), np.nan), 1), "NaN"), (lambda: hardest(np.zeros((2, 3)), 1, ceiling=1), "together"),
    (lambda: hardest(np.zeros((2, 3)), 1, exclude=np.zeros((3, 2))), r"mask of shape \(3, 2\)"),
    (lambda: hardest(np.zeros((1, 2)), 1, second_opinion=[[np.nan, 0.1]], ceiling=0.5), "second_opinion .* NaN"),
    (lambda: hardest(np.zeros((1, 2)), 1, second_opinion=np.zeros((1, 2)), ceiling=np.nan), "ceiling holds a NaN"),
    (lambda: mine(np.full((4, 3), np.nan), np.ones((4, 3)), 1), "anchors row 0 holds a NaN"),
    (lambda: mine(np.ones((4, 3)), np.zeros((4, 3)), 1), "positives row 0 is the zero vector"),
    (lambda: mine(*views(4), 1, exclude=np.zeros((2, 2))), r"must be \(4, 4\)"),
    (lambda: mine(*views(4), 1, duplicates=[(1, 1)]), "would remove the positive"),
    (lambda: mine(*views(4), 1).export("never-written", ["a"], ["b"]), "4 rows were mined"),
])  # fmt: skip
def test_mining_names_what_it_cannot_use(call, message):
    with pytest.raises(InputError, match=message):
        call()


# ---- memory ----


def test_queue_is_first_in_first_out_and_copies():
    queue = MemoryQueue(3)
    assert queue.rows() is None and len(queue) == 0
    e = np.eye(5)
    queue.push(2 * e[:2])
    queue.push(e[2:4])
    np.testing.assert_array_equal(queue.rows(), e[1:4])
    queue.rows()[:] = 7
    np.testing.assert_array_equal(queue.rows(), e[1:4])
    queue.push(e)  # more than it holds
    np.testing.assert_array_equal(queue.rows(), e[2:])
    with pytest.raises(InputError, match="keys are 4 wide, the queue holds rows of 5"):
        queue.push(np.ones((1, 4)))
    with pytest.raises(InputError, match="size is 0"):
        MemoryQueue(0)


def test_queue_rows_are_constants_of_the_loss():
    a, p = views(4)
    queue = rng(3).standard_normal((6, 8))
    loss, backward = candidate_info_nce(a, p, 0.3, queue=queue)
    assert float(loss) > float(candidate_info_nce(a, p, 0.3)[0])
    moved = numeric_gradient(lambda: candidate_info_nce(a, p, 0.3, queue=queue)[0], a, 1e-5)
    np.testing.assert_allclose(backward()[0], moved, rtol=1e-7, atol=1e-9)
    assert len(backward()) == 2


def test_bank_follows_each_row_and_samples_written_ones():
    bank = MemoryBank(4, 2, momentum=0.5, dtype=np.float64)
    bank.update([2], np.array([[3.0, 0.0]]))
    np.testing.assert_allclose(bank.slots[2], [1, 0])
    bank.update([2, 0], np.array([[0.0, 2.0], [0.0, 1.0]]))
    np.testing.assert_allclose(bank.slots[[2, 0]], [[math.sqrt(0.5)] * 2, [0, 1]])
    rows, slots = bank.sample(5, rng(), exclude=[0])
    assert rows.tolist() == [2] and slots.shape == (1, 2)
    with pytest.raises(InputError, match="name a slot twice"):
        bank.update([1, 1], np.ones((2, 2)))


def test_follow_is_an_exponential_average():
    slow, fast = (Parameters({"w": (2,)}, dtype=np.float64) for _ in range(2))
    fast["w"][:] = 1
    for _ in range(3):
        follow(slow, fast, 0.9)
    np.testing.assert_allclose(slow["w"], 1 - 0.9**3, rtol=1e-13)
    with pytest.raises(InputError, match="momentum is 1"):
        follow(slow, fast, 1)
    with pytest.raises(InputError, match="same names and shapes"):
        follow(slow, Parameters({"v": (2,)}), 0.9)


# ---- objective ----


@pytest.mark.parametrize("candidates", ["cross", "same-view", "both"])
def test_objective_with_all_rows_is_the_plain_loss(candidates):
    a, p = views()
    result = ContrastiveObjective(InBatchSampler([(0, 1)]), 0.1, candidates=candidates)(a, p)
    loss, backward = candidate_info_nce(a, p, 0.1, candidates=candidates, log_weights=pair_log_weights([(0, 1)], 20))
    assert float(result.loss) == float(loss)
    np.testing.assert_array_equal(result.backward()[0], backward()[0])
    blocks = 2 if candidates == "both" else 1
    assert result.summary() == {"min": 18 * blocks, "mean": 18.9 * blocks, "max": 19 * blocks}
    assert (result.sampler, result.candidates) == ("in-batch", candidates)
    assert result.geometry.mean_pair_cosine < 0.5


def test_a_sampler_of_ones_own_is_enough():
    class Nearest:
        name = "next row"

        def candidates(self, embeddings, anchor):
            return [(anchor + 1) % len(embeddings)] * 2

    assert isinstance(Nearest(), NegativeSampler) and not isinstance(object(), NegativeSampler)
    a, p = views(4)
    result = ContrastiveObjective(Nearest(), 0.5, min_negatives=2)(a, p)
    s = (a / np.linalg.norm(a, axis=1)[:, None]) @ (p / np.linalg.norm(p, axis=1)[:, None]).T / 0.5
    rows = [math.log1p(2 * math.exp(s[i, (i + 1) % 4] - s[i, i])) for i in range(4)]
    assert float(result.loss) == pytest.approx(np.mean(rows), rel=1e-13)
    assert result.negatives.tolist() == [2, 2, 2, 2]


def test_correction_subtracts_the_log_probability():
    a, p = views(6)
    counts = np.arange(1.0, 7.0)
    plain, corrected = (
        ContrastiveObjective(PopularitySampler(counts, 8, rng(4)), 0.5, min_negatives=1, correct=c)(a, p)
        for c in (False, True))
    draws = PopularitySampler(counts, 8, rng(4))
    w = np.full((6, 12), -np.inf)
    for i in range(6):
        for j in draws.candidates(a, i):
            w[i, j] = np.logaddexp(w[i, j], 0)
        w[i, i] = 0
    assert float(plain.loss) == pytest.approx(float(candidate_info_nce(a, p, 0.5, log_weights=w)[0]), rel=1e-13)
    w -= np.tile(np.log(counts / 21), 2)
    assert float(corrected.loss) == pytest.approx(float(candidate_info_nce(a, p, 0.5, log_weights=w)[0]), rel=1e-13)
    assert float(plain.loss) != float(corrected.loss)


def test_the_cap_changes_the_loss():
    a, p = views()
    hard = mine(a, p, 8).rows()
    losses = [float(ContrastiveObjective(MinedSampler(hard, 8, rng(), cap), 0.1, min_negatives=8)(a, p).loss)
              for cap in (0.0, 0.5, 1.0)]
    assert losses[0] < losses[1] < losses[2]


def test_objective_refuses_few_negatives_collapse_and_tiny_temperatures():
    a, p = views()
    ContrastiveObjective(InBatchSampler())(*views(17))
    with pytest.raises(TooFewNegatives, match="anchor 0 has 15 negatives from sampler in-batch; expected at least 16"):
        ContrastiveObjective(InBatchSampler())(*views(16))
    with pytest.raises(TooFewNegatives, match="anchor 3 has 18"):
        ContrastiveObjective(InBatchSampler([(3, 5)]), min_negatives=19)(a, p)
    with pytest.raises(DegenerateTemperature, match=r"temperature is 0\.0001; this objective"):
        ContrastiveObjective(InBatchSampler(), 1e-4)
    with pytest.raises(DegenerateTemperature):
        ContrastiveObjective(InBatchSampler(), math.nan)
    with pytest.raises(InputError, match="no probabilities to correct for"):
        ContrastiveObjective(InBatchSampler(), correct=True)
    point = np.ones((20, 8)) + 1e-4 * a
    with pytest.raises(RepresentationCollapse, match="all rows lie within one point"):
        ContrastiveObjective(InBatchSampler())(point, point)
    result = ContrastiveObjective(InBatchSampler(), guard=False)(point, point)
    assert float(result.loss) == pytest.approx(math.log(20), 1e-3)


def test_collapse_is_judged_by_rank_not_by_the_mean_cosine():
    antipodal = np.where(np.arange(64) % 2, 1.0, -1.0)[:, None] * np.ones((1, 8))
    with pytest.raises(RepresentationCollapse, match=r"about 1\.0 directions"):
        refuse_collapse(antipodal)
    refuse_collapse(views()[0] + 10)  # a cone whose rows still differ


@pytest.mark.parametrize("rows", [[0], [20], [-1], [[1, 2]]])
def test_objective_refuses_a_sampler_that_names_no_other_row(rows):
    class Wrong:
        name = "wrong"

        def candidates(self, embeddings, anchor):
            return rows

    with pytest.raises(InputError, match="sampler wrong names a row for anchor 0 that is no other row"):
        ContrastiveObjective(Wrong(), min_negatives=0)(*views())


def test_the_errors_stand_where_a_caller_looks_for_them():
    assert issubclass(RepresentationCollapse, RuntimeError) and not issubclass(RepresentationCollapse, ValueError)
    assert all(issubclass(e, InputError) for e in (DegenerateTemperature, TooFewNegatives))
