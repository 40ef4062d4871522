"""Chapter 1: InfoNCE, from a loss that collapses to the loss that trains."""

# %% [markdown]
# Question: which number should training lower, so that two views of a sentence end up close and nothing else does?
# First attempt: their distance. It collapses. Repair: ask for closer THAN THE OTHERS. The hinge does that but falls
# silent; a quiz over the whole batch does not. The rest of the chapter is that quiz: scores, floor, gradient, limits.

# %% First attempt: only pull the pairs together
import numpy as np
from contrast_runs import TripletHinge, free_rows, length_only, zero_shares
from lesson import (
    check,
    check_close,
    check_true,
    erratum,
    erratum_claim,
    erratum_quoted,
    numeric_gradient,
    quoted,
    table,
)
from linear_encoder import LinearEncoder
from quoted_tables import SIMCSE, TABLE_3_DROPOUT, TABLE_D1_TEMPERATURE

from nano_simcse.geometry import alignment, mean_pair_cosine, uniformity
from nano_simcse.layers import normalize
from nano_simcse.losses import info_nce

# Linear encoder f(x) = A x, pair differences delta_i = x_i - x_i+, S = mean_i delta_i delta_i^T:
#   L(A)  = mean_i |A delta_i|^2 = tr(A S A^T)
#   dL/dA = 2 A S                                  (S is symmetric)
#   one step:  A <- A - eta 2 A S = A (I - 2 eta S),   so after t steps  A_t = A_0 (I - 2 eta S)^t
rng = np.random.default_rng(1)
x, x_plus = rng.standard_normal((12, 3)), rng.standard_normal((12, 3))
delta = x - x_plus
S_data = delta.T @ delta / len(delta)
A = rng.standard_normal((2, 3))


def attraction(A):
    """Mean squared distance of the encoded pairs."""
    return np.mean(np.sum((x @ A.T - x_plus @ A.T) ** 2, axis=1))


check_close(attraction(A), np.trace(A @ S_data @ A.T), 1e-12, "attraction: mean distance = tr(A S A^T)")
check_close(2 * A @ S_data, numeric_gradient(attraction, A), 1e-8, "attraction: dL/dA = 2 A S, by differences")
A_loop, eta_data = A.copy(), 0.05
for _ in range(30):
    A_loop -= eta_data * 2 * A_loop @ S_data
A_closed = A @ np.linalg.matrix_power(np.eye(3) - 2 * eta_data * S_data, 30)
check_close(A_loop, A_closed, 1e-12, "attraction: 30 steps = closed form")

# %% What breaks: the encoder dies while its loss looks healthy
# A_0 = I and S = diag(0.5, 0.2) show every number. Loss after t steps: sum_k S_k c_k^(2t) with c = 1 - 2 eta S.


def collapse(S, eta, steps=100):
    """(scales (steps + 1, 2) of the two directions, loss (steps + 1,)) of A_0 = I under the collapse update."""
    c = 1 - 2 * eta * np.asarray(S)
    scales = c ** np.arange(steps + 1)[:, None]
    return scales, (scales**2 * S).sum(axis=1)


S, eta = np.array([0.5, 0.2]), 0.5
check(1 - 2 * eta * S, "0.5 0.8", "collapse: factor per step")
scales, attraction_loss = collapse(S, eta)
check(scales[10], "0.000977 0.107", "collapse: scale after 10 steps")
check(scales[100], "7.89e-31 2.04e-10", "collapse: scale after 100 steps")
check(attraction_loss[[0, 1, 10, 100]], "0.700 0.253 0.002306 8.299e-21", "collapse: loss at steps 0, 1, 10, 100")
check_true(bool(np.all(np.diff(attraction_loss) < 0)), "collapse: the loss falls at every step")
table(np.column_stack([attraction_loss, scales])[[0, 1, 10, 100]], "attraction only, eta = 0.5",
      rows=["step 0", "1", "10", "100"], columns=["loss", "direction 1", "direction 2"], digits="3e")

# Three variants: it need not end at zero, and it need not even fall.
#   S singular         a direction in which no pair differs keeps its size: loss 0 without dying entirely
#   eta at the limit   eta = 1 / max S: that direction flips its sign for ever, its share of the loss stays
#   eta beyond it      |c| > 1: the loss grows
scales_singular, loss_singular = collapse([0.5, 0.0], 0.5)
check(scales_singular[100, 1], "1", "singular S: direction 2 after 100 steps")
check(loss_singular[100], "3.1e-61", "singular S: loss after 100 steps")
erratum_claim(bool(scales_singular[100, 1] == 1 and loss_singular[100] < 1e-60), label="singular S: a direction lives",
              id="collapse-null-direction", where="ch. 1, watching collapse",
              says="attraction alone annihilates the encoder in every direction in which the data vary",
              right="only directions in which the two members of a pair differ are contracted",
              why="The update multiplies A by I - 2 eta S, and S holds pair differences, not the spread of the data.")
_, loss_limit = collapse(S, 1 / S.max())
check(loss_limit[[1, 100]], "0.508 0.500", "eta at the limit: loss stays at 0.5 from direction 1")
_, loss_beyond = collapse(S, 2.1)
check(loss_beyond[:6], "0.700 0.610 0.732 0.886 1.072 1.297", "eta = 2.1: the loss grows")
erratum_claim(bool(loss_beyond[5] > loss_beyond[0]), label="eta = 2.1: no falling loss",
              id="collapse-step-size", where="ch. 1, watching collapse",
              says="the loss goes down monotonically the whole time",
              right="only while eta < 1 / max eigenvalue of S (here 2)",
              why="Beyond it the factor 1 - 2 eta S of the steepest direction has a modulus above one.")

# %% Second attempt: closer than one other sentence, by a margin
# Triplet hinge on cosines, for query i and every other key j:   max(0, s_ij - s_ii + m)
#   derivative: +1 on s_ij and -1 on s_ii while the bracket is positive, EXACTLY 0 on both once it is not.
# A collapsed encoder no longer scores: its loss is the margin (the hinge) or ln N (the quiz below), not the minimum.
rows_q, rows_k = rng.standard_normal((5, 4)), rng.standard_normal((5, 4))
hinge = TripletHinge(margin=0.2)
_, hinge_back = hinge(rows_q, rows_k)
check_close(hinge_back()[0], numeric_gradient(lambda r: hinge(r, rows_k)[0], rows_q), 1e-7, "hinge: d/dqueries")
check_close(hinge_back()[1], numeric_gradient(lambda r: hinge(rows_q, r)[0], rows_k), 1e-7, "hinge: d/dkeys")
one_point = np.tile([3.0, 4.0], (64, 1))
check(hinge(one_point, one_point)[0], "0.2", "collapsed batch: the hinge is its margin")
check(info_nce(one_point, one_point, 0.05)[0], "4.158883", "collapsed batch: InfoNCE is ln 64")
s_ten = np.array([0.9, *[0.5] * 9, 0.85])  # a positive, nine easy negatives, one within the margin
check(np.mean(s_ten[1:] - s_ten[0] + 0.2 <= 0), "0.9", "hinge: share of zero gradients, 9 of 10 negatives cleared")

# %% The same encoder trained with either loss: who falls silent?
# Linear encoder, dropout views, N = 32: the share of the 992 negatives of a training batch whose gradient on the cosine
# is exactly 0.0. "Not zero" is not "large", so the third column counts InfoNCE pushes below 1e-6.
silent = zero_shares(margin=0.2, tau=0.05, steps=240, every=40)
table(silent, "share of negatives without a gradient", rows=[f"step {40 * k}" for k in range(len(silent))],
      columns=["hinge, exactly 0", "InfoNCE, exactly 0", "InfoNCE, below 1e-6"], digits=3)
check_true(bool(silent[-1, 0] > 0.9 and silent[-1, 0] > silent[0, 0]), "hinge: over 90% silent after training")
check(silent[:, 1].max(), "0", "InfoNCE: share exactly zero, at every step")
table([["1 a triplet", "N - 1 a row"], ["m, in units of cosine", "tau, in units of cosine"],
       ["yes, once the margin is met", "never in exact arithmetic"], ["by the data loader", "by the softmax"]],
      "hinge and quiz side by side", rows=["negatives", "knob", "gradient exactly zero", "choice of hard negatives"],
      columns=["triplet hinge", "InfoNCE"])
erratum_quoted(right="a three-way classifier on NLI pairs", lesson="the triplet margin loss",
               source="Reimers and Gurevych, arXiv 1908.10084, Section 3 and its training scripts",
               id="sbert-triplet", label="loss of the SBERT baseline",
               where="ch. 1, second attempt", says="the margin loss is what SBERT used",
               why="The baseline in the tables was trained with the softmax objective; triplets served other data.")

# %% Third attempt: a quiz with N answers
# Shuffle the N partners and ask: which one belongs to sentence i? That is classification with N classes, and the
# labels come free: before shuffling the answer to question i is i. Every other row of the batch is a wrong answer.


def quiz(n=8, tau=0.05, row=0, noise=1.0, width=16, seed=1):
    """One question. Returns (order of the shuffled keys, their cosines, their probabilities, place of the answer)."""
    draw = np.random.default_rng(seed)
    queries = draw.standard_normal((n, width))
    keys = queries + noise * draw.standard_normal((n, width))  # a partner is a noisy copy
    order = draw.permutation(n)
    cosines = normalize(keys[order])[0] @ normalize(queries)[0][row]
    e = np.exp((cosines - cosines.max()) / tau)
    return order, cosines, e / e.sum(), int(np.flatnonzero(order == row)[0])


order, quiz_cosines, quiz_p, answer = quiz()
table(np.column_stack([quiz_cosines, quiz_p, quiz(tau=0.2)[2], quiz(tau=1.0)[2]]), "question 0, keys shuffled",
      rows=[f"key {k}{' *' if k == 0 else ''}" for k in order],
      columns=["cosine", "p, tau 0.05", "p, tau 0.2", "p, tau 1"], digits=3)
check_true(quiz_p.argmax() == answer == quiz(tau=1.0)[2].argmax(), "quiz: tau changes no rank")
quiz_loss = np.mean([-np.log(p[place]) for _, _, p, place in (quiz(row=r) for r in range(8))])
draw = np.random.default_rng(1)
quiz_rows = draw.standard_normal((8, 16))
check_close(quiz_loss, info_nce(quiz_rows, quiz_rows + draw.standard_normal((8, 16)), 0.05)[0], 1e-10,
            "quiz: mean of 8 shuffled questions = info_nce, labels 0 to 7")

N = 64
is_positive = np.eye(N, dtype=bool)
check([is_positive.sum(), (~is_positive).sum()], "64 4032", "constraints of a batch of 64: positive, negative")
encoded = []  # what one training step hands to the loss


def counted(queries, keys):
    """InfoNCE that notes how many rows the encoder had to produce."""
    encoded.append(len(queries) + len(keys))
    return info_nce(queries, keys, 0.05)


LinearEncoder(3).step(rng.standard_normal((N, 3)), counted)
erratum(encoded[0], right="128", lesson="64", id="forward-passes", where="ch. 1, in-batch negatives",
        says="a batch of N pairs costs N forward passes", why="Both views of each sentence must be encoded: 2 N rows.",
        label="rows encoded for 64 pairs")

# %% The score: dot product or cosine
h, near, far = np.array([3.0, 4.0]), np.array([6.0, 8.0]), np.array([20.0, 1.0])
check([h @ near, h @ far], "50 64", "dot products: the longer stranger wins")
lengths = np.linalg.norm([h, near, far], axis=1)
check(lengths, "5. 10. 20.025", "lengths of the three")
check(lengths[0] * lengths[2], "100.12", "denominator of the stranger's cosine")
cosine_near, cosine_far = h @ near / (lengths[0] * lengths[1]), h @ far / (lengths[0] * lengths[2])
check([cosine_near, cosine_far], "1.000 0.639201497", "cosines: the order is restored")
check_close(normalize(np.array([h]))[0] @ normalize(np.array([near, far]))[0].T, [[cosine_near, cosine_far]], 1e-12,
            "cosine = dot product of rows scaled to length 1")

# Under a dot product, length is a way to cheat: with the directions frozen, multiplying every row by c divides tau by
# c^2. Where the ranks are right, the loss goes to 0 and nothing has been learnt. A cosine does not notice.


def dot_loss(queries, keys, tau=1.0):
    """InfoNCE on raw dot products."""
    z = queries @ keys.T / tau
    z = z - z.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(z).sum(axis=1)) - np.diag(z))


views_a = rng.standard_normal((16, 32))
views_b = views_a + 0.5 * rng.standard_normal((16, 32))
unit_a, unit_b = normalize(views_a)[0], normalize(views_b)[0]
grown = np.array([dot_loss(c * unit_a, c * unit_b) for c in (1.0, 2.0, 4.0, 8.0)])
kept = np.array([info_nce(c * unit_a, c * unit_b, 1.0)[0] for c in (1.0, 2.0, 4.0, 8.0)])
table(np.column_stack([grown, kept]), "loss at tau = 1, directions frozen, every row c times as long",
      rows=["c = 1", "2", "4", "8"], columns=["dot product", "cosine"], digits=6)
check_true(bool(np.all(np.diff(grown) < 0) and grown[-1] < 1e-6), "dot product: the loss vanishes by growth alone")
check_close(kept, np.full(4, kept[0]), 1e-12, "cosine: growth changes nothing")
check_close(grown[2], info_nce(unit_a, unit_b, 1 / 16)[0], 1e-10, "dot product with c = 4 is the cosine at tau = 1/16")
d1 = {name: quoted(f"{score}", f"STS-B dev, supervised: {name}", source=f"{SIMCSE}, Table D.1")
      for name, score in TABLE_D1_TEMPERATURE.items()}
erratum_claim(d1["dot product"] > max(d1["cosine, 0.1"], d1["cosine, 1"]), id="dot-product-wrong-choice",
              label="dot product against a cosine at the wrong tau",
              where="ch. 1, the score", says="the dot product is the wrong choice",
              right="it loses only to a tuned cosine: 85.9 against 86.2 at tau 0.05, but 82.0 at 0.1 and 64.0 at 1",
              why="Training can set lengths, and with them a temperature; a cosine keeps the temperature it is given.")

# %% The objective, assembled
table([["embedding of view 1 of sentence i", "(D,)"], ["embedding of view 2, its positive", "(D,)"],
       ["cos(h_i, h_j+), between -1 and 1", "(N, N)"], ["temperature, in units of cosine", "number"],
       ["s_ij / tau, the logit", "(N, N)"], ["softmax of row i: share given to key j", "(N, N)"],
       ["-log p_ii, loss of row i", "(N,)"]],
      "symbols", rows=["h_i", "h_i+", "s_ij", "tau", "z_ij", "p_ij", "l_i"], columns=["meaning", "shape"])


def contrastive_core(first, second, tau):
    """Mean of l_i = -log(exp(s_ii / tau) / sum_j exp(s_ij / tau)); both views (N, D)."""
    first = first / np.linalg.norm(first, axis=1, keepdims=True)  # (N, D), rows of length 1
    second = second / np.linalg.norm(second, axis=1, keepdims=True)
    z = first @ second.T / tau  # (N, N)
    top = z.max(axis=1)  # log sum exp z = top + log sum exp(z - top): no overflow
    labels = np.arange(len(z))  # (N,): the whole supervision
    return np.mean(top + np.log(np.exp(z - top[:, None]).sum(axis=1)) - z[labels, labels])


big_a = rng.standard_normal((N, 768))
big_b = big_a + rng.standard_normal((N, 768))
core = contrastive_core(big_a, big_b, 0.05)
check((normalize(big_a)[0] @ normalize(big_b)[0].T).shape, "64 64", "shape of the score matrix for (64, 768)")
check_close(core, info_nce(big_a, big_b, 0.05)[0], 1e-10, "the core = the loss that trains")
z_large = np.array([1000.0, 990.0])
with np.errstate(over="ignore"):
    check_true(bool(np.isinf(np.log(np.exp(z_large).sum()))), "log-sum-exp: overflows without the shift")
check(1000 + np.log(np.exp(z_large - 1000).sum()), "1000.0000454", "log-sum-exp: with the shift")

# %% A batch of three, by hand
# Chapter 7 computes this matrix from three sentences and their masks; here it is rounded to two digits.
s = np.array([[0.72, 0.54, 0.19], [0.54, 0.72, 0.15], [0.36, -0.27, 0.78]])  # row: query, column: key
table(s, "cosines of a batch of three", rows=["q1", "q2", "q3"], columns=["k1", "k2", "k3"], digits=2)
check(s[0, 0] - s[0, 1], "0.18", "row 1: gap between the positive and the hardest negative")
check(np.log(3), "1.0986", "chance for three candidates: ln 3")
exps = np.exp(s[0])
check(exps, "2.0544 1.7160 1.2092", "tau = 1: exponentials of row 1")
erratum(exps.sum(), right="4.979690", lesson="4.9796", id="row-1-rounding", where="ch. 1, worked row",
        says="row 1 at tau = 1: sum 4.9796, loss .8853; at tau = .05: sum 1.0273488",
        why="The last printed digits were cut or mistyped.", label="tau = 1: sum of row 1")
p_tau1 = exps / exps.sum()
check(p_tau1, "0.412562 0.344601 0.242836", "tau = 1: probabilities of row 1")
loss_tau1 = erratum(-np.log(p_tau1[0]), right="0.885368", lesson="0.8853", id="row-1-rounding",
                    why="ln(4.979690) - 0.72 rounds to 0.8854.", label="tau = 1: loss of row 1")
check(np.log(3) - loss_tau1, "0.213", "tau = 1: nats below chance")

z = s[0] / 0.05
check(z, "14.4 10.8 3.8", "tau = 0.05: logits of row 1")
check(z - z[0], "0. -3.6 -10.6", "tau = 0.05: shifted by the largest")
exps_small = np.exp(z - z[0])
check(exps_small, "1. 0.0273237 2.4916e-5", "tau = 0.05: exponentials")
erratum(exps_small.sum(), right="1.027348638", lesson="1.0273488", id="row-1-rounding",
        why="1 + 0.027323722 + 0.000024916 is 1.027348638.", label="tau = 0.05: sum")
p_tau005 = exps_small / exps_small.sum()
check(p_tau005[0], "0.97338", "tau = 0.05: probability of the right key")
loss_tau005 = np.log1p(exps_small[1:].sum())  # log1p of the rest: no digits lost when the rest is small
check(loss_tau005, "0.026981346", "tau = 0.05: loss of row 1")
check(loss_tau1 / loss_tau005, "32.814", "same row, same encoder: loss ratio of tau = 1 to 0.05")

# The package takes rows, not cosines. Candidate (c, sqrt(1 - c^2)) has cosine c with the query (1, 0).


def as_rows(cosines):
    """Unit vectors in the plane whose cosine with (1, 0) is given."""
    cosines = np.asarray(cosines)
    return np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)


query, candidates = np.array([[1.0, 0.0]]), as_rows(s[0])
for tau, by_hand in ((1.0, loss_tau1), (0.05, loss_tau005)):
    packaged, _ = info_nce(query, candidates[:1], tau, hard_negatives=candidates[1:])
    check_close(packaged, by_hand, 1e-12, f"tau = {tau}: row 1 by hand = info_nce")

# %% The positive stands in the denominator; rows are not columns
# Leave s_ii out of the sum and the ratio is no probability: the "loss" of a good row is negative. Its least value,
# with the positive at cosine 1 and the others at -1, is ln(N - 1) - 2 / tau.
without = np.log(np.exp(z[1:] - z[1]).sum()) + z[1] - z[0]
check(without, "-3.599088534", "row 1 without its positive below the line, tau = 0.05")
check_true(loss_tau005 > 0 > without, "with it the loss stays above 0")
least = np.log(np.exp([-1 / 0.05, -1 / 0.05]).sum()) - 1 / 0.05
check(least, "-39.306853", "N = 3, tau = 0.05: its least value without")
check_close(least, np.log(3 - 1) - 2 / 0.05, 1e-12, "N = 3, tau = 0.05: and ln(N - 1) - 2 / tau")
# Row i asks which key belongs to query i, column i which query belongs to key i. SimCSE trains on rows only.
keys3 = np.concatenate([s, np.sqrt(1 - (s**2).sum(axis=0, keepdims=True))]).T  # column j of s, filled up to length 1
queries3 = np.eye(3, 4)
p3 = np.exp(s / 0.05) / np.exp(s / 0.05).sum(axis=1, keepdims=True)
p3_columns = np.exp(s / 0.05) / np.exp(s / 0.05).sum(axis=0)
by_rows, by_columns = -np.log(np.diag(p3)).mean(), -np.log(np.diag(p3_columns)).mean()
check([by_rows, by_columns], "0.01806 0.01822", "batch of three: loss by rows, by columns")
check_close(by_rows, info_nce(queries3, keys3, 0.05)[0], 1e-10, "batch of three: rows = info_nce")
check_close((by_rows + by_columns) / 2, info_nce(queries3, keys3, 0.05, symmetric=True)[0], 1e-10,
            "batch of three: both directions = info_nce(symmetric=True)")

# %% ln N is the level of a guess, not of a random encoder
sizes = np.array([2, 3, 4, 8, 16, 64, 512])
chance = np.log(sizes)
check(chance[[1, 5]], "1.0986 4.158883083", "equal scores: ln 3 and ln 64")
# Equal scores give ln N. Random vectors do not have equal scores: cosines spread by about 1 / sqrt(D), the quiz divides
# that by tau, and E log-mean-exp of a spread v = 1 / (D tau^2) adds about v / 2. Small tau punishes a random start.


def random_level(width, tau, batches, n=64, seed=0):
    """Mean InfoNCE of independent Gaussian queries and keys."""
    draw = np.random.default_rng(seed)
    return np.mean([info_nce(draw.standard_normal((n, width)), draw.standard_normal((n, width)), tau)[0]
                    for _ in range(batches)])


widths, taus = [8, 64, 768], [1.0, 0.1, 0.05]
level = np.array([[random_level(d, tau, batches) for tau in taus] for d, batches in ((8, 100), (64, 100), (768, 60))])
guess = np.array([[np.log(N) + 1 / (2 * d * tau**2) for tau in taus] for d in widths])
table(np.hstack([level, guess]), "random encoder, N = 64: measured, and ln N + 1 / (2 D tau^2)",
      rows=[f"D = {d}" for d in widths], columns=["tau 1", "0.1", "0.05", "| tau 1", "0.1", "0.05"], digits=2)
check_close(level[2, 2] - np.log(N), guess[2, 2] - np.log(N), 0.06, "D = 768, tau = 0.05: v / 2 above ln N")
check_true(abs(level[0, 2] / guess[0, 2] - 1) > 0.1, "D = 8, tau = 0.05: outside its range")
erratum(level[1, 2], right="6.9", lesson="4.16", id="random-encoder-level", where="ch. 1 and 5, chance level",
        says="a guessing or random encoder sits at ln N", label="random encoder, D = 64, tau = 0.05, N = 64",
        why="Equal scores give ln N; random cosines differ, and dividing them by a small tau makes confident mistakes.")

# %% The floor of one row
# Best row: positive at cosine 1, all N - 1 negatives at -1:   l >= ln(1 + (N - 1) e^(-2 / tau))
check([np.exp(-40), np.exp(-2)], "4.25e-18 0.1353", "one antipodal negative at tau = 0.05 and 1")
row_floor = np.log1p(63 * np.exp(-2 / 0.05))
check(row_floor, "2.676463e-16", "row floor, N = 64, tau = 0.05")
erratum(int(np.floor(-np.log10(row_floor))), right="15", lesson="16", id="floor-decimals", where="ch. 1, the floor",
        says="at tau = .05 the floor is zero to sixteen decimals", label="zero decimals of 2.68e-16",
        why="The first nonzero digit of 2.68e-16 is the sixteenth decimal, so fifteen are zero.")
erratum(1 + 63 * np.exp(-2), right="9.526123", lesson="9.525", id="floor-argument", where="ch. 1, the floor",
        says="log(1 + 63 x .1353) = log(9.525)", why="63 e^-2 is 8.526123.", label="argument of the tau = 1 row floor")
check(np.log1p(63 * np.exp(-2)), "2.254038", "row floor, N = 64, tau = 1")

# %% The floor of a batch, and who reaches it
# In one row all keys may flee the query; in a batch each key is somebody's partner. With g(x) = log(1 + (N-1) e^x)
#   mean_i l_i  >= mean_i g(mean_{j != i} (s_ij - s_ii) / tau)      Jensen for exp inside the row
#               >= g(mean over rows of that mean)                   Jensen for g, convex
# and the mean is ((1/N) sum_ij s_ij - sum_i s_ii) / ((N-1) tau). For the bracket,
#   (1/N) sum_ij q_i.k_j - sum_i q_i.k_i = - sum_i (q_i - qbar).(k_i - kbar) >= -N        Cauchy-Schwarz
# for unit rows q_i = h_i / |h_i| and k_i = h_i+ / |h_i+| with means qbar and kbar;
# so    mean loss >= ln(1 + (N-1) e^(-N / ((N-1) tau))).
# Equality: q_i = k_i, mean zero, all off-diagonal cosines equal -1/(N-1): the regular simplex, which needs D >= N - 1.


def batch_floor(n, tau):
    """Smallest mean InfoNCE of n pairs, any encoder."""
    return np.log1p((n - 1) * np.exp(-n / ((n - 1) * tau)))


def simplex(n):
    """n unit vectors with all cosines -1/(n - 1): the corners e_i minus their mean, rescaled."""
    return normalize(np.eye(n) - 1 / n)[0]


check(batch_floor(sizes, 1.0), "0.126928 0.368981 0.582658 1.173208 1.818451 3.170166 5.239728",
      "batch floors, tau = 1")
check(batch_floor(64, 0.05), "9.453217e-8", "batch floor, N = 64, tau = 0.05")
check(mean_pair_cosine(simplex(64)), "-0.015873", "simplex of 64: every cosine is -1/63")
check(uniformity(simplex(64)), "-4.063", "simplex of 64: uniformity -4 - 4/63, past the -4 of random rows")
for tau in (1.0, 0.05):
    check_close(info_nce(simplex(64), simplex(64), tau)[0], batch_floor(64, tau), 1e-9,
                f"tau = {tau}: the simplex reaches the floor")
erratum(batch_floor(64, 1.0), right="3.170", lesson="2.254", id="batch-floor", where="ch. 1, the floor",
        says="at tau = 1, N = 64 no encoder gets below 2.254; at .05 the floor is 2.7e-16",
        label="batch floor, tau = 1",
        why="2.254 bounds one row alone; 64 keys cannot all be antipodal to every query at once.")
erratum(batch_floor(64, 0.05), right="9.453e-8", lesson="2.7e-16", id="batch-floor",
        why="Over a whole batch the simplex is best, with cosines of -1/63 and not -1.",
        label="batch floor, tau = 0.05")
# Not only a bound: rows that are free to move find it, by the package's own gradient (L-BFGS, queries and keys apart).
found = np.array([free_rows(n, width=n, tau=1.0) for n in (4, 8, 16)])
check_close(found, batch_floor(np.array([4, 8, 16]), 1.0), 1e-9, "free rows: N = 4, 8, 16 reach the batch floor")
tight = min(free_rows(8, width=2, tau=1.0, seed=seed) for seed in range(3))
check(tight, "1.3154", "eight rows in the plane: too narrow for the simplex (1.1732)")
floors = np.column_stack([chance, np.log1p((sizes - 1) * np.exp(-2)), batch_floor(sizes, 1.0)])
table(np.column_stack([floors, floors[:, 0] - floors[:, 2]]), "levels at tau = 1", rows=[f"N = {n}" for n in sizes],
      columns=["chance", "one row", "batch", "chance - batch"])
check(floors[5, 0] - floors[5, 2], "0.988717", "N = 64, tau = 1: all that training can win, in nats")

# %% The gradient in four lines
# l_i = -z_ii + log sum_j e^(z_ij):
#   dl_i/dz_ik = -[k = i] + e^(z_ik) / sum_j e^(z_ij) = p_ik - [k = i]
#   dl_i/ds_ik = (p_ik - [k = i]) / tau                   pull (1 - p_ii)/tau on the positive, push p_ik/tau elsewhere
#   dl_i/dh_i  = sum_k (dl_i/ds_ik) (h^_k+ - s_ik h^_i) / |h_i|     a hat is unit length: only the part across h_i acts
#   sum_k dl_i/dz_ik = 0                                  what pulls equals what pushes


def row_loss(cosines, tau):
    """-log of the softmax of cosines / tau at entry 0, in differences."""
    return np.log1p(np.exp((cosines[1:] - cosines[0]) / tau).sum())


for tau, p in ((1.0, p_tau1), (0.05, p_tau005)):
    gradient = np.array([-(p[1:].sum()), *p[1:]]) / tau  # 1 - p_ii as the sum of the others: no cancellation
    differences = numeric_gradient(lambda c, tau=tau: row_loss(c, tau), s[0])
    check_close(gradient, differences, 1e-8, f"tau = {tau}: dl/ds by differences")
    written_out = numeric_gradient(lambda c, tau=tau: np.log(np.exp(c / tau).sum()) - c[0] / tau, s[0])
    check_close(written_out.sum(), 0, 0, f"tau = {tau}: pull and push balance, by differences", atol=1e-8)
    table(np.column_stack([s[0], p, gradient]), f"row 1 at tau = {tau}: negative = drawn in, positive = driven off",
          rows=["positive", "hard negative", "easy negative"], columns=["cosine", "p", "dl/ds"], digits="4g")
check(1 - p_tau1[0], "0.587438", "tau = 1: pull on the logit of the positive")
check(p_tau1[1:], "0.344601 0.242836", "tau = 1: pushes")
check(p_tau1[1] / p_tau1[2], "1.419068", "tau = 1: hard push over easy push = e^0.35")
check(p_tau005[1], "0.026596", "tau = 0.05: push on the hard negative")
erratum(p_tau005[2], right="2.425273e-5", lesson="2.41e-5", id="hard-easy-ratio", where="ch. 1, worked row",
        says="p13 is .0000241, so the hard negative gets 1103 times the push of the easy one",
        why="e^-10.6 / 1.027348638 is 2.4253e-5.", label="tau = 0.05: push on the easy negative")
erratum(p_tau005[1] / p_tau005[2], right="1096.633158", lesson="1103", id="hard-easy-ratio",
        why="The ratio is exp(0.35 / 0.05) = e^7, whatever the sum.", label="tau = 0.05: hard over easy")

# The whole backward, for a batch: G = (P - I) / (N tau), then the two normalisations.
tau = 0.1
back_q, back_k = rng.standard_normal((4, 5)), rng.standard_normal((4, 5))
unit_q = back_q / np.linalg.norm(back_q, axis=1, keepdims=True)
unit_k = back_k / np.linalg.norm(back_k, axis=1, keepdims=True)
cosines = unit_q @ unit_k.T
P = np.exp((cosines - cosines.max(axis=1, keepdims=True)) / tau)
P /= P.sum(axis=1, keepdims=True)
G = (P - np.eye(4)) / (4 * tau)  # dL/ds (N, N)


def across(gradient, unit, rows):
    """Jacobian of rows / |rows|, applied: the part of the gradient across each row, over its length."""
    along = (gradient * unit).sum(axis=1, keepdims=True) * unit
    return (gradient - along) / np.linalg.norm(rows, axis=1, keepdims=True)


d_queries, d_keys = across(G @ unit_k, unit_q, back_q), across(G.T @ unit_q, unit_k, back_k)
package_q, package_k = info_nce(back_q, back_k, tau)[1]()
check_close(d_queries, package_q, 1e-9, "backward: d/dqueries = the package's")
check_close(d_keys, package_k, 1e-9, "backward: d/dkeys = the package's")
check_close(d_queries, numeric_gradient(lambda r: contrastive_core(r, back_k, tau), back_q), 1e-7,
            "backward: d/dqueries by differences")
check_close(d_keys, numeric_gradient(lambda r: contrastive_core(back_q, r, tau), back_k), 1e-7,
            "backward: d/dkeys by differences")
pull = across(np.diag(np.diag(G)) @ unit_k, unit_q, back_q)
push = across((G - np.diag(np.diag(G))) @ unit_k, unit_q, back_q)
check_close(pull + push, d_queries, 1e-12, "pull + push = the gradient")
check_close((d_queries * back_q).sum(axis=1), np.zeros(4), 0, "no gradient along h: lengths are free", atol=1e-14)
step_q, step_k = back_q - 0.05 * d_queries, back_k - 0.05 * d_keys
check_true(info_nce(step_q, step_k, tau)[0] < info_nce(back_q, back_k, tau)[0], "a step against it lowers the loss")
check_true(alignment(step_q, step_k) < alignment(back_q, back_k), "and brings the pairs closer")

# %% What a falling loss proves: the batch can be told apart, nothing more
# An encoder that reads only the LENGTH of a sentence: one free row per length, dropout views, N = 32 different lengths.
# STS pairs whose gold similarity has nothing to do with length.
shortcut = length_only(steps=150)
table([[shortcut.first_loss, shortcut.last_loss, shortcut.spearman, uniformity(shortcut.rows),
        mean_pair_cosine(shortcut.rows)]], "length only",
      columns=["loss, start", "loss, end", "Spearman", "uniformity", "mean cosine"], digits=4)
check_true(shortcut.last_loss < 0.01, "length only: loss near zero")
check_true(abs(shortcut.spearman) < 0.06, "length only: Spearman near zero")
check(info_nce(np.tile(shortcut.rows[:1], (32, 1)), np.tile(shortcut.rows[:1], (32, 1)), 0.05)[0], "3.4657",
      "a batch of one length: back at ln 32")
# Does the ablation "dropout off scores less" refute the worry? With identical views d s_ii/dh_i = (h^ - h^)/|h| = 0:
# the positive exerts no pull at all, so nothing is rewarded there, shortcut or not. It is no test of the worry.
twin = rng.standard_normal((1, 8))
unit_twin, twin_back = normalize(twin)
pull_when_identical = np.abs(twin_back(unit_twin)).max()  # d s_ii / d (first view), the second one held fixed
for rate in ("0.0", "0.1"):
    quoted(f"{TABLE_3_DROPOUT[rate]}", f"STS-B dev, dropout {rate}", source=f"{SIMCSE}, Table 3")
erratum_claim(bool(pull_when_identical < 1e-15), id="ablation-is-no-test",
              label="identical views: no pull on the positive", where="ch. 1, the caution",
              says="that dropout-off scores worse shows that the model does not live on shortcuts",
              right="identical views give the positive no gradient; a length bias of SimCSE is documented",
              why="Without a pull no shortcut is rewarded, and ESimCSE (arXiv 2109.04380) found a length bias.")
