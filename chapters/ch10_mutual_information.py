"""Chapter 10: what the loss says about shared information, and when it says nothing."""

# %% [markdown]
# Question: why does telling partners apart in a batch teach anything about their content? First answer: the loss is a
# guessing game, and whoever wins it knows something: log N - loss is a lower bound on the mutual information of the
# views. What breaks: the bound ends at log N, a temperature can end it earlier, a random encoder or mined negatives
# leave nothing of it. Then the other end, N without limit: attraction, plus a repulsion whose reach is set by tau.
#
# Letters: N candidates of a row, B rows of a batch (N = B in batch), D entries of a view, tau temperature, s scores.

# %% The game on a table that can be written down
import numpy as np
from information_games import (
    TableGame,
    fit_critic,
    gaussian_game,
    gaussian_information,
    gaussian_scores,
)
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
from scipy.special import hyp0f1
from torch_stream import TorchNormals

from nano_simcse.geometry import alignment, mean_pair_cosine, uniformity
from nano_simcse.losses import info_nce
from nano_simcse.mutual_information import information_bound, nce_mi_estimate

# Four passages x, three queries y. A query y comes with probability p(y); one of N places holds a passage drawn from
# p(x | y), the others passages drawn from p(x). Which place? A critic s(x, y) answers with softmax_i s(x_i, y).
joint = np.array([[0.20, 0.02, 0.03], [0.05, 0.20, 0.05], [0.03, 0.05, 0.20], [0.07, 0.05, 0.05]])
check(joint.sum(), "1", "the joint table sums to 1")
game = TableGame(joint, candidates=3)
table(np.exp(game.pmi), "p(x | y) / p(x)", rows=["x1", "x2", "x3", "x4"], columns=["y1", "y2", "y3"], digits=3)
check(game.information, "0.273966", "mutual information of the table, in nats")
# By Bayes' rule the place is i with probability  [p(x_i | y) / p(x_i)] / sum_j [p(x_j | y) / p(x_j)]:
# the softmax of the log density ratio, which is the pointwise mutual information (PMI).
check_close(game.guess(game.pmi), game.posterior, 1e-12, "softmax of the PMI = the posterior of the place")

# %% The bound, proved and run
# L_N is a cross-entropy, so it costs the entropy of the place plus a divergence; and the place is worth
#   log N - H(place | hand, y) = E KL( p(hand | y, place) | p(hand | y) ),      hand = x_1 ... x_N.
# Measured against prod_j p(x_j) instead of p(hand | y) each divergence would be log p(x_i | y) / p(x_i), on average
# I(X; Y); the mean of several laws is the best reference for them, so the change costs KL( p(hand | y) | prod p ) >= 0:
#   I(X; Y) = (log N - L_N)  +  [critic's divergence from the posterior]  +  [what N candidates cannot tell].
rng = np.random.default_rng(10)
some_critic = rng.standard_normal(joint.shape)
parts = []
for n in (2, 3, 4):
    small = TableGame(joint, n)
    for name, critic in (("exact critic", small.pmi), ("random critic", some_critic)):
        row = [np.log(n) - small.loss(critic)[0], small.critic_gap(critic), small.mixture_gap]
        parts.append([*row, sum(row)])
        check_close(sum(row), small.information, 1e-12, f"N = {n}, {name}: the three parts add up to I(X; Y)")
parts = np.array(parts)
table(parts, "where the nats go", rows=[f"N = {n}, {c}" for n in (2, 3, 4) for c in ("exact", "random")],
      columns=["log N - loss", "critic", "few candidates", "sum"])
check(parts[0::2, 0], "0.128251 0.175780 0.200216", "exact critic: the bound for N = 2, 3, 4")
check(parts[0::2, 1], "0.00000 0.00000 0.00000", "exact critic: nothing lost to the critic")
check_true(bool((parts[:, :1] < game.information).all() and (np.diff(parts[0::2, 2]) < 0).all()),
           "every bound is below I(X; Y), and the second gap shrinks with N")
check_true(bool((parts[1::2, 0] < 0).all()), "a bad critic certifies less than nothing")

# %% What the best critic looks like
# A constant per query cancels in the softmax: dL/ds sums to 0 over the passages of each query, and a fit from a random
# start keeps the mean it started with. So a trained score is PMI + something about the query alone.
_, gradient = game.loss(some_critic)
check_close(gradient, numeric_gradient(lambda s: game.loss(s)[0], some_critic), 1e-7, "dL/ds: guess minus truth")
check_close(gradient.sum(axis=0), np.zeros(3), 0, "dL/ds sums to 0 for each query", atol=1e-15)
critic = fit_critic([game.loss], some_critic)
per_query = (critic - game.pmi).mean(axis=0)
check_true(bool(np.abs(critic - game.pmi - per_query).max() < 1e-7), "fitted critic: PMI + a constant per query (1e-7)")
check_close(critic.mean(axis=0), some_critic.mean(axis=0), 1e-10, "the constants are those of the start")
check_true(bool(np.ptp(per_query) > 0.05), "they differ, so scores of two queries do not compare")
# Play the mirrored game too (one passage, which query?), as CLIP does: only one constant is left for the whole table.
mirrored = TableGame(joint.T, candidates=3)


def mirrored_loss(scores):
    """Loss of the game in which a passage picks its query, on the same table of scores."""
    loss, d = mirrored.loss(scores.T)
    return loss, d.T


both = fit_critic([game.loss, mirrored_loss], some_critic) - game.pmi
check_true(bool(np.abs(both - both.mean()).max() < 1e-6), "both directions: PMI + one constant (1e-6)")

# %% An estimate from scores


def nce_estimate(scores):
    """log N minus the mean over rows of logsumexp(row) - diagonal; scores (N, N)."""
    top = scores.max(axis=1)
    loss = top + np.log(np.exp(scores - top[:, None]).sum(axis=1)) - np.diag(scores)
    return np.log(len(scores)) - loss.mean()


q, k = rng.standard_normal((64, 16)), rng.standard_normal((64, 16))
k += q
unit_q, unit_k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, k))
scores = unit_q @ unit_k.T / 0.1
check_close(nce_estimate(scores), nce_mi_estimate(scores), 1e-12, "the estimate = the package's")
check_close(nce_estimate(scores), np.log(64) - info_nce(q, k, 0.1)[0], 1e-12, "the estimate = log N - info_nce")
check_close(nce_mi_estimate(scores + 3 * np.arange(64)[:, None]), nce_mi_estimate(scores), 1e-12,
            "a constant per query changes nothing")
highest = max(nce_mi_estimate(c * scores) for c in (0.1, 1, 10, 1000))
check_true(highest <= np.log(64), "never above log N, whatever the scores")
check(np.log(512), "6.238325", "the most that 512 candidates can certify")

# %% Gaussian views: the truth is known
# x standard normal in D entries, y = rho x + sqrt(1 - rho^2) noise: I = -(D/2) log(1 - rho^2). The lesson's two cases
# lost their parameters; rho = 0.9 with D = 1 and D = 8 gives both of its numbers (their ratio is 8).
rho = 0.9
small_truth, large_truth = gaussian_information(1, rho), gaussian_information(8, rho)
check([small_truth, large_truth], "0.830366 6.642925", "D = 1 and 8: mutual information")
check(np.exp(large_truth), "767.3", "D = 8: the N at which log N would equal I(X; Y)")
check(np.ceil(np.exp(large_truth)), "768", "D = 8: the first N whose log N passes I(X; Y)")
x2, y2 = rng.standard_normal((2, 5, 1))
v = 1 - rho**2
log_ratio = (np.log(np.exp(-((x2.T - rho * y2) ** 2) / (2 * v)) / np.sqrt(v)) + x2.T**2 / 2)
check_close(gaussian_scores(x2, y2, rho), log_ratio, 1e-12, "exact critic = log p(x | y) - log p(x)")
# N = 2, D = 1 by quadrature instead of sampling: E softplus of the difference of two scores, over x, noise, other x.
nodes, weights = np.polynomial.hermite_e.hermegauss(80)
weights = weights / weights.sum()
own, other = nodes[:, None, None], nodes
seen = rho * own + np.sqrt(v) * nodes[:, None]  # y
difference = gaussian_scores(other[..., None, None], seen[..., None, None], rho)[..., 0, 0]
difference = difference - gaussian_scores(own[..., None, None], seen[..., None, None], rho)[..., 0, 0]
exact = np.log(2) - np.einsum("ijk,i,j,k", np.logaddexp(0, difference), weights, weights, weights)
check(exact, "0.33704", "D = 1, N = 2: the bound by quadrature")

sizes = [2, 4, 8, 16, 32, 64, 128, 256, 512]
long_run = recorded(
    "log N - loss with the exact critic: mean, standard error, spread of one batch",
    ["N", "D = 1", "error", "one batch", "D = 8", "error", "one batch"],
    [[2, 0.33571, 0.00119, 0.37545, 0.68835, 0.00023, 0.07238],
     [4, 0.55227, 0.00158, 0.35363, 1.37314, 0.00036, 0.08080],
     [8, 0.67835, 0.00178, 0.28195, 2.04992, 0.00055, 0.08691],
     [16, 0.74838, 0.00189, 0.21078, 2.71155, 0.00079, 0.08782],
     [32, 0.78691, 0.00196, 0.15507, 3.35135, 0.00110, 0.08689],
     [64, 0.80603, 0.00203, 0.11346, 3.95425, 0.00149, 0.08308],
     [128, 0.81539, 0.00203, 0.08013, 4.50618, 0.00204, 0.08067],
     [256, 0.82227, 0.00201, 0.05624, 4.99300, 0.00251, 0.07008],
     [512, 0.82951, 0.00161, 0.03942, 5.39821, 0.00254, 0.06234]],
    seeds="1000 D + N, max(200000 / N, 600) batches", digits=4,
)
if full():
    fresh = [[gaussian_game(n, d, rho, max(200000 // n, 600), seed=1000 * d + n) for d in (1, 8)] for n in sizes]
    check_close(np.array(fresh).reshape(9, 6), long_run, 1e-5, "the long run gives the recorded curves")
curves = np.array([[gaussian_game(n, d, rho, max(64000 // n, 200), seed=n) for n in sizes] for d in (1, 8)])
table(np.column_stack([np.log(sizes), curves[0, :, :2], curves[1, :, :2]]), "a shorter run of the same",
      rows=[f"N = {n}" for n in sizes], columns=["log N", "D = 1", "error", "D = 8", "error"])
for d, curve, (mean, error, _) in ((1, curves[0], long_run.T[:3]), (8, curves[1], long_run.T[3:])):
    away = np.abs(curve[:, 0] - mean) / np.hypot(curve[:, 1], error)
    check_true(bool(away.max() < 4), f"D = {d}: short and long run agree within four standard errors at every N")
check_true(abs(curves[0, 0, 0] - exact) < 3 * curves[0, 0, 1], "D = 1, N = 2: sampling agrees with quadrature")
bound = curves[:, :, 0]  # (2, 9)
check(bound[1, -1], "5.4", "D = 8, N = 512: the bound")
check_true(abs(bound[1, -1] - 5.40) < 3 * curves[1, -1, 1], "D = 8, N = 512: 5.40 within three standard errors")
check(bound[0, 4] / small_truth, "0.95", "D = 1: share of the truth that 32 candidates certify")
check([np.log(512) - bound[1, -1], large_truth - bound[1, -1]], "0.83 1.24", "D = 8, N = 512: short of both")
check_true(bool((bound[1] < np.minimum(np.log(sizes), large_truth)).all()), "D = 8: under both lines throughout")
check_true(bool((bound[1, :6] > 0.94 * np.log(sizes[:6])).all()), "D = 8: pinned under log N up to N = 64")
check_true(bool((curves[:, -1, 2] > 0.03).all()), "N = 512: one batch scatters in the second decimal")
# Does 5.40 tell D? Other D with the same 6.64 nats end elsewhere at N = 512.
others = np.array([gaussian_game(512, d, np.sqrt(-np.expm1(-2 * large_truth / d)), 60, seed=d)[:2] for d in (5, 16)])
check_true(bool((np.abs(others[:, 0] - 5.40) > 5 * others[:, 1]).all() and others[0, 0] > 5.4 > others[1, 0]),
           "equal information in 5 or 16 entries: not 5.40")

# %% When it says nothing: an encoder that knows nothing
# The stream of torch.manual_seed(0), rebuilt in NumPy, gives the lesson's three random batches.
stream, random_loss = TorchNormals(0), []
for n in (4, 64, 1024):
    a, b = (stream.take(n, 64).astype(np.float64) for _ in range(2))
    random_loss.append([info_nce(a, b, tau)[0] for tau in (1.0, 0.1)])
random_loss = np.array(random_loss)
check(random_loss[:, 0], "1.428378 4.167879 6.936564", "random rows, tau = 1: loss for B = 4, 64, 1024")
check(random_loss[:, 1], "2.106044 4.930543 7.675477", "random rows, tau = 0.1: loss for B = 4, 64, 1024")
chance = np.log([4, 64, 1024])
check(chance, "1.386294 4.158883 6.931472", "log B")
check(chance - random_loss[:, 0], "-0.0421 -0.0090 -0.0051", "tau = 1: log B - loss certifies nothing")
verdicts = [information_bound(loss, n) for loss, n in zip(random_loss[:, 0], (4, 64, 1024), strict=True)]
check_true(not any(v.informative for v in verdicts), "the package refuses to call these bounds")

# %% Random against identical pairs, at two temperatures
# B = 256 rows of 64 entries. Identical pairs are the best case, and at tau = 1 they still lose 4.56.
measured = []
for seed in range(20):
    draw = np.random.default_rng(seed)
    a, b = draw.standard_normal((2, 256, 64))
    measured.append([info_nce(a, a if same else b, tau)[0] for tau in (1.0, 0.05) for same in (False, True)])
measured = np.array(measured)
mean, spread = measured.mean(axis=0), measured.std(axis=0, ddof=1)
table([mean, spread, np.log(256) - mean], "B = 256, D = 64, 20 seeds; log 256 = 5.545", digits="4g",
      rows=["loss", "spread", "log B - loss"],
      columns=["tau 1, random", "tau 1, identical", "tau 0.05, random", "tau 0.05, identical"])
check([mean[0], mean[1]], "5.55 4.560", "tau = 1: random and identical pairs")
check(mean[2], "8.4", "tau = 0.05: random pairs, far above log 256")
check(mean[3], "1.04e-5", "tau = 0.05: identical pairs")
check_true(bool(measured[:, 2].min() > np.log(256) + 2), "tau = 0.05: a confident wrong guess costs more than no guess")
starts = np.random.default_rng(1).standard_normal((2, 256, 64))
start_loss = [info_nce(*starts, tau)[0] for tau in (0.1, 0.07, 0.05, 0.02, 0.01)]
check(start_loss, "6.301 7.078 8.450 18.029 35.367", "random start at tau = 0.1, 0.07, 0.05, 0.02, 0.01")
erratum(start_loss[2], right="8.450", lesson="5.55", id="start-near-log-b", where="lesson 2, sanity numbers",
        says="with B = 256 training starts near log 256 = 5.55", label="random start at tau = 0.05, B = 256",
        why="That holds at tau near 1 only; dividing random cosines by a small tau makes confident mistakes.")
# Twice the same encoding (dropout off) is the identical column: no chance level at all, unless all rows coincide.
same = np.random.default_rng(1).standard_normal((64, 64))
erratum(info_nce(same, same, 0.05)[0], right="2.213e-6", lesson="4.158883", id="eval-mode-log-n",
        where="lesson 1, two forward passes", label="identical views of 64 spread rows, tau = 0.05",
        says="in evaluation mode both views are equal, so the encoder learns nothing and pays log N",
        why="Equal views are not equal rows: the diagonal wins, and only a batch collapsed to one point pays log N.")
# In a cone there is always a push. Equal views u give row i the gradient sum_j w_ij (u_j - c_ij u_i), with cosines c
# and all w_ij > 0. Take the row farthest from an axis b with every u . b > 0: then u_j . b - c_ij u_i . b is at least
# (1 - c_ij) u_i . b >= 0, and descent drives the row on outwards, unless all rows coincide.
cone_loss = []
for c in (0.5, 0.9, 0.99, 0.999):  # rows at mean cosine c, both views identical
    rows = np.sqrt(c) * np.eye(1, 64) + np.sqrt(1 - c) * same / np.linalg.norm(same, axis=1, keepdims=True)
    loss, backward = info_nce(rows, rows, 0.05)
    along, gradient = rows[:, 0] / np.linalg.norm(rows, axis=1), sum(backward())
    outward = gradient[along.argmin(), 0]  # descent goes against it: away from the axis
    cone_loss.append([mean_pair_cosine(rows), loss, np.linalg.norm(gradient), along.min(), outward])
cone_loss = np.array(cone_loss)
table(cone_loss, "identical views in a cone", rows=[""] * 4, digits=3,
      columns=["mean cosine", "loss", "|gradient|", "least u . b", "d/d(u . b) there"])
check_true(bool((cone_loss[:, 3:] > 0).all()), "cones: the outermost row is pushed outwards")
erratum_claim(bool(cone_loss[:, 2].min() > 0.01), id="eval-mode-log-n",
              label="identical views: still a gradient", right="every cone has a gradient: the negatives push",
              why="Within a cone only exact collapse is stationary; a regular simplex is too, but it is no cone.")

# %% The temperature as a ceiling
# With unit rows no logit leaves [-1/tau, 1/tau]. The lesson lets all 255 negatives of every row stand opposite to it.
opposite = np.e / (np.e + 255 / np.e)
check([100 * opposite, -np.log(opposite)], "2.816069 3.569828", "255 opposite negatives, tau = 1: percent, loss")
# Three unit vectors cannot be pairwise opposite. The best batch is the regular simplex (chapter 1): cosines -1/(B - 1).


def least_loss(n, tau):
    """Smallest InfoNCE loss of n pairs of unit rows: log(1 + (n - 1) exp(-n / ((n - 1) tau)))."""
    return np.log1p((n - 1) * np.exp(-n / ((n - 1) * tau)))


corners = np.eye(256) - 1 / 256
check_close(info_nce(corners, corners, 1.0)[0], least_loss(256, 1.0), 1e-12, "the simplex of 256 reaches the floor")
antipodes = np.repeat([[1.0, 0.0], [-1.0, 0.0]], 8, axis=0)
at_rest = [np.abs(sum(info_nce(x, x, tau)[1]())).max() for x in (corners, antipodes) for tau in (1.0, 0.05)]
check_true(max(at_rest) < 1e-12, "simplex, and two opposite points: no gradient, so collapse is not alone in that")
erratum(100 * np.exp(-least_loss(256, 1.0)), right="1.058850", lesson="2.8", id="opposite-negatives",
        where="lesson 2, confidence", says="at tau = 1 a perfect encoder gives its positive at most 2.8 percent of 256",
        label="best probability at tau = 1, B = 256, in percent",
        why="256 rows cannot all be opposite to each other; the best they can do is a cosine of -1/255.")
erratum(least_loss(256, 1.0), right="4.547987", lesson="3.6", id="opposite-negatives",
        label="lowest loss at tau = 1, B = 256", why="The simplex is optimal, and its loss is 4.547987.")
check_true(bool(mean[1] - least_loss(256, 1.0) < 0.02), "random rows with identical partners are within 0.02 of it")
floors = np.array([least_loss(n, 1.0) for n in (4, 64, 1024)])
erratum(floors, right="0.582658 3.170166 5.932173", lesson="0 0 0", id="best-loss-zero",
        where="lesson 3, the InfoNCE script", says="the best possible loss is 0, next to losses at tau = 1",
        label="lowest loss at tau = 1 for B = 4, 64, 1024",
        why="Cosines end at 1 and -1/(B - 1); the floor falls to 0 only as tau does.")
certificate = chance - floors
erratum(certificate, right="0.803637 0.988717 0.999298", lesson="1.39 4.16 6.93", id="best-loss-zero",
        label="most that tau = 1 can certify for B = 4, 64, 1024",
        why="At tau = 1 the temperature, not the batch, caps the certificate, below one nat for every B.")
check(np.log(256) - least_loss(256, 0.05), "5.545177", "tau = 0.05: the floor is no limit any more, log 256 is")

# %% Negatives that were chosen
# The proof needs candidates drawn from p(x). D = 1, truth 0.830, 256 pairs: of the 255 strangers of each query keep 31
# - at random, the hardest, or the easiest - and read log 32 - loss as if it were a bound.
estimates = {"drawn": [], "mined (hardest)": [], "easiest": []}
for seed in range(40):
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((256, 1))
    y = rho * x + np.sqrt(v) * draw.standard_normal((256, 1))
    s = gaussian_scores(x, y, rho)
    positive = np.diag(s).copy()
    np.fill_diagonal(s, np.nan)
    ranked = np.sort(s, axis=1)[:, :-1]  # NaN, the positive, sorts last
    drawn = draw.permuted(ranked, axis=1)[:, :31]
    chosen = {"drawn": drawn, "mined (hardest)": ranked[:, -31:], "easiest": ranked[:, :31]}
    for name, negatives in chosen.items():
        loss = np.log1p(np.exp(negatives - positive[:, None]).sum(axis=1)).mean()
        estimates[name].append(information_bound(loss, 32, independent=name == "drawn"))
read = {name: np.mean([bound.nats for bound in bounds]) for name, bounds in estimates.items()}
table([list(read.values())], "log 32 - loss, D = 1 (truth 0.830)", columns=read)
check_true(0.75 < read["drawn"] < small_truth, "drawn negatives: a bound")
check_true(read["mined (hardest)"] < 0, "mined negatives: below zero, although the critic is exact")
check_true(read["easiest"] > 2 * small_truth, "easy negatives: far above the truth, no bound at all")
check_true(not any(b.informative for b in estimates["easiest"] + estimates["mined (hardest)"]),
           "told how the negatives were chosen, the package refuses both")

# %% Which negatives get the push
# At temperature tau negative j pushes with weight p_ij / tau, p ~ exp(cos / tau). Share of the hardest of 255 random
# negatives, and their effective number exp(entropy of the shares), mean over 256 rows of 64 entries.
a, b = np.random.default_rng(42).standard_normal((2, 256, 64))
cosines = (a / np.linalg.norm(a, axis=1, keepdims=True)) @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T
np.fill_diagonal(cosines, -np.inf)
pushes = []
for tau in (1.0, 0.2, 0.07, 0.05, 0.02, 0.01):
    w = np.exp((cosines - cosines.max(axis=1, keepdims=True)) / tau)
    w /= w.sum(axis=1, keepdims=True)
    entropy = -(w * np.log(np.where(w > 0, w, 1))).sum(axis=1)
    pushes.append([w.max(axis=1).mean(), np.exp(entropy).mean()])
pushes = np.array(pushes)
table(pushes, "255 random negatives", rows=["tau 1", "0.2", "0.07", "0.05", "0.02", "0.01"],
      columns=["hardest", "effective number"], digits=4)
check(pushes[:, 0], "0.005485 0.018314 0.128999 0.248800 0.654740 0.834364", "share of the hardest negative")
check(pushes[[0, 3, 5], 1], "253.0 29.1 1.8", "effective negatives at tau = 1, 0.05, 0.01")

# %% N without limit
# loss - log M -> -E[cos+] / tau + E_x log E_y exp(cos(x, y) / tau)            (law of large numbers inside the log)
# Uniform negatives in d entries: E exp(kappa cos) = 0F1(; d/2; kappa^2 / 4), kappa = 1/tau. With M negatives the
# next term is (e^(cos+ / tau) / m - v / 2 m^2) / M, where m, v are mean and variance of exp(kappa cos).
d, kappa, positive_cosine = 16, 5.0, 0.9
m = hyp0f1(d / 2, kappa**2 / 4)
variance = hyp0f1(d / 2, kappa**2) - m**2
limit = -positive_cosine * kappa + np.log(m)
check(limit, "-3.749543", "limit of loss - log M: d = 16, tau = 0.2, positives at 0.9")
slope = np.exp(positive_cosine * kappa) / m - variance / (2 * m**2)
check(slope, "41.29", "coefficient of 1 / M")


def many_negatives(count, rows, seed=0):
    """Mean and standard error of loss - log M for M = count uniform negatives; a row sees only their cosines."""
    draw = np.random.default_rng(seed)
    g, rest = draw.standard_normal((rows, count)), draw.chisquare(d - 1, (rows, count))
    e = np.exp(kappa * g / np.sqrt(g**2 + rest)).sum(axis=1)
    values = np.log(np.exp(positive_cosine * kappa) + e) - positive_cosine * kappa - np.log(count)
    return values.mean(), values.std(ddof=1) / np.sqrt(rows)


counts = np.array([10, 100, 1000, 10000])
approach = np.array([many_negatives(c, rows) for c, rows in zip(counts, (20000, 3000, 600, 100), strict=True)])
table(np.column_stack([approach, limit + slope / counts]), "loss - log M, and its limit -3.749543",
      rows=[f"M = {c}" for c in counts], columns=["measured", "error", "limit + 41.29 / M"])
check_true(bool((np.diff(approach[:, 0]) < 0).all()), "loss - log M falls towards its limit")
check_true(bool((np.abs(approach[2:, 0] - limit - slope / counts[2:]) < 4 * approach[2:, 1]).all()),
           "M = 1,000 and 10,000: limit + 41.29 / M within four standard errors")

# %% The temperature is the width of a kernel
# On the sphere cos = 1 - |x - y|^2 / 2, so exp(cos / tau) = e^(1/tau) exp(-|x - y|^2 / (2 tau)): the kernel of
# uniformity with t = 1 / (2 tau). The limit reads  t alignment + E_x log E_y exp(-t |x - y|^2).
rows = np.random.default_rng(3).standard_normal((400, 16))
partners = rows + 0.5 * np.random.default_rng(4).standard_normal((400, 16))
for tau in (0.25, 0.2):
    t = 1 / (2 * tau)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    squared = ((unit[:, None] - unit) ** 2).sum(axis=2)
    off = ~np.eye(400, dtype=bool)
    inner = np.exp(-t * squared)[off].reshape(400, 399).mean(axis=1)
    cos_plus = 1 - alignment(rows, partners) / 2
    pair_sums = np.exp((unit @ unit.T) / tau)[off].reshape(400, 399).mean(axis=1)
    check_close(-cos_plus / tau + np.log(pair_sums).mean(), t * alignment(rows, partners) + np.log(inner).mean(), 1e-12,
                f"tau = {tau}: attraction + log-sum = t alignment + E log kernel, t = {t:g}")
    check_close(np.log(inner.mean()), uniformity(rows, t=t), 1e-12, f"tau = {tau}: its kernel is that of uniformity(t)")
check([1 / (2 * 0.05), 1 / (2 * 2)], "10. 0.25", "tau = 0.05 is t = 10; the usual t = 2 is tau = 0.25")


# The helper of lesson 1 mixes the two up, and has a minus too many.
def lesson_helper(x, tau=0.05):
    """-log mean exp(-2 tau |x_i - x_j|^2) over distinct pairs, as lesson 1 computes it."""
    return -uniformity(x, t=2 * tau)


spread_rows = np.random.default_rng(0).standard_normal((128, 64))
cone_rows = spread_rows + 28 * np.eye(1, 64)
point = np.ones((128, 64))
shown = np.array([[f(x) for x in (spread_rows, cone_rows, point)] for f in (lesson_helper, uniformity)])
table(shown, "uniformity, 128 rows of 64 entries", rows=["lesson 1", "here, t = 2"],
      columns=["spread", "cone", "point"])
erratum(shown[1, 0], right="-3.868232", lesson="0.199514", id="uniformity-minus", where="lesson 1, the two metrics",
        says="a helper returns minus the log of the mean kernel, and lower is called better",
        label="uniformity of 128 spread rows", why="The minus turns the order round: spread rows score worst.")
erratum_claim(bool(shown[0, 0] > shown[0, 1] > shown[0, 2]), id="uniformity-minus",
              label="lesson 1 ranks collapse first", why="As coded, a single point is the minimum.",
              right="log mean exp(-t d^2): spread below cone below point")
erratum(1 / (2 * 0.05), right="10.", lesson="0.1", id="kernel-width-is-tau", where="lesson 1, the two metrics",
        says="the exponent of the kernel is 2 tau = 0.1 times the squared distance", label="kernel t of tau = 0.05",
        why="The loss at tau has the kernel t = 1 / (2 tau): a small temperature is a narrow kernel, not a wide one.")
check(uniformity(spread_rows, t=0.1) / uniformity(spread_rows), "0.0516", "t = 0.1 instead of 2: twenty times too flat")
erratum_claim(bool(uniformity(point) == 0 > uniformity(cone_rows) > uniformity(spread_rows)), id="uniformity-explodes",
              where="lesson 1, the two metrics", says="uniformity explodes when the encoder collapses",
              right="it rises to 0, its largest value", why="It is the log of a mean of numbers between 0 and 1.")
noisy = np.random.default_rng(5).standard_normal((2, 64, 64))
views = np.stack([noisy[0], noisy[0] + 0.4 * noisy[1]])
one_view, pooled = uniformity(views[0]), uniformity(np.concatenate(views))
check([one_view, pooled], "-3.847 -3.616", "64 sentences: uniformity of one view, of both views pooled")
erratum_claim(bool(pooled > one_view + 0.15), id="pooled-views", where="lesson 1, the two metrics",
              says="uniformity is measured on both views thrown together",
              right="one view at a time: -3.85 in this batch, against -3.62 pooled",
              why="Pooled, each sentence meets its own partner, and a good alignment counts as bad uniformity.")
