"""Chapter 7: the whole method on three sentences, with a pencil."""

# %% [markdown]
# Question: can one batch of SimCSE be worked out on paper, from sentences to loss to gradient?
# Yes, if the encoder is replaced by three short profiles of whole numbers and dropout by masks that are written down.
# Every table this page prints follows from the tables above it by a pocket calculator; the results are then checked.
# Carry ten digits and the last one printed comes out to a unit or two; the checks use float64 and so show more digits.
# Only the last part, all draws of masks at once, is for a machine; its draws are numbered so that each can be redone.
#
# Letters: u profile, z keep mask, A and B the two views, h = view, s = cosine, tau = temperature,
# p = probability a row gives to a candidate, L = loss of the batch; log is the natural one. Rows are queries (view A),
# columns are candidates (view B).

# %% Three sentences, four units
import itertools

import numpy as np
from lesson import check, check_close, check_true, erratum, erratum_claim, numeric_gradient, table

from nano_simcse.layers import dropout
from nano_simcse.losses import info_nce

sentences = ["a woman tunes her guitar", "somebody holds an instrument", "rates fell last quarter"]
units = ["person", "music", "money", "time"]
u = np.array(
    [
        [4.0, 3.0, 2.0, 1.0],
        [3.0, 4.0, 1.0, 2.0],
        [1.0, -2.0, 4.0, -3.0],
    ]
)
table(u, "u: what a good encoder might say about each sentence", rows=sentences, columns=units, digits=0)

# %% Six masks
# Dropout at rate 1/2 keeps a unit with probability 1/2. Here each mask keeps two units of four; these six were picked,
# because a random mask does that only sometimes: 6 of the 16 subsets of four units have two members, 6 / 16 = 0.375.
zA = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]])
zB = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
table(zA, "zA: kept units of view A", rows=["1", "2", "3"], columns=units)
table(zB, "zB: kept units of view B", rows=["1", "2", "3"], columns=units)
subsets = np.array(list(itertools.product([0, 1], repeat=4)))
two_of_four = np.mean(subsets.sum(axis=1) == 2)
erratum(
    two_of_four, right="0.375", lesson="1", id="masks-keep-two", where="ch. 7, the setup",
    says="at rate 0.5 a mask keeps two of the four units",
    why="Each unit is dropped on its own; two survive in 6 of 16 cases, in all six masks with 0.375^6 = 0.00278.",
    label="chance that a mask at rate 1/2 keeps exactly two of four",
)
check(two_of_four**6, "0.00278", "chance that all six masks do")

# %% Views
# Inverted dropout: h = z u / (1 - rate), unit by unit, so survivors are doubled and the mean over masks is u again.
scale = 1 / (1 - 0.5)
hA = scale * zA * u
hB = scale * zB * u
table(hA, "hA = 2 zA u", rows=["1", "2", "3"], columns=units, digits=0)
table(hB, "hB = 2 zB u", rows=["1", "2", "3"], columns=units, digits=0)
check(scale, "2", "factor on a survivor")
check(hA[0], "8 6 0 0", "view A of sentence 1")
check(hA, "8 6 0 0; 6 8 0 0; 0 0 8 -6", "views A")
check(hB, "8 0 4 0; 0 8 0 4; 2 0 8 0", "views B")
check_close(dropout(u, zA == 1, scale)[0], hA, 0, "the package's dropout layer gives the same views")

# %% Lengths
# Lengths stay square roots as long as possible: 8^2 + 6^2 = 100, 8^2 + 4^2 = 80, 2^2 + 8^2 = 68.
squared_A = (hA**2).sum(axis=1)
squared_B = (hB**2).sum(axis=1)
check(squared_A, "100 100 100", "squared lengths of views A")
check(squared_B, "80 80 68", "squared lengths of views B")
length_A, length_B = np.sqrt(squared_A), np.sqrt(squared_B)
table(
    np.array([squared_A, length_A, squared_B, length_B]).T, "|h|^2 = sum of the squares of a row of h; |h| = its root",
    rows=["1", "2", "3"], columns=["|hA|^2", "|hA|", "|hB|^2", "|hB|"], digits=9,
)
check(length_A, "10 10 10", "lengths of views A")
check(length_B, "8.944272 8.944272 8.246211", "lengths of views B")

# %% Step 1: cosines
# s_ij = hA_i . hB_j / (|hA_i| |hB_j|). The product multiplies unit by unit and adds up, so only units that survived in
# both views contribute: hA_1 . hB_1 = 8 x 8, hA_1 . hB_2 = 6 x 8, hA_1 . hB_3 = 8 x 2.
dots = hA @ hB.T
fractions = [
    [f"{d:.0f} / sqrt({a:.0f} x {b:.0f})" for d, b in zip(line, squared_B, strict=True)]
    for line, a in zip(dots, squared_A, strict=True)
]
queries, candidates = ["query 1", "query 2", "query 3"], ["B1", "B2", "B3"]
table(
    fractions, "cosines as fractions: hA_i . hB_j / sqrt(|hA_i|^2 x |hB_j|^2)", rows=queries, columns=candidates,
)
s = dots / np.sqrt(np.outer(squared_A, squared_B))
table(s, "s: those fractions as decimals", rows=queries, columns=candidates, digits=12)
check(dots, "64 48 16; 48 64 12; 32 -24 64", "dot products")
check(s, ["0.715542 0.536656 0.194029", "0.536656 0.715542 0.145521", "0.357771 -0.268328 0.776114"], "cosines")
check(s[0], "0.72 0.54 0.19", "row 1 to two decimals, the example of chapter 1")
check(dots[2, 1], "-24", "the one negative product")
check(10 * np.sqrt(80), "89.4427", "its denominator")
erratum_claim(
    (hA[2, 0] == 0) & (dots[2, 1] == hA[2, 3] * hB[1, 3]), id="row-3-first-factor", where="ch. 7, step 1",
    says="the product for query 3 and candidate 2 opens with the factors 8 and 0",
    right="0 x 0 + 0 x 8 + 8 x 0 + (-6) x 4 = -24",
    why="View A of sentence 3 has lost its first unit, so that factor is 0; the sum is not affected.",
)

# %% Is the matrix plausible?
check_true((s.argmax(axis=1) == np.arange(3)).all(), "every query likes its own view best")
check_true((u[:2] > 0).all() and s[2, 1] < 0, "the negative cosine needs the negative units of sentence 3")
check(np.sort(np.r_[s[0, 1], s[1, 0]]), "0.5367 0.5367", "cosines between sentences 1 and 2")
erratum(
    s[[0, 2], [2, 0]], right="0.194029 0.357771", lesson="0.194 0.194", id="cross-terms-1-3",
    where="ch. 7, checks on the matrix", says="the two cosines between sentences 1 and 3 are 0.194",
    why="Two views are involved, so s13 and s31 differ: 16 / sqrt(6800) and 32 / sqrt(8000).",
    label="cosines s13 and s31",
)
check(s[[1, 2], [2, 1]], "0.145521 -0.268328", "cosines s23 and s32")
check(s[2, 2] - s[2, 0], "0.418343", "row 3: lead of its positive in cosine")

# %% Step 2: divide by the temperature
tau = 0.05
logits = s / tau
table(logits, "logits = s / tau = s / 0.05 = 20 s", rows=["row 1", "row 2", "row 3"], digits=10)
check(logits, ["14.3108 10.7331 3.8806", "10.7331 14.3108 2.9104", "7.1554 -5.3666 15.5223"], "tau = 0.05: logits")

# %% Step 3: softmax of each row, shifted by the row's largest logit
# p_ij = e^logit_ij / (sum of e^logit over row i), the share of row i that candidate j gets. It does not change when all
# logits of a row move together; the largest is made 0 and no exponential overflows.
shifted = logits - logits.max(axis=1, keepdims=True)
e = np.exp(shifted)
total = e.sum(axis=1)
p = e / total[:, None]
table(shifted, "shifted logits = logits - the largest of their row", rows=["row 1", "row 2", "row 3"], digits=10)
table(e, "exponentials = e^(shifted logit)", rows=["row 1", "row 2", "row 3"], digits="10g")
table(total, "sum = the exponentials of a row added up", columns=["row 1", "row 2", "row 3"], digits=10)
table(p, "p = exponential / sum of its row", rows=["row 1", "row 2", "row 3"], digits="10g")
check(shifted[0], "0 -3.577709 -10.430265", "tau = 0.05: row 1 shifted")
check(shifted[1], "-3.5777 0 -11.4004", "tau = 0.05: row 2 shifted")
check(shifted[2], "-8.3669 -20.8888 0", "tau = 0.05: row 3 shifted")
check(p[0], "0.972791823 0.027179455 2.8721912e-5", "tau = 0.05: row 1 probabilities")
check(p[1], "0.027179939 0.972809174 1.0886633e-5", "tau = 0.05: row 2 probabilities")
check(p[2], "0.000232390 8.4720742e-10 0.999767609", "tau = 0.05: row 3 probabilities")
erratum(
    shifted[2, 1], right="-20.88884", lesson="-20.8889", id="row-3-shift", where="ch. 7, step 3",
    says="row 3's second shifted logit is -20.8889",
    why="The rounded logits differ by 20.8889, the exact ones by 20.888843.",
    label="row 3: second shifted logit",
)

# %% Step 4: the loss
# A row's loss is -log p_ii = log(sum), because its shifted positive is 0 and exp 0 = 1. The batch takes the mean.
row_loss = np.log(total) - np.diag(shifted)
loss = row_loss.mean()
table(row_loss, "row loss = -log p_ii = log(sum of row i)", columns=["row 1", "row 2", "row 3"], digits=9)
print(f"\nL = mean of the row losses = ({' + '.join(f'{x:.9f}' for x in row_loss)}) / 3 = {loss:.9f}")
check(row_loss, "0.027585173 0.027567337 0.000232418", "tau = 0.05: row losses")
check(loss, "0.018462", "tau = 0.05: loss")
check(loss, "0.01846164259", "tau = 0.05: loss, ten digits")
check(np.log(3), "1.0986", "a blind guess among three")
check_close(info_nce(hA, hB, tau)[0], loss, 1e-13, "the package's InfoNCE gives the same loss")

# %% The other direction
# Ask view B instead: columns become rows. SimCSE trains on the rows only; CLIP would average both.
# The rules are those of steps 3 and 4, down the columns; the largest logit of each column is its positive again.
shifted_down = logits - logits.max(axis=0)
e_down = np.exp(shifted_down)
column_losses = np.log(e_down.sum(axis=0)) - np.diag(shifted_down)
column_loss = column_losses.mean()
columns_of = ["column 1", "column 2", "column 3"]
rows_of = ["row 1", "row 2", "row 3"]
table(shifted_down, "logits - the largest of their column", rows=rows_of, columns=columns_of, digits=10)
table(e_down, "exponentials = e^(shifted logit)", rows=rows_of, columns=columns_of, digits="10g")
table(
    [e_down.sum(axis=0), column_losses], "sum of a column; column loss = log(sum)",
    rows=["sum", "loss"], columns=columns_of, digits=10,
)
table(
    [loss, column_loss, (loss + column_loss) / 2], "means over three, and symmetric = (rows + columns) / 2",
    columns=["rows", "columns", "symmetric"], digits=9,
)
check(column_loss, "0.0186280485", "tau = 0.05: loss of the columns")
check((loss + column_loss) / 2, "0.0185448456", "tau = 0.05: symmetric loss")
check_close(info_nce(hB, hA, tau)[0], column_loss, 1e-13, "the package with its arguments swapped")
check_close(
    info_nce(hA, hB, tau, symmetric=True)[0], (loss + column_loss) / 2, 1e-13, "the package, symmetric=True"
)

# %% The same batch at temperature 1
# Now the logits are the cosines themselves; no shift is needed.
e_warm = np.exp(s)
p_warm = e_warm / e_warm.sum(axis=1, keepdims=True)
row_loss_warm = -np.log(np.diag(p_warm))
loss_warm = row_loss_warm.mean()
table(e_warm, "tau = 1: exponentials e^s of the cosines", rows=["row 1", "row 2", "row 3"], digits=10)
table(e_warm.sum(axis=1), "tau = 1: sum of each row", columns=["row 1", "row 2", "row 3"], digits=9)
table(p_warm, "tau = 1: p = exponential / sum of its row", rows=["row 1", "row 2", "row 3"], digits=10)
table(row_loss_warm, "tau = 1: row loss = -log p_ii; the loss is their mean", columns=rows_of, digits=9)
check(row_loss_warm, "0.887818522 0.876183318 0.698146876", "tau = 1: row losses")
check(loss_warm, "0.820716", "tau = 1: loss")
check(loss_warm, "0.8207162386", "tau = 1: loss, ten digits")
check(np.log(3) - loss_warm, "0.277896", "tau = 1: nats better than a guess")
check(p_warm[2, 2], "0.4975", "tau = 1: row 3 on its own positive")
check_close(info_nce(hA, hB, 1.0)[0], loss_warm, 1e-13, "the package at tau = 1")

# %% [markdown]
# All three rows are answered correctly, yet at tau = 1 the loss stays near chance: cosines live in [-1, 1], and a lead
# of 0.42 is worth only a factor e^0.42. Dividing by 0.05 makes the same lead a factor e^8.4.

# %% Identical masks for both views
# The control that breaks the method: view B := view A (zB := zA), as with one dropout mask per sentence or none.
# Steps 1 to 4 again with hA in both places; every length is 10, so s_ij = hA_i . hA_j / 100.
hF = hA.copy()
sF = (hF @ hF.T) / np.sqrt(np.outer(squared_A, squared_A))
logitsF = sF / tau
shiftedF = logitsF - logitsF.max(axis=1, keepdims=True)
eF = np.exp(shiftedF)
totalF = eF.sum(axis=1)
pF = eF / totalF[:, None]
row_lossF = np.log1p(eF.sum(axis=1, where=~np.eye(3, dtype=bool)))  # log(1 + the rest): row 3 keeps its digits
lossF = row_lossF.mean()
table(sF, "identical masks: s_ij = hA_i . hA_j / 100", rows=["row 1", "row 2", "row 3"])
table(logitsF, "identical masks: logits = 20 s", rows=["row 1", "row 2", "row 3"])
table(shiftedF, "identical masks: shifted logits = logits - the largest of their row", rows=["row 1", "row 2", "row 3"])
table(eF, "identical masks: exponentials = e^(shifted logit)", rows=["row 1", "row 2", "row 3"], digits="10g")
table(totalF, "identical masks: sum of each row", columns=["row 1", "row 2", "row 3"], digits=12)
table(pF, "identical masks: p = exponential / sum of its row", rows=["row 1", "row 2", "row 3"], digits="10g")
table(
    row_lossF, "identical masks: row loss = log(sum); row 3 is log(1 + x) = x, x about 2 e^-20; the loss is their mean",
    columns=["row 1", "row 2", "row 3"], digits="9g",
)
check(sF, "1 0.96 0; 0.96 1 0; 0 0 1", "identical masks: cosines")
check(logitsF[0, :2], "20 19.2", "identical masks: row 1, first two logits")
check(shiftedF[0, :2], "0 -0.8", "identical masks: row 1, first two shifted logits")
check(eF[0, :2], "1 0.449328964", "identical masks: row 1, first two exponentials")
check(totalF[0], "1.449328966", "identical masks: row 1, sum")
check(row_lossF[:2], "0.371100667 0.371100667", "identical masks: row losses 1 and 2")
check(row_lossF[2], "4.12230724e-9", "identical masks: row loss 3")
check_close(row_lossF[2], np.log1p(2 * np.exp(-20.0)), 1e-14, "identical masks: row loss 3 is ln(1 + 2 e^-20)")
check(lossF, "0.247400", "identical masks: loss")
check(lossF, "0.2474004463", "identical masks: loss, ten digits")
check_close(info_nce(hF, hF, tau)[0], lossF, 1e-13, "identical masks: the package's loss")
check(lossF / loss, "13.4008", "identical masks: loss against that of independent masks")

# %% Where the lesson's row goes wrong
# Masks 1 and 3 have no unit in common, so their cosine is exactly 0 and nothing else can be read off the picture.
check((zA @ zA.T)[:, 2], "0 0 2", "units that sentence 3's mask shares with each mask")
third = {"id": "identical-masks-row-1", "where": "ch. 7, identical masks"}
erratum(
    logitsF[0, 2], right="0", lesson="-3.578",
    says="row 1 has logits 20, 19.2, -3.578 and a third exponential of 4e-11",
    why="Sentences 1 and 3 keep disjoint units, so the logit is 0; -3.5777 is row 1's shifted logit of the other run.",
    label="identical masks: row 1, third logit", **third,
)
erratum(
    shiftedF[0, 2], right="-20", lesson="-23.578", why="It is 0 - 20.",
    label="identical masks: row 1, third shifted logit", **third,
)
erratum(
    eF[0, 2], right="2.061153622e-9", lesson="4e-11", why="It is e^-20.",
    label="identical masks: row 1, third exponential", **third,
)
erratum(
    np.exp(-23.578), right="5.757e-11", lesson="4e-11", why="Not even the printed exponent gives 4e-11.",
    label="identical masks: e^-23.578", **third,
)
erratum(
    pF[0, 0], right="0.689974480", lesson="0.689975", id="identical-masks-p11", where="ch. 7, identical masks",
    says="p11 is 0.689975", why="The sixth decimal is a 4: 1 / 1.449328966.", label="identical masks: p11",
)
erratum_claim(
    ((zA @ zA.T)[0] == [2, 2, 0]).all(), id="same-subspace", where="ch. 7, identical masks",
    says="the off-diagonal cosines are all taken in one two-unit subspace",
    right="Only sentences 1 and 2 share their two kept units",
    why="Sentence 3 keeps the two others.", label="identical masks: sentence 3 shares no unit with sentence 1",
)

# %% The gradient with respect to the profiles, step by step
# Backwards through the same four steps, for any masks. [i = j] is 1 on the diagonal and 0 elsewhere.
#   L = (1/3) sum_i -log p_ii            dL/ds_ij = (p_ij - [i = j]) / (3 tau)      1/3: L is a mean of three rows
#   s_ij = a_i . b_j                     dL/da_i = sum_j dL/ds_ij b_j,   dL/db_j = sum_i dL/ds_ij a_i
#   a = hA / |hA|, b = hB / |hB|         dL/dhA = (dL/da - (dL/da . a) a) / |hA|    only the part across a turns it
#                                        dL/dhB = (dL/db - (dL/db . b) b) / |hB|
#   hA = 2 zA u, hB = 2 zB u             dL/du = 2 zA dL/dhA + 2 zB dL/dhB          u feeds both views
# Words for the parts: the pull is what this chain makes of the diagonal of dL/ds alone (0 elsewhere), the push what it
# makes of the rest (0 on the diagonal), so pull + push = dL/du. The length of any of them is the root of the sum of the
# squares of its twelve entries.


def stations(ds, left, right):
    """Of cosines s = left^ right^T, given dL/ds: a, b, dL/da, dL/db, dL/da . a, dL/db . b, dL/dleft, dL/dright."""
    left_length = np.linalg.norm(left, axis=1, keepdims=True)
    right_length = np.linalg.norm(right, axis=1, keepdims=True)
    a, b = left / left_length, right / right_length
    da, db = ds @ b, ds.T @ a
    along_a, along_b = (da * a).sum(axis=1, keepdims=True), (db * b).sum(axis=1, keepdims=True)
    return a, b, da, db, along_a, along_b, (da - along_a * a) / left_length, (db - along_b * b) / right_length


def through_cosines(ds, left, right):
    """dL/dleft and dL/dright, the last two stations."""
    return stations(ds, left, right)[-2:]


def show_chain(ds, left, right, keep_A, keep_B, name):
    """Print every station from dL/ds to dL/du, which it returns."""
    a, b, da, db, along_a, along_b, dleft, dright = stations(ds, left, right)
    ones, named = ["1", "2", "3"], {"rows": ["1", "2", "3"], "columns": units, "digits": 9}
    dots_of, du = np.hstack([along_a, along_b]).T, 2 * keep_A * dleft + 2 * keep_B * dright
    table(a, f"{name}: a = hA / |hA|", **named)
    table(b, f"{name}: b = hB / |hB|", **named)
    table(da, f"{name}: dL/da_i = sum over j of dL/ds_ij b_j (row i of dL/ds)", **named)
    table(db, f"{name}: dL/db_j = sum over i of dL/ds_ij a_i (column j of dL/ds)", **named)
    table(dots_of, f"{name}: products dL/da . a and dL/db . b", rows=["a", "b"], columns=ones, digits=9)
    table(dleft, f"{name}: dL/dhA = (dL/da - (dL/da . a) a) / |hA|", **named)
    table(dright, f"{name}: dL/dhB = (dL/db - (dL/db . b) b) / |hB|", **named)
    title = f"{name}: dL/du = 2 zA dL/dhA + 2 zB dL/dhB (a dropped unit passes nothing on)"
    table(du, title, **{**named, "digits": 8})
    return du


def loss_of(profiles, keep_A, keep_B, temperature):
    """The batch loss as a function of the profiles, for the difference checks."""
    left, right = 2 * keep_A * profiles, 2 * keep_B * profiles
    cosines = (left @ right.T) / np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    z = cosines / temperature
    return (np.log(np.exp(z).sum(axis=1)) - np.diag(z)).mean()


# %% dL/du with independent masks
ds = (p - np.eye(3)) / (3 * tau)
table(
    ds, "dL/ds = (p - [i = j]) / (3 tau) = (p - [i = j]) / 0.15; negative pulls together, positive pushes apart",
    rows=["row 1", "row 2", "row 3"], digits=9,
)
check(ds.sum(axis=1), "0.0000000000 0.0000000000 0.0000000000", "each row of dL/ds sums to zero")
du = show_chain(ds, hA, hB, zA, zB, "independent masks")
check(
    du,
    [
        "-0.028974525 0.036314981 0.003476580 0",
        "0.036312130 -0.028857479 0 0.003246763",
        "0.000115637 0 -0.000087241 -0.000077775",
    ],
    "independent masks: dL/du",
)
check_close(du, numeric_gradient(lambda x: loss_of(x, zA, zB, tau), u), 1e-7, "independent masks: central differences")
package_A, package_B = info_nce(hA, hB, tau)[1]()
back_A, back_B = dropout(u, zA == 1, scale)[1], dropout(u, zB == 1, scale)[1]
check_close(du, back_A(package_A) + back_B(package_B), 1e-11, "independent masks: the package's two backward passes")
turned_B, turned_A = info_nce(hB, hA, tau)[1]()
both_A, both_B = info_nce(hA, hB, tau, symmetric=True)[1]()
mean_of_directions = np.array([(package_A + turned_A) / 2, (package_B + turned_B) / 2])
check_close(np.array([both_A, both_B]), mean_of_directions, 1e-11, "the symmetric loss averages the two gradients")

pull_A, pull_B = through_cosines(np.diag(np.diag(ds)), hA, hB)
push_A, push_B = through_cosines(ds - np.diag(np.diag(ds)), hA, hB)
pull = 2 * zA * pull_A + 2 * zB * pull_B
push = 2 * zA * push_A + 2 * zB * push_B
named = {"rows": ["1", "2", "3"], "columns": units, "digits": 8}
table(pull, "independent masks: pull, the same chain with dL/ds 0 off the diagonal", **named)
table(push, "independent masks: push, the same chain with dL/ds 0 on the diagonal", **named)
lengths_of = [np.linalg.norm(x) for x in (pull, push, du)]
table(lengths_of, "lengths = root of the sum of the twelve squares", columns=["pull", "push", "dL/du"], digits=8)
check_close(pull + push, du, 1e-13, "independent masks: pull and push add up")
check(np.linalg.norm(pull), "0.038490374", "independent masks: length of the pull")
check(np.linalg.norm(push), "0.035730076", "independent masks: length of the push")
check(np.linalg.norm(du), "0.065820065", "independent masks: length of the gradient")

# %% Is row 3 finished?
# Its loss is 0.0002, so it looks done. Done is not zero: its own loss l_i = -log p_ii, without the 1/3 of the mean, has
# dl_i/ds_ii = -(1 - p_ii) / tau and dl_i/ds_ij = p_ij / tau. dl_i/du is the chain above with only row i of dL/ds kept,
# times 3; its length is that of twelve entries again.
strength = (1 - np.diag(p)) / tau
rows_du = []
for i in range(3):
    ds_row = np.zeros((3, 3))
    ds_row[i] = ds[i]
    row_A, row_B = through_cosines(ds_row, hA, hB)
    rows_du.append(2 * zA * row_A + 2 * zB * row_B)
rows_du = np.array(rows_du)
check_close(rows_du.sum(axis=0), du, 1e-13, "the three rows' gradients add up to the batch's")
table(
    (3 * rows_du).reshape(9, 4),
    "dl_i/du, each row's own loss: the chain with the other rows of dL/ds set to 0, times 3",
    rows=[f"l_{i}, sentence {k}" for i in (1, 2, 3) for k in (1, 2, 3)], columns=units, digits=8,
)
table(
    [strength, np.linalg.norm(3 * rows_du, axis=(1, 2))],
    "(1 - p_ii) / tau, and the length of dl_i/du (root of the sum of its twelve squares)",
    rows=["(1 - p_ii) / tau", "length of dl_i/du"], columns=["l_1", "l_2", "l_3"], digits=6,
)
check(strength, "0.544164 0.543817 0.004648", "pull on the positive's cosine, (1 - p_ii) / tau")
check(strength[0] / strength[2], "117.1", "row 1 pulls this many times harder than row 3")
row_lengths = np.linalg.norm(3 * rows_du, axis=(1, 2))
erratum(
    strength[2], right="0.004648", lesson="0", id="row-3-no-gradient", where="ch. 7, step 4",
    says="the third sentence is done, so row 3 sends no gradient",
    why="The pull is small, not zero, and as a candidate in rows 1 and 2 sentence 3 is pushed as well.",
    label="row 3: pull on its positive",
)
erratum(
    row_lengths[2], right="0.000839", lesson="0", id="row-3-no-gradient", why="Row 1 has 0.157117.",
    label="row 3: length of the gradient of its loss",
)
check(row_lengths[0], "0.157117", "row 1: length of the gradient of its loss")
check_true(np.abs(rows_du[:2, 2]).max() > 1e-5, "rows 1 and 2 move sentence 3")

# %% dL/du with identical masks
# The same chain with hB := hA, b := a and zB := zA. s is symmetric here, so both views get the same gradient.
dsF = (pF - np.eye(3)) / (3 * tau)
table(
    dsF, "identical masks: dL/ds = (p - [i = j]) / (3 tau) = (p - [i = j]) / 0.15",
    rows=["row 1", "row 2", "row 3"], digits=9,
)
duF = show_chain(dsF, hF, hF, zA, zA, "identical masks")
check(duF, "-0.138891432 0.185188576 0 0; 0.185188576 -0.138891432 0 0; 0 0 0 0", "identical masks: dL/du")
check_close(duF, numeric_gradient(lambda x: loss_of(x, zA, zA, tau), u), 1e-7, "identical masks: central differences")
packageF_A, packageF_B = info_nce(hF, hF, tau)[1]()
check_close(duF, back_A(packageF_A) + back_A(packageF_B), 1e-11, "identical masks: the package's two backward passes")

# %% Why the positives get nothing
# The pull on sentence i is a product: -((1 - p_ii) / (3 tau)) x (d s_ii / d u_i). The first factor is large here. The
# second is the slope of the positive's cosine, again by the chain:
#   d s_ii / d u_i = 2 zA (b - s_ii a) / |hA| + 2 zB (a - s_ii b) / |hB|
# with a, b the unit rows of sentence i. It is 0 for b = a, s_ii = 1, because a cosine of 1 is already a maximum.
# So each view's share is zero by itself, not merely their sum: stopping the gradient of one view would change nothing.
pullF_A, pullF_B = through_cosines(np.diag(np.diag(dsF)), hF, hF)
pushF_A, pushF_B = through_cosines(dsF - np.diag(np.diag(dsF)), hF, hF)
check((1 - np.diag(pF))[:2] / tau, "6.200510 6.200510", "identical masks: (1 - p_ii) / tau, rows 1 and 2")
check(np.linalg.norm(pullF_A), "0.000000000000", "identical masks: pull through view A alone")
check(np.linalg.norm(pullF_B), "0.000000000000", "identical masks: pull through view B alone")
check(np.linalg.norm(2 * zA * (pullF_A + pullF_B)), "0.000000000000", "identical masks: pull through both views")
check(1 - np.diag(pF)[:2], "0.310025520 0.310025520", "identical masks: share of a row left to its negatives, 1 and 2")
check(pF[2, :2].sum(), "4.122307e-9", "identical masks: share of row 3 left to its negatives")
erratum(
    np.linalg.norm(duF), right="0.327370245", lesson="0", id="identical-masks-no-gradient",
    where="ch. 7, verification", says="identical masks leave nothing for the gradient to do",
    why="The pull is zero but the push is not: the whole gradient, 0.327, drives sentences 1 and 2 apart.",
    label="identical masks: length of the gradient",
)
check_close(2 * zA * (pushF_A + pushF_B), duF, 1e-13, "identical masks: the gradient is the push alone")
check_close(duF[2], np.zeros(4), 0, "identical masks: sentence 3 gets none", atol=1e-12)
# The argument needs the cosine. With the dot product s_ii = u_i . u_i the second factor is 2 u_i.
check_close(numeric_gradient(lambda x: x @ x, u[0]), 2 * u[0], 1e-8, "dot product u . u: the positive's slope is 2 u")

# %% One gradient step each way
# u after = u - 0.05 dL/du, step size 0.05, then the same masks and step 1 again. Independent masks: the positives come
# closer. Identical masks: they cannot, and the only thing learned is that two sentences of one meaning are different.
step = 0.05
after, afterF = u - step * du, u - step * duF
table(after, "independent masks: u - 0.05 dL/du", rows=["1", "2", "3"], columns=units, digits=8)
table(afterF, "identical masks: u - 0.05 dL/du", rows=["1", "2", "3"], columns=units, digits=8)
left, right = 2 * zA * after, 2 * zB * after
s_after = (left @ right.T) / np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
leftF = 2 * zA * afterF
sF_after = (leftF @ leftF.T) / np.outer(np.linalg.norm(leftF, axis=1), np.linalg.norm(leftF, axis=1))
table(s_after, "independent masks: s after the step, hA = 2 zA u, hB = 2 zB u", rows=rows_of, digits=8)
table(s_after - s, "independent masks: change of s", rows=["row 1", "row 2", "row 3"], digits=7)
table(sF_after, "identical masks: s after the step, hA = hB = 2 zA u", rows=["row 1", "row 2", "row 3"], digits=8)
table(sF_after - sF, "identical masks: change of s", rows=["row 1", "row 2", "row 3"], digits=7)
check(s[0, 0], "0.715542", "independent masks: s11 before the step")
check(s_after[0, 0], "0.715855", "independent masks: s11 after the step")
check_true((np.diag(s_after) > np.diag(s)).all(), "independent masks: every positive rises")
check(sF_after[0, 1], "0.958693", "identical masks: s12 after the step, from 0.96")
check(np.diag(sF_after), "1 1 1", "identical masks: the positives stay at 1")
check_true(loss_of(after, zA, zB, tau) < loss, "independent masks: the loss falls")
check_true(loss_of(afterF, zA, zA, tau) < lossF, "identical masks: the loss falls too, which is why it tells nothing")

# %% All 6^6 draws of two-of-four masks
# The six masks above are one draw of 46,656. A cosine depends on two of the six masks only, so all of them come from
# one table of 3 x 6 by 3 x 6 cosines, and one batched softmax does the rest.
# Numbers: mask 0 to 5 as in the table below; a draw is the six masks A1 A2 A3 B1 B2 B3 read as digits in base 6,
#   draw = 7776 A1 + 1296 A2 + 216 A3 + 36 B1 + 6 B2 + B3,   0 to 46655.
pairs = np.array(list(itertools.combinations(range(4), 2)))
choices = np.zeros((6, 4))
choices[np.arange(6)[:, None], pairs] = 1
table(choices.astype(int), "masks 0 to 5: kept units", rows=[f"mask {k}" for k in range(6)], columns=units)
views = 2 * choices[None] * u[:, None]  # sentence, mask, unit
unit_views = views / np.linalg.norm(views, axis=2, keepdims=True)
cosines = np.einsum("iad,jbd->iajb", unit_views, unit_views)
draws = np.array(list(itertools.product(range(6), repeat=6)))  # masks of A1 A2 A3 B1 B2 B3
i, j = np.arange(3)[:, None], np.arange(3)[None, :]
s_all = cosines[i, draws[:, :3, None], j, draws[:, None, 3:]]  # draw, row, column
z_all = s_all / tau
top = z_all.max(axis=2)
diagonal = np.arange(3)
row_loss_all = top + np.log(np.exp(z_all - top[:, :, None]).sum(axis=2)) - z_all[:, diagonal, diagonal]
loss_all = row_loss_all.mean(axis=1)
check(len(draws), "46,656", "number of draws")
page = np.flatnonzero((choices[draws] == np.concatenate([zA, zB])).all(axis=(1, 2)))
check_close(loss_all[page], [loss], 1e-13, "sweep: this page's draw is among them")

check(page[0], "1141", "sweep: number of this page's draw, masks 0 0 5 1 4 1")
# The pull of a draw has the length sqrt(sum_i (gate_i slope_i)^2): gate_i = (1 - p_ii) / (3 tau), p_ii = e^(-row loss),
# and slope_i = |d s_ii / d u_i|, the length of the slope above.
a, b = unit_views[:, :, None], unit_views[:, None]
same = cosines[diagonal[:, None, None], np.arange(6)[:, None], diagonal[:, None, None], np.arange(6)][..., None]
lengths = np.linalg.norm(views, axis=2)
slope_A = 2 * choices[:, None] * (b - same * a) / lengths[:, :, None, None]
slope_B = 2 * choices[None, :] * (a - same * b) / lengths[:, None, :, None]
slope_length = np.linalg.norm(slope_A + slope_B, axis=-1)  # sentence, mask A, mask B
gate = -np.expm1(-row_loss_all) / (3 * tau)
pull_all = np.sqrt(((gate * slope_length[diagonal, draws[:, :3], draws[:, 3:]]) ** 2).sum(axis=1))
this_slope = slope_length[diagonal, draws[page[0], :3], draws[page[0], 3:]]
table(
    [gate[page[0]], this_slope, gate[page[0]] * this_slope],
    "this page's draw: gate = (1 - p_ii) / 0.15; slope = length of 2 zA (b - s_ii a) / |hA| + 2 zB (a - s_ii b) / |hB|;"
    "\nthe pull is the root of the sum of the three squared products gate x slope",
    rows=["gate", "slope", "product"], columns=["1", "2", "3"], digits=8,
)
check(pull_all[page[0]], "0.038490374", "sweep: pull of this page's draw")
five = np.random.default_rng(7).choice(len(draws), 5, replace=False)
table(
    [[*map(str, draws[k]), f"{loss_all[k]:.9f}", f"{pull_all[k]:.8f}"] for k in five],
    "five draws to redo: masks, loss (steps 1 to 4), pull",
    rows=[f"draw {k}" for k in five], columns=["A1", "A2", "A3", "B1", "B2", "B3", "loss", "pull"],
)
for draw in five:
    keep_A, keep_B = choices[draws[draw, :3]], choices[draws[draw, 3:]]
    value, value_back = info_nce(2 * keep_A * u, 2 * keep_B * u, tau)
    check_close(loss_all[draw], value, 1e-11, f"sweep: draw {draw}: the package's loss", atol=1e-14)

# %% What the draws say
# The draws are grouped by k, the number of sentences with mask A = mask B: 46656 C(3,k) (1/6)^k (5/6)^(3-k) draws each.
# Worse than a guess: a loss above ln 3. A query finds its view when s_ii is the largest of its row, a tie not counted.
# Equal masks give the lowest loss and no pull at all: a low loss is not a good sign by itself.
# The pull also dies for disjoint masks: with no common unit a cosine is 0 for every profile, so nothing can lift it.
equal_masks = (draws[:, :3] == draws[:, 3:]).sum(axis=1)
groups = [equal_masks == k for k in range(4)]
counts = np.array([group.sum() for group in groups])
mean_loss = np.array([loss_all[group].mean() for group in groups])
mean_pull = np.array([pull_all[group].mean() for group in groups])
table(
    [[str(c), f"{x:.6f}", f"{y:.6f}"] for c, x, y in zip(counts, mean_loss, mean_pull, strict=True)],
    "draws by the number of sentences whose two masks are equal; mean loss and mean length of the pull of each group",
    rows=["none", "one", "two", "all three"],
    columns=["draws", "mean loss", "mean pull"],
)
check(counts, "27000 16200 3240 216", "sweep: draws with 0, 1, 2, 3 equal pairs, 46656 x C(3,k) (1/6)^k (5/6)^(3-k)")
check(mean_loss, "4.084590 2.739212 1.393835 0.048457", "sweep: mean loss of each group")
check(mean_pull, "1.126135 0.831644 0.466004 0.000000000000", "sweep: mean pull of each group")
check(loss_all.mean(), "3.411901", "sweep: mean loss")
check(np.mean(loss_all > np.log(3)), "72.1%", "sweep: share of draws worse than a guess")
rivals = np.where(np.eye(3, dtype=bool), -2, s_all).max(axis=2)
all_right = (s_all[:, diagonal, diagonal] > rivals + 1e-12).all(axis=1)  # a tie is no answer
check(np.mean(all_right), "13.9%", "sweep: share of draws in which every query finds its own view")
check(np.mean(loss_all < loss), "7.3%", "sweep: share of draws easier than this page's")
flat = slope_length < 1e-12
common = (choices @ choices.T).astype(int)
check_true((flat == ((common == 0) | (common == 2))[None]).all(), "sweep: slope 0 for equal and disjoint masks only")
check(np.prod(flat.sum(axis=(1, 2))), "1728", "sweep: draws in which no sentence has a slope, 12 x 12 x 12")

# %% The whole page in six lines
# What the package prints for the three runs of this chapter.
independent = info_nce(dropout(u, zA == 1, 2)[0], dropout(u, zB == 1, 2)[0], 0.05)[0]
warm = info_nce(dropout(u, zA == 1, 2)[0], dropout(u, zB == 1, 2)[0], 1.0)[0]
identical = info_nce(dropout(u, zA == 1, 2)[0], dropout(u, zA == 1, 2)[0], 0.05)[0]
check(np.array([independent, warm, identical]), "0.018462 0.820716 0.247400", "the three losses of this chapter")
