"""Chapter 3: alignment and uniformity, two numbers for an embedding space."""

# %% [markdown]
# Question: dropout makes good positives (chapter 2), but why, and how would one notice that it does not?
# Attempt: watch the loss. It breaks: a loss can fall while the embeddings get worse, and a score needs labels.
# Repair: measure the two things an embedding must do. Equal meanings must be close (alignment); the sphere must be used
# (uniformity). A constant is perfect at the first and useless; random codes do the second and are useless too.
#
# Letters: x, y unit rows, s = cosine, tau = temperature, p_ij = probability row i gives to candidate j, N = rows.

# %% Alignment
# Mean squared distance of positive pairs. On the unit sphere |x - y|^2 = 1 + 1 - 2 x.y, so it is a cosine in disguise.
import numpy as np
from lesson import (
    check,
    check_close,
    check_true,
    erratum_claim,
    erratum_quoted,
    full,
    numeric_gradient,
    quoted,
    recorded,
    table,
)
from quoted_tables import TABLE_3_DROPOUT, TABLE_5_AVERAGE
from scipy.special import hyp0f1, iv, logsumexp

from nano_simcse.geometry import alignment, mean_pair_cosine, uniformity
from nano_simcse.layers import normalize
from nano_simcse.losses import info_nce

rng = np.random.default_rng(3)
x, _ = normalize(rng.standard_normal((40, 5)))
y, _ = normalize(x + 0.5 * rng.standard_normal((40, 5)))
by_distance = ((x - y) ** 2).sum(axis=1).mean()
by_cosine = 2 * (1 - (x * y).sum(axis=1).mean())
check_close(by_distance, by_cosine, 1e-14, "alignment = 2 (1 - mean cosine)")
check_close(alignment(3 * x, y / 7), by_distance, 1e-14, "the package's alignment, lengths do not matter")
for c, expected in ((0.99, "0.02"), (0.80, "0.40")):
    turned = np.array([[c, np.sqrt(1 - c**2)]])
    check(alignment(np.array([[1.0, 0.0]]), turned), expected, f"alignment at positive cosine {c:.2f}")
check([alignment(x, x), alignment(x, -x)], "0 4", "range: equal rows, antipodal rows")

# %% Uniformity
# A pair at distance d counts exp(-2 d^2): about 1 for neighbours, e^-8 for antipodes. The mean over pairs says how
# crowded a point's surroundings are; the logarithm keeps the differences among good spreads visible.
# With d^2 = 2 - 2 s the exponent is -2 d^2 = 4 s - 4: a log-mean-exp of cosines at tau = 1/4, minus 4.
i, j = np.triu_indices(len(x), 1)
potential = np.exp(-2 * ((x[i] - x[j]) ** 2).sum(axis=1))
by_potential = np.log(potential.mean())
by_softmax = logsumexp((x[i] * x[j]).sum(axis=1) / 0.25) - np.log(len(i)) - 4
check_close(by_potential, by_softmax, 1e-13, "uniformity is a log-mean-exp at tau = 1/4, minus 4")
check_close(uniformity(x), by_potential, 1e-13, "the package's uniformity")
check(uniformity(np.ones((6, 3))), "0", "uniformity of a collapsed space")
north_south = np.array([[1.0, 0.0], [-1.0, 0.0]])
check(uniformity(north_south), "-8", "two antipodal points: the lowest possible uniformity")
wild = [uniformity(rng.standard_normal((n, d))) for n in (2, 3, 9) for d in (1, 2, 7)]
erratum_claim(
    min(wild) >= uniformity(north_south) - 1e-12, id="uniformity-range", where="ch. 3, the logarithm",
    says="the logarithm sends uniformity to the range from minus infinity to 0", right="the range is [-8, 0]",
    why="Distances on the unit sphere end at 2, so no mean of exp(-2 d^2) falls below exp(-8).",
)

# %% How low can it go?
# For two independent draws from one distribution the best is the uniform law on the sphere of R^d:
#     E exp(4 s - 4) = exp(-4) 0F1(; d/2; 4)         because E exp(k x_1) = 0F1(; d/2; k^2 / 4)
# On the circle, the proof is one line. With c_k = E exp(i k angle), exp(4 cos) = I_0(4) + 2 sum_k I_k(4) cos(k angle)
# has only positive coefficients, so the mean I_0(4) + 2 sum_k I_k(4) |c_k|^2 is least when every c_k is 0.
widths = np.array([2, 3, 16, 768])
optimum = -4 + np.log(hyp0f1(widths / 2, 4.0))
table(optimum[None], "lowest uniformity of independent draws", columns=[f"d = {d}" for d in widths], digits=6)
check(optimum[[0, 1, 3]], "-1.575027204 -2.079777061 -3.989583474", "best uniformity for d = 2, 3, 768")
angles = np.linspace(0, 2 * np.pi, 400, endpoint=False)
check_close(np.log(np.exp(4 * np.cos(angles) - 4).mean()), optimum[0], 1e-12, "d = 2: the integral over the circle")
check_close(np.log(np.exp(-4) * np.sinh(4) / 4), optimum[1], 1e-12, "d = 3: the closed form sinh(4) / 4")


def at(*degrees):
    """Unit vectors in the plane."""
    radians = np.deg2rad(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


def by_harmonics(points, terms=60):
    """Uniformity with self-pairs, from the harmonics of the angles."""
    theta = np.arctan2(points[:, 1], points[:, 0])
    k = np.arange(1, terms)
    c = np.exp(1j * k[:, None] * theta).mean(axis=1)
    return -4 + np.log(iv(0, 4) + 2 * (iv(k, 4) * np.abs(c) ** 2).sum())


# %% By hand: four points on a circle
# A: a cone, as an untrained encoder makes it; a quarter turn between; B: a square.
shapes = {"A cone": (0, 10, 20, 30), "quarter turn": (0, 30, 60, 90), "B square": (0, 90, 180, 270)}
turns = np.array([10, 20, 30, 60, 90, 180])
chord = 2 - 2 * np.cos(np.deg2rad(turns))
table(np.stack([chord, np.exp(-2 * chord)], axis=1), "one pair", [f"{t} deg" for t in turns], ["d^2", "exp(-2 d^2)"], 8)
check(chord[:3], "0.030384494 0.120614758 0.267949192", "squared chords at 10, 20, 30 degrees")
check(np.exp(-2 * chord[:3]), "0.941040606 0.785661283 0.585143370", "potentials at 10, 20, 30 degrees")
check(np.exp(-2 * chord[4:]), "0.018315639 0.000335463", "potentials at 90 and 180 degrees")
mean_A = (3 * np.exp(-2 * chord[0]) + 2 * np.exp(-2 * chord[1]) + np.exp(-2 * chord[2])) / 6
check(mean_A, "0.829931293", "A: mean over three pairs at 10, two at 20, one at 30 degrees")
check(np.log(mean_A), "-0.19", "A: uniformity by hand")
distinct = np.array([uniformity(at(*s)) for s in shapes.values()])
with_self = np.array([uniformity(at(*s), include_self=True) for s in shapes.values()])
table(
    np.stack([distinct, with_self], axis=1), "uniformity of the three shapes",
    rows=list(shapes), columns=["distinct pairs", "with self-pairs"], digits=9,
)
check(distinct, "-0.186412362 -1.076647141 -4.396348967", "uniformity over distinct pairs: A, quarter turn, B")
check(with_self, "-0.136451687 -0.682104299 -1.349994505", "uniformity with self-pairs: A, quarter turn, B")
check(distinct[0] - distinct[2], "4.209936606", "what spreading gained")
check_close([by_harmonics(at(*s)) for s in shapes.values()], with_self, 1e-12, "the harmonics give the same three")

# Say which estimator. The square scores -4.40, below what ANY distribution on the circle reaches (-1.575): over
# distinct pairs four points can avoid each other. With self-pairs the bound holds. exp(V) = ((N-1) exp(U) + 1) / N.
check_close(np.log((3 * np.exp(distinct) + 1) / 4), with_self, 1e-12, "from distinct pairs to self-pairs, N = 4")
erratum_claim(
    distinct[2] < optimum[0] < with_self[2], id="square-beats-the-circle", where="ch. 3, worked example",
    says="the square has uniformity -4.40, on the scale of the definition",
    right="-4.40 over distinct pairs, -1.349995 with self-pairs; no distribution on the circle goes below -1.575027",
    why="The definition draws two independent points, which may coincide; the estimator has to be named.",
)
draws = at(*rng.uniform(0, 360, 4 * 5000)).reshape(5000, 4, 2)
u, v = np.triu_indices(4, 1)
scatter = np.exp(-2 * ((draws[:, u] - draws[:, v]) ** 2).sum(axis=-1)).mean()
check_close(np.log(scatter), optimum[0], 0.02, "four random points, distinct pairs: on average the circle's optimum")
erratum_claim(
    distinct[2] < np.log(scatter) - 2, id="random-hash", where="ch. 3, two requirements",
    says="uniformity alone is at its best for a random hash",
    right="independent scatter is the limit for many points only: four random points -1.575, a square -4.396",
    why="Points that avoid each other beat points that ignore each other, and the gap closes as N grows.",
)

# %% The price
# A paraphrase of the sentence at 0 degrees stands at 5 degrees; after spreading it stands at 25.
near = alignment(at(0), at(5))
far = alignment(at(0), at(25))
check(near, "0.007610604", "alignment of a pair 5 degrees apart")
check(far, "0.187384426", "alignment of a pair 25 degrees apart")
check(far / near, "24.621493", "how much worse (the usual rounding says 25 times)")

# %% Gradients of the two measures
# They can be trained on directly. With unit rows a = x^, b = y^ (backward of the normalisation follows):
#     A = mean |a_i - b_i|^2                    dA/da_i = 2 (a_i - b_i) / N
#     U = log mean_{i != j} exp(-2 |a_i - a_j|^2)
#     dU/da_i = sum_j -8 w_ij (a_i - a_j)       w = softmax over ordered pairs; each pair pushes at both its ends


def alignment_loss(x, y):
    """Alignment of rows x, y (N, D) and backward() -> (dx, dy)."""
    a, a_back = normalize(x)
    b, b_back = normalize(y)

    def backward():
        d = 2 * (a - b) / len(a)
        return a_back(d), b_back(-d)

    return ((a - b) ** 2).sum(axis=1).mean(), backward


def uniformity_loss(x):
    """Uniformity of rows x (N, D) over distinct pairs and backward() -> dx."""
    a, a_back = normalize(x)
    exponent = 4 * (a @ a.T) - 4
    np.fill_diagonal(exponent, -np.inf)
    total = logsumexp(exponent)
    w = np.exp(exponent - total)

    def backward():
        return a_back(-8 * (w.sum(axis=1, keepdims=True) * a - w @ a))

    return total - np.log(len(a) * (len(a) - 1)), backward


few, partner = rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
value, back = alignment_loss(few, partner)
d_few, d_partner = back()
check_close(value, alignment(few, partner), 1e-14, "alignment loss equals the measure")
check_close(d_few, numeric_gradient(lambda x: alignment_loss(x, partner)[0], few), 1e-8, "d alignment / dx")
check_close(d_partner, numeric_gradient(lambda y: alignment_loss(few, y)[0], partner), 1e-8, "d alignment / dy")
value, back = uniformity_loss(few)
check_close(value, uniformity(few), 1e-14, "uniformity loss equals the measure")
check_close(back(), numeric_gradient(lambda x: uniformity_loss(x)[0], few), 1e-8, "d uniformity / dx")
repelled = at(*shapes["A cone"]).copy()
for _ in range(300):
    repelled -= 0.05 * uniformity_loss(repelled)[1]()
check(uniformity(repelled), "-4.396349", "descent on uniformity alone turns the cone into a square")

# %% InfoNCE as attraction plus repulsion
# L_i = -s_ii / tau + log sum_j exp(s_ij / tau): the first term wants alignment, the second is large where candidates
# are close. Its gradient: -(1/tau) on s_ii from the first term, +p_ij / tau on every s_ij from the second.


def parts(hA, hB, tau):
    """Attraction and repulsion of the InfoNCE loss: their values, and the gradients of pull and push.

    Pull is what reaches the positive cosine, (p_ii - 1) / tau; push is what reaches the others, p_ij / tau.
    """
    a, a_back = normalize(hA)
    b, b_back = normalize(hB)
    s, n = a @ b.T, len(a)
    attraction, repulsion = -np.diag(s) / tau, logsumexp(s / tau, axis=1)
    p = np.exp(s / tau - repulsion[:, None])
    push = (p - np.diag(np.diag(p))) / (n * tau)
    pull = -np.diag(push.sum(axis=1))  # the other probabilities, not 1 - p_ii: no cancellation
    gradients = [(a_back(g @ b), b_back(g.T @ a)) for g in (pull, push)]
    return attraction.mean(), repulsion.mean(), *gradients, p


attraction, repulsion, pull, push, _ = parts(few, partner, 0.5)
loss, back = info_nce(few, partner, 0.5)
check_close(attraction + repulsion, loss, 1e-13, "attraction + repulsion = the training loss")
check_close(np.add(pull, push), back(), 1e-12, "pull + push = its gradient")

# %% How close is that to uniformity?
# As N grows, L - log N tends to -E s_ii / tau + E_x log E_y exp(s_xy / tau). Uniformity is log E_x E_y exp(4 s) - 4.
# Two differences: the order of log and mean (Jensen: the loss's term is the smaller one), and tau = 1/4.
# On the sphere in R^3 the loss's term is log(tau sinh(1/tau)).


def spread_term(x, tau):
    """E_x log E_y exp(s / tau) of unit rows, self-pairs included."""
    return (logsumexp(x @ x.T / tau, axis=1) - np.log(len(x))).mean()


half = 0.5
limit = np.log(half * np.sinh(1 / half))
counts = np.array([16, 64, 256, 1024])
ball, _ = normalize(rng.standard_normal((counts[-1], 3)))
sampled = np.array([spread_term(ball[:n], half) for n in counts])
table(sampled[None], "repulsive term of N random points, tau = 0.5", columns=[f"N = {n}" for n in counts], digits=5)
same_views = info_nce(ball, ball, half)[0]
check(limit, "0.595220", "limit of the repulsive term on the sphere, tau = 0.5")
check_close(sampled[-1], limit, 5e-3, "N = 1024 random points are close to it")
check_close(same_views - np.log(counts[-1]) + 1 / half, sampled[-1], 1e-12, "loss - log N + 1 / tau is that term")
cone = at(*shapes["A cone"])
quarter = logsumexp(cone @ cone.T / 0.25) - np.log(16)
check_true(spread_term(cone, 0.25) < quarter, "Jensen: the loss's term lies below uniformity's, tau = 1/4")
erratum_claim(
    abs(sampled[-1] - limit) < 0.01 < abs(sampled[-1] - optimum[1]), id="exactly-these-two",
    where="ch. 3, reading InfoNCE", says="the loss tends to alignment plus uniformity, exactly these two",
    right="to -E s/tau + E_x log E_y exp(s/tau): 0.595220 for the uniform law at tau 0.5, its uniformity -2.079777",
    why="The limit holds a mean of logarithms at the loss's own tau, uniformity one logarithm of a mean at tau = 1/4.",
    label="uniform law on the sphere: the loss's term is not uniformity",
)
# The two can rank spaces differently.
arc = at(*np.linspace(0, 260, 12))
doubled = at(*np.repeat(np.arange(0, 360, 60), 2))
ranks = np.array([[spread_term(s, 0.05), uniformity(s)] for s in (arc, doubled)])
table(ranks, "lower is better", ["12 points on an arc", "6 doubled points"], ["repulsion, tau = 0.05", "uniformity"])
check(ranks, "17.810 -1.757; 18.208 -1.958", "an arc against six doubled points")
erratum_claim(
    ranks[0, 0] < ranks[1, 0] and ranks[0, 1] > ranks[1, 1], id="exactly-these-two",
    right="two spaces can change places: an arc wins on the loss's term and loses on uniformity",
    why="At small tau the loss looks at nearest neighbours only, uniformity at tau = 1/4 looks further.",
    label="loss and uniformity rank two spaces differently",
)

# %% Identical views: what the positive can teach
# Let both views be one function of the sentence, h+ = h, whatever the parameters. Then per view
#     d s_ii / d h_i = (h_i+^ - s_ii h_i^) / |h_i| = (h_i^ - 1 h_i^) / |h_i| = 0
# not only in sum: stopping the gradient in one view changes nothing. The batch of chapter 7 shows it: three profiles,
# masks that keep two of four units at rate 1/2.
profiles = np.array([[4.0, 3.0, 2.0, 1.0], [3.0, 4.0, 1.0, 2.0], [1.0, -2.0, 4.0, -3.0]])
zA = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]])
zB = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
tau = 0.05


def toy(masks_of_B):
    """Gradients of pull, push and both with respect to the profiles, and the probabilities."""
    _, _, pull, push, p = parts(2 * zA * profiles, 2 * masks_of_B * profiles, tau)
    through = [2 * zA * g[0] + 2 * masks_of_B * g[1] for g in (pull, push)]
    return pull, through[0], through[1], through[0] + through[1], p


size = np.linalg.norm
views, pull, push, total, p = toy(zA)
table(total, "same mask in both views: dL / d profiles", digits=6)
check([size(views[0]), size(views[1]), size(pull)], "0.000000000 0.000000000 0.000000000", "same mask: |pull| per view")
check(size(push), "0.327370245", "same mask: |push|")
check(size(total), "0.327370245", "same mask: |dL / d profiles| is not zero, it is all repulsion")
check(total[2], "0.00000000 0.00000000 0.00000000 0.00000000", "same mask: sentence 3 is orthogonal, no gradient")
batch_loss = lambda u: info_nce(2 * zA * u, 2 * zA * u, tau)[0]  # noqa: E731
check_close(total, numeric_gradient(batch_loss, profiles), 1e-7, "same mask: the gradient by differences")
_, pull_B, push_B, total_B, _ = toy(zB)
check([size(pull_B), size(push_B), size(total_B)], "0.0384904 0.0357301 0.0658201", "own masks: |pull|, |push|, |both|")

# The proof needs the cosine. With the dot product s_ii = |h|^2 the pull of identical views is 2 h, growth without end.
stretch = numeric_gradient(lambda h: h @ h, profiles[0])
check_close(stretch, 2 * profiles[0], 1e-8, "dot product: d s_ii / dh = 2 h")

# %% What is left is gated repulsion
# The constant exp(1/tau) of the positive stays in the denominator. With R_i = log sum_{j != i} exp(s_ij / tau),
#     dL_i = (1 - p_ii) dR_i
# so a row that is told apart already stops pushing. Repulsion alone has weights that sum to 1 in every row.
gate = 1 - np.diag(p)
gate[2] = p[2, :2].sum()
check(gate[:2], "0.310026 0.310026", "same mask: gates of rows 1 and 2")
check(gate[2], "4.1e-9", "same mask: gate of row 3")


def repulsion_only(u, row):
    """R_row of identical views."""
    a, _ = normalize(2 * zA * u)
    return logsumexp(np.delete(a @ a[row] / tau, row))


dR = np.array([numeric_gradient(lambda u, r=r: repulsion_only(u, r), profiles) for r in range(3)])
check_close(np.tensordot(gate, dR, 1) / 3, total, 1e-7, "gradient of the loss = mean of gate x gradient of repulsion")
erratum_claim(
    size(dR.mean(axis=0)) > 3 * size(total), id="loss-is-not-uniformity", where="ch. 3, identical views",
    says="with identical views the loss reduces to the uniformity term",
    right="to repulsion times a gate 1 - p_ii per row (0.310, 0.310, 4e-9 in the toy)",
    why="The positive stays in the denominator, so rows that are told apart stop pushing; pure uniformity never stops.",
)

# %% What dropout gives back
# A linear encoder h = sum_k m_k x_k w_k / (1 - p) under two masks: only the variances add up, unit by unit,
#     E |hA - hB|^2 = 2 p / (1 - p) sum_k x_k^2 |w_k|^2
# To make twins agree the encoder must not lean on single units: what stands in one unit is expensive, what is spread
# over many is cheap. That is a penalty on the sensitivity to each input, and sensitivity is what paraphrases test.
four, w, rate = rng.standard_normal(4), rng.standard_normal((4, 3)), 0.1
cases = np.array(list(np.ndindex(2, 2, 2, 2)))
chance = np.prod(np.where(cases == 1, 1 - rate, rate), axis=1)
heads = (cases * four / (1 - rate)) @ w
gaps = ((heads[:, None] - heads[None]) ** 2).sum(axis=-1)
exact = chance @ gaps @ chance
penalty = 2 * rate / (1 - rate) * (four**2 * (w**2).sum(axis=1)).sum()
check_close(exact, penalty, 1e-12, "all 256 mask pairs: the penalty")

# %% The trail experiment
# trails.py: sentence vectors with a redundant meaning (18 units for 6 numbers), one-unit nuisance, one junk number
# written over 40 units, and a common offset. Paraphrases share the meaning only. Train with InfoNCE and watch held-out
# (uniformity, alignment) every ten steps. Three settings, and supervision by real paraphrases as a yardstick.
import trails  # noqa: E402

settings = ["no dropout", "same mask", "independent masks", "paraphrase"]
runs = {name: trails.Trail(name, rate=0.1, seed=0).run(400) for name in settings}
start = runs["no dropout"].points[0]
paths = {name: run.points for name, run in runs.items()}
score = {"start": trails.Trail("no dropout").score(), **{name: run.score() for name, run in runs.items()}}
ends = np.array([start, *(paths[name][-1] for name in settings)])
table(
    np.column_stack([ends, list(score.values())]), "seed 0, rate 0.1, 400 steps",
    rows=["start", *settings], columns=["uniformity", "alignment", "Spearman"], digits=3,
)
check(start, "-2.411 1.291", "trail: the random encoder")
check_true(bool((ends[1:4, 0] < start[0] - 0.5).all()), "trail: uniformity improves in all three unsupervised settings")
check_true(bool((ends[1:3, 1] > start[1] + 0.05).all()), "trail: identical views lose alignment")
check_true(bool(ends[3, 1] < start[1] - 0.1), "trail: independent masks gain alignment")
check_true(bool(score["independent masks"] > score["no dropout"] + 0.1), "trail: and the score follows")
check_true(bool(ends[4, 1] < 0.1 and score["paraphrase"] > 0.9), "trail: real paraphrases align nearly perfectly")
again = trails.Trail("independent masks", rate=0.1, seed=0).run(50)
check_close(again.points, paths["independent masks"][[0, 1, 2, 3, 4, 5]], 1e-12, "trail: the same seed, the same path")
check_close(again.reset().run(20).points, paths["independent masks"][:3], 1e-12, "trail: reset starts over")

# %% Too little and too much
# At rate 0 nothing ties twins together; at 0.7 the pull asks for agreement of views that share little: an inverted U.
rates = np.array([0.0, 0.1, 0.5, 0.7])
strong = {rate: trails.Trail("independent masks", rate=rate, seed=0).run(400).score() for rate in rates[2:]}
by_rate = np.array([score["no dropout"], score["independent masks"], *strong.values()])
table(by_rate[None], "Spearman against rate, seed 0, 400 steps", columns=[f"p = {r}" for r in rates], digits=3)
check_true(bool(by_rate[1] > by_rate[0] and by_rate[1] > by_rate[2] > by_rate[3]), "trail: the score is an inverted U")
last = recorded(
    "1000 steps, junk latent present", ["rate", "alignment", "uniformity", "Spearman"],
    [
        ["off", 1.4198, -3.4677, 0.4324], ["fixed 0.1", 1.4197, -3.4516, 0.4247], ["0.05", 1.1268, -3.3514, 0.6078],
        ["0.1", 1.0419, -3.3551, 0.6519], ["0.2", 0.9066, -3.2288, 0.6869], ["0.35", 0.9186, -3.0247, 0.5926],
        ["0.5", 0.9851, -2.7763, 0.4848], ["0.7", 1.3324, -1.9162, 0.1949],
    ], seeds="0 to 2",
)
# Without the junk number there is no price on leaning on redundancy, and the score goes on rising with the rate.
tidy = recorded(
    "1000 steps, no junk latent", ["rate", "alignment", "uniformity", "Spearman"],
    [
        ["off", 1.5251, -3.465, 0.3722], ["fixed 0.1", 1.4807, -3.4436, 0.4177], ["0.05", 1.1105, -3.4172, 0.6591],
        ["0.1", 0.9279, -3.3321, 0.7391], ["0.2", 0.7666, -3.2917, 0.8054], ["0.35", 0.6279, -3.1747, 0.8337],
        ["0.5", 0.5397, -3.0585, 0.8487], ["0.7", 0.3959, -2.7966, 0.8544],
    ], seeds="0 to 2",
)
if full():
    check_close(trails.sweep(), last, 1e-3, "the long sweep gives the recorded results")
    check_close(trails.sweep(junk=0.0), tidy, 1e-3, "so does the sweep without junk")

# %% What this does not explain
# Rate 0 and one fixed mask are the same case for the proof, yet the paper's scores differ by 27.5 points. Chapter 2
# tests one candidate on a small transformer: a sentence's own mask is a name tag that tells rows apart for free.
off = quoted(str(TABLE_3_DROPOUT["0.0"]), "no dropout, STS-B dev", source="SimCSE Table 3")
fixed = quoted(str(TABLE_3_DROPOUT["fixed 0.1"]), "fixed mask 0.1, STS-B dev", source="SimCSE Table 3")
check(off - fixed, "27.5", "the gap that identical views leave unexplained")
erratum_claim(
    off - fixed > 20 and abs(score["no dropout"] - score["same mask"]) < 0.1, id="fixed-mask-gap",
    where="ch. 3, the dropout-rate table",
    says="the vanishing positive gradient explains the whole table of dropout rates",
    right="it explains why both fail; why the fixed mask fails by 27.5 points more (in the toy by few) is open",
    why="The derivation treats rate 0 and a fixed mask as one case, so it predicts no gap between them.",
)
# The zero gradient is proved; that alignment then collapses is not. An encoder of width 4 has no room for nuisance:
narrow = trails.Trail("no dropout", seed=0, width=4, nuisance=0.1, junk=0.0)
before = narrow.points[0]
after = narrow.run(300).points[-1]
table([before, after], "no dropout, width 4, little nuisance", ["start", "300 steps"], ["uniformity", "alignment"])
erratum_claim(
    after[1] < before[1] and after[0] < before[0] - 0.5, id="collapse-is-not-proved", where="ch. 3, identical views",
    says="identical views are proved to make held-out alignment collapse",
    right="the zero positive gradient is proved; the collapse depends on the data (here alignment even improves)",
    why="With four output units and faint nuisance, repulsion alone already keeps to the meaning.",
)

# %% A map of methods, in this world
# The paper's map places raw BERT at good alignment and poor uniformity, post-hoc maps the other way round, trained
# models at both. The coordinates of its points are not printed; here are those of this toy, whose offset is set to 12
# units so that the untrained encoder is a cone.
cone_world = {"offset": 12.0}
raw = trails.Trail("no dropout", **cone_world)
embeddings = raw.encode(raw.world.train)
mean = embeddings.mean(axis=0)
variances, axes = np.linalg.eigh(np.cov((embeddings - mean).T))
whiten = axes / np.sqrt(variances)
names = ["raw", "centred", "whitened", "no dropout", "dropout twins", "paraphrases"]
places = np.array(
    [
        raw.place(scored=True),
        raw.place(lambda h: h - mean, scored=True),
        raw.place(lambda h: (h - mean) @ whiten, scored=True),
        *(trails.Trail(s, **cone_world).run(300).place(scored=True) for s in (settings[0], *settings[2:])),
    ]
)
table(places, "methods in the plane", rows=names, columns=["uniformity", "alignment", "Spearman"], digits=3)
check(places[0], "-0.406 0.168 0.182", "map: the raw cone is aligned and crowded")
check_true(bool(places[2, 0] < -3 and places[2, 1] > 1), "map: whitening spreads and loses alignment")
check_true(bool(places[4, 1] < places[3, 1] < places[2, 1]), "map: alignment: twins, then no dropout, then whitened")
check_true(bool((np.diff(places[[0, 2, 4, 5], 2]) > 0).all()), "map: Spearman rises raw, whitened, twins, paraphrases")
reported = ["BERT-base, first-last average", "BERT-base, flow", "BERT-base, whitening"]
reported += ["SimCSE unsupervised, BERT-base", "SimCSE supervised, BERT-base"]
for key in reported:
    quoted(f"{TABLE_5_AVERAGE[key]:.2f}", f"{key}, mean of seven STS sets", source="SimCSE Table 5")
erratum_quoted(
    right="trails: Figure 2, map of models: Figure 3", lesson="trails: Figure 3, map of models: Figure 2",
    source="SimCSE, captions of Figures 2 and 3", id="figures-swapped", where="ch. 3, the map of the field",
    says="cites the training trails as Figure 3 and the map of models as Figure 2",
    why="The captions in the paper are the other way round.",
)
# A map after the fact need not pay. Keep only the meaning block of the raw vectors: both numbers improve.
meaning = slice(trails.OFFSET_UNITS, trails.OFFSET_UNITS + trails.LATENTS * trails.COPIES)
w1, w2 = raw.world.left, raw.world.right
whole = np.array([uniformity(w1), alignment(w1, w2)])
cut = np.array([uniformity(w1[:, meaning]), alignment(w1[:, meaning], w2[:, meaning])])
table([whole, cut], "raw vectors", rows=["all units", "meaning only"], columns=["uniformity", "alignment"])
erratum_claim(
    bool((cut < whole).all()), id="post-hoc-trade", where="ch. 3, where real models sit",
    says="a map applied to frozen embeddings can only buy uniformity with alignment",
    right="dropping offset and nuisance units improves both at once; flow and whitening do trade, in the paper",
    why="A map that removes what paraphrases do not share brings them closer and spreads the rest.",
)

# %% An instrument: two numbers from any encoder
# Positive pairs that people call equivalent, single sentences from the same source, evaluation mode. The mode matters:
# with dropout left on, even equal sentences look misaligned.
from grammar import random_frame, say, vocabulary  # noqa: E402
from small_encoder import Masks, SmallEncoder, view_labels  # noqa: E402


def align_uniform(encode, pairs, singles):
    """(alignment, uniformity): encode maps sentences to rows; dropout must be off in it."""
    left, right = zip(*pairs, strict=True)
    return alignment(encode(left), encode(right)), uniformity(encode(singles))


story = np.random.default_rng(5)
frames = [random_frame(story) for _ in range(60)]
pairs = [(say(f, story), say(f, story)) for f in frames]
singles = sorted({say(random_frame(story)) for _ in range(80)})
small = SmallEncoder(vocabulary(), dtype=np.float64)
measured = align_uniform(small.encode, pairs, singles)
left, right = (normalize(small.encode(side))[0] for side in zip(*pairs, strict=True))
check_close(measured[0], 2 - 2 * (left * right).sum(axis=1).mean(), 1e-12, "grammar paraphrases: alignment by cosines")
rows, _ = normalize(small.encode(singles))
a, b = np.triu_indices(len(rows), 1)
by_pairs = np.log(np.exp(-2 * ((rows[a] - rows[b]) ** 2).sum(axis=1)).mean())
check_close(measured[1], by_pairs, 1e-12, "grammar sentences: uniformity over distinct pairs")
same = small.rows([f for f, _ in pairs])
noisy, _ = small.forward([*same, *same], Masks(0, 0, 0.1), view_labels(len(same)))
clean, _ = small.forward([*same, *same], None, view_labels(len(same)))
left_on = alignment(noisy[: len(same)], noisy[len(same) :])
check(alignment(clean[: len(same)], clean[len(same) :]), "0.000000", "equal sentences, dropout off: alignment")
erratum_claim(
    left_on > 0.02, id="evaluation-mode", where="ch. 3, code for the two numbers",
    says="measures alignment with the model in whatever mode it is in",
    right="switch to evaluation mode first; with dropout left on, equal sentences are not aligned",
    why="Training mode adds twin noise to every distance, so the number is that of the noise too.",
)

# %% Diagnosis
# Read the two numbers against two yardsticks: unrelated rows (alignment / their mean squared distance is 1 for a random
# code) and the optimum for the width (uniformity / optimum is 1 for a full sphere). Every row below is produced on
# purpose and must be recognised.


def diagnose(pairs, singles, losses=None, alignments=None):
    """Name what is wrong with an embedding space. pairs: two (P, D) arrays; histories of training if there are any."""
    close, spread = alignment(*pairs), uniformity(singles)
    unrelated = 2 * (1 - mean_pair_cosine(singles))
    used = spread / (-4 + np.log(hyp0f1(singles.shape[1] / 2, 4.0)))
    if losses is not None and losses[-1] < 0.5 * losses[0] and alignments[-1] > alignments[0] + 0.05:
        return "silent failure"
    if used < 0.01:
        return "collapsed"
    if close / unrelated < 0.6:
        return "healthy" if used > 0.6 else "cone"
    return "scattered" if used > 0.6 else "untrained"


maker = np.random.default_rng(11)
noise = lambda *shape: maker.standard_normal(shape)  # noqa: E731
point = np.ones(16)
base = noise(300, 16)
good = runs["paraphrase"]
bad = runs["no dropout"]
spaces = {
    "collapsed": ((point + 1e-3 * base, point + 1e-3 * noise(300, 16)), point + 1e-3 * base),
    "cone": ((2 * point + base, 2 * point + base + 0.5 * noise(300, 16)), 2 * point + base),
    "scattered": ((base, noise(300, 16)), base),
    "untrained": ((2 * point + base, 2 * point + noise(300, 16)), 2 * point + base),
    "healthy": ((good.encode(good.world.left), good.encode(good.world.right)), good.encode(good.world.left)),
}
advice = {
    "collapsed": "no repulsion: negatives missing, or the loss ignores them",
    "cone": "never spread: train with InfoNCE, or whiten",
    "scattered": "a hash: positives teach nothing, look at the views",
    "untrained": "crowded, and the order in the crowd means nothing: train",
    "healthy": "go on",
}
lines = []
for name, (pair, single) in spaces.items():
    verdict = diagnose(pair, single)
    check_true(verdict == name, f"diagnosis: {name}")
    lines.append([f"{alignment(*pair):.3f}", f"{uniformity(single):.3f}", verdict, advice[name]])
quiet = diagnose(
    (bad.encode(bad.world.left), bad.encode(bad.world.right)), bad.encode(bad.world.left),
    bad.losses, paths["no dropout"][:, 1],
)
check_true(quiet == "silent failure", "diagnosis: the loss falls while alignment climbs")
lines.append([f"{ends[1, 1]:.3f}", f"{ends[1, 0]:.3f}", quiet, "identical views: is dropout on, masks fresh?"])
table(lines, "what two numbers say", rows=[*spaces, "no dropout"], columns=["align", "uniform", "is", "advice"])
