"""Chapter 13: word vectors from neighbours, skip-gram with negative sampling."""

# %% [markdown]
# Question: where does an arrangement of words come from in which similar ones lie close? One-hot codes have none. The
# attempt: move words together that stand near the same words, and away from words drawn at random. It works for
# neighbours. What breaks: most of the falling loss is not about words, lengths mean little, arithmetic fails, and
# averages of such vectors share one direction.
#
# Letters: V words, D width; v_c rows of the table of centres, u_o rows of the table of contexts; k false contexts for
# each real one, drawn from q; N_co how often word o stands near word c, N_c and N_o its sums, T the sum of all;
# p_o = N_o / T.

# %% From one-hot to dense
import numpy as np
from lesson import (
    check,
    check_close,
    check_true,
    erratum,
    erratum_claim,
    erratum_quoted,
    numeric_gradient,
    table,
)
from scipy.sparse import csr_array
from scipy.stats import chisquare
from section_corpus import SETTINGS, VIEW, split_sections, word_vectors
from skip_gram_studies import (
    analogy_ranks,
    exact_optimum,
    expected_loss,
    frequency_only,
    neighbour_overlap,
    plural_pairs,
    stable_neighbours,
)

from nano_simcse.errors import InputError
from nano_simcse.geometry import mean_pair_cosine
from nano_simcse.layers import embedding
from nano_simcse.losses import skip_gram
from nano_simcse.ppmi import ppmi
from nano_simcse.word2vec import count_words, noise_probabilities, subsample, window_pairs
from nano_simcse.word_vectors import WordVectors

rng = np.random.default_rng(130)
one_hot = np.eye(5)
check_close(one_hot @ one_hot.T, np.eye(5), 1e-15, "one-hot: every two words are orthogonal")
gaps = np.linalg.norm(one_hot[:, None] - one_hot, axis=2)[~np.eye(5, dtype=bool)]
check([gaps.min(), gaps.max()], "1.414214 1.414214", "one-hot: every two words are sqrt 2 apart")

# A table E (V, D) gives every word a row; row i is the one-hot code times E, so a look-up is a linear layer done
# cheaply. Backward: dE = one_hot^T dy, which adds up the rows of dy that belong to one word.
E = rng.standard_normal((5, 3))
ids = np.array([4, 1, 4, 0])
looked_up, back = embedding(E, ids)
check_close(looked_up, one_hot[ids] @ E, 1e-15, "look-up = one-hot times the table")
dy = rng.standard_normal((4, 3))
check_close(back(dy), one_hot[ids].T @ dy, 1e-15, "look-up, backward: rows of one word add up")
check_close(back(dy)[4], dy[0] + dy[2], 1e-15, "look-up, backward: word 4 was used twice")

# %% Two ways to compare
# cos(x, y) = x . y / (|x| |y|) sees directions only; x . y carries both lengths as factors.
query, near, long = np.array([1.0, 0.0]), np.array([0.96, 0.28]), np.array([1.5, 2.0])
dots = np.array([query @ near, query @ long])
check(dots, "0.96 1.5", "dot product: the long vector wins")
check(dots / np.linalg.norm([near, long], axis=1), "0.96 0.6", "cosine: the near one wins")
unit = long / np.linalg.norm(long)
check_close(query @ unit, 0.6, 1e-15, "unit vectors: dot product = cosine")
away = np.array([-1.0, 0.5])
check([query @ away, query @ (3 * away)], "-1 -3", "an obtuse angle: three times the length, three times lower")
erratum_claim(
    bool(query @ (3 * away) < query @ away), id="dot-product-sign", label="length lowers a negative dot product",
    where="lesson 3, two ways to compare", says="the dot product grows with the lengths and so rewards long vectors",
    right="it is the cosine scaled by both lengths: length lifts a word only where its cosine is positive",
    why="A longer vector at an obtuse angle gets a lower score, not a higher one.",
)

# %% Real pairs and false ones
# Real: every word within `window` places. A text of n words gives sum_d 2 (n - d) pairs, each in both roles.
text = "the cat sat on the mat".split()
words, counts = count_words([text], min_count=1)
row = {w: i for i, w in enumerate(words)}
centres, contexts = window_pairs([[row[w] for w in text]], window=2)
check([len(words), counts[0]], "5 2", "six words: distinct ones, and how often 'the' stands")
check(len(centres), "18", "pairs within two places: 2 (5 + 4)")
beside = sorted(words[o] for o in contexts[centres == row["sat"]])
check_true(beside == ["cat", "on", "the", "the"], "contexts of 'sat': the cat _ on the")
check(len(window_pairs([[0, 1, 2], [3, 4, 0]], window=2)[0]), "12", "two texts of three words: no pair across")

# False: drawn from q_w ~ count_w^(3/4), which lifts rare words.
counts3 = np.array([1, 16, 81])
q = noise_probabilities(counts3)
check(36 * q, "1 8 27", "counts 1, 16, 81 to the power 3/4")
check(q, "0.027778 0.222222 0.750000", "noise distribution")
check(counts3 / 98, "0.010204 0.163265 0.826531", "shares in the text")
drawn = np.bincount(np.searchsorted(q.cumsum(), np.random.default_rng(0).random(36000)), minlength=3)
check_true(chisquare(drawn, 36000 * q).pvalue > 0.01, "36,000 draws fit q (chi-square)")
check_true(chisquare(drawn, 36000 * counts3 / 98).pvalue < 1e-6, "and do not fit the shares in the text")

# %% The loss of one pair, by hand
# l = log(1 + e^-s) + sum_j log(1 + e^s_j) with s = v . u and s_j = v . n_j. With sigma(x) = 1 / (1 + e^-x):
#   dl/ds = -sigma(-s), dl/ds_j = sigma(s_j);   dv = -sigma(-s) u + sum_j sigma(s_j) n_j,   du = -sigma(-s) v
v, u, n = np.array([1.0, -1.0]), np.array([2.0, 1.0]), np.array([[0.0, 1.0], [1.0, -1.0]])
s, s_false = v @ u, n @ v
check([s, *s_false], "1 -1 2", "scores: real, false, false")
terms = np.log1p(np.exp([-s, *s_false]))
check(terms, "0.313262 0.313262 2.126928", "cost of each")
check(terms.sum(), "2.753451", "loss of the pair")
errors = 1 / (1 + np.exp([s, *-s_false]))  # sigma(-s), sigma(s_1), sigma(s_2)
check(errors, "0.268941 0.268941 0.880797", "how wrong each score is")
dv = -errors[0] * u + errors[1:] @ n
check(dv, "0.342914 -0.880797", "gradient of the centre")
loss, back = skip_gram(v[None], u[None], n[None])
check_close(loss, terms.sum(), 1e-14, "by hand = skip_gram: loss")
check_close(np.concatenate([back()[0], back()[1], *back()[2]]), [dv, -errors[0] * v, *errors[1:, None] * v], 1e-14,
            "by hand = skip_gram: gradients")
V3, U3, N3 = rng.standard_normal((4, 3)), rng.standard_normal((4, 3)), rng.standard_normal((4, 5, 3))
dV3, dU3, dN3 = skip_gram(V3, U3, N3)[1]()
check_close(dV3, numeric_gradient(lambda x: skip_gram(x, U3, N3)[0], V3), 1e-8, "four pairs, k = 5: dcentres")
check_close(dU3, numeric_gradient(lambda x: skip_gram(V3, x, N3)[0], U3), 1e-8, "four pairs, k = 5: dcontexts")
check_close(dN3, numeric_gradient(lambda x: skip_gram(V3, U3, x)[0], N3), 1e-8, "four pairs, k = 5: dnegatives")

# %% What a model pays that knows nothing
# All scores 0: every decision costs log 2, so (1 + k) log 2. But a model need not know a single word to do better: one
# constant score s costs log(1 + e^-s) + k log(1 + e^s), least at sigma(s) = 1 / (1 + k), that is s = -log k: "one pair
# in 1 + k is real". It then pays (1 + k) log(1 + k) - k log k.
check(skip_gram(V3, 0 * U3, 0 * N3)[0], "4.158883083", "context table at zero, k = 5: 6 log 2")
check(6 * np.log(2), "4.158883083", "6 log 2")
k = np.array([1, 2, 5, 15])
base_rate = (1 + k) * np.log(1 + k) - k * np.log(k)
table(np.column_stack([(1 + k) * np.log(2), base_rate]), "loss without any knowledge of words",
      rows=[f"k = {i}" for i in k], columns=["all scores 0", "one best score"])
check(base_rate, "1.386294 1.909543 2.703367 3.740667", "best constant score: loss at k = 1, 2, 5, 15")
# Two tables can do that: all centres one vector, all contexts another, their dot product -log 5.
same = np.tile([np.sqrt(np.log(5)), 0.0], (4, 1))
constant, _ = skip_gram(same, -same, np.tile(-same[0], (4, 5, 1)))
check_close(constant, base_rate[2], 1e-12, "one vector for all centres, its opposite for all contexts")
erratum(constant, right="2.703367", lesson="4.16", id="ignorant-model", where="lesson 3, word2vec",
        says="4.16 is what a model pays that knows nothing", label="loss of a model that knows no word, k = 5",
        why="One score of -log k for every pair needs no word at all; 4.16 is only the starting point.")
check((6 * np.log(2) - base_rate[2]) / (6 * np.log(2) - 2.071), "69.7%", "share of the lesson's fall without words")
# One more thing can be known without meaning: how often each context word occurs. s_o = log p_o - log k q_o. With q = p
# that is the constant again: noise drawn as words occur takes frequency out of the game. With q ~ p^(3/4) it pays.
check_close(frequency_only(counts3 / 98, counts3 / 98, 5), base_rate[2], 1e-12, "noise as in the text: counts add 0")
check(frequency_only(counts3 / 98, q, 5), "2.686543", "noise to the power 3/4: knowing counts, k = 5")

# %% What it is after
# Per pair of words the expected loss is [ N_co log(1 + e^-s) + k N_c q_o log(1 + e^s) ] / T. Derivative 0:
#   e^s = N_co / (k N_c q_o),   s* = log(N_co T / (N_c N_o)) - log k     for q_o = N_o / T: the shifted PMI.
N_co = np.array([[4, 6, 2], [6, 1, 1], [2, 1, 1]])  # symmetric, so that N_o = N_c
T, N_c = N_co.sum(), N_co.sum(axis=1)
check([T, *N_c], "24 12 8 4", "pairs in all, and for each centre")
pmi = np.log(N_co * T / np.outer(N_c, N_c))
table(pmi, "pointwise mutual information", rows=["a", "b", "c"], columns=["a", "b", "c"], digits=4)
check(pmi, "-0.405465 0.405465 0; 0.405465 -0.980829 -0.287682; 0 -0.287682 0.405465", "PMI of the nine pairs")
joint, unigram = N_co / T, N_c / T
best = pmi - np.log(2)
levels = [expected_loss(x, joint, unigram, 2) for x in (np.zeros((3, 3)), np.full((3, 3), -np.log(2)), best)]
check(levels, "2.079442 1.909543 1.850407", "k = 2: all scores 0, one best score, the optimum")
differences = numeric_gradient(lambda x: expected_loss(x, joint, unigram, 2), best)
check(np.abs(differences).max(), "0.00000000", "the gradient at PMI - log k is zero")
found = [exact_optimum(joint, unigram, 2, width) for width in (1, 2, 3)]
check_close(found[2][0], best, 1e-5, "two tables of three columns find PMI - log k")
check([f[1] for f in found], "1.909543 1.852654 1.850407", "tables of 1, 2, 3 columns: least loss")
check_close(found[0][1], levels[1], 1e-8, "one column is spent on the constant alone")
# The package on every draw once: 24 pairs, each with all 24 noise tokens, so k = 24 and nothing is left to chance.
tables = rng.standard_normal((2, 3, 2))
c_ids, o_ids = (np.repeat(i, N_co.ravel()) for i in np.divmod(np.arange(9), 3))
noise_ids = np.tile(np.repeat(np.arange(3), N_c), (24, 1))
enumerated, _ = skip_gram(tables[0][c_ids], tables[1][o_ids], tables[1][noise_ids])
check_close(enumerated, expected_loss(tables[0] @ tables[1].T, joint, unigram, 24), 1e-12, "all draws: expected loss")
# Counting gets there without a step. What is never seen together has a PMI of -infinity, so only the positive ones are
# kept, and a truncated SVD of them replaces the two tables: the word vectors that `nano-simcse train` begins with.
check_close(ppmi(csr_array(N_co), smoothing=1).toarray(), np.maximum(pmi, 0), 1e-15, "counted: the positive PMI")
# A false context may be the real one. Here the two agree in this share of draws; the optimum above counts them in.
check((joint.sum(axis=0) * unigram).sum(), "0.388889", "chance that a false context is the real word")
erratum_quoted(
    right="at least four", lesson="two", source="word2vec.c of Mikolov et al.: its negative-sampling loop and its rate",
    id="word2vec-simplifications", where="lesson 3, word2vec", label="simplifications against the original",
    says="the training loop makes two simplifications: no subsampling, all distances alike",
    why="It also keeps false contexts that are the real word, which the original skips, and replaces plain SGD at a "
        "falling rate by Adam at a constant one.",
)

# %% Trained on the documentation that is already on the machine
# Training texts are descriptions of at least 40 words; 30 % of the long ones are held out for chapter 14 and never
# read here. Frequent words are thinned, word w of share f kept with probability min(1, sqrt(t / f)), t = 1e-3: without
# it the ten commonest words, which say little about a text, are over a fifth of it. The text depends on the installed
# versions, so what is asserted of trained vectors are orders and bounds that hold for each of three seeds.
check(4000 * 1024, "4096000", "pairs the lesson's run draws")
check(4000 * 1024 / 60355, "67.9", "times each of its running words is a centre")
documents = split_sections().documents
runs = [word_vectors(seed) for seed in (0, 1, 2)]
vectors = runs[0]
thinned = subsample(documents, SETTINGS["threshold"], np.random.default_rng(0))  # as run 0 drew it
of_word = vectors.index
_, context_ids = window_pairs([[of_word[w] for w in d if w in of_word] for d in thinned], SETTINGS["window"])
shares = np.bincount(context_ids, minlength=len(of_word)) / len(context_ids)
noise = noise_probabilities(vectors.counts)
counts_only = frequency_only(shares, noise, 5)
final = np.array([run.losses[-100:].mean() for run in runs])
sizes = np.array([[sum(map(len, documents)), sum(map(len, thinned)), len(of_word), len(context_ids)]])
table(sizes, "the text", columns=["running words", "after thinning", "distinct, 5 or more times", "pairs"])
commonest = vectors.words[:10]
top_ten = [100 * np.mean([w in commonest for d in part for w in d]) for part in (documents, thinned)]
table([top_ten], f"the ten commonest words ({' '.join(commonest)}), percent of the text", digits=1,
      columns=["before thinning", "after"])
check_true(top_ten[1] < 10 < 20 < top_ten[0], "ten words: over a fifth of the text, under a tenth after thinning")
table(np.array([[6 * np.log(2), base_rate[2], counts_only, *final]]), "loss, k = 5",
      columns=["start", "one score", "counts only", "seed 0", "seed 1", "seed 2"])
check([run.losses[0] for run in runs], "4.158883 4.158883 4.158883", "loss of the first batch, three seeds")
check_true(bool(final.max() < 0.6 * 6 * np.log(2)), "trained: the loss is about half its start")
check_true(bool(final.max() < counts_only - 0.3 < base_rate[2]), "trained: below what counts alone allow")
check_true(bool(base_rate[2] - final.min() < 6 * np.log(2) - base_rate[2]), "more than half of the fall needs no word")
check_true(bool(np.ptp(final) < 0.05), "three seeds: final losses within 0.05")

# %% Neighbours, and which of them to believe
asked = [w for w in ("array", "file", "matrix", "thread", "axes", "string") if w in of_word]
for word in asked:
    always, mostly = stable_neighbours(runs, word)
    print(f"    {word:7} {', '.join(w for w, _ in vectors.nearest(word))}")
    print(f"            in all three seeds: {', '.join(always) or '-'}; in two: {', '.join(mostly) or '-'}")
common = vectors.words[50:250]
overlap, by_chance = neighbour_overlap(runs, common), 6 / (len(of_word) - 1)
check_true(overlap > 10 * by_chance, "six nearest of 200 words: two seeds share over ten times chance")
check_true(overlap < 0.5, "and yet most of a list changes with the seed")
check(6 * (6 / 1684) ** 2, "0.0000762", "neighbours of a word in all three seeds by chance, lesson's vocabulary")

# Do related words meet? All pairs (word, word + s) that are frequent enough, with the rank in both directions.
plurals = plural_pairs(vectors)
ranks = np.array([[[run.rank(a, b), run.rank(b, a)] for a, b in plurals] for run in runs])  # (3, pairs, 2)
places = len(of_word) - 1
table(np.array([[run.cosine(a, b) for run in runs] + ranks[0, i].tolist() for i, (a, b) in enumerate(plurals[:6])],
               dtype=object),
      f"word and plural; ranks among {places}", rows=[" ".join(p) for p in plurals[:6]], digits=3,
      columns=["cos, seed 0", "seed 1", "seed 2", "rank", "rank back"])
check_true(bool(np.median(ranks, axis=(1, 2)).max() < 0.15 * places), "plurals: median rank within the first 15 %")
check(np.array([71, 14, 89]) / 1685, "0.0421 0.0083 0.0528", "lesson's three ranks as shares of its vocabulary")
# A rank has a direction. On a line of angles, b is the nearest of a, and a the last of six for b.
angles = np.deg2rad([0, 20, 21, 22, 23, 24, 25])
crowd = WordVectors(list("abcdefg"), np.ones(7), np.column_stack([np.cos(angles), np.sin(angles)]))
check([crowd.rank("a", "b"), crowd.rank("b", "a")], "1 6", "rank of b for a, rank of a for b")
erratum_claim(
    crowd.rank("a", "b") != crowd.rank("b", "a"), id="rank-one-way", where="lesson 3, word2vec",
    label="ranks differ by direction", says="two words are among each other's nearest few percent, given one rank",
    right="a rank is one-way; both must be printed", why="b can be the nearest of a while many words lie nearer to b.",
)
check_true(bool((ranks[:, :, 0] != ranks[:, :, 1]).mean() > 0.5), "plurals: most pairs have two different ranks")

# %% Arithmetic
# "a is to b as c is to ?": the word nearest to b - a + c on unit vectors, a, b and c themselves left out.
names = ["layer", "layers", "token", "tokens", "symbol"]
grid = np.array([[1, 0, 0], [1, 0, 0.2], [0.6, 0.8, 0], [0.6, 0.8, 0.15], [0.5, 0.85, 0]])
toy = WordVectors(names, np.ones(5), grid)
check(toy.analogy_query("layer", "layers", "token"), "0.580581 0.800000 0.196116", "layers - layer + token")
check_true(toy.analogy("layer", "layers", "token")[0][0] == "tokens", "one direction for both plurals: tokens")
bent = WordVectors(names, np.ones(5), np.vstack([grid[:3], [[0.6, 0.8, -0.15]], grid[4:]]))  # a plural the other way
unguarded = bent.analogy("layer", "layers", "token", exclude_question=False)[0][0]
check_true(unguarded == "token", "no such direction: the best answer is token itself")
check(bent.analogy_rank("layer", "layers", "token", "tokens"), "2", "and tokens is second, the question excluded")
missing = ""
try:
    toy.analogy("layer", "layers", "tokn")
except InputError as error:
    missing = str(error)
check_true("did you mean 'token'" in missing, "a missing word is named, with the nearest spelling")
check((1682 + 1) / 2, "841.5", "rank of a guess among the 1,682 words of the lesson")
check(1685 - 3, "1682", "candidates without the question")

chance = (len(of_word) - 3 + 1) / 2
tried = [analogy_ranks(run, plurals) for run in runs]
medians = np.array([[np.median(a), np.median(n), (a == 1).mean(), (n == 1).mean(), inside] for a, n, inside in tried])
table(np.array([[*map("{:g}".format, row[:2]), *row[2:]] for row in medians], dtype=object),
      f"word : plural :: word : ?   200 questions a seed; a guess stands at {chance:g}", digits=3,
      rows=["seed 0", "seed 1", "seed 2"],
      columns=["median rank", "c alone", "first", "c alone, first", "best is in the question"])
check_true(bool(medians[:, 0].max() < 0.5 * chance), "analogies: far better than a guess")
check_true(bool(medians[:, 2].max() < 0.2), "and nearly all of them fail")
check_true(bool(medians[:, 4].min() > 0.5), "nothing excluded: the best answer is mostly a word of the question")
erratum_claim(
    bool((medians[:, 1] < medians[:, 0]).all()), id="analogy-control", where="lesson 3, the analogy test",
    label="c alone ranks the answer higher than b - a + c",
    says="ranks far above those of a guess show some signal in the arithmetic",
    right="the control is c alone, and here it ranks the answer higher: the offset b - a is noise",
    why="The answer is a neighbour of c to begin with, so beating chance says nothing about directions.",
)

# %% Lengths
# Nearest by dot product are long vectors. What makes a vector long is a matter of training, not of the word's meaning:
# early on the frequent words have moved furthest, later the rare ones with few, fixed contexts overtake them.
by_dot, by_cosine = (np.array([np.mean([run.lengths[run.row(w)] for word in common for w, _ in run.nearest(word, 6, m)])
                               for run in runs]) for m in ("dot", "cosine"))
typical = np.array([np.median(run.lengths) for run in runs])
table(np.column_stack([typical, by_cosine, by_dot]), "length of the median word, and of the six nearest", digits=2,
      rows=["seed 0", "seed 1", "seed 2"], columns=["median", "by cosine", "by dot product"])
check_true(bool((by_dot > 1.1 * by_cosine).all()), "neighbours by dot product are longer than by cosine")
for measure in ("dot", "cosine"):
    print(f"    {asked[0]} by {measure:6}", ", ".join(
        f"{w} ({vectors.lengths[vectors.row(w)]:.1f})" for w, _ in vectors.nearest(asked[0], 6, measure)))
early = word_vectors(0, steps=100)
r_early, *r_late = (np.corrcoef(run.lengths, np.log(run.counts))[0, 1] for run in (early, *runs))
table(np.array([[r_early, *r_late]]), "correlation of length and log count", digits=2,
      columns=["after 100 steps", "seed 0, at the end", "seed 1", "seed 2"])
check_true(r_early > 0.1 > -0.1 > max(r_late), "longer for frequent words early, for rare ones at the end")
check(0.20**2, "0.04", "lesson's -0.20: share of variance")
check(np.arctanh(0.20) * np.sqrt(1685 - 3), "8.3", "and its distance from zero in standard errors: small, not nothing")

# %% One direction shared by all
# The best constant score -log k wants all centres on one side and all contexts on the other, and that is what they do.
mean_v, mean_u = vectors.vectors.mean(axis=0), vectors.contexts.mean(axis=0)
opposed = mean_v @ mean_u / np.linalg.norm(mean_v) / np.linalg.norm(mean_u)
check_true(opposed < -0.9, "mean centre and mean context point in opposite directions")
check_true(bool(np.mean(vectors.vectors @ mean_u < 0) > 0.95), "nearly every word turns its back on the mean context")

# Averages make it worse. n unit vectors with cosine c between any two: |mean|^2 = (1 + (n - 1) c) / n, and two means of
# different words have the dot product c, so their cosine is n c / (1 + (n - 1) c). Own parts cancel, shared ones stay.
shared = np.column_stack([np.full(80, 0.5), np.eye(80)])
check(mean_pair_cosine(shared), "0.2", "80 words (0.5, e_i): every cosine")
halves = shared.reshape(2, 40, 81).mean(axis=1)
check(halves[0] @ halves[1] / np.linalg.norm(halves[0]) / np.linalg.norm(halves[1]), "0.909091", "two averages of 40")
check(40 * 0.2 / (1 + 39 * 0.2), "0.909091", "n c / (1 + (n - 1) c) for n = 40, c = 0.2")

held_out = split_sections().held_out
spread = np.array([
    [mean_pair_cosine(run.vectors), *(mean_pair_cosine(x) for x in (windows, windows - windows.mean(axis=0)))]
    for run in runs for windows in [np.array([run.average(words[:VIEW]) for words in held_out])]
])
table(spread, f"mean cosine of different words, of held-out windows of {VIEW} words, of those centred", digits=3,
      rows=["seed 0", "seed 1", "seed 2"], columns=["words", "windows", "centred"])
check_true(bool((spread[:, 0] < 0.5).all() and (spread[:, 1] > 0.7).all()), "words: a wide cone; windows: a narrow one")
check_true(bool(np.abs(spread[:, 2]).max() < 0.05), "subtracting the mean removes it")
erratum_claim(
    bool((spread[:, 1] > spread[:, 0] + 0.3).all()), id="cone-of-averages", where="lesson 3, anisotropy",
    label="windows crowd far more than the words they average",
    says="averaged word2vec windows share one direction as representations learned without a contrastive loss do",
    right="skip-gram with negatives is contrastive; averaging a view narrows a wide cone of words to a tight one",
    why="The mean of 40 vectors keeps what they share and a fortieth of the variance of the rest.",
)
