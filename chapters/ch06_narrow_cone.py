"""Chapter 6: the narrow cone."""

# %% [markdown]
# Question: why do two unrelated sentences come out alike in an encoder that was trained as a language model only,
# and what undoes it? First the symptom (a shared offset), then its source (the softmax and its rare tokens), then the
# repairs after the fact (centring, whitening), then what contrastive training does. The usual argument for the last
# step does not hold; it is taken apart and replaced by one that does.
#
# Letters: W (m, d) unit rows, one per sentence; Sum = sum of all entries of W W^T; lambda eigenvalues of W^T W,
# largest first; s singular values of W, lambda = s^2; tau temperature.

# %% A shared offset makes strangers look alike
import numpy as np
from cone_world import MEASURES, PRESETS, picture_of, presets, study
from lesson import (
    check,
    check_close,
    check_true,
    erratum,
    erratum_claim,
    erratum_quoted,
    full,
    numeric_gradient,
    quoted,
    recorded,
    table,
)
from quoted_tables import TABLE_5_AVERAGE
from rare_token_model import language_model

from nano_simcse import geometry
from nano_simcse.layers import normalize
from nano_simcse.losses import info_nce, masked_lm


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def offset_toy(offset, spread, centring):
    """Cosine of (offset, spread) and (offset, -spread), with their mean subtracted or not."""
    pair = np.array([[offset, spread], [offset, -spread]])
    a, b = unit(pair - pair.mean(axis=0) if centring else pair)
    return float(a @ b)


check(offset_toy(1, 0.3, False), "0.834862385", "offset 1, spread 0.3: cosine")  # (1 - 0.09) / (1 + 0.09)
check(offset_toy(1, 0.3, True), "-1", "offset 1, spread 0.3, centred: cosine")
offsets = np.array([0.0, 0.3, 1.0, 3.0])
table(
    [[offset_toy(o, 0.3, c) for o in offsets] for c in (False, True)],
    "cosine of the pair (offset, +-0.3)", rows=["as it is", "centred"], columns=offsets,
)
check(offset_toy(0.3, 0.3, False), "0", "offset 0.3: the pair is orthogonal where offset and spread are equal")

# %% The same in 768 dimensions
# x = a e + g with g standard normal: E[x . y] = a^2 and E|x|^2 = a^2 + d, so cos = a^2 / (a^2 + d) up to d^(-1/2).
# Without offset, cosines scatter around 0 with standard deviation 1 / sqrt(d). A mean over m (m - 1) / 2 pairs that
# are uncorrelated scatters by 1 / sqrt(d m (m - 1) / 2): a measured mean cosine of 0.4 is never chance.
# The words of ELMo, BERT and GPT-2 in context form such cones in every layer but ELMo's input (Ethayarajh, arXiv
# 1909.00512).
rng = np.random.default_rng(60)
m, d = 400, 768
g = rng.standard_normal((m, d))
a = np.sqrt(d * 0.7 / 0.3)
e = np.full(d, 1 / np.sqrt(d))
isotropic, cone = geometry.mean_pair_cosine(g), geometry.mean_pair_cosine(g + a * e)
check_close(cone, a**2 / (a**2 + d), 0.005, "Gaussian with offset: mean pair cosine a^2 / (a^2 + d) = 0.7")
check(1 / np.sqrt(d * m * (m - 1) / 2), "1.277e-4", "standard deviation of the mean pair cosine without offset")
check_true(abs(isotropic) < 4 * 1.277e-4, "without offset the mean pair cosine is 0 within four of these")
# Random directions do not cure it: a random projection to k dimensions keeps each cosine up to about 1 / sqrt(k).
projected = (g + a * e) @ rng.standard_normal((d, 256))
check_close(geometry.mean_pair_cosine(projected), cone, 0.1, "a random projection to 256 dimensions keeps the cone")
erratum_quoted(
    right="contextual words (tokens)", lesson="words and sentences", source="Ethayarajh, arXiv 1909.00512",
    id="what-the-anisotropy-study-measured", where="ch. 6, the measurement",
    says="the cited anisotropy study measured randomly chosen words and sentences",
    why="It samples word representations in context; sentence pairs are not among its measurements.",
)

# %% Where it comes from: the push on a rare token
# Scores z_v = h . w_v and loss -log p_target give dL/dw_v = (p_v - 1[v = target]) h. A token that is hardly ever the
# target sees p_v h only: each step moves its row by -p_v h, against whatever hidden states came along, hence against
# their mean. Every rare row sees the same mean, so all go the same way.
rng = np.random.default_rng(61)
h = rng.standard_normal((6, 5)) + np.array([3.0, 2.0, 0, 0, 0])  # hidden states with a common part
w = rng.standard_normal((8, 5))
targets = np.array([0, 1, 0, 2, 1, 0])  # tokens 3 ... 7 are never asked for
loss, backward = masked_lm(h @ w.T, targets)
dw = backward().T @ h
p = np.exp(h @ w.T)
p /= p.sum(axis=1, keepdims=True)
check_close(dw[3:], (p[:, 3:] / 6).T @ h, 1e-12, "rows of tokens that are never the target: gradient is mean p_v h")
check_close(dw, numeric_gradient(lambda v: masked_lm(h @ v.T, targets)[0], w), 1e-7, "softmax rows: differences agree")
check_true(bool(np.all(-dw[3:] @ h.mean(axis=0) < 0)), "each rare row moves away from the mean hidden state")

# %% A tiny softmax language model
# 100 contexts and 100 tokens with free 16-dimensional vectors, trained together (rare_token_model.py). Knobs: the
# exponent of the frequency law (0: all tokens equally often), steps, tokens, width, seed.
rare_tokens, equal_tokens = language_model(zipf=1.0), language_model(zipf=0.0)
table(
    [*rare_tokens[[0, 5, -1]], *equal_tokens[[0, 5, -1]]], "rare rows, hidden states, and their means",
    rows=[f"{law}, step {s}" for law in ("frequency 1 / rank", "all equal") for s in (0, 200, 400)],
    columns=["pair cos, rare rows", "pair cos, hidden", "cos of means"], digits=3,
)
check_true(rare_tokens[-1, 0] > 0.5 > 0.2 > rare_tokens[0, 0], "rare rows gather in a cone")
check_true(rare_tokens[-1, 2] < -0.9, "the cone points against the mean hidden state")
check_true(rare_tokens[-1, 1] > 0.25, "hidden states drift too: both halves share one axis")
check_true(np.abs(equal_tokens[-1]).max() < 0.2, "with equal frequencies nothing gathers")


# %% Repairs after the fact: centring and whitening
# Sigma = U Lambda U^T is the covariance of the rows. y = (x - mu) U Lambda^(-1/2) has covariance
# Lambda^(-1/2) U^T Sigma U Lambda^(-1/2) = I. The inverse is x = y Lambda^(1/2) U^T + mu.
def whitening(x, cut=1e-10):
    """(mu, matrix (d, k), inverse (k, d)); directions with eigenvalue <= cut times the largest are left out."""
    mu = x.mean(axis=0)
    variance, u = np.linalg.eigh((x - mu).T @ (x - mu) / len(x))
    kept = variance > cut * variance.max()
    return mu, u[:, kept] / np.sqrt(variance[kept]), (u[:, kept] * np.sqrt(variance[kept])).T


rng = np.random.default_rng(62)
x = rng.standard_normal((300, 8)) @ rng.standard_normal((8, 8)) + 3
mu, matrix, inverse = whitening(x)
y = (x - mu) @ matrix
check_close(y.T @ y / len(y), np.eye(8), 1e-10, "whitened rows have covariance I")
check_close(y @ inverse + mu, x, 1e-10, "whitening can be undone")
# What breaks: with fewer rows than dimensions some variances are 0, and rounding noise is blown up to unit size.
few = x[:5]
variance = np.linalg.eigvalsh(np.cov(few.T, bias=True))[::-1]
check_true(bool(np.abs(variance[4:]).max() < 1e-12 * variance[0]), "five rows vary in four of eight directions")
mu5, matrix5, inverse5 = whitening(few)
check(matrix5.shape[1], "4", "five rows: directions kept by the cut")
check_close((few - mu5) @ matrix5 @ inverse5 + mu5, few, 1e-10, "five rows: the cut loses nothing of them")

# %% What the paper reports for them
# BERT-flow wants the same by other means: an invertible network is trained to turn the embeddings into a standard
# Gaussian. Encoder frozen in both, and both stop at the same height: they can turn and
# rescale what is there, not add to it.
raw_bert, flow, white, trained = (
    quoted(f"{TABLE_5_AVERAGE[row]:.2f}", f"STS average: {row}", source="SimCSE Table 5")
    for row in ("BERT-base, first-last average", "BERT-base, flow", "BERT-base, whitening",
                "SimCSE unsupervised, BERT-base")
)
check(np.array([white, flow]) - raw_bert, "9.58 9.85", "points gained by whitening and by flow")
check(trained - np.array([white, flow]), "9.97 9.70", "points by which both fall short of SimCSE")

# %% The contrastive loss, its repulsive half
# -log p_ii = -s_ii / tau + log sum_j exp(s_ij / tau). The second term, as a mean over the m rows:
#     R = (1/m) sum_i log (1/m) sum_j exp(s_ij / tau)
# Its gradient: dR/ds_ij = q_ij / (m tau), q_ij the row's softmax; s = W W^T, so dR/dW = (Q + Q^T) W / (m tau).


def repulsion(w, tau):
    """(R, dR/dw) for rows w of any length, which are scaled to unit length first."""
    rows, back = normalize(w)
    s = rows @ rows.T
    e = np.exp((s - 1) / tau)
    q = e / e.sum(axis=1, keepdims=True)
    value = 1 / tau + np.mean(np.log(e.mean(axis=1)))
    return value, back((q + q.T) @ rows / (len(w) * tau))


def on_circle(*degrees):
    angle = np.deg2rad(degrees)
    return np.column_stack([np.cos(angle), np.sin(angle)])


cone4, quarter, square = on_circle(0, 10, 20, 30), on_circle(0, 30, 60, 90), on_circle(0, 90, 180, 270)
loose = cone4 * np.array([[1.0], [2.0], [0.5], [3.0]])
check_close(repulsion(loose, 0.5)[1], numeric_gradient(lambda v: repulsion(v, 0.5)[0], loose), 1e-7,
            "repulsion: differences agree")
loss, backward = info_nce(cone4, cone4, 0.5)  # identical views: s_ii = 1
check_close(loss, repulsion(cone4, 0.5)[0] + np.log(4) - 1 / 0.5, 1e-12, "InfoNCE of equal views is R + log m - 1/tau")
check_close(sum(backward()), repulsion(cone4, 0.5)[1], 1e-10, "and its gradient is that of R: the pull is zero")

# %% Three clouds by hand
# W^T W = [[xx, xy], [xy, yy]] for four points in the plane; its eigenvalues are (T +- sqrt(T^2 - 4 D)) / 2 with trace
# T = xx + yy and determinant D = xx yy - xy^2. T = m always: unit rows.
xx, yy, xy = cone4[:, 0] @ cone4[:, 0], cone4[:, 1] @ cone4[:, 1], cone4[:, 0] @ cone4[:, 1]
check(cone4, "1 0; 0.98481 0.17365; 0.93969 0.34202; 0.86603 0.50000", "cone: rows")
check(cone4.sum(axis=0), "3.790525778 1.015668321", "cone: column sums")
check([xx, yy, xy], "3.602868532 0.397131468 0.925416578", "cone: xx, yy, xy")
check(xx + yy, "4", "cone: trace")
erratum(xx * yy, right="1.430812", lesson="1.43075", id="cone-determinant", where="ch. 6, configuration A",
        says="xx yy = 1.43075 and the determinant is 0.57436",
        why="The printed factors give 1.430808; the eigenvalues are right.", label="cone: xx yy")
check(xy**2, "0.856395844", "cone: xy squared")
erratum(xx * yy - xy**2, right="0.574417", lesson="0.57436", id="cone-determinant",
        why="The slip in the product is carried over.", label="cone: determinant")


def eigenvalues(w):
    """Of W^T W, the largest first."""
    return np.linalg.eigvalsh(w.T @ w)[::-1]


T, D = xx + yy, xx * yy - xy**2
by_hand = (T + np.array([1, -1]) * np.sqrt(T**2 - 4 * D)) / 2
check(by_hand, "3.850833157 0.149166843", "cone: eigenvalues from trace and determinant")
check_close(eigenvalues(cone4), by_hand, 1e-12, "cone: eigenvalues by the solver")
check(np.sqrt(by_hand), "1.962353984 0.386221236", "cone: singular values")
check(np.sqrt(by_hand[0] / by_hand[1]), "5.081", "cone: condition number of W; 25.8 is that of W^T W")
check(quarter[:, 0] @ quarter[:, 1], "0.866025404", "quarter turn: xy, with xx = yy = 2")

# %% Effective rank
# The shares q_k = lambda_k / m add up to 1. Read as probabilities they have an entropy H = -sum q_k log q_k, and
# exp H is the number of equal shares with the same entropy: a count of the directions in use.
q = by_hand / 4
check(q, "0.9627 0.0373", "cone: share of each direction")
check(q * np.log(q), "-0.036587567 -0.122651848", "cone: q log q")
H = -(q * np.log(q)).sum()
erratum(H, right="0.159239", lesson="0.1593", id="cone-entropy", where="ch. 6, effective rank",
        says="the spectral entropy of the cone is 0.1593", why="The shares were rounded before the logarithm.",
        label="cone: spectral entropy")
check(np.exp(H), "1.172618655", "cone: effective rank")
check_close(geometry.effective_rank(cone4), np.exp(H), 1e-12, "cone: the package's effective rank")
check(geometry.effective_rank(quarter), "1.815249165", "quarter turn: effective rank")
check(geometry.effective_rank(square), "2.000000", "square: effective rank")


# %% The cone, repaired
# Knobs: which repair, and whether rows go back to unit length afterwards (cosine similarity does that anyway).
# "contrastive" follows the gradient of R, which is all InfoNCE has for points without a second view.
def descend(w, tau, steps, lr):
    """Gradient descent on R, rows back on the sphere after each step; every cloud on the way."""
    path = [unit(w)]
    for _ in range(steps):
        path.append(unit(path[-1] - lr * repulsion(path[-1], tau)[1]))
    return path


def repaired(points, preset, renormalise=True):
    """points (m, d) under one of PRESETS."""
    mu, matrix, _ = whitening(points)
    if preset == "contrastive":
        return descend(points, tau=0.5, steps=400, lr=2.0)[-1]
    moved = {"raw cone": points, "+ centring": points - mu, "+ whitening": (points - mu) @ matrix}[preset]
    return unit(moved) if renormalise else moved


# %% All clouds in one table
# Besides the three: 0/180/0/180 (two opposite points, twice), and the cone after each repair.
centred4, white4, trained4 = (repaired(cone4, preset) for preset in PRESETS[1:])
opposite = on_circle(0, 180, 0, 180)
clouds = {"cone": cone4, "quarter turn": quarter, "square": square, "0/180/0/180": opposite,
          "cone, centred": centred4, "cone, whitened": white4, "cone, contrastive": trained4}


def total(w):
    """Sum of all cosines = |sum of the rows|^2 = m^2 |mean|^2: small exactly when the rows are centred."""
    return float((w.sum(axis=0) ** 2).sum())


def summary(w):
    lam = eigenvalues(w)
    return [total(w), *lam, lam[0] / lam[1] if lam[1] > 1e-12 else np.inf, geometry.uniformity(w),
            geometry.uniformity(w, include_self=True), geometry.effective_rank(w),
            geometry.mean_pair_cosine(w)]


S = np.array([summary(w) for w in clouds.values()])
table(S, "four unit vectors in the plane", rows=clouds,
      columns=["Sum", "lambda1", "lambda2", "ratio", "uniform", "with self", "eff. rank", "mean cos"])
check_close([np.sum(w @ w.T) for w in clouds.values()], S[:, 0], 1e-12, "Sum is m^2 |mean|^2", atol=1e-12)
check(S[:3, 0], "15.399667809 11.196152423 0.000000000", "Sum: cone, quarter turn, square")
check(S[:3, 1], "3.850833157 2.866025404 2.000000000", "lambda1: cone, quarter turn, square")
check(S[:3, 2], "0.149166843 1.133974596 2.000000000", "lambda2: cone, quarter turn, square")
check(S[:3, 3], "25.815611 2.527416 1.000000", "lambda1 / lambda2: cone, quarter turn, square")
check(S[:3, 4], "-0.186412362 -1.076647141 -4.396348967", "uniformity: cone, quarter turn, square")
check(S[:3, 5], "-0.136451687 -0.682104299 -1.349994505", "uniformity with self pairs: cone, quarter turn, square")
check(S[0, 4] - S[2, 4], "4.209936606", "uniformity: from cone to square, nats")
check(S[:3, 7], "0.949972317 0.599679369 -0.333333333", "mean pair cosine: cone, quarter turn, square")
by_pair = [np.mean([w[i] @ w[j] for i in range(4) for j in range(i)]) for w in clouds.values()]
check_close(S[:, 7], by_pair, 1e-12, "the package's mean pair cosine: the mean over the six pairs")
check_close((S[:, 0] - 4) / 12, by_pair, 1e-12, "and it is (Sum - m) / (m (m - 1)): -1/3 once centred")
check([S[3, 0], S[3, 1], S[3, 6]], "0.0000 4.0000 1.0000", "0/180/0/180: Sum, lambda1, effective rank")
check(S[3, 4], "-1.097941588", "0/180/0/180: uniformity")
check(S[4, :3], "0.0508 3.9346 0.0654", "cone, centred: Sum, lambda1, lambda2")

# %% The argument that does not hold
# Step 1, Jensen: log of a mean of exponentials >= mean of the exponents, so tau m^2 R >= sum_ij s_ij = Sum.
# Step 2, Merikoski: for entries >= 0, Sum >= lambda1. (Proof: the top eigenvector x may be taken >= 0 with length 1,
# so x_i x_j <= 1 and lambda1 = sum s_ij x_i x_j <= sum s_ij.)
# Conclusion drawn: a small R means a small Sum, a small Sum a small lambda1, and with the trace pinned at m a flat
# spectrum. Step 1 holds:
tau1 = [4**2 * 1.0 * repulsion(w, 1.0)[0] for w in (cone4, quarter, square)]
tau005 = [4**2 * 0.05 * repulsion(w, 0.05)[0] for w in (cone4, quarter, square)]
check(tau1, "15.412424500 11.880512315 3.843664223", "tau m^2 R at tau = 1: cone, quarter turn, square")
check(tau005, "15.597169152 14.968962710 14.890964514", "tau m^2 R at tau = 0.05: the self term hides the rest")
check_true(bool(np.all(np.array([tau1, tau005]) >= S[:3, 0])), "Jensen: each is at least Sum")
# Step 2 says nothing: with cosines >= 0 the sum is at least its diagonal, m, and lambda1 never exceeds the trace, m.
# So Sum >= m >= lambda1: this bound never says more than the trace does. (A sharper one holds there: 0 <= s <= 1 gives
# sum_k lambda_k^2 = sum_ij s_ij^2 <= Sum, so lambda1 <= sqrt(Sum).)
rng = np.random.default_rng(63)
cases = unit(np.abs(rng.standard_normal((20000, 3)))).reshape(5000, 4, 3)
gram = cases @ cases.transpose(0, 2, 1)
ratios = gram.sum(axis=(1, 2)) / np.linalg.eigvalsh(gram)[:, -1]
check_true(bool(ratios.min() > 1 and np.all(gram.sum(axis=(1, 2)) >= 4)),
           "5,000 clouds with cosines >= 0: Sum >= m >= lambda1")
sharper = np.linalg.eigvalsh(gram)[:, -1] / np.sqrt(gram.sum(axis=(1, 2)))
check_true(0.99 < sharper.max() <= 1, "5,000 clouds with cosines >= 0: lambda1 <= sqrt(Sum), nearly reached")
erratum_claim(
    bool(np.all(gram.sum(axis=(1, 2)) >= 4) and S[0, 0] > 4 >= S[0, 1]),
    right="Sum >= lambda1 holds for non-negative cosines but says less than lambda1 <= m; it can fail otherwise; "
    "a small Sum means a small mean, not a flat spectrum",
    id="sum-flattens-the-spectrum", where="ch. 6, step 5",
    says="the sum of the cosines bounds lambda1, so lowering it flattens the spectrum",
    why="Sum >= m >= lambda1 for any cosines >= 0, so the bound never bites before the trace does.",
    label="the bound is weaker than the trace",
)
# Beyond non-negative cosines it is false; two vectors at 120 degrees, and the square itself:
pair = on_circle(0, 120)
check([total(pair), eigenvalues(pair)[0]], "1.0000 1.5000", "two vectors at 120 degrees: Sum, lambda1")
signed = unit(rng.standard_normal((20000, 3))).reshape(5000, 4, 3)
signed_gram = signed @ signed.transpose(0, 2, 1)
share = float(np.mean(signed_gram.sum(axis=(1, 2)) < np.linalg.eigvalsh(signed_gram)[:, -1]))
print(f"\n  four random directions in space: Sum < lambda1 in {share:.0%} of 5,000 clouds")
check_true(0.2 < share < 0.6, "random directions: the bound fails in a large share of clouds")
erratum_claim(total(square) < eigenvalues(square)[0] and total(pair) < eigenvalues(pair)[0],
              right="needs cosines >= 0", id="sum-flattens-the-spectrum",
              why="The square, where the argument should arrive, has Sum 0 and lambda1 2.",
              label="the bound fails for the square and at 120 degrees")
# And the conclusion fails for a cone that starts with cosines >= 0: centring drives Sum to nearly 0, and lambda1 UP.
erratum_claim(S[4, 0] < 0.01 * S[0, 0] and S[4, 1] > S[0, 1] and S[4, 3] > 2 * S[0, 3],
              right="Sum 15.40 -> 0.05, lambda1 3.851 -> 3.935", id="sum-flattens-the-spectrum",
              why="The centred cone lies on one line through the origin.",
              label="centring the cone: Sum collapses and lambda1 rises")
check(S[4, 3], "60.2", "cone, centred: ratio, up from 25.8")
# Even where all cosines stay >= 0, of two clouds the one with the smaller Sum can have the larger lambda1:
one_apart = np.array([[1.0, 0, 0, 0]] * 3 + [[0.0, 1, 0, 0]])
even = np.linalg.cholesky(np.full((4, 4), 0.55) + 0.45 * np.eye(4))
check([total(one_apart), eigenvalues(one_apart)[0]], "10.0 3.00", "three equal, one apart: Sum, lambda1")
check([total(even), eigenvalues(even)[0]], "10.6 2.65", "all cosines 0.55: larger Sum, smaller lambda1")
erratum_claim(S[3, 0] < 1e-9 and S[3, 6] < 1.001 and S[3, 4] > S[2, 4] and S[4, 4] < S[0, 4] and S[4, 1] > S[0, 1],
              right="they can disagree: 0/180/0/180 has Sum 0, effective rank 1 and uniformity -1.098",
              id="three-views-of-one-thing", where="ch. 6, the three configurations",
              says="Sum, lambda1 and uniformity always move together",
              why="Sum sees the mean only; the spectrum sees second moments; uniformity sees all of them.",
              label="Sum, lambda1 and uniformity can disagree")
# What Sum does bound is lambda1 from BELOW (Rayleigh: x = (1, ..., 1) / sqrt(m)): lambda1 >= Sum / m.
# A small Sum is necessary for a flat spectrum, not sufficient.
check(S[0, 0] / 4, "3.849916952", "cone: Sum / m, just below lambda1 = 3.8508")
check_true(bool(np.all(S[:, 1] >= S[:, 0] / 4 - 1e-12)), "Rayleigh: lambda1 >= Sum / m in every cloud")

# %% What flattens the spectrum instead
# Expand R in 1/tau (log of a mean of exponentials = mean + variance / 2 + ...), row by row:
#     R = Sum / (m^2 tau) + (1 / (2 tau^2)) [ sum_ij s_ij^2 / m^2 - (1/m) sum_i (mean_j s_ij)^2 ] + O(tau^-3)
# First order: the mean. Second order, once the mean is gone: the sum of SQUARED cosines, which is
#     sum_ij s_ij^2 = trace (W W^T)^2 = sum_k lambda_k^2  >=  (sum_k lambda_k)^2 / d = m^2 / d,
# with equality exactly for a flat spectrum. That is the term that flattens; higher even moments join at small tau.


def two_orders(w, tau):
    s = w @ w.T
    return s.mean() / tau + ((s**2).mean() - (s.mean(axis=1) ** 2).mean()) / (2 * tau**2)


errors = [abs(repulsion(quarter, t)[0] - two_orders(quarter, t)) for t in (8.0, 16.0)]
check(errors[0] / errors[1], "8.", "two orders: doubling tau divides what is left by 2^3")
for name, w in clouds.items():
    check_close(((w @ w.T) ** 2).sum(), (eigenvalues(w) ** 2).sum(), 1e-12, f"{name}: squares of s and of lambda")
check([(eigenvalues(w) ** 2).sum() for w in (square, opposite)], "8.0000 16.0000",
      "square and 0/180/0/180: sum of lambda^2, least is m^2 / d = 8")
check([repulsion(w, 1.0)[0] for w in (square, opposite)], "0.240229 0.433781", "both have Sum 0, R prefers the square")

# From two opposite pairs, 4 degrees apart, Sum stays 0 all the way (opposite rows get opposite gradients), so the
# first-order argument has nothing to say; yet the spectrum flattens completely.
path = descend(on_circle(0, 180, 4, 184), tau=1.0, steps=300, lr=0.5)
sums, tops = np.array([total(w) for w in path]), np.array([eigenvalues(w)[0] for w in path])
check_true(bool(np.abs(sums).max() < 1e-20), "descent between opposite pairs: Sum is 0 throughout")
check([tops[0], tops[-1]], "3.9951 2.0000", "descent between opposite pairs: lambda1, first and last")
check(S[6, :3], "0.0000 2.0000 2.0000", "cone, contrastive: ends flat, Sum, lambda1, lambda2")

# %% Is whitening flat?
# Before rows go back to the sphere, yes; after, no. And flat in second moments only.
check(eigenvalues(repaired(cone4, "+ whitening", renormalise=False)), "4.0000 4.0000",
      "cone, whitened, rows not rescaled: eigenvalues")
check(S[5, 1:3], "2.376780386 1.623219614", "cone, whitened, rows rescaled: eigenvalues")
erratum_claim(S[5, 1] / S[5, 2] > 1.4, right="4 and 4 before the rows are rescaled, 2.38 and 1.62 after",
              id="whitening-is-flat", where="ch. 6, the simulation", says="whitening gives a perfectly flat spectrum",
              why="Cosine similarity rescales the rows, and that undoes part of it.",
              label="the whitened cone is not flat on the sphere")
erratum_claim(S[4, 4] < -1 and S[4, 6] < S[0, 6],
              right="uniformity -0.186 -> -1.203, but effective rank 1.173 -> 1.087",
              id="centring-recovers-most", where="ch. 6, the simulation",
              says="centring alone recovers most of the improvement",
              why="It depends on the data: the mean of this cone goes, and what is left is one line.",
              label="centring improves uniformity of the cone and worsens its spectrum")
check([S[4, 4], S[4, 6]], "-1.203 1.087", "cone, centred: uniformity, effective rank")

# %% Cone, centred, whitened, contrastive: with meanings this time
# 16-dimensional embeddings of sentence vectors that share a large offset and hold a meaning (6 numbers, written
# redundantly), wording noise, and one loud irrelevant number ("junk"). Knobs of presets(): seed, offset, junk, steps.
# Score: Spearman correlation of cosine and graded similarity of meaning.
def for_embeddings(rows):
    return whitening(rows)[:2]


noisy, clean = (study(for_embeddings, junk, seeds=[0, 1]) for junk in (1.0, 0.0))
table(noisy, "with junk, seeds 0 and 1", rows=PRESETS, columns=MEASURES, digits=3)
table(clean, "without junk, seeds 0 and 1", rows=PRESETS, columns=MEASURES, digits=3)
score = noisy[:, 4], clean[:, 4]
check_true(noisy[0, 0] > 0.5 and abs(noisy[1, 0]) < 0.01, "with junk: centring takes the mean cosine from > 0.5 to 0")
check_true(bool(noisy[:, 3].argmax() == 2 and clean[:, 3].argmax() == 2), "whitening has the flattest spectrum in both")
check_true(bool(score[0][0] < score[0][1] < score[0][2] < score[0][3]), "with junk: raw < centred < whitened < trained")
check_true(bool(score[1][2] < score[1][1] < score[1][3]), "without junk: whitened < centred < trained")
check_true(bool(noisy[3, 1] < noisy[2, 1] and clean[3, 1] < clean[2, 1]), "contrastive training keeps positives closer")
picture = picture_of(*presets(for_embeddings))  # what figures/narrow_cone.py draws
check_true(picture["spectra"][2].min() > 0.6 > picture["spectra"][0, 1], "spectra: whitened flat, the cone steep")
# Flat is not the goal. Whitening equalises every direction, wording noise included; the loss has an attraction term
# that knows which directions two views of a sentence share.
columns = ["preset", *[f"{name}, junk" for name in MEASURES[2:]], *[f"{name}, none" for name in MEASURES[2:]]]
last = recorded(
    "cone presets", columns,
    [
        ["raw cone", -1.403, 4.475, 0.164, -1.104, 3.808, 0.366],
        ["+ centring", -2.715, 8.403, 0.219, -3.237, 11.658, 0.48],
        ["+ whitening", -3.512, 15.687, 0.369, -3.512, 15.681, 0.392],
        ["contrastive", -3.272, 13.086, 0.599, -3.26, 13.842, 0.693],
    ],
    seeds="0 to 5",
)
if full():
    again = np.hstack([study(for_embeddings, junk, range(6))[:, 2:] for junk in (1.0, 0.0)])
    check_close(again, last, 1e-3, "six seeds give the recorded results")


# %% [markdown]
# The loss that trained it is chapter 1's; the world is chapter 3's with a larger offset. What the paper shows for BERT
# has this shape too: a steep spectrum before, a flatter one after training. How many directions raw BERT uses is not
# something a chapter without BERT can check; the report below answers it for whatever encoder is at hand.


# %% A report for any encoder
def report(x):
    """Is this cloud a cone? Five readings of the embeddings x (m, d)."""
    rows = unit(x)
    cosines = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
    shares = np.linalg.svd(rows, compute_uv=False) ** 2 / len(rows)
    shares = shares[shares > 0]
    return {
        "mean cos": cosines.mean(),
        "|mean|": np.linalg.norm(rows.mean(axis=0)),
        "s6 / s1": np.sqrt(shares[min(5, len(shares) - 1)] / shares[0]),
        "eff. rank": np.exp(-(shares * np.log(shares)).sum()),
        "centred": geometry.effective_rank(x, centre=True),
    }


rng = np.random.default_rng(64)
direction = np.eye(64)[0]
noise = rng.standard_normal((500, 64))
signs = np.where(np.arange(500) % 2 == 0, 1.0, -1.0)[:, None]
examples = {
    "even": noise,  # fine
    "cone": noise + 10 * direction,  # high mean cosine, full centred rank: centring would help
    "point": 1e-3 * noise + direction,  # collapsed
    "two points": 1e-3 * noise + signs * direction,  # mean cosine 0 and collapsed all the same
    "line": noise * np.where(np.arange(64) < 2, 1.0, 0.01),  # few directions used
}
reports = {name: report(cloud) for name, cloud in examples.items()}
table([list(r.values()) for r in reports.values()], "500 rows in 64 dimensions",
      rows=reports, columns=reports["even"], digits=3)
verdicts = {name: geometry.collapse_guard(cloud) for name, cloud in examples.items()}
for name, verdict in verdicts.items():
    print(f"    {name:10}  {'; '.join(verdict.reasons) or 'no collapse'}")
thresholds = [
    ["mean cosine", "0 within 1/sqrt(d m^2/2)", "above 0.4: a cone (a rule of thumb)"],
    ["length of the mean", "about 1/sqrt(m)", "near 1: one point; Sum = m^2 |mean|^2"],
    ["effective rank", "near min(m, d)", "near 1: a cone, a point or a line"],
    ["centred rank", "near min(m - 1, d)", "small: collapse, whatever the mean cosine says"],
]
table(thresholds, "how to read it", columns=["reading", "even cloud", "warning"])
erratum_quoted(right="10", lesson="9", source="a count of that listing, without its import", id="nine-lines",
               where="ch. 6, the code", says="the spectrum report takes nine lines",
               why="The listing holds ten statements.", label="statements of the spectrum report")
package = geometry.geometry_report(examples["cone"])
check_close(list(reports["cone"].values())[:2], [package.mean_pair_cosine, package.norm_of_mean], 1e-10,
            "the package's report: mean cosine and length of the mean")
check_close(reports["cone"]["eff. rank"], package.effective_rank, 1e-10, "the package's report: effective rank")
check_close(reports["even"]["s6 / s1"], geometry.spectrum_decay(examples["even"])[5], 1e-10, "the package's decay")
check_true(reports["cone"]["mean cos"] > 0.4 and reports["cone"]["centred"] > 40, "cone: high cosine, not collapsed")
check_true(abs(reports["two points"]["mean cos"]) < 0.01, "two points: the mean cosine looks healthy")
check_true([v.collapsed for v in verdicts.values()] == [False, False, True, True, True], "the package's collapse guard")
check(1 / np.sqrt(500), "0.0447", "length of the mean of 500 even rows, expected")
check_close(reports["even"]["|mean|"], 1 / np.sqrt(500), 0.2, "and measured")
