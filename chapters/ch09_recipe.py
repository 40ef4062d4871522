"""Chapter 9: the recipe everyone inherited."""

# %% [markdown]
# Question: what of SimCSE is still in the embedding models that came after it, and what was replaced?
# Answer in one table, then each replacement built and tested: pairs that are not symmetric, prefixes, mined negatives,
# embeddings that can be cut short, batches larger than memory. At the end the recipe itself, as one script.
#
# Letters: N queries, h embedding, s cosine, tau temperature, p probability a row gives to a candidate, D width.

# %% The template
import numpy as np
import question_pairs
from lesson import (
    check,
    check_close,
    check_true,
    erratum_quoted,
    full,
    numeric_gradient,
    quoted,
    recorded,
    table,
)
from matryoshka import PREFIXES, matryoshka_loss, prefix_scores
from quoted_tables import (
    ENTAILMENT_PAIRS,
    RELEASED_TRIPLES,
    TABLE_2_OBJECTIVE,
    TABLE_3_DROPOUT,
    TABLE_5_AVERAGE,
    UNSUPERVISED_SENTENCES,
)
from scipy.special import lambertw
from small_encoder import SmallEncoder, view_labels
from weekend_recipe import LOG, POSITIVES, RECIPE, examples, initial, training_step, weekend

from nano_simcse import geometry
from nano_simcse.encoder import EncoderConfig, dropout_inventory
from nano_simcse.losses import info_nce
from nano_simcse.masks import Masks
from nano_simcse.optim import Adam, AdamW, clip_global_norm, learning_rate
from nano_simcse.parameters import Parameters
from nano_simcse.retrieval import top_k

table(
    [
        ["InfoNCE over the batch", "kept"],
        ["cosine, tau = 0.05", "kept; other values of tau"],
        ["the same sentence under another dropout mask, or an entailment", "replaced: mined and labelled pairs"],
        ["the rest of the batch, or a contradiction", "replaced: mined passages, larger batches"],
    ],
    "four decisions", rows=["objective", "similarity", "positives", "negatives"], columns=["SimCSE", "since then"],
)
table(
    [
        ["weakly paired web text, then labels; prefixes query: and passage:", "positives", "2212.03533"],
        ["more sources in two stages; a denominator with pairs of every kind", "positives, negatives", "2308.03281"],
        ["mined hard negatives after pre-training on pairs; query instruction", "positives, negatives", "2309.07597"],
        ["an instruction in front of every text says which similarity is meant", "positives", "2212.09741"],
        ["the same loss on several prefixes of one embedding", "objective (summed)", "2205.13147"],
        ["gradients of embeddings cached, so a batch need not fit in memory", "negatives (more)", "2101.06983"],
    ],
    "what the descendants changed",
    rows=["E5 2022", "GTE 2023", "BGE 2023", "Instructor 2022", "Matryoshka 2022", "GradCache 2021"],
    columns=["change", "row of the template", "arXiv"],
)
erratum_quoted(
    right="58", lesson="50", source="MTEB abstract, arXiv 2210.07316", id="mteb-size", where="ch. 9, method and data",
    says="MTEB is a suite of 50 tasks", why="It spans 58 data sets in 8 task types and 112 languages.",
)
pairs = quoted(f"{sum(ENTAILMENT_PAIRS.values()):,}", "entailment pairs of SNLI and MNLI", source="SimCSE Section 5")
check(pairs, "314,315", "pairs: 183,416 + 130,899")
erratum_quoted(
    right=f"{RELEASED_TRIPLES:,}", lesson="314,000", source="SimCSE repository, issue 238", id="triples-in-references",
    where="ch. 9, references", says="the NLI data are 314k triples",
    why="314,315 counts entailment pairs; premises without a contradiction are left out of the triples.",
)

# %% Cheat sheet: symbols and four equations
table(
    [
        ["h_i, h_i+", "embedding of sentence i, and of its positive"],
        ["s_ij", "cosine of query i and candidate j"],
        ["tau", "temperature: cosines are divided by it"],
        ["N", "queries in a batch; every query has N - 1 negatives from the batch"],
        ["p_ij", "softmax over row i of s / tau; the loss is the mean of -log p_ii"],
        ["z, z'", "the dropout masks of the two views"],
        ["h_i-", "hard negative of i; alpha weighs a row's own"],
        ["lambda_k", "eigenvalues of W^T W for unit rows W; they add up to the number of rows"],
    ],
    "symbols",
)


def cosines(a, b):
    return (a / np.linalg.norm(a, axis=1, keepdims=True)) @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T


def contrast(logits):
    """(1) InfoNCE: the mean over rows of -log softmax at the own column."""
    return np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diagonal(logits))


rng = np.random.default_rng(90)
h, h_plus, h_minus = rng.standard_normal((3, 6, 5))
tau = 0.1
equation1 = contrast(cosines(h, h_plus) / tau)
check_close(equation1, info_nce(h, h_plus, tau)[0], 1e-12, "equation 1, InfoNCE: the package's loss")
# (2) dropout objective: the same with h = f(x, z), h+ = f(x, z')
z, z_other = rng.random((2, 6, 5)) > 0.1
equation2 = contrast(cosines(h * z, h * z_other) / tau)
check_close(equation2, info_nce(h * z / 0.9, h * z_other / 0.9, tau)[0], 1e-12, "equation 2, dropout views")
# (3) hard negatives: more columns; alpha multiplies the exponential of a row's own, so log alpha joins its logit
own = np.log(0.5) * np.eye(6)
equation3 = contrast(np.hstack([cosines(h, h_plus) / tau, cosines(h, h_minus) / tau + own]))
check_close(equation3, info_nce(h, h_plus, tau, hard_negatives=h_minus, log_weight=np.log(0.5))[0], 1e-12,
            "equation 3, hard negatives with alpha = 0.5")
# (4) alignment = E|f(x) - f(x+)|^2, uniformity = log E exp(-2 |f(x) - f(y)|^2), on unit rows
equation4 = np.array([
    np.mean(2 - 2 * np.diagonal(cosines(h, h_plus))),
    np.log(np.mean(np.exp(-4 * (1 - cosines(h, h)[~np.eye(6, dtype=bool)])))),
])
check_close(equation4, [geometry.alignment(h, h_plus), geometry.uniformity(h)], 1e-12, "equation 4, two measures")

# %% Cheat sheet: numbers, each computed here
n = 64
check(np.log(n), "4.158883083", "loss of equal scores, N = 64: log N")
check(np.log1p((n - 1) * np.exp(-2 / 1.0)), "2.254037798", "tau = 1: floor of one row, N = 64")
simplex = np.log1p((n - 1) * np.exp(-n / (n - 1) / np.array([1.0, 0.05])))
check(simplex[0], "3.170165703", "tau = 1: floor of a batch, N = 64")
check(simplex[1], "9.453217e-8", "tau = 0.05: floor of a batch, N = 64")
row = np.array([0.72, 0.54, 0.19])
for t, loss, pull in ((1.0, "0.885367574", "0.587437502"), (0.05, "0.026981346", "0.532412025")):
    others = np.exp((row[1:] - row[0]) / t)
    check(np.log1p(others.sum()), loss, f"row .72 .54 .19 at tau = {t:g}: loss")
    check(others.sum() / (1 + others.sum()) / t, pull, f"row .72 .54 .19 at tau = {t:g}: gradient on the positive")
check(np.exp(0.35 / 0.05), "1096.633158", "tau = 0.05: push on .54 over push on .19")
best = 1 + lambertw(np.array([1, 63]) / np.e).real  # gap / tau at the strongest pull: 1 and 63 equal negatives
check(0.18 / best[0], "0.140793893", "gap .18, one negative: tau of the strongest pull")
check(1 / best, "0.7822 0.3024", "tau of the strongest pull, in units of the gap: 1 and 63 negatives")
check((n - 1) * 0.01, "0.63", "one pair in a hundred alike: false negatives of a row, N = 64")
check(1 - 0.99 ** (n - 1), "0.469094457", "one pair in a hundred alike: rows with one or more")
check(n * (n - 1) * 0.01, "40.32", "one pair in a hundred alike: ordered pairs of a batch")
check(1 - 0.1 - 3 * 0.1 / (4 * 770), "0.899902597", "rate 0.1, 768 Gaussian units: mean cosine of twins")
base = EncoderConfig(30522, layers=12, width=768, heads=12)
inventory = dropout_inventory(base, [32])
check(len(inventory), "37", "BERT-base: dropout sites")
check(sum(units for _, _, units in inventory), "761,856", "BERT-base: draws for one sentence of 32 tokens")
check(UNSUPERVISED_SENTENCES / 64, "15,625", "steps of one epoch: a million sentences, batch 64")
hard = np.array([0.30, 0.62, 0.25])  # another premise's entailment, own contradiction, another contradiction
with_hard, without = (np.exp((c - 0.75) / 0.05).sum() for c in (hard, hard[:1]))
check(np.log1p(with_hard) / np.log1p(without), "581.852", "a contradiction at .62: loss of the row, times")
check(with_hard / (1 + with_hard) / (without / (1 + without)), "561.489", "a contradiction at .62: gradient, times")
table(
    [
        [TABLE_5_AVERAGE["SimCSE unsupervised, BERT-base"], "Table 5"],
        [TABLE_5_AVERAGE["SimCSE supervised, BERT-base"], "Table 5"],
        [TABLE_3_DROPOUT["0.1"], "Table 3"],
        [TABLE_3_DROPOUT["fixed 0.1"], "Table 3"],
        [TABLE_2_OBJECTIVE["dropout (SimCSE)"][1], "Table 2"],
    ],
    "reported by the paper, not measured here",
    rows=["STS average, unsupervised", "STS average, supervised", "STS-B dev, independent masks",
          "STS-B dev, one mask for both views", "STS-B dev, two encoders"], digits=2,
)
headline = quoted("76.25", "STS average, unsupervised SimCSE", source="SimCSE Table 5")
check(headline - TABLE_5_AVERAGE["BERT-base, first-last average"], "19.55", "points over averaged BERT")

# %% Symmetric or asymmetric?
# First decision of any system. Paraphrase search compares like with like; question answering does not: the nearest
# neighbour of a question is the same question in other words. One small transformer, four kinds of pairs, two tests:
# graded similarity of statements (STS), and whether the nearest entry of a corpus answers the question. The corpus
# holds statements and, like any forum, other wordings of the questions.
world = question_pairs.Questions(seed=0)
print(f"\n  {world.questions[0]!r} is answered by {world.statements[0]!r}, not by {world.again[0]!r}")
trained = {kind: question_pairs.train_on(kind, world) for kind in question_pairs.PAIR_TYPES}
outcome = np.array([question_pairs.scores(*trained[kind], world) for kind in question_pairs.PAIR_TYPES])
table(outcome, "one seed", rows=question_pairs.PAIR_TYPES, columns=question_pairs.SCORES, digits=1)
check_true(outcome[0, 1] < 5 and outcome[0, 2] < 40, "paraphrases: similar sentences found, answers not")
check_true(outcome[1, 2] > outcome[0, 2] + 20, "question-answer pairs: answers found among statements")
check_true(bool(outcome[:3, 1].max() < 15), "without prefixes the nearest entry is another question")
check_true(outcome[3, 1] > outcome[:3, 1].max() + 10, "prefixes: one model, two notions of similarity")
check_true(outcome[3, 0] > outcome[0, 0] - 5, "prefixes: graded similarity is not lost")
last = recorded(
    "pair types, mean of three seeds", ["pairs", *question_pairs.SCORES],
    [["paraphrases", 55.4, 0.0, 24.3], ["question-answer", 57.9, 5.0, 68.0], ["both", 55.1, 0.3, 65.0],
     ["both, with prefixes", 57.4, 38.7, 72.3]], seeds="0 to 2", digits=1,
)
if full():
    runs = [[question_pairs.scores(*question_pairs.train_on(kind, world, seed=s), world)
             for kind in question_pairs.PAIR_TYPES] for s in range(3)]
    check_close(np.mean(runs, axis=0), last, 0.02, "three seeds give the recorded scores")
table(
    [
        ["both sides are the same kind of text", "question and answer, query and passage"],
        ["paraphrases, entailments, two dropout views", "clicked, answered or cited pairs"],
        ["none needed; both directions mean the same", "a prefix per side, or two encoders"],
        ["STS, duplicates, clustering", "retrieval over a corpus with distractors"],
    ],
    "decide before choosing data", rows=["when", "pairs", "prefixes", "measure"], columns=["symmetric", "asymmetric"],
)


# %% Mined hard negatives
# A batch of (question, statement) pairs never shows a question as a wrong candidate, so nothing pushes one away.
# Mining does: take the encoder at hand, search the corpus, and keep the best-scoring entries that are NOT answers.
def mine(queries, entries, right, k):
    """Indices (n, k) of the k nearest entries of each query that do not answer it, and their cosines."""
    s = np.where(right, -np.inf, cosines(queries, entries))
    found = top_k(s, k)
    return found, np.take_along_axis(s, found, axis=1)


encoder, prefixes = trained["both, with prefixes"]
queries, entries, q, x, right = question_pairs.training_corpus(encoder, prefixes, world)
found, scores = mine(q, x, right, k=5)
each = np.arange(len(q))
check_true(not right[each[:, None], found].any(), "mining: no answer among the negatives")
check_true(bool(np.all(np.diff(scores, axis=1) <= 0)), "mining: nearest first")
by_sorting = np.sort(np.where(right, -np.inf, cosines(q, x)), axis=1)[:, ::-1][:, :5]
check_close(scores, by_sorting, 1e-12, "mining: the same cosines as a full sort")
unfiltered = cosines(q, x).argmax(axis=1)
check_true(right[each, unfiltered].mean() > 0.2, "without the filter over a fifth would be answers: false negatives")
print(f"\n  mined: {np.mean(found[:, 0] >= len(q)):.0%} are other wordings of a question")
# Push is proportional to p_k, so two candidates of a row are pushed in the ratio exp((s_mined - s_random) / tau).
drawn = rng.integers(0, len(q), len(q))
drawn = np.where(right[each, drawn], (drawn + 1) % len(q), drawn)
ratio = np.exp((cosines(q, x)[each, found[:, 0]] - cosines(q, x)[each, drawn]) / 0.05)
check_true(np.median(ratio) > 100, "median row: a mined negative is pushed over 100 times harder than a random one")
before = encoder.params.flat.copy()
continued = []
for negatives in (found[:, 0], drawn):
    encoder.params.flat[...] = before
    question_pairs.continue_with(encoder, queries, entries, negatives)
    continued.append(question_pairs.scores(encoder, prefixes, world))
table([outcome[3], *continued], "40 more steps with one extra negative per query",
      rows=["before", "mined", "random statements"], columns=question_pairs.SCORES, digits=1)
check_true(continued[0][1] > continued[1][1] + 15, "mined negatives teach what in-batch negatives cannot")

# %% Embeddings that can be cut short
# L = mean over prefixes n of InfoNCE(h[:, :n]). A prefix is scaled to unit length by itself. Backward: each prefix
# loss returns a gradient for its first n columns, zero beyond; the total is their mean. Column 1 is in every prefix
# and column D in one, so the early columns carry most.
h, k = rng.standard_normal((2, 5, 8))
loss, (dh, dk) = matryoshka_loss(h, k, 0.2, (2, 4, 8))
parts = [contrast(cosines(h[:, :n], k[:, :n]) / 0.2) for n in (2, 4, 8)]
check_close(loss, np.mean(parts), 1e-12, "Matryoshka: mean of three prefix losses")
differences = [
    numeric_gradient(lambda v: matryoshka_loss(v, k, 0.2, (2, 4, 8))[0], h),
    numeric_gradient(lambda v: matryoshka_loss(h, v, 0.2, (2, 4, 8))[0], k),
]
check_close(np.array([dh, dk]), np.array(differences), 1e-7, "Matryoshka: backward by differences")
full_loss, full_back = info_nce(h, k, 0.2)
check_close(dh[:, 4:], full_back()[0][:, 4:] / 3, 1e-12, "Matryoshka: columns 5 to 8 see the full loss only")
check_close(matryoshka_loss(h, k, 0.2, (8,))[0], full_loss, 0, "Matryoshka: the full width alone is InfoNCE")
# Chapter 3's world, width 32, dropout views, with and without the prefix losses; score after cutting to n columns.
curves = np.array([[prefix_scores(losses, seed) for losses in ((32,), PREFIXES)] for seed in (0, 1)])
plain, nested = curves.mean(axis=0)
table([plain, nested, nested - plain], "Spearman after cutting to n columns, seeds 0 and 1",
      rows=["full width only", "every prefix", "difference"], columns=PREFIXES, digits=3)
check_true(bool(np.all((nested - plain)[1:3] > 0.05)), "4 and 8 columns: prefix losses help")
check_true(nested[2] > plain[3], "8 columns trained for it beat 16 that were not")
gain = curves[:, 1, -1] - curves[:, 0, -1]  # of each seed
check_true(abs(gain.mean()) < np.ptp(gain) / 2, "all 32 columns: up with one seed, down with the other")

# %% A batch larger than memory
# The loss needs all N embeddings at once, but their activations only one chunk at a time:
#   1. encode chunk by chunk, keep the embeddings, throw the activations away
#   2. loss and d loss / d h for the whole batch (an N x N table: cheap)
#   3. encode each chunk AGAIN with the same masks, feed its part of d loss / d h into its backward, add up
# Exact by the chain rule: d loss / d theta = sum over chunks of (d h_chunk / d theta)^T (d loss / d h_chunk).
small = SmallEncoder(question_pairs.WORDS, width=16, dtype=np.float64)
rows = small.rows(world.statements[:12]) * 2
labels, masks = view_labels(12), Masks(seed=3, step=0, rate=0.1)
h, back = small.forward(rows, masks, labels)
loss, loss_back = info_nce(h[:12], h[12:], 0.05)
whole = back(np.concatenate(loss_back()))


def cached(chunk, second_masks):
    """Gradients of the whole batch, at most `chunk` rows alive at once."""
    parts = [slice(i, i + chunk) for i in range(0, len(rows), chunk)]
    h = np.concatenate([small.forward(rows[part], masks, labels[part])[0] for part in parts])
    dh = np.concatenate(info_nce(h[:12], h[12:], 0.05)[1]())
    total = small.params.zeros_like()
    for part in parts:
        small.forward(rows[part], second_masks, labels[part])[1](dh[part], total)
    return total


for chunk in (1, 5, 8):
    check_close(cached(chunk, masks).flat, whole.flat, 1e-12, f"chunks of {chunk} rows: gradient of the whole batch")
# What breaks it: new masks in the second pass (masks are a function of seed and step, so this takes a mistake), and
# the shortcut of a loss per chunk, where a row meets the negatives of its chunk only.
wrong = cached(8, Masks(seed=3, step=1, rate=0.1)).flat
distance = np.linalg.norm(wrong - whole.flat) / np.linalg.norm(whole.flat)
check_true(distance > 0.1, "new masks in pass two: another gradient")
pieces = np.mean([info_nce(h[i : i + 4], h[12 + i : 16 + i], 0.05)[0] for i in (0, 4, 8)])
check_true(pieces < loss, "a loss per chunk is smaller: fewer negatives, an easier question")

# %% The recipe
for number, (what, where) in enumerate(RECIPE, 1):
    print(f"    {number}. {what} ({where})")
# weekend_recipe.py is the whole of it: python chapters/weekend_recipe.py, and --device cuda runs the same lines on a
# GPU. Here from random weights, on sentences whose similarity is known, with three choices of positives and negatives
# and nothing else changed.
# First, does its step return the gradient of its loss? Along random directions v, in float64, dropout on:
# (L(theta + eps v) - L(theta - eps v)) / (2 eps) against v . dL/dtheta.
params = initial(seed=0, device="cpu").astype(np.float64)
chosen, masks = examples(POSITIVES[2], 6, seed=0), Masks(1, 0, 0.1)
directions = rng.standard_normal((4, params.flat.size))
step_gradients = params.zeros_like()
training_step(params, chosen, masks, step_gradients)
along = []
for v in directions:
    shifted = [params.copy() for _ in range(2)]
    for sign, moved in zip((1, -1), shifted, strict=True):
        moved.flat += sign * 1e-6 * v
    above, below = (training_step(moved, chosen, masks, moved.zeros_like()) for moved in shifted)
    along.append((above - below) / 2e-6)
check_close(directions @ step_gradients.flat, np.array(along), 1e-6, "recipe: gradient of one step, by differences")
# Second, its optimiser. Adam keeps running means of the gradient and of its square, both from 0:
#     m <- b1 m + (1 - b1) g      v <- b2 v + (1 - b2) g^2      theta <- theta - lr m^ / (sqrt(v^) + eps)
# After t steps the weights of all gradients so far add up to 1 - b^t only: m^ = m / (1 - b1^t), v^ = v / (1 - b2^t).
# At t = 1 that is m^ = g, v^ = g^2: a step of length lr against the sign of g, however large g is.
b1, b2, lr = 0.9, 0.999, 0.01
g1, g2 = np.array([0.001, -2.0, 50.0]), np.array([0.003, -2.0, -20.0])
theta = Parameters({"weight": (3,)}, dtype=np.float64)
pushed = theta.zeros_like()
adam = Adam(theta)
pushed.flat[...] = g1
adam.step(pushed, lr)
check_close(theta.flat, -lr * np.sign(g1), 1e-4, "Adam, step 1: as long as the learning rate, for any gradient")
one = theta.flat.copy()
pushed.flat[...] = g2
adam.step(pushed, lr)
m = (b1 * (1 - b1) * g1 + (1 - b1) * g2) / (1 - b1**2)
v = (b2 * (1 - b2) * g1**2 + (1 - b2) * g2**2) / (1 - b2**2)
check_close(theta.flat - one, -lr * m / (np.sqrt(v) + 1e-8), 1e-12, "Adam, step 2: by hand")
check((one - theta.flat) / lr, "0.918 -1.000 0.346", "Adam, step 2: steady and changing gradients, in units of lr")
check((1 - b1) / np.sqrt(1 - b2), "3.162", "Adam without the corrections: step 1, in units of lr")
# AdamW shrinks the weights first, by lr times the decay, beside the moments. Clipping and warm-up finish the line.
decayed = Parameters({"weight": (3,)}, dtype=np.float64)
decayed.flat[...] = 2.0
pushed.flat[...] = g1
AdamW(decayed, weight_decay=0.1).step(pushed, lr)
check_close(decayed.flat, 2.0 * (1 - lr * 0.1) + one, 1e-12, "AdamW, step 1: decay, then Adam's step")
pushed.flat[...] = [3.0, 0.0, 4.0]
clip_global_norm(pushed, 1.0)
check(pushed.flat, "0.6 0 0.8", "clipping: a gradient of length 5 cut to 1, its direction kept")
check([learning_rate(6e-3, step, 60, warmup=6, schedule="constant") for step in (0, 2, 5, 59)],
      "0.001 0.003 0.006 0.006", "warm-up: six steps to the full rate")
results = {kind: weekend(kind) for kind in POSITIVES}
for kind, result in results.items():
    table(result.log, kind, columns=LOG, digits=3)
    print(f"    test score {result.before:.1f} -> {result.after:.1f};", *(result.verdict.reasons or ["no collapse"]))
twins, entailment, both = results.values()
check_true(entailment.after > entailment.before + 20, "entailment pairs: the score rises by more than 20")
check_true(both.after > entailment.before + 20, "with contradictions as well")
check_true(twins.log[-1, 1] < 0.2 * twins.log[0, 1], "dropout pairs: the loss falls to a fifth or less")
check_true(twins.log[-1, 2] > 5 * twins.log[0, 2], "dropout pairs: alignment of paraphrases gets worse")
check_true(twins.after < twins.before + 15, "dropout pairs: the score hardly follows")
check_true(entailment.log[-1, 2] < 0.3 < twins.log[-1, 2], "entailment pairs keep paraphrases together")
check_true(not any(result.verdict.collapsed for result in results.values()), "none of the three has collapsed")
check_true(bool(entailment.log[-1, 3] < entailment.log[0, 3] - 1), "uniformity improves by more than one nat")
# The cloud that is diagnosed belongs to the kept checkpoint: other sentences than in the log, the same uniformity.
kept = twins.log[twins.log[:, 4].argmax(), 3]
check_close(geometry.uniformity(twins.cloud), kept, 0, "the report's cloud: within 0.02 nats of the log", atol=0.02)
# Loss near zero, alignment climbing, score flat: the diagnosis of chapter 3. Two masks can only protect what an
# encoder already knows, and random weights know no synonyms. The paper starts from BERT. Starting from nothing, the
# third and fourth row of the template, the data, decide.
last = recorded(
    "recipe, test score", ["positives", "seed 0", "seed 1", "seed 2"],
    [["before training", 18.3, 23.8, 25.8], ["dropout", 26.9, 29.1, 19.0], ["entailment", 55.9, 56.5, 64.3],
     ["entailment + contradiction", 62.6, 61.6, 66.3]], seeds="0 to 2", digits=1,
)
if full():
    runs = [[weekend(kind, seed=s) for kind in POSITIVES] for s in range(3)]
    again = np.array([[r[0].before, *(result.after for result in r)] for r in runs]).T
    check_close(again, last, 0.02, "three seeds give the recorded test scores")
