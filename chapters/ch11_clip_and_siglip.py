"""Chapter 11: both directions, a temperature that is learned, and a loss without a softmax."""

# %% [markdown]
# Question: SimCSE asks one way (query, which key?) at a temperature somebody chose. Images and captions are searched
# both ways, and the right temperature changes while training. CLIP reads one matrix by rows and by columns and learns
# the scale; what breaks is a batch that is solved (the scale runs away) and a batch that does not fit one machine.
# Repairs: a ceiling, and slices. SigLIP drops the softmax altogether; what breaks then is the balance, and a bias
# must carry it.
#
# Letters: B pairs, c cosines, s = 1/tau the scale, a = log s, z = s c logits, A row softmax, R column softmax.

# %% Two pairs by hand: the rows
import numpy as np
from information_games import TableGame
from lesson import (
    check,
    check_close,
    check_true,
    erratum,
    erratum_claim,
    numeric_gradient,
    quoted,
    table,
)
from scale_runs import START, best_scale, noisy_pairs, share_wrong, train_scale
from scipy.optimize import brentq, minimize
from scipy.special import expit

from nano_simcse.layers import normalize
from nano_simcse.losses import clip_loss, info_nce, sharded_clip_loss, sigmoid_loss

Q = np.array([[1.0, 0, 0], [0, 1, 0]])  # two images
P = np.array([[0.8, 0.4, np.sqrt(0.2)], [0.2, 0.6, np.sqrt(0.6)]])  # their captions
tau = 0.5
c = Q @ P.T
check(c, "0.8 0.2; 0.4 0.6", "hand batch: cosines")
z = c / tau
check(z, "1.6 0.4; 0.8 1.2", "hand batch: logits")


def softmax(z, axis):
    """Shares along an axis."""
    e = np.exp(z - z.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


A = softmax(z, axis=1)
row_losses = -np.log(np.diag(A))
check(np.diag(A), "0.768525 0.598688", "rows: probability of the own caption, sigmoid of the gaps 1.2 and 0.4")
check(row_losses, "0.263282 0.513015", "rows: losses")
row_loss = row_losses.mean()
check(row_loss, "0.388148860", "rows: mean loss")
check_close(row_loss, info_nce(Q, P, tau)[0], 1e-12, "rows: the loss = info_nce")

# %% The gradient of the rows: guessed minus observed
# dL/dz_ij = (A_ij - [i = j]) / B and z = q.p / tau, so with G = (A - I) / (B tau):  dL/dq^ = G P^, dL/dp^ = G^T Q^.
# Every passage is pushed by every query: it is one query's answer and the others' distractor.


def infonce_by_hand(Q, P, tau):
    """Loss and gradients on rows that need not have length 1."""
    lengths = [np.linalg.norm(x, axis=1, keepdims=True) for x in (Q, P)]
    q, p = Q / lengths[0], P / lengths[1]
    A = softmax(q @ p.T / tau, axis=1)
    G = (A - np.eye(len(q))) / (len(q) * tau)
    dq, dp = G @ p, G.T @ q
    # Jacobian of x / |x|: what lies along the row only changes its length, and goes
    dq = (dq - q * (q * dq).sum(axis=1, keepdims=True)) / lengths[0]
    dp = (dp - p * (p * dp).sum(axis=1, keepdims=True)) / lengths[1]
    return -np.log(np.diag(A)).mean(), dq, dp


G = (A - np.eye(2)) / (2 * tau)
check(2 * tau, "1", "hand batch: B tau")
check(G, "-0.231475 0.231475; 0.401312 -0.401312", "rows: G")
check_close(G.sum(axis=1), np.zeros(2), 0, "rows: every row of G sums to 0", atol=1e-15)
check_true(bool(np.abs(G[1]).min() > np.abs(G[0]).max()), "the weaker query 2 gets the larger entries")
_, dQ, dP = infonce_by_hand(Q, P, tau)
check(dQ, "0.000000 0.046295 0.075781; 0.240787 0.000000 -0.131383", "rows: dL/dQ")
check(dP, "-0.211751 0.411174 0.011026; 0.270374 -0.284617 0.150653", "rows: dL/dP")
check(np.abs([(dQ * Q).sum(axis=1), (dP * P).sum(axis=1)]).max(), "0.0000000000", "gradients are perpendicular to rows")
rng = np.random.default_rng(11)
raw_q, raw_p = rng.standard_normal((2, 5, 4)) * np.array([2.0, 0.5])[:, None, None]
hand = infonce_by_hand(raw_q, raw_p, 0.2)
packaged, back = info_nce(raw_q, raw_p, 0.2)
check_close(hand[0], packaged, 1e-12, "five raw pairs: loss by hand = info_nce")
check_close(np.stack(hand[1:]), np.stack(back()), 1e-10, "five raw pairs: gradients by hand = info_nce")
check_close(hand[1], numeric_gradient(lambda x: infonce_by_hand(x, raw_p, 0.2)[0], raw_q), 1e-7, "dL/dQ by differences")
check_close(hand[2], numeric_gradient(lambda x: infonce_by_hand(raw_q, x, 0.2)[0], raw_p), 1e-7, "dL/dP by differences")

# %% The columns: the same matrix, read downwards
R = softmax(z, axis=0)
column_losses = -np.log(np.diag(R))
check(np.diag(R), "0.689974 0.689974", "columns: probability of the own image")
check(column_losses, "0.371100666 0.371100666", "columns: losses")
loss = (row_loss + column_losses.mean()) / 2
check(loss, "0.379624763", "both directions: loss")
check([c[0, 0] - c[1, 0], c[1, 1] - c[0, 1]], "0.4 0.4", "columns: both gaps")
check([c[0, 0] - c[0, 1], c[1, 1] - c[1, 0]], "0.6 0.2", "rows: the gaps; the two readings disagree on what is hard")
check_close(loss, clip_loss(Q, P, np.log(2))[0], 1e-12, "both directions = clip_loss at s = 2")
check_close(loss, info_nce(Q, P, tau, symmetric=True)[0], 1e-12, "both directions = info_nce(symmetric=True)")
# The second matrix, views swapped, is the transpose of the first: one product is enough.
unit_q, unit_p = normalize(raw_q)[0], normalize(raw_p)[0]
erratum_claim(bool(np.array_equal(unit_p @ unit_q.T, (unit_q @ unit_p.T).T)), id="second-similarity-matrix",
              where="lesson 1, the loss in code", says="the views are multiplied a second time, in the other order",
              right="the transpose is that matrix, bit for bit: take the softmax down the columns",
              why="Entry ij of one product and ji of the other are the same dot product.")
# Mean gradient: dL/dz = (A + R - 2 I) / 2B. Rows of A - I and columns of R - I sum to 0; the lesson adds that rows of
# the sum do not any more. In general true, in its own batch not: equal gaps make R doubly stochastic.
G_clip = (A + R - 2 * np.eye(2)) / (2 * 2 * tau)
check(G_clip, "-0.270750 0.270750; 0.355669 -0.355669", "both directions: dL/dc")
check_close((A - np.eye(2)).sum(axis=1), np.zeros(2), 0, "rows of A - I sum to 0", atol=1e-15)
check_close((R - np.eye(2)).sum(axis=0), np.zeros(2), 0, "columns of R - I sum to 0", atol=1e-15)
check(G_clip.sum(axis=0), "0.084919 -0.084919", "hand batch: column sums of dL/dc")
check_close(R.sum(axis=1), np.ones(2), 1e-14, "hand batch: even the rows of the column softmax sum to 1")
erratum_claim(bool(np.abs(G_clip.sum(axis=1)).max() < 1e-14),
              id="row-sums-of-the-sum", where="lesson 2, gradient of the symmetric loss",
              label="hand batch: row sums of dL/dc are 0",
              says="row sums of the symmetric gradient are no longer zero, right after the batch of two",
              right="they are zero in that batch; use three pairs to see it",
              why="Both columns have the gap 0.4, so the column softmax happens to have row sums of 1.")
a3 = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.2]])
b3 = np.array([[0.9, 0.3], [0.2, 1.0], [-1.0, -0.1]])
c3 = normalize(a3)[0] @ normalize(b3)[0].T
table(c3, "three pairs in the plane: cosines", digits=3)
check(c3 + 0.0, "0.949 0.196 -0.995; 0.316 0.981 -0.100; -0.868 0.000 0.956", "three pairs: cosines")
three = [info_nce(a3, b3, t)[0] for t in (1.0, 0.5, 0.1, 0.05)]
check(three, "0.510602032 0.233162631 0.000643739 6.64087e-7", "three pairs: row loss at tau = 1, 0.5, 0.1, 0.05")
G3 = (softmax(c3 / 0.5, 1) + softmax(c3 / 0.5, 0) - 2 * np.eye(3)) / (2 * 3 * 0.5)
check(G3.sum(axis=1), "-0.021262 0.021026 0.000236", "three pairs, tau = 0.5: row sums of dL/dc are not 0")

# %% Learning the scale
# s = e^a stays positive and makes the derivative simple: dz/da = z, hence
#   dL/da = sum_ij dL/dz_ij z_ij = 1/2 [ mean_i ( sum_j A_ij z_ij - z_ii ) + mean_j ( sum_i R_ij z_ij - z_jj ) ]
# The first bracket is what row i's softmax expects of its logits, less the positive's; the second the same by columns.
row_terms = (A * z).sum(axis=1) - np.diag(z)
column_terms = (R * z).sum(axis=0) - np.diag(z)
check(column_terms, "-0.248020415 -0.248020415", "scale gradient: column terms")
erratum(row_terms, right="-0.277770 -0.160525", lesson="-0.277 -0.160", id="scale-gradient-rows",
        where="lesson 2, learning the temperature", says="the row terms of the scale gradient are -0.277 and -0.160",
        label="scale gradient: row terms", why="Multiplied from probabilities that were rounded (and cut) before.")
d_scale = (row_terms.mean() + column_terms.mean()) / 2
check(d_scale, "-0.233584006", "scale gradient of the hand batch")
check_close(d_scale, clip_loss(Q, P, np.log(2))[1]()[2], 1e-12, "scale gradient = clip_loss's")
differences = numeric_gradient(lambda a: clip_loss(Q, P, a)[0], np.array(np.log(2)))
check_close(d_scale, differences, 1e-8, "scale gradient by differences")
check([1 / 0.07, START], "14.2857 2.6593", "CLIP's start, tau = 0.07: scale and its logarithm")
check(1 / 100, "0.01", "scale at most 100: temperature at least")
quoted("0.07", "first temperature", source="CLIP, arXiv 2103.00020, Section 2.5")
quoted("100", "largest scale", source="CLIP, arXiv 2103.00020, Section 2.5")


def clip_by_hand(q, p, a, max_scale=100.0):
    """Rows of length 1. Returns (loss, dq, dp, da)."""
    scale, cut = min(np.exp(a), max_scale), a > np.log(max_scale)
    z = scale * q @ p.T
    A, R = softmax(z, 1), softmax(z, 0)
    loss = -(np.log(np.diag(A)).mean() + np.log(np.diag(R)).mean()) / 2
    dz = (A + R - 2 * np.eye(len(z))) / (2 * len(z))
    return loss, scale * dz @ p, scale * dz.T @ q, 0.0 if cut else (dz * z).sum()


def across(gradient, unit):
    """The part of a gradient across rows of length 1: all that the normalisation lets through."""
    return gradient - unit * (unit * gradient).sum(axis=1, keepdims=True)


for name, a, ceiling in (("free", 1.5, 100.0), ("clipped", 1.5, 3.0)):
    mine = clip_by_hand(unit_q, unit_p, a, ceiling)
    packaged, back = clip_loss(unit_q, unit_p, a, max_scale=ceiling)
    theirs = back()
    check_close(mine[0], packaged, 1e-12, f"{name} scale: loss = clip_loss")
    check_close(across(mine[1], unit_q), theirs[0], 1e-10, f"{name} scale: d/dq = clip_loss")
    check_close(across(mine[2], unit_p), theirs[1], 1e-10, f"{name} scale: d/dp = clip_loss")
    check_close(mine[3], theirs[2], 1e-10, f"{name} scale: d/da = clip_loss")
    check_close(mine[1], numeric_gradient(lambda x, a=a, m=ceiling: clip_by_hand(x, unit_p, a, m)[0], unit_q), 1e-7,
                f"{name} scale: d/dq by differences")
check(mine[3], "0", "clipped scale: no gradient for a")
check_true(bool(np.exp(np.log(100.0)) > 100), "exp(log 100) is above 100 in float64, so compare logarithms")
check_true(bool(clip_loss(unit_q, unit_p, np.log(100.0))[1]()[2] > 0), "a parameter clamped to log 100 is not stuck")

# %% Three batches, and the scale each of them wants
# If every positive wins its row and its column, dL/da < 0 at every scale: the loss falls to 0 and s grows for ever.
# Only a beaten positive pushes back. 256 Gaussian pairs; noise sets the share of mistakes.
batches = {"clean": noisy_pairs(256, 64, 1.0, 0), "middle": noisy_pairs(256, 32, 1.1, 3),
           "hard": noisy_pairs(256, 64, 4.0, 0)}
scales = np.geomspace(1, 300, 22)
sweep = np.array([[clip_loss(*pair, np.log(s), max_scale=np.inf)[0] for s in scales] for pair in batches.values()])
wrong = np.array([share_wrong(*pair) for pair in batches.values()])
best = np.array([best_scale(*pair) for pair in batches.values()])
few = [0, 8, 13, 17, 21]
table(np.column_stack([wrong, best, sweep[:, few]]), "three batches (best scale searched up to 1000)", rows=batches,
      columns=["share wrong", "best scale", *(f"loss at s = {s:.0f}" for s in scales[few])], digits=3)
check_true(bool(wrong[0] == 0 and (np.diff(sweep[0]) < 0).all()), "clean batch: no mistake, the loss falls all the way")
check(best[0], "1000", "clean batch: still falling at a scale of 1000")
check([100 * wrong[1], best[1]], "7.2 28.7", "middle batch: percent wrong, best scale")
check([100 * wrong[2], best[2]], "82.0 15.4", "hard batch: percent wrong, best scale")
check_true(bool(sweep[2, -1] > 5 * np.log(256)), "hard batch: a confident softmax is confidently wrong")
# Scale and share of mistakes do not determine each other: the generator matters.
rival = noisy_pairs(256, 64, 2.1, 3)
check([100 * share_wrong(*rival), best_scale(*rival)], "23.8 30.3", "another batch with its best scale near 30")

# Let the parameter find it: a alone is trained, from tau = 0.07, clamped to log 100 after each step.
learned = {name: train_scale([(*pair, 40)]) for name, pair in batches.items()}
table([run[[0, 9, 19, 39]] for run in learned.values()], "learned scale", rows=learned,
      columns=["step 1", "10", "20", "40"], digits=1)
check(learned["clean"][-1], "100.0", "clean batch: the ceiling stops it at tau = 0.01")
check_close(learned["middle"][-1], best[1], 0.02, "middle batch: training ends at the best scale")
check_close(learned["hard"][-1], best[2], 0.02, "hard batch: training ends at the best scale")
check_true(bool(np.diff(learned["clean"]).min() >= 0), "clean batch: it only grows")
pull = [clip_loss(*batches["clean"], a)[1]()[2] for a in (START, np.log(100))]
check(pull, "-0.445 -4.7e-5", "clean batch: its gradient at the start and at the ceiling; the runaway slows down")
# Clipping in the loss alone is not enough: the last step carries a past log 100, where it gets no gradient any more.
# When harder data come, only the clamped parameter comes back.
easy, hard = noisy_pairs(64, 64, 1.3, 0), noisy_pairs(64, 64, 4.0, 0)
returns = {clamp: train_scale([(*easy, 60), (*hard, 60)], clamp=clamp) for clamp in (True, False)}
check(returns[True][59], "100.0", "clamped parameter: at the ceiling after 60 easy steps")
check_close(returns[True][-1], best_scale(*hard), 0.05, "clamped parameter: back at the best scale of hard data")
check_true(bool(returns[False][59:].min() > 100), "clipped in the loss only: stuck above 100 for good")

# %% Where it stops: the average logit, not the error rate
# dL/da = 0 says: under the softmax the average logit equals the positive's, over rows and columns together.
middle = batches["middle"]
z_best = best[1] * middle[0] @ middle[1].T
A_best, R_best = softmax(z_best, 1), softmax(z_best, 0)
averages = [((A_best * z_best).sum() + (R_best * z_best).sum()) / 512, np.trace(z_best) / 256]
check_close(averages[0], averages[1], 1e-7, "middle batch at its best scale: E[z] = z of the positive")


def confidence(queries, keys, scale):
    """(mean largest probability, share of largest ones that are right) over rows and columns."""
    z = scale * queries @ keys.T
    rows, columns = softmax(z, 1), softmax(z, 0)
    largest = (rows.max(axis=1).mean() + columns.max(axis=0).mean()) / 2
    return largest, 1 - share_wrong(queries, keys)


calibration = np.array([confidence(*pair, best_scale(*pair)) for pair in (middle, rival, batches["hard"])])
table(calibration, "at the best scale", rows=["middle", "rival", "hard"], columns=["confidence", "accuracy"], digits=3)
check_true(bool(np.abs(np.diff(calibration, axis=1)).max() < 0.03), "Gaussian batches: confidence is within 0.03 of it")
# So much for like rows. Take ten rows of two candidates: nine right by a gap g1, one wrong by a gap g2.
# Stationary: 9 g1 sigmoid(-s g1) = g2 sigmoid(s g2). With g1 = g2: sigmoid(s g) = 0.9, exactly the accuracy.


def settle(right_gap, wrong_gap):
    """(scale, mean confidence) where nine rows won by right_gap balance one lost by wrong_gap."""
    def slope(s):
        return wrong_gap * expit(s * wrong_gap) - 9 * right_gap * expit(-s * right_gap)

    s = brentq(slope, 0, 1000)
    return s, (9 * expit(s * right_gap) + expit(s * wrong_gap)) / 10


check(settle(0.1, 0.1), "21.97 0.9000", "equal gaps: scale, and confidence 0.9 = accuracy")
uneven = check(settle(0.1, 0.4), "4.68 0.640", "lost by four times the gap: scale, and confidence 0.64 at accuracy 0.9")
erratum_claim(bool(uneven[1] < 0.7), id="scale-is-calibration", where="lesson 2, learning the temperature",
              label="a best scale with confidence 0.64 at accuracy 0.9",
              says="the learned temperature settles where confidence matches the error rate",
              right="it settles where the average logit under the softmax equals the positive's",
              why="Each row counts with its gap: one bad mistake outweighs nine narrow wins.")

# %% The batch that does not fit: slices
# CLIP: 32,768 pairs on 256 workers. A worker holds 128 rows and 128 columns of the matrix, and all embeddings.
B, workers = 32_768, 256
check(B**2, "1073741824", "entries of the whole matrix, 2^30")
check(4 * B**2 / 1e9, "4.295", "whole matrix in float32, GB")
check(B // workers, "128", "pairs of one worker")
slices = 2 * (B // workers) * B * 4
check(slices / 1e6, "33.554", "two slices of one worker, MB")
check(4 * B**2 / slices, "128", "share of a worker: 1/128 of the matrix, not 1/256, as it holds rows and columns")
gathered = 2 * B * 512 * 4
check(gathered / 1e6, "134.2", "gathered embeddings of 512 entries, both towers, MB")
check(gathered / slices, "4", "they outweigh the slices fourfold: D = 512 against 128 pairs")
quoted("32768", "batch", source="CLIP, arXiv 2103.00020, Section 2.5")
quoted("400", "training pairs, millions", source="CLIP, arXiv 2103.00020, Section 2.2")

towers_x, towers_y = rng.standard_normal((2, 24, 10))
towers_y += towers_x
w_image, w_text = rng.standard_normal((2, 10, 6))
images, texts = towers_x @ w_image, towers_y @ w_text
whole, whole_back = clip_loss(images, texts, 2.0)
d_images, d_texts, d_a = whole_back()


def spread(x, count):
    return np.split(x, count)


for count in (1, 2, 4, 24):
    sharded, back = sharded_clip_loss(spread(images, count), spread(texts, count), 2.0)
    dq, dp, da = back()
    check_close(sharded, whole, 1e-12, f"{count} workers: loss of the slices = the whole")
    check_close(np.concatenate([*dq, *dp]), np.concatenate([d_images, d_texts]), 1e-10, f"{count} workers: gradients")
    check_close(da, d_a, 1e-10, f"{count} workers: gradient of the scale")
# A gather of plain copies: right loss, wrong gradient. What goes missing is each row's part as a candidate elsewhere.
# With W workers, parameters see  sum_w x_w^T dq_w.
copied, back = sharded_clip_loss(spread(images, 4), spread(texts, 4), 2.0, through_gather=False)
dq_copied = np.concatenate(back()[0])
check_close(copied, whole, 1e-12, "gather of copies: the loss is still right")
z24 = np.exp(2.0) * normalize(images)[0] @ normalize(texts)[0].T
own_role = np.exp(2.0) * (softmax(z24, 1) - np.eye(24)) @ normalize(texts)[0] / 48
own_role = across(own_role, normalize(images)[0]) / np.linalg.norm(images, axis=1, keepdims=True)
check_close(dq_copied, own_role, 1e-10, "gather of copies: only the rows' own half is left")
exact_step, copied_step = towers_x.T @ d_images, towers_x.T @ dq_copied
agreement = (exact_step * copied_step).sum() / np.linalg.norm(exact_step) / np.linalg.norm(copied_step)
shorter = np.linalg.norm(copied_step) / np.linalg.norm(exact_step)
check([agreement, shorter], "0.988 0.509", "gather of copies, weights: cosine with the exact gradient, length ratio")
check_close(back()[2], d_a, 1e-10, "gather of copies: the scale still gets its whole gradient, so it learns too fast")
# The way round it without such a gather: each worker computes the WHOLE loss and puts its own live rows back into the
# gathered copies. Its gradient for its own rows is then complete; averaged over workers it is 1/W of the exact one.
averaged = np.zeros_like(exact_step)
for w in range(4):
    mine = np.zeros((24, 1))
    mine[6 * w : 6 * w + 6] = 1  # rows that are no copies here
    averaged += towers_x.T @ (mine * clip_loss(images, texts, 2.0)[1]()[0]) / 4
check_close(averaged, exact_step / 4, 1e-12, "whole loss on each of 4 workers, own rows live: a quarter of the exact")

# %% No softmax: every pair judged on its own
# y_ij = 1 for partners, -1 otherwise;  L = -(1/B) sum_ij log sigmoid(y_ij (s c_ij + b)),  starting at s = 10, b = -10.


def sigmoid_by_hand(q, p, a, b):
    """Rows of length 1. Returns (loss, dq, dp, da, db)."""
    logits, y = np.exp(a) * q @ p.T, 2 * np.eye(len(q)) - 1
    margin = y * (logits + b)
    loss = np.logaddexp(0, -margin).sum() / len(q)
    dz = -y * expit(-margin) / len(q)
    return loss, np.exp(a) * dz @ p, np.exp(a) * dz.T @ q, (dz * logits).sum(), dz.sum()


mine = sigmoid_by_hand(unit_q, unit_p, np.log(4), -1.0)
packaged, back = sigmoid_loss(unit_q, unit_p, np.log(4), -1.0)
theirs = back()
check_close(mine[0], packaged, 1e-12, "sigmoid loss by hand = sigmoid_loss")
for k, name in ((1, "d/dq"), (2, "d/dp")):
    check_close(across(mine[k], (unit_q, unit_p)[k - 1]), theirs[k - 1], 1e-10, f"sigmoid loss: {name}")
check_close(np.array(mine[3:]), np.array(theirs[2:]), 1e-10, "sigmoid loss: d/da and d/db")
check_close(mine[4], numeric_gradient(lambda b: sigmoid_by_hand(unit_q, unit_p, np.log(4), b)[0], np.array(-1.0)), 1e-7,
            "sigmoid loss: d/db by differences")
check_close(mine[3], numeric_gradient(lambda a: sigmoid_by_hand(unit_q, unit_p, a, -1.0)[0], np.array(np.log(4))), 1e-7,
            "sigmoid loss: d/da by differences")
quoted("10", "first scale", source="SigLIP, arXiv 2303.15343, Algorithm 1")
quoted("-10", "first bias", source="SigLIP, arXiv 2303.15343, Algorithm 1")
# No normaliser couples the entries: blocks of the matrix add up to the loss, in any order, on any worker.
blocks = 0.0
for i in range(0, 24, 6):
    for j in range(0, 24, 8):
        block = np.exp(2.0) * normalize(images[i : i + 6])[0] @ normalize(texts[j : j + 8])[0].T - 3.0
        y = 2 * (np.arange(i, i + 6)[:, None] == np.arange(j, j + 8)) - 1
        blocks += np.logaddexp(0, -y * block).sum() / 24
check_close(blocks, sigmoid_loss(images, texts, 2.0, -3.0)[0], 1e-12, "sigmoid loss: twelve blocks add up to the whole")

# %% The price: a bias that depends on the batch size
# Positives are outnumbered B - 1 to 1. With cosines that say nothing, d/db = 0 at sigmoid(b) = 1/B: b = -log(B - 1).
sizes = np.array([64, 1024, 32_768])
check(-np.log(sizes - 1), "-4.143135 -6.930495 -10.397177", "best bias for B = 64, 1,024, 32,768")
ones, others = np.tile([[1.0, 0.0]], (64, 1)), np.tile([[0.0, 1.0]], (64, 1))  # all cosines 0
check(sigmoid_loss(ones, others, np.log(10), -np.log(63))[1]()[3], "0", "B = 64, cosines 0: no gradient at -log 63")
check(1 + np.exp(10), "22027.", "batch size that a bias of -10 fits")
start_loss = np.log1p(np.exp(10)) + (sizes - 1) * np.log1p(np.exp(-10))
check(start_loss[[0, 2]], "10.002905530 11.487631130", "loss at the published start, cosines 0: B = 64 and 32,768")
check_close(sigmoid_loss(ones, others, np.log(10), -10.0)[0], start_loss[0], 1e-12, "B = 64: sigmoid_loss there")
# Under a softmax push and pull of a row are equal, whatever B. Here: positives at 0.6, strangers at 0, s = 10, b = -10.
ratio = (sizes - 1) * expit(-10) / expit(-(6 - 10))
check(ratio[[0, 2]], "0.0029124 1.5147974", "all pushes over the pull: B = 64 and 32,768")
erratum_claim(bool(ratio[2] / ratio[0] > 500), id="sigmoid-batch-size", where="lesson 2, in PyTorch",
              label="same embeddings: push over pull grows 520-fold from B = 64 to 32,768",
              says="the sigmoid loss has one meaning at every batch size",
              right="only the normaliser is gone; the bias has to be learned for each batch size",
              why="Each positive faces B - 1 negatives, so the best bias moves as -log(B - 1).")


def learned_bias(count, batches):
    """(scale, bias) that minimise the mean sigmoid loss over some middling batches of this size."""
    pairs = [noisy_pairs(count, 32, 1.1, seed) for seed in range(batches)]

    def objective(x):
        results = [sigmoid_loss(q, p, x[0], x[1]) for q, p in pairs]
        gradient = np.mean([np.array(back()[2:]) for _, back in results], axis=0)
        return float(np.mean([value for value, _ in results])), gradient

    found = minimize(objective, [np.log(10), -10.0], jac=True, method="L-BFGS-B").x
    return np.exp(found[0]), found[1]


fitted = np.array([learned_bias(32, 16), learned_bias(256, 2)])
table(fitted, "best scale and bias, the same kind of pairs", rows=["B = 32", "B = 256"],
      columns=["scale", "bias"], digits=2)
check_true(bool(fitted[1, 1] < fitted[0, 1] - 1), "real pairs: a larger batch wants a lower bias")
# What the best critic is: z = log p(x, y) / (p(x) p(y)) - log(B - 1), without a constant left over (compare ch. 10).
world = TableGame([[0.20, 0.02, 0.03], [0.05, 0.20, 0.05], [0.03, 0.05, 0.20], [0.07, 0.05, 0.05]], candidates=2)


def expected_sigmoid(flat, size=64):
    """Expected sigmoid loss of a table of logits, and its gradient."""
    z, joint, apart = flat.reshape(4, 3), world.joint, np.outer(world.p_x, world.p_y)
    value = (joint * np.logaddexp(0, -z)).sum() + (size - 1) * (apart * np.logaddexp(0, z)).sum()
    return value, (-joint * expit(-z) + (size - 1) * apart * expit(z)).ravel()


table_fit = minimize(expected_sigmoid, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-12}).x.reshape(4, 3)
check_close(table_fit, world.pmi - np.log(63), 1e-6, "best sigmoid logits = PMI - log(B - 1)")

# %% In a framework
table([["cross_entropy(z, arange(B))"], ["mean of cross_entropy(z, arange) and of z.T"],
       ["Parameter(log(1 / 0.07)); exp(), clamp(max=100)"], ["clamp_ of the parameter after each step"],
       ["torch.distributed.nn.functional.all_gather"], ["torch.distributed.all_gather (copies)"],
       ["-logsigmoid(y * (z + b)).sum() / B"], ["functional.normalize(x, dim=1)"]],
      "here and in PyTorch (tests/oracle compares the losses and gradients)",
      rows=["info_nce", "clip_loss", "log_scale, max_scale", "train_scale(clamp=True)", "sharded_clip_loss",
            "sharded_clip_loss(through_gather=False)", "sigmoid_loss", "normalize"], columns=["PyTorch"])
