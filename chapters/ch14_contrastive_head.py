"""Chapter 14: a contrastive head on frozen word vectors, and how much of its gain is luck."""

# %% [markdown]
# Question: can a text teach an encoder which of its parts belong together? Two windows of one section are a positive
# pair, windows of other sections its negatives. The encoder is the smallest one: averaged word vectors of chapter 13,
# frozen, and one linear map. The loss falls; what breaks is the reading of the result. Sixty test sections give an
# error of five points, three seeds do not make them more, and a level on training sections cannot show whether the
# head memorises. The repair is to count: hits, pairs of hits, and the same sections trained on and not.
#
# Letters: B sections in a batch, D width, n test sections; a window is VIEW = 40 words; tau = 0.1.

# %% Two windows of one text
from types import SimpleNamespace

import numpy as np
from lesson import (
    check,
    check_close,
    check_true,
    erratum,
    erratum_claim,
    full,
    numeric_gradient,
    recorded,
    table,
)
from scipy.stats import binom
from section_corpus import SETTINGS, VIEW, split_sections, word_vectors
from section_head import (
    WindowAverages,
    apply,
    gains_over_splits,
    head_loss,
    identity_head,
    section_ranks,
    seen_and_unseen,
    train_head,
)

from nano_simcse.evaluation import binomial_error
from nano_simcse.geometry import mean_pair_cosine
from nano_simcse.losses import info_nce
from nano_simcse.paired_hits import paired_hits


def overlap_chance(words, view=VIEW):
    """Chance that two random windows of a text share a place: 1 - (m - v)(m - v + 1) / m^2 with m starts."""
    m = words - view + 1
    return 1 - max(0, m - view) * max(0, m - view + 1) / m**2


# Starts i, j uniform on m places. |i - j| >= v happens for (m - v)(m - v + 1) of the m^2 ordered pairs.
check(120 - VIEW + 1, "81", "section of 120 words: places for a window of 40")
check(overlap_chance(120), "73.8%", "section of 120 words: two random windows overlap")
starts = np.abs(np.subtract.outer(np.arange(81), np.arange(81)))
check_close(np.mean(starts < VIEW), overlap_chance(120), 1e-12, "the same, all 81 x 81 pairs counted")
check([overlap_chance(n) for n in (79, 160, 240, 400)], "1.000 0.546 0.354 0.207", "sections of 79 to 400 words")
# So training pairs often share places, and every word that stands there. The test asks the first 40 words for the last
# 40, which share no place: what they have in common are words that stand in both.

# %% Sections held out, and nothing of them left behind
# A section: a description of at least 3 x 40 words of the documentation on this machine. 30 % are held out, by seed.
# Two rules keep the split clean: no two sections share a sentence, and no training text holds a held-out sentence.
check([222 * 3 // 10, 222 - 222 * 3 // 10], "66 156", "lesson's 222 sections: held out, for training")
clean, careless = split_sections(), split_sections(careful=False)
table(np.array([[len(s.train), len(s.held_out), len(s.documents), s.leaks] for s in (clean, careless)]), "the split",
      rows=["with both rules", "split only"], columns=["train", "held out", "training texts", "that leak"])
check(clean.leaks, "0", "clean split: training texts with a sentence of a held-out section")
check_true(careless.leaks > 0, "a split alone leaks: documentation repeats itself")
check_true(min(len(t) for t in clean.held_out + clean.train) >= 3 * VIEW, "every section is three windows long")
common = np.array([len(set(t[:VIEW]) & set(t[-VIEW:])) for t in clean.held_out])
print(f"    distinct words that the first {VIEW} of a held-out section share with its last {VIEW}: {common.mean():.1f}")
check_true(bool(common.mean() > 4 and (common > 0).mean() > 0.9), "first and last window: words in common, no place")
check_true(len(clean.held_out) == int(0.3 * (len(clean.held_out) + len(clean.train))), "three tenths are held out")

# %% The encoder, from its start
# x = mean of the vectors of the window's known words, h = x W + b, then the cosine. W = I and b = 0: the plain average.
vectors = word_vectors(0)
D = vectors.vectors.shape[1]
test, train = (WindowAverages(texts, vectors, VIEW) for texts in (clean.held_out, clean.train))
start = identity_head(D)
first, last = test.ends()
direct = np.array([vectors.average(t[:VIEW]) for t in clean.held_out])
check_close(first, direct, 1e-5, "prefix sums = averages of word vectors")
check_true(bool(np.array_equal(apply(start, first), first)), "step 0: the head returns the averages exactly")
# The map commutes with the mean, (mean x) W + b = mean (x W + b): a trained head is only another table of word vectors.
W, b = np.random.default_rng(0).standard_normal((D, D)), np.random.default_rng(1).standard_normal(D)
check_close(direct[0] @ W + b, np.mean([vectors.vectors[vectors.index[w]] @ W + b for w in clean.held_out[0][:VIEW]
                                        if w in vectors], axis=0), 1e-5, "map of the mean = mean of mapped words")
check(64 * 64 + 64, "4160", "parameters of the lesson's head, for 156 sections")

# %% A section drawn twice is no negative
# Sections 0, 1, 0 in one batch: first windows (1, 0), (0, 1), (1, 0), second (0.8, 0.6), (0.6, 0.8), (0.8, 0.6). With
# the repeat among the negatives, row 0 has two equal best answers and can never pay less than log 2.
picked = np.array([0, 1, 0])
a = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
c = np.array([[0.8, 0.6], [0.6, 0.8], [0.8, 0.6]])
unmasked, _ = info_nce(a, c, 0.1)
masked, _ = head_loss(identity_head(2), a, c, picked, 0.1)
check([np.log(2 + np.exp(-2)), np.log1p(np.exp(-2))], "0.758624 0.126928", "row 0: repeat counted, repeat masked")
check(unmasked, "0.585597", "batch of three: loss with the repeat as a negative")
check(masked, "0.164467", "batch of three: loss with the repeat masked")
check_close(masked, (2 * np.log1p(np.exp(-2)) + np.log1p(2 * np.exp(-2))) / 3, 1e-12, "masked = left out of the sum")
effective = np.array([3, 15, 63]) * 155 / 156
check(effective, "2.981 14.904 62.596", "negatives of a row, 156 sections: (B - 1) 155/156")
erratum_claim(
    bool((effective < [3, 15, 63]).all()), id="effective-negatives", where="lesson 3, a contrastive head",
    says="batches of 4, 16, 64 give 3, 15, 63 negatives a row", right="2.981, 14.904 and 62.596 on average",
    label="masked repeats are no negatives",
    why="Sections are drawn with replacement, and another row is the same section with chance 1/156.",
)

rng = np.random.default_rng(140)
head = identity_head(4)
head.flat[...] += 0.3 * rng.standard_normal(20)
a, c, picked = rng.standard_normal((6, 4)), rng.standard_normal((6, 4)), np.array([0, 1, 2, 0, 3, 1])


def loss_at(flat):
    moved = head.copy()
    moved.flat[...] = flat
    return head_loss(moved, a, c, picked, 0.5)[0]


check_close(head_loss(head, a, c, picked, 0.5)[1]().flat, numeric_gradient(loss_at, head.flat), 1e-7,
            "gradient of W and b, two repeats masked")

# %% Nine heads
SETTING = {"steps": 1000, "lr": 2e-3}
BATCHES, SEEDS = (4, 16, 64), (0, 1, 2)
runs = {(B, seed): train_head(train, B, seed=seed, **SETTING) for B in BATCHES for seed in SEEDS}
sections = len(clean.train)
drawn = np.array([np.mean([runs[B, seed].negatives for seed in SEEDS]) for B in BATCHES])
check_close(drawn, (np.array(BATCHES) - 1) * (1 - 1 / sections), 0.01, "negatives counted = (B - 1)(1 - 1 / sections)")
begin, end = (np.array([np.mean([runs[B, seed].losses[part].mean() for seed in SEEDS]) for B in BATCHES])
              for part in (slice(0, 50), slice(-50, None)))
table(np.column_stack([drawn, begin, end]), "training, means of three seeds", rows=[f"batch {B}" for B in BATCHES],
      columns=["negatives", "loss, first 50 steps", "last 50"], digits=3)
check_true(bool((end < 0.8 * begin).all()), "the loss falls in every setting")
check_true(bool(begin[0] < begin[1] < begin[2] and end[0] < end[1] < end[2]), "more negatives, a harder quiz")

# %% Recall, and what one hit is worth
# recall@1 over n sections moves in steps of 1/n; chance is 1/n; its binomial error is sqrt(p (1 - p) / n).
check([100 / 66, binomial_error(20, 66)], "1.515152 4.923660", "66 sections: one hit, error near 20 percent, in points")
hits = np.array([[13, 10, 14], [11, 12, 14], [14, 15, 14]])  # lesson: batches 4, 16, 64, three seeds each
check(hits / 66, "0.197 0.152 0.212; 0.167 0.182 0.212; 0.212 0.227 0.212", "lesson's recalls are whole hits of 66")
check(np.array([4, 10, 9, 9]) / 66, "0.061 0.152 0.136 0.136", "random vectors, averaged vectors: 4, 10, 9, 9 hits")
check(binom.sf(3, 66, 1 / 66), "0.018057", "chance of 4 hits or more by guessing")
level = hits.sum(axis=1) / 198
check(level, "0.186869 0.186869 0.217172", "lesson's mean recall for batches 4, 16, 64")
erratum_claim(bool(level[0] == level[1]), id="bigger-batch", where="lesson 3, a contrastive head",
              says="the head gains more with a bigger batch", label="batches 4 and 16: the same 37 hits of 198",
              right="no trend: 37, 37 and 43 hits of 198 for batches 4, 16 and 64",
              why="The means are .187, .187 and .217, and one binomial error is .049.")
gain = 100 * (43 / 198 - 10 / 66)
check(gain, "6.566", "lesson's gain of batch 64 over its start, points")
check(gain / binomial_error(20, 66), "1.333", "in errors of one proportion: the lesson's 1.3")
two = np.hypot(binomial_error(100 * 43 / 198, 66), binomial_error(100 * 10 / 66, 66))
erratum(gain / two, right="0.976", lesson="1.3", id="error-of-a-difference", where="lesson 3, a contrastive head",
        says="the gain is 1.3 standard errors", label="gain in standard errors of a difference",
        why="Both recalls carry an error; that of their difference is sqrt(2) times larger or so.")

# %% Pairs of hits
# Both systems answer the same queries, so the error of the difference has to come from the queries on which they
# disagree: d_i in {-1, 0, 1}, error sqrt(var d / n). It needs the hits one by one. 10 and 14 hits of 66:
every = np.arange(66)
shared = paired_hits(every < 10, every < 14)  # the second system keeps all ten
apart = paired_hits(every < 10, every >= 52)  # and here it keeps none
check([shared.difference, shared.paired_error, shared.p_value], "6.0606 2.9370 0.1250", "ten kept: points, error, p")
check([apart.difference, apart.paired_error, apart.p_value], "6.0606 7.3851 0.5413", "ten exchanged: points, error, p")
check(shared.unpaired_error, "6.6933", "the error that ignores the pairing, the same for both")
check(2 * 0.5**4, "0.125", "four disagreements, all one way: two-sided p")

# %% Held-out sections
def score(ranks):
    """recall@1 in percent and mean reciprocal rank."""
    return np.array([100 * np.mean(ranks == 1), np.mean(1 / ranks)])


n = len(clean.held_out)
averaged = [WindowAverages(clean.held_out, word_vectors(seed), VIEW) for seed in SEEDS]
random_scores = []
for seed in range(20):
    noise = np.random.default_rng(seed).standard_normal(vectors.vectors.shape)
    random_table = WindowAverages(clean.held_out, SimpleNamespace(index=vectors.index, vectors=noise), VIEW)
    random_scores.append(score(section_ranks(start, random_table)))
random_scores = np.array(random_scores)
vector_scores = np.array([score(section_ranks(start, w)) for w in averaged])
ranks = {key: section_ranks(run.head, test) for key, run in runs.items()}
head_scores = np.array([[score(ranks[B, seed]) for seed in SEEDS] for B in BATCHES])  # (batch, seed, 2)
centred = identity_head(D)
centred["bias"] = -np.concatenate(train.ends()).mean(axis=0)
start_ranks = section_ranks(start, test)
rows = [random_scores.mean(axis=0), *vector_scores, score(section_ranks(centred, test)), *head_scores.mean(axis=1)]
table(np.array(rows), f"first 40 words find the last 40 among {n} held-out sections; chance {100 / n:.1f}", digits=3,
      rows=["random vectors, 20 tables", *(f"averaged, seed {s}" for s in SEEDS), "seed 0, centred",
            *(f"head, batch {B}" for B in BATCHES)], columns=["recall@1", "mean reciprocal rank"])
guess = np.mean(1 / np.arange(1, n + 1))
check_true(random_scores[:, 1].mean() > 1.3 * guess, "random vectors: words in common are found through any table")
check_true(bool((vector_scores[:, 1] > random_scores[:, 1].mean() + 0.05).all()), "trained vectors beat random ones")
pairs = [paired_hits(start_ranks == 1, ranks[key] == 1) for key in runs]
columns = ("only_first", "only_second", "difference", "paired_error", "unpaired_error", "p_value")
table(np.array([[getattr(p, name) for name in columns] for p in pairs], dtype=object), "each head against its start",
      rows=[f"batch {B}, seed {s}" for B, s in runs], digits=2,
      columns=["lost", "new", "points", "error", "unpaired", "p"])
check_true(all(p.paired_error < p.unpaired_error for p in pairs), "paired errors are smaller: head and start agree")
check_true(binomial_error(20, n) > 2 * 100 / n, "one binomial error is worth more than two hits")
agreement = np.mean([np.mean((ranks[64, i] == 1) == (ranks[64, j] == 1)) for i, j in ((0, 1), (0, 2), (1, 2))])
check_true(agreement > 0.8, "three seeds hit the same sections: no three times as many queries")

# %% What the head does: it opens the cone
spread = {B: np.mean([mean_pair_cosine(apply(runs[B, s].head, first)) for s in SEEDS]) for B in BATCHES}
table(np.array([[mean_pair_cosine(first), mean_pair_cosine(apply(centred, first)), *spread.values()]]), digits=3,
      title="mean cosine of different held-out windows",
      columns=["averaged", "centred", *(f"batch {B}" for B in BATCHES)])
check_true(mean_pair_cosine(first) > 0.7 > 0.4 > max(spread.values()), "from a narrow cone to a wide one")
check_true(spread[4] > spread[16] > spread[64], "the more negatives, the wider")
check_true(abs(mean_pair_cosine(apply(centred, first))) < 0.15, "subtracting a mean does the same, untrained")

# %% Is it memorising?
# The lesson compares levels: as many training sections have no higher recall than the held-out ones. But those are
# other sections, with another start. Gains compare, and best on the same sections: split the training sections in two,
# train a head on each half, and let every section be asked once by the head that saw it and once by the other.
halves = np.array([seen_and_unseen(clean.train, vectors, seed) for seed in range(3)])  # (3, start/unseen/seen, 2)
for i, measure in enumerate(("recall@1", "mean reciprocal rank")):
    table(halves[:, :, i], f"{measure} of the training sections, batch 64", digits=3,
          rows=[f"halving {i}" for i in range(3)],
          columns=["averaged", "other half trained", "own half trained"])
gaps = halves[:, 2, 1] - halves[:, 1, 1]
check_true(bool((halves[:, 2, 1] > halves[:, 0, 1] + 0.05).all()), "seen sections: far better than the average")
check_true(bool((halves[:, 1, 1] < halves[:, 0, 1] + 0.05).all()), "unseen sections: no better than the average")
erratum_claim(
    bool((gaps > 0.05).all()), id="memorising", where="lesson 3, a contrastive head",
    label="the same sections: better by the head that saw them",
    says="the head is not memorising, since its recall on held-out sections is as high as on training sections",
    right="two sets of sections with different starts cannot show it; on the same sections the trained half gains",
    why="Asked by a head trained on them, sections are found more often than by a head trained on the other half.",
)

# Windows that never overlap make the training task the test task. It memorises as well: halving 0 again.
honest = train_head(train, 64, seed=0, apart=True, **SETTING | {"steps": 50})
check_true(honest.losses.mean() > runs[64, 0].losses[:50].mean() + 0.1, "no place in common: the quiz starts harder")
averaged_score, unseen, seen = seen_and_unseen(clean.train, vectors, 0, apart=True)[:, 1]
table([averaged_score, unseen, seen], "mean reciprocal rank, trained on windows that never overlap", digits=3,
      columns=["averaged", "other half trained", "own half trained"])
check_true(bool(seen > unseen + 0.05), "no place in common: the same sections, better by the head that saw them")
check_true(bool(unseen < averaged_score + 0.05), "no place in common: unseen sections do not gain")

# %% Five splits instead of one
# Each with its own word vectors: mean reciprocal rank gained over the average, batch 64, mean of three seeds.
last_run = recorded("gain over the averaged vectors", ["split", "held-out", "training"],
                    [["0", 0.066, 0.123], ["1", -0.006, 0.078], ["2", -0.027, 0.071], ["3", 0.005, 0.099],
                     ["4", -0.008, 0.085]], seeds="0 to 2")
mean, error = last_run[:, 0].mean(), last_run[:, 0].std(ddof=1) / np.sqrt(5)
check([mean, error], "0.006 0.016", "held-out gain: mean and standard error over five splits")
if full():
    fresh = gains_over_splits(range(5), SETTINGS["steps"], SETTING)
    check_true(bool((fresh[:, 1] > 0.02).all() and fresh[:, 0].mean() < fresh[:, 1].mean() - 0.02),
               "again: training sections gain, held-out ones hardly")
