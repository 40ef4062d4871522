"""Chapter 12: bi-encoders, and the losses that came before and after InfoNCE."""

# %% [markdown]
# Question: two texts are encoded apart and compared by a cosine. Which loss makes that cosine mean something?
# Pulling alone collapses, though not in the way one expects. The triplet loss pushes against one negative and falls
# silent. Sentence-BERT names the relation of a pair with a classifier that is thrown away afterwards. The quiz of
# chapter 1 with mined negatives is what stayed, once repeated passages are taken out of it. Last: what encoding apart
# buys, and how a student learns a second language without a single negative.
#
# Letters: B pairs, k mined passages per query, D width, a, p, n anchor, positive, negative, d+ and d- their distances.

# %% Pulling alone, on a hidden meaning
import numpy as np
from bag_encoder import BagEncoder
from fact_questions import BATCH as FACT_BATCH
from fact_questions import Facts
from fact_questions import train as train_facts
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
from pair_head import accuracy, labelled
from pair_head import train as train_head
from shared_meaning import COLUMNS, collapse, dead_share, encode, next_row, pull, quiz, shrunk, start, train, views
from supervised_experiment import measure, nli, triples
from supervised_experiment import train as train_quiz
from two_languages import Languages, cut, distil, recall, teacher

from nano_simcse.evaluation import binomial_error
from nano_simcse.geometry import alignment, mean_pair_cosine, uniformity
from nano_simcse.layers import normalize
from nano_simcse.losses import (
    distillation,
    duplicate_mask,
    hard_negative_loss,
    info_nce,
    pair_classifier,
    pair_features,
    triplet,
)

# L = mean_i |u_i - v_i|^2 with unit rows u, v. dL/du_i = 2 (u_i - v_i) / B, then the Jacobian of the normalisation.
rng = np.random.default_rng(120)
first, second = rng.standard_normal((2, 6, 4))
du, dv = pull(first, second)[1]()
check_close(du, numeric_gradient(lambda x: pull(x, second)[0], first), 1e-7, "pull: d/dfirst by differences")
check_close(dv, numeric_gradient(lambda x: pull(first, x)[0], second), 1e-7, "pull: d/dsecond by differences")
check_close(pull(first, second)[0], alignment(first, second), 1e-12, "pull: the loss is the alignment")
check_close((du * first).sum(axis=1), np.zeros(6), 0, "pull: no gradient along a row", atol=1e-14)
one_point = np.tile([[3.0, 4.0]], (6, 1))
check(pull(one_point, 2 * one_point)[0], "0", "pull: one point for everything costs nothing")
check(uniformity(one_point), "0", "one point: uniformity is 0, its worst value")

# A meaning of 6 numbers is seen twice through a 6 x 32 mixture with fresh noise; h = x W + b with W (32, 6). 2000 pairs
# to train on, 500 to find each other. The same encoder, trained with the quiz at tau 0.1 and with the pull.
train_pairs, test_pairs = views()
_, quiz_run = train(quiz, train_pairs, test_pairs, steps=400, lr=0.01, every=200)
pull_encoder, pull_run = collapse(train_pairs, test_pairs, every=50)
table(quiz_run, "InfoNCE, Adam; recall@1 in percent, measured in three ways", rows=[""] * 3, columns=COLUMNS,
      digits="3g")
table(pull_run, "pull only, plain gradient descent", rows=[""] * len(pull_run), columns=COLUMNS, digits="3g")
alignments, uniform, recall_32, recall_64, recall_diff = pull_run[:, 1:6].T
check_true(bool(quiz_run[-1, 4] > 85 and quiz_run[-1, 2] < -2.7), "InfoNCE: recall above 85%, uniformity below -2.7")
check_true(bool(np.all(np.diff(alignments) < 0)), "pull only: the loss falls from record to record")
check_true(bool(alignments[-1] < 1e-29 and uniform[-1] > -1e-12), "pull only: alignment and uniformity end at 0")
check(1 / 500, "0.002", "blind guess among 500")

# What breaks, and when. On the way down the pull first removes noise: recall RISES, nearly to the quiz's. Then the
# cloud shrinks to nothing, and a shrunken cloud is still a cloud.
check_true(bool(recall_64.max() > 3 * recall_64[0] and recall_64.max() > 70), "pull only: recall peaks above 70%")
late = recall_64[(alignments < 1e-8) & (alignments > 1e-13)]
check_true(bool(late.min() > 100 / 500 * 50), "pull only, alignment 1e-8 to 1e-13: over fifty times chance")
check_true(bool(recall_32[alignments < 1e-9].max() < 1), "the same rows held in float32: recall gone below 1e-9")
check_true(bool(recall_64[alignments < 1e-17].max() < 1), "cosines in float64: recall gone below 1e-17")
# The slow decline that remains has its own cause: the noise is not quite alike in all directions, each shrinks by its
# own factor a step, and after hundreds of steps the slowest one is nearly alone.


def widths(parameters):
    """Singular values of the test cloud across the bias, over the largest."""
    along = parameters["bias"] / np.linalg.norm(parameters["bias"])
    cloud = test_pairs[0] @ parameters["weight"] @ (np.eye(6) - np.outer(along, along))
    singular = np.linalg.svd(cloud - cloud.mean(axis=0), compute_uv=False)
    return singular[:5] / singular[0]


table([widths(start()), widths(pull_encoder)], "the cloud's widths in five directions, over the largest",
      rows=["start", "collapsed"], columns=range(1, 6), digits=3)
check_true(bool(widths(start())[1] > 0.7 and widths(pull_encoder)[1] < 0.35), "the collapsed cloud is nearly a line")

# %% Recall does not see the size of a cloud
# u = h / |h| with h = b + x W and W small: u = b^ + x W P / |b| + O(|W|^2), P = I - b^ b^^T. So
#   u_i - v_j = (x_i - y_j) W P / |b|:  every distance carries the factor |WP| / |b|, no order among them does.
# No training here: the random encoder with its weight across the bias scaled by 10^-e.
exponents = np.arange(19)
shrunk_rows, limit_recall = shrunk(test_pairs, exponents)
table(shrunk_rows, "weight across the bias times 10^-e; recall@1 in percent", rows=[f"e = {e}" for e in exponents],
      columns=["alignment", "cos f32", "cos f64", "differences", "1 - mean cosine"], digits="3g")
check_close(shrunk_rows[2:7, 0] * 100.0 ** exponents[2:7] / shrunk_rows[6, 0] / 1e12, np.ones(5), 2e-3,
            "alignment goes with the square of the scale")
check_close(shrunk_rows[3:11, 3], np.full(8, limit_recall), 0, "recall by differences: that of W P, for e = 3 to 10")
check_true(bool(np.all(shrunk_rows[-1, :4] == 0)), "e = 18: all rows equal bit for bit, recall 0 with ties as misses")
erratum(shrunk_rows[4, 2], right="20.8", lesson="0.2", id="collapsed-is-not-blind", where="lesson 2, pull-only encoder",
        says="a collapsed encoder (alignment and uniformity 0) finds the partner as often as a blind guess, 1 in 500",
        label="alignment 3.4e-9, mean cosine 0.99999998: recall@1 in percent",
        why="Order survives any shrinking until rounding: cosines fail at an alignment near machine epsilon.")
check(shrunk_rows[4, [0, 4]], "3.41e-9 1.6e-8", "e = 4: alignment, 1 - mean cosine")
# Where each reading dies: cosines near 1 are spaced by eps/2, and 1 - cos = d^2 / 2. Entries of u are spaced by eps
# themselves, so differences last until d is about eps: alignment eps^2.
eps_32, eps_64 = np.finfo(np.float32).eps, np.finfo(np.float64).eps
half = [shrunk_rows[:, column] < limit_recall / 2 for column in (1, 2, 3)]
death = np.array([shrunk_rows[h.argmax(), 0] for h in half])
check_true(bool(np.all(np.abs(np.log10(death / [eps_32, eps_64, eps_64**2])) < 2)),
           "recall halves within two decades of eps32, eps64 and eps64 squared")
ties = np.ones((500, 500))
check(np.mean(ties.argmax(axis=1) == np.arange(500)), "0.002", "all scores equal, first index wins: 1 in 500")

# Which weight made the collapse? Not a bias that grew without bound: the part of W across it vanished.
_, adam_run = train(pull, train_pairs, test_pairs, steps=900, lr=0.01, every=450)
for name, run in (("descent", pull_run), ("Adam", adam_run)):
    growth, shrinkage = run[-1, 6] / run[0, 6], run[0, 7] / run[-1, 7]
    check_true(bool(growth < 2.5 and shrinkage > 1e12), f"{name}: bias grows less than 2.5-fold, the rest shrinks")
check(growth, "1.7", "Adam: growth of |b|")
erratum_claim(bool(growth < 2.5 and shrinkage > 1e12), id="collapse-by-bias", where="lesson 2, pull-only encoder",
              says="the pull-only encoder collapses by making its bias huge", label="Adam: it is not the bias",
              right="|b| grows 1.7-fold; the weight across the bias shrinks by more than 1e12",
              why="The gradient is perpendicular to every row, so lengths hardly grow, while W P is driven to zero.")

# %% The triplet loss: one negative at a time
# max(0, d+ - d- + m), averaged. By hand: a at 0, p at 20, n at 50 degrees on the circle, m = 1.


def on_circle(*degrees):
    angle = np.deg2rad(degrees)
    return np.column_stack([np.cos(angle), np.sin(angle)])


a, p, n = on_circle(0), on_circle(20), on_circle(50)
near, far = np.linalg.norm(a - p), np.linalg.norm(a - n)  # chords: 2 sin(angle / 2)
check([near, far], "0.347296 0.845237", "triplet: d+ and d-")
check(near - far + 1, "0.502060", "triplet: bracket")
loss, back = triplet(a, p, n)
check_close(loss, near - far + 1, 1e-12, "triplet: the package's loss")
e_near, e_far = (a - p) / near, (a - n) / far  # d|x|/dx = x / |x|
tangents = [np.eye(2) - row.T @ row for row in (a, p, n)]  # rows of length 1: the Jacobian is the projection
by_hand = [(e_near - e_far) @ tangents[0], -e_near @ tangents[1], e_far @ tangents[2]]
for name, mine, theirs in zip("apn", by_hand, back(), strict=True):
    check_close(mine, theirs, 1e-12, f"triplet: d/d{name} by hand")
rows = rng.standard_normal((3, 8, 5))
for k, name in enumerate("apn"):
    numeric = numeric_gradient(lambda x, k=k: triplet(*[x if j == k else rows[j] for j in range(3)])[0], rows[k])
    check_close(triplet(*rows)[1]()[k], numeric, 1e-7, f"triplet, 8 random rows: d/d{name} by differences")
quoted("1", "margin of Sentence-BERT's triplet objective, Euclidean, rows as they are", source="arXiv 1908.10084, 3")

# The dead zone on the sphere, d = sqrt(2 - 2 cos): silent once cos(a, n) <= 1 - (d+ + 1)^2 / 2.
closeness = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
edge = 1 - (closeness + 1) ** 2 / 2
table(np.column_stack([1 - closeness**2 / 2, edge]), "margin 1: the loss is 0 once cos(a, n) is at most",
      rows=[f"d+ = {d}" for d in closeness], columns=["cos(a, p)", "cos(a, n)"], digits=3)
check(edge[[0, 2, 4]], "0.5 -0.125 -1", "dead zone: its edge for d+ = 0, 0.5, 1")
alone = triplet(a, a, on_circle(60.5))
check_true(alone[0] == 0 and not any(g.any() for g in alone[1]()), "beyond the edge: loss and gradient are 0")
check_true(triplet(a, a, on_circle(59.5))[0] > 0, "inside the edge: not 0")
check(triplet(on_circle(0), on_circle(61), on_circle(180))[0], "0.0151", "cos(a, p) < 0.5: an antipode is too near")
# Rows as they are have a way out that teaches nothing: growing.
grown = [float(triplet(*(c * rows), unit_length=False)[0]) for c in (1e-4, 1.0, 100.0)]
unit_rows = [float(triplet(*(c * rows))[0]) for c in (1e-4, 1.0, 100.0)]
check(grown[0], "1.00", "raw rows, lengths times 1e-4: only the margin is left")
check_true(grown[2] > 5 and float(np.std(unit_rows)) < 1e-12, "raw rows: the loss follows length; unit rows: not")
triangle = np.array([on_circle(0), on_circle(20), on_circle(50)])
check(triplet(*(2.1 * triangle), unit_length=False)[0], "0", "hand triple, rows 2.1 times as long: solved by length")
check(triplet(one_point, one_point, one_point)[0], "1", "a collapsed batch pays the margin")
check_true(not any(g.any() for g in triplet(one_point, one_point, one_point)[1]()), "and gets no gradient: stationary")

# Trained on the hidden meaning, the negative being another row of the batch. Enough for this task, however many
# triplets have fallen silent; the margin decides how many.
margins = [1.0, 0.2]
trained = [train(next_row(m), train_pairs, test_pairs, steps=400, lr=0.01, every=400) for m in margins]
dead = np.array([[dead_share(encode(e, test_pairs[0]), encode(e, test_pairs[1]), m) for e in (start(), trained[i][0])]
                 for i, m in enumerate(margins)])
table(np.column_stack([100 * dead, [run[-1, 4] for _, run in trained]]), "triplets without a gradient, and recall@1",
      rows=[f"m = {m}" for m in margins], columns=["start %", "end %", "recall %"], digits=1)
check_true(bool(dead[0, 1] > 0.6 > dead[0, 0]), "m = 1: over 60% of triplets silent at the end")
check_true(bool(dead[1, 1] > 0.98), "m = 0.2: over 98% silent at the end")
check_true(bool(trained[0][1][-1, 4] > 80), "m = 1: recall above 80%, on a par with the quiz")
push = np.abs(np.stack(quiz(encode(start(), test_pairs[0]), encode(start(), test_pairs[1]))[1]())).min()
check_true(bool(push > 0), "the quiz leaves no entry of its gradient at 0")

last = recorded("recall@1, three ways to train, means over seeds (percent)",
                ["loss", "recall", "dead at the end"],
                [["InfoNCE", 89.40, 0.0], ["triplet, m = 1", 90.07, 70.85], ["pull only, its peak", 79.67, 0.0]],
                seeds="0 to 2", digits=2)


def three_seeds():
    """The recorded table: every seed draws its own world and its own start."""
    rows = []
    for seed in range(3):
        pairs, held = views(seed)
        _, q = train(quiz, pairs, held, 400, 0.01, every=400, seed=seed)
        encoder, t = train(next_row(), pairs, held, 400, 0.01, every=400, seed=seed)
        _, c = collapse(pairs, held, seed=seed, steps=200)
        silent = 100 * dead_share(encode(encoder, held[0]), encode(encoder, held[1]))
        rows.append([[q[-1, 4], 0], [t[-1, 4], silent], [c[:, 4].max(), 0]])
    return np.mean(rows, axis=0)


if full():
    check_close(three_seeds(), last, 1e-2, "three seeds give the recorded results")

# %% Naming the relation: (u, v, |u - v|)
# z = (u, v, |u - v|) W + b, softmax over 3 relations. W has three blocks: z = u W1 + v W2 + |u - v| W3 + b.
#   du = dz W1^T + sign(u - v) * (dz W3^T)        dv = dz W2^T - sign(u - v) * (dz W3^T)
u, v = rng.standard_normal((2, 5, 4))
W, b, relation = rng.standard_normal((12, 3)), rng.standard_normal(3), np.array([0, 1, 2, 1, 0])
W1, W2, W3 = W[:4], W[4:8], W[8:]
z = u @ W1 + v @ W2 + np.abs(u - v) @ W3 + b
prob = np.exp(z - z.max(axis=1, keepdims=True))
prob /= prob.sum(axis=1, keepdims=True)
dz = (prob - np.eye(3)[relation]) / 5
side = np.sign(u - v) * (dz @ W3.T)
loss, back = pair_classifier(u, v, W, b, relation)
check_close(loss, -np.log(prob[np.arange(5), relation]).mean(), 1e-12, "pair head: loss by hand")
features = np.concatenate([u, v, np.abs(u - v)], axis=1)
by_hand = [dz @ W1.T + side, dz @ W2.T - side, features.T @ dz, dz.sum(axis=0)]
for name, mine, theirs in zip(("u", "v", "weight", "bias"), by_hand, back(), strict=True):
    check_close(mine, theirs, 1e-12, f"pair head: d/d{name} by hand")
check_close(by_hand[0], numeric_gradient(lambda x: pair_classifier(x, v, W, b, relation)[0], u), 1e-7,
            "pair head: d/du by differences")
check_close(pair_classifier(u, v, 0 * W, 0 * b, relation)[0], np.log(3), 1e-12, "pair head: starts at ln 3")

# Why the bars. Without them z = f(u) + g(v), hence z(a, a) + z(c, c) = z(a, c) + z(c, a): if both "same" pairs score
# high, so must one "different" pair. Agreement is not linear in (u, v); |u - v| makes it so.
ac = rng.standard_normal((2, 4))
same, crossed = (ac, ac), (ac, ac[::-1])
for parts, rows_of_w in ((("u", "v"), W[:8]), (("u", "v", "|u-v|"), W)):
    total = ((pair_features(*same, parts)[0] - pair_features(*crossed, parts)[0]) @ rows_of_w).sum(axis=0)
    holds = bool(np.abs(total).max() < 1e-12)
    check_true(holds == (len(parts) == 2), f"{' '.join(parts)}: agreement {'cannot' if holds else 'can'} be told")
# And what the loss cannot see: add one vector c to every sentence and move the bias. |u - v| stays, the logits stay,
# every cosine goes to 1. The cosine that is used afterwards is in no term of this loss.
c = 20 * np.ones(4)
moved = pair_classifier(u + c, v + c, W, b - c @ (W1 + W2), relation)[0]
check_close(moved, loss, 1e-10, "pair head: a common offset leaves the loss as it is")
check_true(mean_pair_cosine(u + c) > 0.99 > 0.5 > mean_pair_cosine(u), "while all cosines go to 1")

# Trained from nothing on the grammar's NLI (600 premises with three hypotheses each), against the quiz with the
# contradiction as hard negative, same steps. Score: 100 x Spearman on graded pairs.
train_set, held_set = labelled(600, seed=1), labelled(150, seed=2)
parts_full, parts_v = ("u", "v", "|u-v|"), ("v",)
head_encoder, head, head_losses = train_head(train_set, parts_full)
v_encoder, v_head, _ = train_head(train_set, parts_v)
quiz_encoder, _ = train_quiz([row[:3] for row in nli(600, seed=1)], steps=120)
named = [accuracy(head_encoder, head, parts_full, held_set), accuracy(v_encoder, v_head, parts_v, held_set)]
outcome = np.array([measure(head_encoder), measure(v_encoder), measure(quiz_encoder)])
table(np.column_stack([[*named, np.nan], outcome]), "grammar NLI, 120 steps",
      rows=["(u, v, |u-v|)", "v alone", "InfoNCE with hard negative"],
      columns=["accuracy", "STS score", "cos entailment", "cos contradiction", "uniformity"], digits=2)
check_true(head_losses[-10:].mean() < 0.7 and named[0] > 65, "pair head: loss falls, two in three relations named")
check_true(named[1] > 33.3 + 4 * binomial_error(33.3, 450), "the hypothesis alone names far more than one in three")
check_true(bool(outcome[0, 2] > outcome[0, 1]), "pair head: contradictions end up closer by cosine than entailments")
check_true(bool(outcome[2, 1] > outcome[2, 2] + 0.1), "InfoNCE: the other way round")
check_true(bool(outcome[2, 0] > outcome[0, 0] + 30), "InfoNCE: 30 points more on graded pairs")
# Sentence-BERT starts from BERT, not from nothing, and there the same head gives usable cosines:
sbert_table = {"(u, v)": 66.04, "|u-v|": 69.78, "(u, v, u*v)": 77.44, "(u, v, |u-v|)": 80.78, "all four": 80.44}
for name, score in sbert_table.items():
    quoted(f"{score:.2f}", f"Sentence-BERT, STS-B dev, features {name}", source="arXiv 1908.10084, Table 6")
pooled = quoted("80.78 79.80 79.07", "Sentence-BERT, pooling MEAN, CLS, MAX", source="arXiv 1908.10084, Table 6")
check(pooled[0] - pooled[1], "0.98", "points by which the mean beats [CLS] there")
check(sbert_table["(u, v, |u-v|)"] - sbert_table["(u, v)"], "14.74", "points that the bars are worth there")
nominal = quoted("570000", "SNLI pairs", source="arXiv 1908.10084") + quoted("430000", "MultiNLI pairs", source="same")
check(nominal, "1,000,000", "pairs in the two corpora, rounded, all splits")
erratum_quoted(right="942069", lesson="1000000", source="AllNLI data card, pair-class, train",
               id="sbert-nli-size", where="lesson 2, Sentence-BERT", label="NLI pairs Sentence-BERT can be trained on",
               says="SBERT was trained on 570,000 SNLI and 430,000 MultiNLI pairs",
               why="Those are the sizes of the corpora; development and test pairs and those without a label drop out.")

# %% Multiple negatives ranking is InfoNCE under another name


def multiple_negatives_ranking(anchors, positives, scale=20.0):
    """Cross-entropy of scale * cosine with label i for row i."""
    scores = scale * normalize(anchors)[0] @ normalize(positives)[0].T
    return np.mean(np.log(np.exp(scores).sum(axis=1)) - np.diag(scores))


q, p = rng.standard_normal((2, 8, 5))
check_close(multiple_negatives_ranking(q, p), info_nce(q, p, 0.05)[0], 1e-12, "scale 20 is a temperature of 0.05")
table([["CrossEntropyLoss(scale * q @ p.T, arange(B))"], ["labels = arange(B), candidates cat([p, hard])"],
       ["masked_fill(same_id & ~eye, -inf)"], ["TripletMarginLoss(margin=1.0)"], ["SoftmaxLoss"],
       ["2 D MSELoss (a mean over entries)"]],
      "the same in torch and sentence-transformers", rows=["info_nce", "hard_negatives=", "duplicate_mask", "triplet",
                                                           "pair_classifier", "distillation"])

# %% Mined negatives, shared over the batch
# Random passages soon tell themselves apart. Dense passage retrieval adds, for each question, one passage that shares
# its words but not its answer, and lets every question of the batch see all of them.
for size, k in ((4, 2), (128, 1)):
    check(np.hstack([np.eye(size), np.zeros((size, size * k))]).shape, f"{size} {size + size * k}",
          f"B = {size}, k = {k}: shape of the logits, B x (B + B k)")
check(128 - 1 + 128, "255", "B = 128, k = 1: negatives per question, 2 B - 1 = 255")
check(1024 - 1, "1023", "B = 1024: negatives that cost no encoding")


def with_a_list(q, p, n, tau, pos_ids, neg_ids):
    """The loss with explicit candidates: whatever repeats the row's own positive is left off the list."""
    q, p, n = (normalize(x)[0] for x in (q, p, n))
    losses = []
    for i in range(len(q)):
        others = [p[j] for j in range(len(p)) if pos_ids[j] != pos_ids[i]]
        others += [n[m] for m in range(len(n)) if neg_ids[m] != pos_ids[i]]
        s = np.array([p[i], *others]) @ q[i] / tau
        losses.append(s.max() + np.log(np.exp(s - s.max()).sum()) - s[0])
    return np.mean(losses)


q, p, n = rng.standard_normal((6, 5)), rng.standard_normal((6, 5)), rng.standard_normal((12, 5))
p[4], n[3], n[7] = p[1], p[1], p[0]  # question 4 has the answer of question 1; two mined passages are answers
pos_ids = np.array([0, 1, 2, 3, 1, 5])
neg_ids = 10 + np.arange(12)
neg_ids[[3, 7]] = 1, 0
mask = duplicate_mask(pos_ids, neg_ids)
table(mask, "masked: in-batch block, then mined block", rows=[f"q{i}" for i in range(6)], columns=[*pos_ids, *neg_ids])
check(mask.sum(axis=1), "1 2 0 0 2 0", "masked columns of each row")
for tau in (0.05, 1.0, 1e-5):
    loss, back = hard_negative_loss(q, p, n, tau, pos_ids, neg_ids)
    check_close(loss, with_a_list(q, p, n, tau, pos_ids, neg_ids), 1e-10, f"tau = {tau:g}: masked = left off the list")
    check_true(all(np.isfinite(g).all() for g in back()), f"tau = {tau:g}: gradients are finite")
loss, back = hard_negative_loss(q, p, n, 0.3, pos_ids, neg_ids)
for k, name in enumerate(("Q", "P", "Nh")):
    numeric = numeric_gradient(
        lambda x, k=k: hard_negative_loss(*[x if j == k else (q, p, n)[j] for j in range(3)], 0.3, pos_ids, neg_ids)[0],
        (q, p, n)[k])
    check_close(back()[k], numeric, 1e-7, f"masked loss: d/d{name} by differences")
plain = info_nce(q, p, 0.3, hard_negatives=n)
apart = hard_negative_loss(q, p, n, 0.3, np.arange(6), 10 + np.arange(12))
check_close(apart[0], plain[0], 1e-12, "no id in common: the plain loss on all candidates")
check_close(apart[1]()[2], plain[1]()[2], 1e-12, "no id in common: the plain gradient")
check_true(hard_negative_loss(q, p, n, 0.3, np.arange(6), neg_ids + 100)[0] > loss, "one answer, two ids: unmasked")
# Supervised SimCSE's triples are the case k = 1 with ids that never meet.
entailed = BagEncoder(sorted({w for t in triples(6) for s in t for w in s.split()}), 8)
anchor, positive, contradiction = (entailed.encode(list(side)) for side in zip(*triples(6), strict=True))
check_close(hard_negative_loss(anchor, positive, contradiction, 0.05, range(6), range(6, 12))[0],
            info_nce(anchor, positive, 0.05, hard_negatives=contradiction, log_weight=0.0)[0], 1e-12,
            "triples of (premise, entailment, contradiction): k = 1, weight 1")
# A repeated positive is worth log 2 at best, and its gradient pushes the answer away from its own question.
solved = np.eye(4)
left_in = hard_negative_loss(solved, solved, solved, 0.05, range(4), range(4, 8))
taken_out = hard_negative_loss(solved, solved, solved, 0.05, range(4), range(4))
check(left_in[0], "0.693147", "answers mined and left in: ln 2, for ever")
check_true(taken_out[0] < 1e-7, "taken out: solved")
near = solved + 0.1 * rng.standard_normal((4, 4))
d_mined = hard_negative_loss(solved, solved, near, 0.05, range(4), range(4, 8))[1]()[2]
check_true(bool(((d_mined * solved).sum(axis=1) > 0).all()), "left in: descent takes every mined answer away")
# Not masked: one negative that was mined twice. It counts twice, as a weight of 2 on it would.
row, key, other = rng.standard_normal((3, 1, 5))
twice = hard_negative_loss(row, key, np.vstack([other, other]), 0.3, [0], [7, 7])[0]
check_close(twice, info_nce(row, key, 0.3, hard_negatives=other, log_weight=np.log(2))[0], 1e-12,
            "a negative mined twice has weight 2")

# %% What mined negatives teach
# 1800 facts "agent verb noun", six verbs to a noun. The question keeps the noun and words the verb differently. Random
# negatives mostly have other nouns: the noun nearly solves such a batch, and the verb is learned slowly. BM25 finds
# passages with the same noun, and there the verb decides. The passage must not hold the answer (the agent), or it may
# be right.
facts = Facts()
of_noun = np.bincount(facts.nouns[facts.train])[facts.nouns[facts.train]] - 1  # training rows that share a row's noun
strangers, mates = len(facts.train) - 1 - of_noun, FACT_BATCH - 1
alone = np.prod([(strangers - i) / (len(facts.train) - 1 - i) for i in range(mates)], axis=0)  # no mate has the noun
check(1 - alone.mean(), "4.1%", "random batches of 16: rows with the same noun among their negatives")
noun_only = 100 * np.mean(1 / np.bincount(facts.nouns)[facts.nouns[facts.test]])
check(noun_only, "16.7", "recall@1 of one who knows the noun and guesses the verb, percent")
print(f"\n    {facts.questions[facts.train[0]]}   ->   {facts.passages[facts.train[0]]}")
strict, careless = facts.mined(), facts.mined(answers_allowed=True)
held = facts.train
print(f"    mined: {facts.passages[strict[held[0]]]}")
check_true(bool(np.mean(facts.nouns[strict[held]] == facts.nouns[held]) > 0.9), "mined: over 90% share the noun")
check(facts.holds_answer()[held, strict[held]].sum(), "0", "mined: passages that hold the answer")
answered = np.mean(facts.holds_answer()[held, careless[held]])
check_true(bool(answered > 0.25), "mined without looking: over a quarter hold the answer")
settings = {"in-batch only": {}, "+ random": {"mined": "random"}, "+ BM25": {"mined": strict},
            "+ BM25 with answers, masked": {"mined": careless},
            "+ BM25 with answers, left in": {"mined": careless, "masked": False}}
learnt = {name: train_facts(facts, **options) for name, options in settings.items()}
steps = np.arange(0, 301, 50)
table(list(learnt.values()), "recall@1 in percent, 900 unseen questions, 1800 passages", rows=learnt,
      columns=[f"step {s}" for s in steps], digits=1)
in_batch, random_extra, mined, masked_run, left_in_run = (run[-1] for run in learnt.values())
check_true(in_batch > 3 * noun_only, "in-batch only: the verb is learned too")
check_true(learnt["in-batch only"][2] < learnt["+ BM25"][2] - 10, "but slowly: after 100 steps 10 points behind BM25")
check_true(random_extra > in_batch + 4, "more candidates help: 16 random passages more")
check_true(mined > random_extra + 8, "the same number of mined ones helps more")
check_true(mined - in_batch > 4 * 2**0.5 * binomial_error(mined, 900), "mined against in-batch: over four errors")
check_true(mined > masked_run > left_in_run, "answers among the mined cost recall, more when they are left in")
check(np.log(2 * FACT_BATCH), "3.4657", "chance level with mined passages: ln 32")
# Larger batches help for the same reason, less and less: E5's ablation.
e5 = quoted("45.8 50.2 51.6", "E5, nDCG@10 on six BEIR sets at batch 1K, 8K, 32K", source="arXiv 2212.03533")
check(np.diff(e5) / [3, 2], "1.47 0.70", "points per doubling of the batch, 1K to 8K and 8K to 32K")

# %% Why encode apart: counting
# A cross-encoder reads two texts at once: n texts need n (n - 1) / 2 passes. A bi-encoder needs n, and dot products.
count = 10_000
pairs = count * (count - 1) // 2
check(pairs, "49,995,000", "pairs among 10,000 sentences")
hours = quoted("65", "hours of BERT on all pairs", source="arXiv 1908.10084, Section 1")
seconds = quoted("5", "seconds of Sentence-BERT on the sentences", source="arXiv 1908.10084, Section 1")
per_pair, per_text = hours * 3600 / pairs, seconds / count
check(1000 * per_pair, "4.680468", "milliseconds per pair")
check(1000 * per_text, "0.5", "milliseconds per sentence")
check(hours * 3600 / seconds, "46,800", "ratio of the two")
check(per_pair / per_text, "9.36", "so a pair costs as much as nine sentences; the rest is counting")
check(pairs * 768, "38,396,160,000", "multiply-adds of all cosines, width 768")
sizes = np.array([1_000, 10_000, 1_000_000])
table(np.column_stack([sizes * (sizes - 1) / 2 * per_pair, sizes * per_text, sizes * 100 * per_pair]) / 3600,
      "hours", rows=[f"n = {s:,}" for s in sizes],
      columns=["cross, all pairs", "bi", "cross, 100 candidates each"], digits="3g")
check(count * 100 * per_pair / 3600, "1.30", "hours to rerank 100 candidates for each of 10,000 texts")
check(1e6 * per_pair / 3600, "1.30", "hours for ONE query against a million texts, read in pairs")

# %% A student learns a second language
# |s - t|^2 + |r - t|^2, s and r the student's vectors of a sentence and of its translation, t the teacher's, fixed.
s, r, t = rng.standard_normal((3, 5, 4))
loss, back = distillation(s, r, t)
check_close(loss, np.mean(((s - t) ** 2).sum(axis=1) + ((r - t) ** 2).sum(axis=1)), 1e-12, "distillation: by hand")
check_close(loss, 2 * 4 * np.mean(np.square([s - t, r - t])), 1e-12, "distillation: 2 D times the mean over entries")
check_close(back()[0], 2 * (s - t) / 5, 1e-12, "distillation: d/dsources by hand")
check_close(back()[1], numeric_gradient(lambda x: distillation(s, x, t)[0], r), 1e-7, "distillation: d/dtranslations")
# It only pulls, and yet it does not collapse: the targets stand still. One point costs twice the teacher's variance,
# once for each language.
middle = np.tile(t.mean(axis=0), (5, 1))
check_close(distillation(middle, middle, t)[0], 2 * t.var(axis=0).sum(), 1e-12, "one point costs twice a variance")

# The other language: words turned round, order turned round, a share of the vocabulary kept (names, terms, numbers).
# 118 sentences have to find their translation. The teacher knows English and whatever is kept.
english, _ = teacher()
shares, rows = [0.0, 0.25, 0.5], []
for kept in shares:
    languages = Languages(english, kept)
    other = languages.translations(languages.held_out)
    student, _ = distil(english, languages)
    there = student.encode(other)
    readable = np.linalg.norm(english.encode(other), axis=1) > 0
    untaught = english.encode(other) + 1e-12 * ~readable[:, None]  # nothing known: all alike, all ties
    index = english.encode(languages.held_out)
    rows.append([recall(index, untaught), recall(student.encode(languages.held_out), there), recall(index, there)])
languages_table = np.array(rows)
print(f"\n    {languages.held_out[3]}   ->   {other[3]}")
table(languages_table, "118 sentences find their translation, recall@1 in percent",
      rows=[f"{k:.0%} kept" for k in shares], columns=["teacher alone", "student", "teacher to student"], digits=1)
check(languages_table[:, 1:], "100 100; 100 100; 100 100",
      "student, and the student against the old index: all found")
check(languages_table[0, 0], "0", "nothing kept: the teacher finds none")
check(languages_table[2, 0], "54.", "half kept: the teacher finds, in percent, without one translation pair")
english_hits, chance_118 = 68 / 118, 1 / 118
check(english_hits, "57.6%", "the reported English encoder: 68 of 118")
check(chance_118, "0.008475", "chance among 118")
check(english_hits / chance_118, "68", "times chance, without training pairs")
erratum_claim(bool(languages_table[2, 0] > 40 and english_hits > 50 * chance_118), id="pairs-are-not-everything",
              where="lesson 3, pretrained encoders", label="words kept by both languages",
              says="for search across languages the training pairs are everything",
              right="kept words alone carry half of it: 54% here, and 68 times chance in the lesson's own run",
              why="Without kept words the untaught teacher finds nothing, with half of them kept it finds half.")
# A limit on the words read cuts the two languages at different places, since their order differs.
limits = np.array([3, 4, 6, 8, 12])
limited = [recall(student.encode([cut(x, w) for x in languages.held_out]), student.encode([cut(x, w) for x in other]))
           for w in limits]
table([limited], "recall@1 by the number of words read", rows=["percent"], columns=limits, digits=1)
check_true(bool(np.all(np.diff(limited) > 0) and limited[-1] == 100), "the longer the reading, the more is found")

# %% What the reported comparison bears
# Parameters of a BERT-shaped model: D (V + P + 2) embeddings, L layers of 4 D^2 + 2 D F weights, biases and norms.


def parameters(vocabulary, layers, d=384, f=1536, positions=512):
    embedding = d * (vocabulary + positions + 2) + 2 * d
    layer = 4 * (d * d + d) + 2 * d * f + f + d + 4 * d
    return embedding + layers * layer + d * d + d  # the last: pooler


small, large = parameters(30522, 6), parameters(250037, 12)
check([small, large], "22,713,216 117,653,760", "all-MiniLM-L6 and multilingual MiniLM-L12: parameters")
check((250037 - 30522) * 384 / (large - small), "0.888", "share of the difference that is vocabulary")
check(236 / 2.0, "118", "reported: sections per second on a laptop")
# 66 held-out sections: 21 hits of the English encoder, 14 of the multilingual one, 14 or 15 of the small head.


def standard_errors(hits, other_hits, n=66):
    """Difference of two independent proportions in units of its standard error."""
    x, y = hits / n, other_hits / n
    return (x - y) / np.hypot(binomial_error(100 * x, n), binomial_error(100 * y, n)) * 100


margins = np.array([standard_errors(21, h) for h in (10, 9, 14, 15)])
check(margins, "2.30 2.55 1.39 1.18", "21 of 66 against 10, 9 (averaged words), 14 (multilingual), 15 (head)")
erratum_claim(bool(margins[2] < 1.96 and margins[3] < 1.96), id="clearly-best", where="lesson 3, pretrained encoders",
              says="the English encoder is clearly best, and the multilingual one trades English skill for languages",
              right="clear against averaged word vectors only: 1.4 and 1.2 standard errors against the other two",
              why="21 and 14 hits of 66 differ by 10.6 points with a standard error of 7.6.")
