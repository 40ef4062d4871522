"""Chapter 15: the negatives are half of the loss."""

# %% [markdown]
# Question: a contrastive loss compares a row with "the others". Which others?
# Attempt: whatever stands in the batch. What breaks: three ways of reading "the batch" are three losses; twins of a row
# stand among its negatives; a mined list that is only reordered changes nothing; a mask that is a large number stops
# masking. Repair: the candidate set gets a name, the sampler becomes an object, removal means -inf, and what cannot be
# seen in the loss is reported beside it.
#
# Letters: a anchors, p positives, B rows, tau temperature, s cosine, w_ij softmax weight of candidate j for anchor i,
# q_j probability that a sampler draws j; in recommendation p(i|u), the chance that user u takes item i.

# %% One batch, three candidate sets
import numpy as np
from lesson import (
    check,
    check_close,
    check_true,
    erratum,
    erratum_claim,
    full,
    numeric_gradient,
    quoted,
    recorded,
    table,
)
from negatives_runs import (
    HARD_SHARES,
    QUEUES,
    QueueRun,
    hard_share_study,
    negatives_by_name,
    peak_bytes,
    plain_loss,
    sampled_table,
    stage_milliseconds,
    temperature_study,
)
from negatives_slips import (
    Reordered,
    bytes_of_log_sum_exp,
    bytes_of_three_arrays,
    geometry_from_shifted,
    masked_by,
    mined_after_reset,
    unit,
)

from nano_simcse.errors import (
    DegenerateTemperature,
    InputError,
    RepresentationCollapse,
    TooFewNegatives,
)
from nano_simcse.evaluation import recall_at_k
from nano_simcse.geometry import alignment, effective_rank, mean_pair_cosine, uniformity
from nano_simcse.losses import FusedInfoNCE, candidate_info_nce, pair_mask
from nano_simcse.losses.candidate_info_nce import pair_log_weights
from nano_simcse.losses.fused_info_nce import block_geometry
from nano_simcse.memory import MemoryBank, MemoryQueue
from nano_simcse.mining import hardest, mine
from nano_simcse.negatives import InBatchSampler, MinedSampler, NegativeSampler, PopularitySampler, UniformSampler
from nano_simcse.objective import ContrastiveObjective, refuse_collapse

B, tau = 32, 0.07
rng = np.random.default_rng(0)
a = rng.standard_normal((B, 16))
p = a + 0.5 * rng.standard_normal((B, 16))
NAMES = ("cross", "same-view", "both")


def excluded(name, n):
    """bool (n, 2 n) over the columns [positives | anchors]: what is neither the positive nor a negative."""
    eye = np.eye(n, dtype=bool)
    return np.hstack([np.full((n, n), name == "same-view") & ~eye, eye | (name == "cross")])


def loss_rows(a, p, name, temperature):
    """Row losses and softmax from nothing: -log softmax over [positives | anchors], -inf where excluded."""
    s = unit(a) @ np.vstack([unit(p), unit(a)]).T
    z = np.where(excluded(name, len(a)), -np.inf, s / temperature)
    z = z - z.max(axis=1, keepdims=True)
    e = np.exp(z)
    return np.log(e.sum(axis=1)) - np.diag(z), e / e.sum(axis=1, keepdims=True)


values = {name: loss_rows(a, p, name, tau)[0].mean() for name in NAMES}
table(list(values.values()), "one batch, B = 32, tau = 0.07", columns=NAMES, digits=9)
check(values["cross"], "0.0111268361", "candidates cross: loss")
check(values["same-view"], "0.0115462667", "candidates same-view: loss")
check(values["both"], "0.0223588941", "candidates both: loss")
erratum_claim(
    len({round(v, 6) for v in values.values()}) == 3, right="0.0111, 0.0115 and 0.0224: three losses on one batch",
    id="three-candidate-sets", where="lesson 4, code in three stages", says="the three stages compute one objective",
    why="One takes other positives as negatives, one other anchors, one both.", label="three stages, three losses",
)
# How many negatives, and what chance is: a blind guess among 1 + negatives.
counts = {name: (~excluded(name, B)).sum(axis=1)[0] - 1 for name in NAMES}
check(list(counts.values()), "31 31 62", "B = 32: negatives of an anchor, cross, same-view, both")
erratum(counts["both"], right="62", lesson="63", id="negatives-of-both", where="lesson 4, the fused layout",
        says="2B - 1 negatives per anchor", label="both: 2B - 2 negatives",
        why="2B columns, less the anchor itself, less the positive; 2B - 1 counts the positive.")
fused_counts = [2 * n - 2 for n in (100, 256, 1024, 32768)]
check(fused_counts, "198 510 2046 65534", "both: negatives at B = 100, 256, 1024, 32768")
erratum((~excluded("cross", 256)).sum(axis=1)[0] - 1, right="255", lesson="256", id="negatives-of-a-batch",
        where="lesson 4, in-batch sampling", label="B = 256: negatives in the batch",
        says="with in-batch negatives the batch size is the number of negatives",
        why="The row's own positive is not one of them.")
check([np.log(B), np.log(2 * B - 1)], "3.465735903 4.143134726", "chance at B = 32: log B, log(2B - 1)")
point = np.ones((B, 16))
erratum(loss_rows(point, point, "both", tau)[0].mean(), right="4.143134726", lesson="3.465735903",
        id="chance-of-both", where="lesson 4, failures", says="on collapse the loss stops at log B",
        why="It stops at the log of the number of candidates, 2B - 1 in the fused layout.",
        label="both: loss of a collapsed batch")

# %% Three stages of code
# Lists and a callable; one masked matrix; the same in float32 over buffers. Equal per candidate set, and only per set.
lists = a.tolist(), p.tolist()
loss_of = FusedInfoNCE()
for name in NAMES:
    plain = plain_loss(*lists, negatives_by_name(*lists, name), tau)
    matrix, backward = candidate_info_nce(a, p, tau, candidates=name)
    single = loss_of(a.astype(np.float32), p.astype(np.float32), tau, candidates=name)
    check_close(plain, values[name], 1e-12, f"{name}: plain Python equals the matrix")
    check_close(matrix, values[name], 1e-12, f"{name}: the package equals the matrix")
    check_close(single.loss, values[name], 1e-5, f"{name}: fused float32 equals the matrix")
    check_close(single.backward()[0], backward()[0], 1e-4, f"{name}: fused gradient equals the plain one")
    da = numeric_gradient(lambda x, name=name: candidate_info_nce(x, p, 0.5, candidates=name)[0], a)
    check_close(candidate_info_nce(a, p, 0.5, candidates=name)[1]()[0], da, 1e-7, f"{name}: central differences")
# What a step holds at once, by Python's allocator (B = 512, D = 16; one B x 2B float32 matrix is 2 MiB).
big = [x.astype(np.float32) for x in np.random.default_rng(1).standard_normal((2, 512, 16))]
matrix_bytes = 4 * 512 * 1024
fused = FusedInfoNCE()
fused(*big, tau)
peaks = np.array([peak_bytes(lambda: candidate_info_nce(*big, tau, candidates="both")),
                  peak_bytes(lambda: fused(*big, tau))]) / matrix_bytes
table([*peaks, fused.held_bytes / matrix_bytes], "memory of a step, in B x 2B matrices",
      columns=["plain, allocated", "fused, allocated", "fused, held"], digits=2)
check_true(peaks[0] > 3, "plain: several matrices of B x 2B are made per step")
check_true(peaks[1] < 0.3, "fused: none is, after the first")
check(fused.held_bytes / matrix_bytes, "2", "fused: matrices held between steps")
costs = recorded("milliseconds of one core for loss and gradient (lists: loss only)", ["stage", "B = 32", "B = 256"],
                 [["lists and a callable", 7.6, 500.7], ["one matrix", 0.089, 3.97], ["fused float32", 0.122, 0.877]],
                 seeds="one machine")
check_true(bool(costs[0, 1] > 50 * costs[1, 1] and costs[1, 1] > 2 * costs[2, 1] and costs[2, 0] > costs[1, 0]),
           "recorded: each stage is faster at B = 256; at 32 the buffers do not pay")
if full():
    again = stage_milliseconds()
    check_true(bool(np.all(np.diff(again[:, 1]) < 0)), "measured again: each stage is faster at B = 256")
levers = [
    ["lists -> one matrix", "a matrix product", "memory grows with B^2"],
    ["one matrix -> buffers", "nothing allocated per step", "a backward is good until the next call"],
    ["float64 -> float32", "half the memory", "losses below 1e-7 lose their digits"],
    ["mask array -> -inf", "no third matrix", "none: works at every tau"],
]
table(levers, "what each stage trades", columns=["change", "gain", "price"])

# %% Memory is one matrix, or three
# B x 2B in float32 is 8 B^2 bytes, one block of embeddings 4 B D.
MiB = 1024.0**2
sizes = np.array([100, 256, 1024, 4096, 8192, 32768])
blocks, matrices = 4 * sizes * 768 / MiB, 8 * sizes**2 / MiB
table(np.column_stack([blocks, matrices, matrices / (blocks + matrices)]), "D = 768: MiB", rows=sizes,
      columns=["one block", "matrix", "share"])
check(matrices, "0.0763 0.5000 8.0000 128.0000 512.0000 8192.0000", "D = 768: MiB of the matrix")
check((matrices / (blocks + matrices))[[0, -1]], "0.2066 0.9884", "D = 768: its share at B = 100 and 32768")
widths = np.array([64, 256, 768, 1024])
check(4 * widths / 8, "32 128 384 512", "B where the matrix equals one block, D = 64, 256, 768, 1024")
erratum(4 * 768 / 8, right="384", lesson="768", id="matrix-crossover", where="lesson 4, batch size as capacity",
        says="the matrix overtakes the embeddings once the batch exceeds the dimension (768)",
        why="8 B^2 = 4 B D at B = D / 2; B = D holds only if both views are counted.",
        label="D = 768: crossover batch")
multiple = bytes_of_three_arrays(*big) / matrix_bytes
check(multiple, "3.0", "matrices alive at the peak of logits, mask and exponentials, B = 512")
erratum(round(multiple) * matrices[-1], right="24576", lesson="8192", id="peak-memory",
        where="lesson 4, batch size as capacity", says="B = 32768 needs 8192 MiB for similarities",
        why="Logits, mask and the array of exponentials are alive together.",
        label="B = 32768: MiB at the peak")
erratum_claim(bytes_of_log_sum_exp(np.zeros((512, 1024), np.float32)) >= matrix_bytes,
              right="exp(z) is a new B x 2B array each step unless it is written in place",
              id="exp-is-materialised", where="lesson 4, fused log-sum-exp",
              says="the exponentials are never materialised and a step allocates nothing",
              why="The allocator sees one full matrix more.",
              label="log of a sum of exp allocates a matrix")

# %% Buffers, and who owns them
keep = a.copy(), p.copy()
held = loss_of.held_bytes
larger = np.random.default_rng(2).standard_normal((2, 48, 16))
first = loss_of(a, p, tau)
cosines = loss_of.similarity()
second = loss_of(larger[0], larger[1], tau)
check_true(all(np.array_equal(x, y) for x, y in zip(keep, (a, p), strict=True)), "the caller's arrays are untouched")
check_true(loss_of.held_bytes > held and second.negatives[0] == 94, "a larger batch grows the buffers")
check_close(np.diag(cosines[:, :B]), (unit(a) * unit(p)).sum(axis=1), 1e-12, "similarity() is a copy that survives")
stale = ""
try:
    first.backward()
except InputError as error:
    stale = str(error)
check_true("earlier batch" in stale, "a backward after the next call is refused, not wrong")
caller = np.full((2, 2), 3.0, np.float32)
alias = np.ascontiguousarray(caller, dtype=np.float32)
alias /= np.linalg.norm(alias, axis=1, keepdims=True)
wide = np.full((2, 2), 3.0)
copied = np.ascontiguousarray(wide, dtype=np.float32)
copied /= np.linalg.norm(copied, axis=1, keepdims=True)
check([caller[0, 0], wide[0, 0]], "0.7071 3.0000", "normalised in place: float32 caller, float64 caller")
erratum_claim(caller[0, 0] < 1 and wide[0, 0] == 3, right="scale a copy",
              id="in-place-normalise", where="lesson 4, normalisation in place",
              says="in-place scaling of a contiguous float32 block is a question of speed",
              why="It rewrites the caller's array for one dtype and not for the other.",
              label="in-place scaling changes some callers' arrays")
fixed = np.empty((4, 8), np.float32)
view = fixed[:2, :4]
view[...] = 1.0
fixed[...] = 2.0
refused = False
try:
    np.matmul(np.ones((5, 3), np.float32), np.ones((3, 5), np.float32), out=fixed[:5, :5])
except ValueError:
    refused = True
erratum_claim(refused and view[0, 0] == 2.0, right="grow when a batch needs it; hand out copies",
              id="buffers-do-not-grow", where="lesson 4, buffers",
              says="the buffers keep the largest shape seen and the matrix is returned",
              why="Nothing grows them, and what is returned is a view that the next step overwrites.",
              label="fixed buffers refuse a larger batch and rewrite old results")

# %% Samplers
# A sampler has a name and answers one question: which rows are negatives of this anchor?
ten = np.zeros((20, 4))
in_batch = InBatchSampler(duplicates=[(0, 1)])
sizes_of = [len(in_batch.candidates(ten, i)) for i in range(20)]
check(sizes_of[:3], "18 18 19", "in-batch, duplicate (0, 1) in 20: sizes for rows 0, 1, 2")
result = ContrastiveObjective(in_batch, tau)(*np.random.default_rng(3).standard_normal((2, 20, 16)))
summary = result.summary()
check([summary["min"], summary["mean"], summary["max"]], "18 18.9 19", "negatives per anchor: min, mean, max")
erratum(summary["min"], right="18", lesson="19", id="one-count-for-all", where="lesson 4, result of the objective",
        says="one count, 19, stands for all anchors", label="least negatives of an anchor",
        why="It is the last anchor's count; rows with duplicates have fewer.")


class EveryThird:
    """A third-party sampler: no base class, two members."""

    name = "every third row"

    def candidates(self, embeddings, anchor):
        return [j for j in range(0, len(embeddings), 3) if j != anchor]


check_true(isinstance(EveryThird(), NegativeSampler), "any object with a name and candidates() is a sampler")
check(ContrastiveObjective(EveryThird(), tau, min_negatives=5)(a, p).summary()["max"], "11", "every third of 32 rows")

# Mined, capped: the cap is a share of what is returned. Reordering a full set is no sampling at all.
hard_lists = mine(a, p, 8, candidates="cross").rows()
capped = [ContrastiveObjective(MinedSampler(hard_lists, 8, np.random.default_rng(4), cap), tau, min_negatives=8)(a, p)
          for cap in (0.0, 0.25, 0.5, 1.0)]
cap_losses = [float(r.loss) for r in capped]
table(cap_losses, "8 negatives, at most this share mined", columns=["0", "0.25", "0.5", "1"], digits=6)
check_true(bool(np.all(np.diff(cap_losses) > 0)), "the loss rises with the share of mined negatives")
check_close(cap_losses[-1], values["cross"], 0.05, "8 hardest of 31 carry nearly all of the loss at tau = 0.07")


check(int(31 * 0.5), "15", "half of the pool of 31 rows, as an integer")
same = [float(ContrastiveObjective(Reordered(hard_lists, cap), tau)(a, p).loss) for cap in (0.0, 0.5, 1.0)]
erratum_claim(np.ptp(same) < 1e-14 and abs(same[0] - values["cross"]) < 1e-14,
              right="the loss is the same at every cap, and that of plain in-batch negatives",
              id="cap-without-effect", where="lesson 4, mined sampler", says="a cap bounds the share of hard negatives",
              why="All other rows come back, and a sum does not see their order.",
              label="a cap over the whole pool changes nothing")
picked = MinedSampler([[3, 3, 3, 0, 5]] * 20, 6, np.random.default_rng(5), 1.0).candidates(ten, 0)
check_true(picked[:2].tolist() == [3, 5] and len(set(picked.tolist())) == 6,
           "mined: repeats and the anchor are skipped")

# Popularity, uniform and the word2vec power between them.
word_counts = np.array([1.0, 16.0, 81.0, 256.0])
powers = {power: PopularitySampler(word_counts, 20000, np.random.default_rng(6), power) for power in (0.0, 0.75, 1.0)}
table([s.probabilities for s in powers.values()], "q by power of the counts 1, 16, 81, 256", rows=powers, digits=4)
check(powers[0.75].probabilities, "0.01 0.08 0.27 0.64", "power 0.75: q")
drawn = np.bincount(powers[0.75].candidates(np.zeros((4, 2)), 0), minlength=4)[1:]
wanted = powers[0.75].probabilities[1:] / 0.99 * drawn.sum()
chi_square = ((drawn - wanted) ** 2 / wanted).sum()
check_true(chi_square < 13.8, "power 0.75: 20,000 draws fit q (chi-square, 2 degrees, level 0.001)")
uniform_drawn = np.zeros(10)
for _ in range(2000):
    uniform_drawn[UniformSampler(3, rng).candidates(np.zeros((10, 1)), 9)] += 1
uniform_chi = ((uniform_drawn[:9] - 2000 / 3) ** 2 / (2000 / 3)).sum() * 8 / 6  # without replacement: variance 2/9
check_true(uniform_chi < 26.1 and uniform_drawn[9] == 0, "uniform: 2,000 sets of 3 fit (chi-square, 8 degrees)")

# %% Errors that say what happened
caught = {}
for case, error_class, call in (
    ("batch of 16, in-batch", TooFewNegatives, lambda: ContrastiveObjective(InBatchSampler())(a[:16], p[:16])),
    ("temperature 1e-4", DegenerateTemperature, lambda: ContrastiveObjective(InBatchSampler(), 1e-4)),
    ("temperature 0", DegenerateTemperature, lambda: candidate_info_nce(a, p, 0.0)),
    ("one point", RepresentationCollapse, lambda: ContrastiveObjective(InBatchSampler())(point, point)),
    ("cap 1.5", InputError, lambda: MinedSampler([], 4, rng, 1.5)),
    ("pair (3, 3)", InputError, lambda: pair_mask([(3, 3)], 8)),
    ("no rows", InputError, lambda: candidate_info_nce(a[:0], p[:0], tau)),
    ("two shapes", InputError, lambda: candidate_info_nce(a, p[:5], tau)),
):
    try:
        call()
    except error_class as error:
        caught[case] = f"{type(error).__name__}: {error}"
for case, message in caught.items():
    print(f"    {case:22}  {message}")
check(len(caught), "8", "cases refused, each with its own error")
check_true(issubclass(RepresentationCollapse, RuntimeError) and issubclass(TooFewNegatives, ValueError)
           and issubclass(DegenerateTemperature, ValueError), "collapse happens at run time, the others are arguments")
check(ContrastiveObjective(InBatchSampler())(a[:17], p[:17]).summary()["min"], "16", "17 rows give 16 negatives")


def accepted(n):
    """Whether the default objective takes a batch of n rows."""
    try:
        ContrastiveObjective(InBatchSampler(), measure=False)(a[:n], p[:n])
    except TooFewNegatives:
        return False
    return True


erratum(next(n for n in range(2, B) if accepted(n)), right="17", lesson="16", id="least-batch",
        where="lesson 4, too few negatives", says="16 negatives are the batch of 16", label="least batch, 16 negatives",
        why="The row's own positive takes one place.")
empty_crash = False
try:
    _ = 0.0 / len(lists[0][:0])
except ZeroDivisionError:
    empty_crash = True
erratum_claim(empty_crash, right="refuse it with a sentence", id="empty-batch", where="lesson 4, plain loss",
              says="the mean over anchors needs no guard", why="With no anchor it divides by zero.",
              label="a mean over no rows")

# %% What pulls and what pushes
# With candidates x_j, the positive x_i among them, the raw gradient on unit rows is
#   dL_i/da_i = (1 / tau) (sum_j w_ij x_j - x_i) = (1 / tau) (sum_{j != i} w_ij x_j - (1 - w_ii) x_i).
pulls = {t: 1 - np.diag(loss_rows(a, p, "cross", t)[1]) for t in (1.0, 0.2, 0.07, 0.01)}
table([[pull.mean(), pull.mean() / t, pull.min() / t, pull.max() / t] for t, pull in pulls.items()],
      "pull on the positive, (1 - w_ii) / tau", rows=pulls,
      columns=["1 - w_ii", "mean pull", "least", "most"])
mean_pull = [pull.mean() / t for t, pull in pulls.items()]
check(mean_pull[:3], "0.928638 2.065495 0.156478", "mean pull at tau = 1, 0.2, 0.07")
check(mean_pull[3], "4.32e-8", "mean pull at tau = 0.01: every pair is solved")
erratum(mean_pull[1], right="2.065", lesson="1", id="unit-pull", where="lesson 4, the gradient",
        says="the positive pulls with weight 1 at every temperature", label="tau = 0.2: mean pull",
        why="The centroid contains the positive; what is left is (1 - w_ii) / tau, about 0 once solved.")
# That per-anchor formula is not the derivative of the batch loss: the mean over B, the Jacobian of the scaling to unit
# length, and the row's part as somebody else's negative are missing.
small_a, small_p = np.random.default_rng(7).standard_normal((2, 6, 4))


def per_anchor(a, p, name, t):
    soft = loss_rows(a, p, name, t)[1]
    return (soft @ np.vstack([unit(p), unit(a)]) - unit(p)) / t


for name in ("cross", "same-view"):
    snippet = per_anchor(small_a, small_p, name, 0.5) / 6
    whole = numeric_gradient(lambda x, name=name: loss_rows(x, small_p, name, 0.5)[0].mean(), small_a)
    radial = (snippet * unit(small_a)).sum(axis=1, keepdims=True) * unit(small_a)
    tangent = (snippet - radial) / np.linalg.norm(small_a, axis=1, keepdims=True)
    cosine = (tangent * whole).sum() / np.linalg.norm(tangent) / np.linalg.norm(whole)
    if name == "cross":
        check_close(tangent, whole, 1e-7, "cross: per-anchor formula / B through the Jacobian is the derivative")
    else:
        ratio = np.linalg.norm(tangent) / np.linalg.norm(whole)
        table([ratio, cosine], "same-view: per-anchor formula against the derivative", columns=["length", "cosine"])
        check_true(ratio < 0.8 and cosine < 0.97, "same-view: shorter and aslant, the roles as negatives are missing")
        erratum_claim(ratio < 0.8 and cosine < 0.97 and abs((snippet * unit(small_a)).sum()) > 0.1,
                      right="(1 / B), the Jacobian, and g^T a for the rows that are negatives of others",
                      id="per-anchor-gradient", where="lesson 4, the gradient function",
                      says="the per-anchor expression is the gradient of the loss",
                      why="An anchor is also a candidate of the other rows.",
                      label="per-anchor gradient and derivative of the batch loss")

# %% Taking a candidate out
# -inf is exact: exp(-inf) = 0, and a row always keeps its positive, so nothing is 0 / 0. A large number is not: added
# to the logits as a mask, it lets an anchor back in as its own candidate (cosine 1) once (1 - s) / tau exceeds it, s
# being the best cosine of the others. Positives handed on by one row, so that no temperature solves the batch:
moved = np.roll(p, 1, axis=0)  # the answer of row i stands beside row i + 1, the hardest negative there is
for small in (0.07, 1e-5):
    kept_in = candidate_info_nce(a, moved, small, candidates="both")[0]
    gone = candidate_info_nce(a, moved, small, candidates="both", log_weights=pair_log_weights([(0, 1)], B))[0]
    pool = [[x[j] for x in (moved, a) for j in range(B) if j != i and {i, j} != {0, 1}] for i in range(B)]
    by_hand = plain_loss(lists[0], moved.tolist(), lambda i, pool=pool: [row.tolist() for row in pool[i]], small)
    check_close(gone, by_hand, 1e-9, f"tau = {small:g}: removing a pair equals deleting it")
    check_true(bool(kept_in > 1.005 * gone), f"tau = {small:g}: the pair that was removed had a part in the loss")


check_close(masked_by(-1e4, a, p, 1e-3), candidate_info_nce(a, p, 1e-3, candidates="both")[0], 1e-9,
            "tau = 1e-3: -1e4 is as good as -inf", atol=1e-12)
broken = masked_by(-1e4, a, p, 1e-5), float(candidate_info_nce(a, p, 1e-5, candidates="both")[0])
table(broken, "tau = 1e-5: loss with -1e4, with -inf", columns=["-1e4", "-inf"], digits=4)
check([0.3 / 1e4, 2 / 1e4], "3e-5 2e-4", "-1e4 stops masking below tau = (1 - s) / 1e4, for s = 0.7 and -1")
check(np.spacing(np.float32(1e4)), "0.0009765625", "spacing of float32 at 1e4: harmless")
erratum_claim(broken[0] > broken[1] + 100, right="-inf: no NaN, no temperature at which it stops",
              id="large-number-mask", where="lesson 4, the mask",
              says="-1e4 is safe in float32 where -inf is not",
              why="A row keeps its positive, so -inf makes no NaN; -1e4 is overtaken at small temperatures.",
              label="tau = 1e-5: a mask of -1e4 lets the anchor compete with itself")
tiny = [float(candidate_info_nce(a, p, t, candidates="both")[0]) for t in (1e-3, 1e-6, 1e-30, 1e-300)]
check_true(bool(np.isfinite(tiny).all()), "the shifted loss is finite at tau = 1e-3, 1e-6, 1e-30, 1e-300")
limits = [1 / np.log(np.finfo(dtype).max) for dtype in (np.float32, np.float64)]
check(limits, "0.011271055 0.001408882", "tau where an UNSHIFTED exp(1 / tau) overflows, float32 and float64")
erratum_claim(bool(np.isfinite(tiny).all()) and limits[0] > 1e-3,
              right="a floor on tau is a policy: 1 / tau scales the gradient, one negative takes all of the push",
              id="tiny-temperature-overflows", where="lesson 4, degenerate temperature",
              says="a temperature near 1e-3 makes the logits overflow", label="tau = 1e-300 is finite",
              why="Each stage subtracts the row's maximum; without that, float32 overflows at 0.0113.")
check([1 / t for t in (0.01, 0.07, 0.2, 1e-3)], "100. 14.2857 5. 1000.", "range of a logit at tau = 0.01 ... 0.001")

# %% Zero rows
# A dead encoder emits zeros. The zero row has no direction: refuse it, everywhere, by one function.
zeros = np.zeros((16, 8))
squared = 2 - 2 * (zeros @ zeros.T)
off = ~np.eye(16, dtype=bool)
check(np.log(np.exp(-2 * squared[off]).mean()), "-4.0", "16 zero rows, distances by 2 - 2 cos: uniformity")
direct = ((zeros[:, None] - zeros[None]) ** 2).sum(axis=2)
erratum(np.log(np.exp(-2 * direct[off]).mean()), right="0", lesson="-4.0", id="dead-encoder",
        where="lesson 4, zero vectors", says="a zero vector may stay zero (uniformity -4, mean cosine 0, no collapse)",
        why="All rows are one point; 2 - 2 cos holds for unit rows only.",
        label="16 zero rows, distances measured: uniformity")
short = np.array([[1e-13, 0.0], [5e-13, 0.0], [1e-3, 0.0]])
floored = short / np.maximum(np.linalg.norm(short, axis=1, keepdims=True), 1e-12)
check(np.linalg.norm(floored, axis=1), "0.1 0.5 1.0", "lengths 1e-13, 5e-13, 1e-3 divided by max(length, 1e-12)")
check_close(np.linalg.norm(unit(short), axis=1), [1, 1, 1], 1e-15, "divided by their length: all 1")
refusals = 0
for use in (lambda: candidate_info_nce(zeros, zeros, tau), lambda: FusedInfoNCE()(zeros, zeros, tau),
            lambda: uniformity(zeros), lambda: mine(zeros, zeros, 2), lambda: MemoryQueue(4).push(zeros)):
    try:
        use()
    except InputError:
        refusals += 1
check(refusals, "5", "zero rows are refused by loss, fused loss, geometry, mining and queue")

# %% Mining, and a list for a person to read
# At small tau the gradient is already on these candidates; the list is for the eye. Both blocks are searched.
mined = mine(a, p, 3)
wins = int((mined.columns[:, 0] < B).sum())
check(wins, "16", "rows whose hardest candidate is somebody's positive, of 32")
erratum_claim(wins > 0, right="the hardest candidate is somebody else's positive for 16 of 32 rows", id="mining-half",
              where="lesson 4, mining", says="mining the anchor block finds the hardest negatives",
              why="Half of the candidates of the fused loss are in the other block.",
              label="the other block holds harder negatives")
four = np.random.default_rng(8).standard_normal((4, 4))
four = four @ four.T
crash = False
try:
    np.argpartition(-four, 4, axis=1)
except ValueError:
    crash = True
erratum_claim(crash, right="any k >= 1; what is not there does not come back", id="mining-all",
              where="lesson 4, mining", says="any number of negatives can be mined",
              why="Partitioning at position k needs k < B.", label="k = B is out of bounds of a partition")
check(mine(a[:4], p[:4], 9, candidates="same-view").rows().shape, "4 8", "k = 9 of 4 rows: shape, padded with -1")
found = mine(a[:4], p[:4], 9, candidates="same-view", duplicates=[(0, 1)]).rows()[0]
check_true(sorted(found[found >= 0].tolist()) == [2, 3], "known duplicates and the anchor never come back")
order = mined_after_reset(a[:4], (0, 1), tau, 3)
table(order, "anchor 0, duplicate 1: the three rows that come back")
erratum_claim(order[-1] == 0, right="excluded entries are dropped, so fewer than k come back",
              id="mining-returns-self", where="lesson 4, mining", says="self and known duplicates are excluded",
              why="Self is reset to -1e4 while the masked duplicate lies lower still, so the anchor is returned.",
              label="k = 3: the anchor is mined as its own negative")
scores = np.random.default_rng(9).standard_normal((50, 4096))
kept = np.argpartition(-scores, 300, axis=1)[:, :300]
ordered = int(sum((np.diff(row[k]) <= 0).all() for row, k in zip(scores, kept, strict=True)))
erratum_claim(ordered == 0, right="sort the k that remain", id="mining-order", where="lesson 4, mining",
              says="the mined list starts with the hardest", why="A partition leaves both sides unordered.",
              label="rows of a partition that are in order: none of 50")
# Plant a twin: row 20 says what row 5 says. The audit puts it first and flags it.
twin_a, twin_p = a.copy(), p.copy()
twin_a[20], twin_p[20] = a[5] + 0.01, p[5] - 0.01
audit = mine(twin_a, twin_p, 2)
i, r = np.unravel_index((audit.cosines - audit.own[:, None]).argmax(), audit.cosines.shape)
check_true({int(i), int(audit.rows()[i, r])} == {5, 20}, "planted twin: first line of the audit")
check_true(bool(audit.suspects().any(axis=1)[[5, 20]].all()), "planted twin: closer than the own positive, flagged")
check(int(mine(twin_a, twin_p, 2, duplicates=[(5, 20)]).suspects().sum()), "0", "once marked, no suspect is left")
# From any scores: words (BM25), a refreshed index, and a second opinion that drops likely right answers.
bm25 = np.array([[4.0, 3.5, 3.0, 0.0]])
contains_answer = np.array([[True, False, False, False]])
judge = np.array([[0.99, 0.95, 0.10, 0.05]])
check(hardest(bm25, 2, exclude=contains_answer)[0][0], "1 2", "passages by words, less the one with the answer")
check(hardest(bm25, 2, exclude=contains_answer, second_opinion=judge, ceiling=0.9)[0][0], "2 3",
      "and without the one a cross-encoder calls right")

# %% Reading geometry off the matrix
# The matrix is there already; but cosines, not logits that were shifted and masked.
shape = block_geometry(unit(a), unit(p), unit(a) @ unit(a).T, np.empty((B, B)))
check([shape.alignment, shape.uniformity, shape.mean_pair_cosine], "0.186036 -3.480813 0.014148",
      "from cosines: alignment, uniformity, mean cosine")
check_close([shape.alignment, shape.uniformity, shape.mean_pair_cosine],
            [alignment(a, p), uniformity(a), mean_pair_cosine(a)], 1e-12, "and from the rows")
single = FusedInfoNCE()(a.astype(np.float32), p.astype(np.float32), tau, geometry=True).geometry
check_close([single.alignment, single.uniformity], [shape.alignment, shape.uniformity], 1e-5, "and in float32")


shifted_identical, shifted_point = geometry_from_shifted(a, a, tau), geometry_from_shifted(point, point, tau)
check(shifted_identical, "2.0000 -7.4808 -0.9859", "identical pairs, shifted: alignment, uniformity, mean cosine")
geometry_slip = {"id": "shifted-geometry", "where": "lesson 4, geometry from the matrix"}
erratum(alignment(a, a), right="0", lesson="2.0", says="the loss's own matrix gives the geometry for free",
        why="Its entries are shifted by the row maximum, so none is above 0 and a pair at the maximum reads as 2.",
        label="identical pairs: alignment", **geometry_slip)
erratum(mean_pair_cosine(point), right="1.", lesson="0.0", why="A collapsed batch reads as mean cosine 0: no alarm.",
        label="one point: mean cosine", **geometry_slip)
check(shifted_point, "2.0 -4.0 0.0", "one point, shifted logits: alignment, uniformity, mean cosine")
flat = np.full(6, 2.0, np.float32)
with np.errstate(divide="ignore"):
    underflow = [float(np.log(np.mean(np.exp(-np.float32(t) * flat)))) for t in (2, 50, 60)]
check(underflow[:2], "-4.000 -99.983", "float32 log of a mean of exp: t = 2, 50, all squared distances 2")
eye = np.eye(8, dtype=np.float32)
check([block_geometry(eye, eye, eye @ eye.T, np.empty((8, 8), np.float32), t).uniformity for t in (50, 60)],
      "-100.000 -120.000", "largest term taken out: t = 50, 60")
erratum_claim(np.isneginf(underflow[2]), right="log-sum-exp; no value without two rows", id="uniformity-edge-cases",
              where="lesson 4, uniformity", says="the log of the mean of exponentials is computed as written",
              why="float32 underflows near t = 52, and a single row has no pairs: 0 would be the worst value.",
              label="t = 60: float32 underflows to -inf")

# %% Has it collapsed?
# Mean cosine above 0.9 was the lesson's test. It is neither necessary nor sufficient.
half = np.where(np.arange(64) % 2 == 0, 1.0, -1.0)[:, None] * np.ones((1, 8))
angles = np.linspace(0, 2 * np.pi, 64, endpoint=False)
circle = np.column_stack([np.cos(angles), np.sin(angles), np.zeros((64, 6))])
rng = np.random.default_rng(12)
cone = 5.3 * np.ones((256, 64)) + rng.standard_normal((256, 64))
cone_views = cone + 0.1 * rng.standard_normal((256, 64))
clouds = {"two opposite points": half, "great circle": circle, "cone": cone}
readings = {name: [mean_pair_cosine(x), uniformity(x), effective_rank(x), effective_rank(x, centre=True)]
            for name, x in clouds.items()}
table(list(readings.values()), "64, 64 and 256 rows", rows=readings,
      columns=["mean cosine", "uniformity", "eff. rank", "centred"])
check(readings["two opposite points"][:3], "-0.015873 -0.708801 1.000000", "opposite points: cosine, uniformity, rank")
check(readings["great circle"][2], "2.0000", "great circle: effective rank")
cone_recall = recall_at_k(unit(cone) @ unit(cone_views).T, np.arange(256))
check([readings["cone"][0], cone_recall], "0.966 100.", "cone: mean cosine, recall@1 in percent")
verdict = {}
for name, x in clouds.items():
    try:
        refuse_collapse(x)
        verdict[name] = "no"
    except RepresentationCollapse as error:
        verdict[name] = "yes"
        print(f"    {name:20}  {error}")
check_true(list(verdict.values()) == ["yes", "yes", "no"], "the guard: opposite points and circle yes, cone no")
erratum_claim(readings["two opposite points"][0] < 0.9 < readings["cone"][0] and cone_recall == 100,
              right="look at the rank of the rows and at recall", id="mean-cosine-test",
              where="lesson 4, collapse guard", says="a mean cosine above 0.9 means the geometry has degenerated",
              why="Two opposite points pass it and a cone that ranks perfectly fails it.",
              label="mean cosine 0.9 is neither necessary nor sufficient")
# Every objective of this package calls its guard; one that nobody calls guards nothing. And collapse IS visible in the
# loss, if it is compared with chance:
n = 256
start = np.random.default_rng(10)
trained = start.standard_normal((n, 64))
states = {"collapsed": (np.ones((n, 64)),) * 2, "random": tuple(start.standard_normal((2, n, 64))),
          "pairs that agree": (trained, trained + 0.7 * start.standard_normal((n, 64)))}
state_losses = [float(candidate_info_nce(*x, tau)[0]) for x in states.values()]
table(state_losses, "tau = 0.07, 256 candidates, chance log 256 = 5.545", columns=states, digits=3)
check(state_losses[0], "5.545177", "collapsed: loss, exactly chance")
check_true(state_losses[1] > state_losses[0] > 10 * state_losses[2], "random above chance, agreeing pairs far below")
erratum_claim(state_losses[1] > np.log(n) > 20 * state_losses[2],
              right="log N is what a blind guess earns; a partial collapse is what the loss cannot show",
              id="collapse-looks-healthy", where="lesson 4, collapse", says="a loss stuck at log N looks healthy",
              why="A trained model lies far below it, a random one above it.",
              label="log N is the chance level")
flattest = [max(np.abs(g).max() for g in candidate_info_nce(point, point, t)[1]()) for t in (1.0, 0.05)]
check_true(max(flattest) < 1e-14, "at exact collapse the gradient is zero at tau = 1 and 0.05: it cannot escape")
warm_guard = 0
try:
    ContrastiveObjective(InBatchSampler(), guard=True)(half[:32], half[:32])
except RepresentationCollapse:
    warm_guard = 1
erratum_claim(warm_guard == 1 and float(ContrastiveObjective(InBatchSampler(), guard=False)(point, point).loss) > 3.4,
              right="the objective calls it, and says how to turn it off", id="guard-not-called",
              where="lesson 4, what changed", says="a collapsed geometry now raises",
              why="Its guard is defined and never called; without a call the collapsed batch returns a loss.",
              label="a guard works only where it is called")

# %% Negatives from earlier steps
# A queue of old keys adds negatives without activations; a slowly following encoder keeps them from ageing. A queue
# trains through the queries only; so do the runs without one, to compare like with like.
queue = MemoryQueue(4)
check_close(candidate_info_nce(a, p, tau, queue=queue.rows())[0], values["cross"], 1e-13, "an empty queue is no queue")
queue.push(a[:3])
queue.push(a[3:6])
check_close(queue.rows(), unit(a[2:6]), 1e-15, "six keys into four places: the oldest two are gone")
more, back = candidate_info_nce(a, p, tau, queue=queue.rows())
check_true(float(more) > values["cross"] and len(back()) == 2, "queue rows raise the loss and get no gradient")
bank = MemoryBank(B, 16, momentum=0.5, dtype=np.float64)
bank.update(np.arange(8), a[:8])
bank.update([0], p[:1])
check_close(bank.slots[0], unit((unit(a[:1]) + unit(p[:1])) / 2)[0], 1e-12, "memory bank: a slot follows its row")
check_true(set(bank.sample(5, rng, exclude=[0])[0]) <= set(range(1, 8)), "memory bank: sampled among the written")
runs = {name: QueueRun(0, *options).run(250) for name, *options in QUEUES}
queue_scores = [run.score() for run in runs.values()]
ages = [run.staleness() if run.queue else 0.0 for run in runs.values()]
table(np.column_stack([queue_scores, ages]), "linear encoder on paraphrases, 250 steps, seed 0", rows=runs,
      columns=["Spearman", "age of keys"])
check_true(queue_scores[0] + 0.03 < queue_scores[2] < queue_scores[1] < queue_scores[3],
           "batch 8 < with a queue < batch 128; here keys age little and the lag of m = 0.99 costs more")
check_true(ages[2] < ages[1] / 5, "m = 0.99: queued keys are much closer to what their encoder says now")

# %% Correcting for how negatives were drawn
# Two negatives, enumerated exactly: every user u, item i ~ p(i|u), j and k ~ q. The best critic of the sampled loss is
# log p(i|u) / q(i); subtracting log q from every logit makes it log p(i|u).
p_of_user = np.array([[0.50, 0.20, 0.10, 0.15, 0.05], [0.45, 0.05, 0.30, 0.05, 0.15], [0.40, 0.10, 0.05, 0.10, 0.35]])
popularity = p_of_user.mean(axis=0)
log_p = np.log(p_of_user)
pmi = log_p - np.log(popularity)
log_p, pmi = (x - x.mean(axis=1, keepdims=True) for x in (log_p, pmi))
uniform_q = np.full(5, 0.2)
fits = {
    "uniform": sampled_table(p_of_user, uniform_q, False),
    "popularity": sampled_table(p_of_user, popularity, False),
    "popularity - log q": sampled_table(p_of_user, popularity, True),
}
tops = {name: f.argmax(axis=1) for name, f in fits.items()}
hits = {name: p_of_user[np.arange(3), top].mean() for name, top in tops.items()}
table([[*tops[name], hits[name]] for name in fits], "top item of each user, chance that it is the next one",
      rows=fits, columns=["user 1", "user 2", "user 3", "hit@1"], digits="3g")
check_close(fits["uniform"], log_p, 1e-6, "uniform negatives: log p(i|u)")
check_close(fits["popularity"], pmi, 1e-6, "popularity negatives: pointwise mutual information")
check_close(fits["popularity - log q"], log_p, 1e-6, "popularity negatives, corrected: log p(i|u) again")
check([hits["uniform"], hits["popularity"], hits["popularity - log q"]], "0.4500 0.2833 0.4500", "hit@1 of the three")
check(tops["popularity"], "1 2 4", "popularity negatives, uncorrected: each user has another top item (0-based)")
erratum_claim(
    not (tops["uniform"].any() or tops["popularity - log q"].any()) and len(set(tops["popularity"])) == 3,
    right="uniform and corrected popularity negatives learn the same ranking, log p(i|u), bestseller first; it is the "
    "UNcorrected popularity negatives that favour the tail", id="popularity-correction",
    where="lesson 4, recommendation",
    says="uniform negatives bake in popularity, and popularity sampling with a logit correction removes it",
    why="The correction puts back exactly what popularity sampling took out; the two differ in how fast they learn.",
    label="popularity negatives and their correction",
)
# In a batch the same correction is a log weight on the columns, the positive's included.
q_rows = np.random.default_rng(11).dirichlet(np.ones(B))
s = unit(a) @ unit(p).T / 0.5 - np.log(q_rows)
by_hand = (np.log(np.exp(s).sum(axis=1)) - np.diag(s)).mean()
corrected = candidate_info_nce(a, p, 0.5, log_weights=np.tile(-np.log(q_rows), (B, 2)))[0]
check_close(corrected, by_hand, 1e-12, "log q as a log weight of the package's loss")

# %% Temperature is not chosen by loss
# One set of embeddings, seven temperatures: the loss falls by over six orders of magnitude and nothing got better.
rng = np.random.default_rng(11)
z = rng.standard_normal((256, 64))
left, right = (z + 0.6 * rng.standard_normal((256, 64)) for _ in range(2))
taus = np.array([1.0, 0.5, 0.2, 0.1, 0.07, 0.05, 0.02])
fixed_losses = np.array([float(candidate_info_nce(left, right, t)[0]) for t in taus])
fixed_recall = recall_at_k(unit(left) @ unit(right).T, np.arange(256))
table(fixed_losses, f"one set of embeddings, recall@1 {fixed_recall:.0f} %", columns=taus, digits="6g")
check_true(bool(np.all(np.diff(fixed_losses) < 0)) and fixed_losses[0] / fixed_losses[-1] > 1e6,
           "the loss falls at every step, over six orders of magnitude in all")
check(fixed_recall, "100.", "recall@1 of those embeddings at every temperature, percent")
# And in training: the highest loss, at tau = 1, comes with the best embeddings; the lowest, at 0.05, with middling
# ones. Below 0.05 the loss rises again, and the embeddings get far worse.
train_taus = (1.0, 0.2, 0.05, 0.02, 0.005)
trained_at = temperature_study(0, train_taus, steps=150)
table(trained_at, "trained on dropout twins at each tau, seed 0", rows=train_taus, columns=["final loss", "Spearman"])
best = trained_at.argmax(axis=0)
check(best, "0 0", "tau = 1 has the highest loss and the best embeddings")
lowest, worst = trained_at.argmin(axis=0)
check([train_taus[lowest], train_taus[worst]], "0.05 0.005", "tau of the lowest loss, tau of the worst embeddings")
check_true(bool(np.all(np.diff(trained_at[2:, 0]) > 0) and np.all(np.diff(trained_at[2:, 1]) < -0.1)),
           "tau = 0.05, 0.02, 0.005: the loss rises while the score falls")
scale_free = [["tau", "0.01 to 0.2"], ["batch", "256 to 32768"], ["share of mined negatives", "0 to 0.5"],
              ["dimension", "64 to 1024"], ["projection layers", "0 to 2"]]
table(scale_free, "ranges the lesson recommends", columns=["knob", "range"])
quoted("0.01 0.2", "recommended temperatures, least and most", source="lesson 4, its table of knobs")
quoted("0 0.5", "recommended share of mined negatives", source="lesson 4, its table of knobs")

# %% Twins among the negatives
# 8 pairs of twins: 16 of 32 rows say what another row says. Mining finds the twin nearly always: it is the hardest
# negative there is.
study = hard_share_study(0, steps=100)
labels = [name for name, *_ in HARD_SHARES]
table(study, "8 negatives of which this share is mined, seed 0", rows=labels,
      columns=["Spearman", "final loss", "twin is hardest"], digits=3)
check_true(bool(study[:4, 2].min() > 0.95) and study[4, 2] == 0, "the hardest row is the twin; never once marked")
check_true(study[4, 0] > study[3, 0] and study[4, 1] < study[3, 1] / 2, "twins marked: better score, far lower loss")
last = recorded("share of mined negatives", ["share", "Spearman, 0", "Spearman, 1"],
                [["0", 0.9175, 0.9106], ["0.25", 0.9378, 0.9288], ["0.5", 0.9457, 0.9312], ["1", 0.9508, 0.9344],
                 ["1, duplicates known", 0.9615, 0.9413]], seeds="0 and 1, 150 steps")
check_true(bool(np.all(last[4] > last[3])), "recorded: marking the twins helps in both seeds")
if full():
    check_close(np.column_stack([hard_share_study(seed)[:, 0] for seed in (0, 1)]), last, 1e-3, "the study repeats")
