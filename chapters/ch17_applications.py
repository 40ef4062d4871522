"""Chapter 17: what the embeddings are used for, and what each use asks of them."""

# %% [markdown]
# Question: one geometry is said to serve detection, forecasting, recommendation, search and labelling. Does it? Each
# section builds a small world whose truth is known, uses the package's part, finds what breaks and how one would see
# it. Two threads run through all: the pairs decide what the encoder sees, and a distance is not a probability.

# %% Anomalies: far from everything normal
import numpy as np
from day_panel import (
    AHEAD,
    DAY,
    POSITIVES,
    Backtest,
    Panel,
    analogue_forecast,
    direct_forecast,
    error,
    nearest_machine,
    neighbours_share,
    purity,
    pushes,
)
from day_panel import fit as fit_days
from grammar import ACTIONS, say
from lesson import check, check_close, check_true, erratum_claim, full, numeric_gradient, recorded, table
from plain_encoder import PlainEncoder, loss_of_weights
from sensor_windows import KINDS, PATTERNS, Sensor, auc, brightness_by, contamination, new_mode, shaken
from sensor_windows import fit as fit_sensor
from shape_pictures import COLOURS, COUNTS, SHAPES, draw_pictures, fine_tuned, named, probe, two_views, with_captions
from taste_world import (
    FAR,
    ITEMS,
    NEGATIVES,
    Market,
    candidates,
    closeness,
    cold_start,
    cone_and_line,
    longer_training,
    ranker_ceiling,
    train_towers,
    trained_on_exposure,
)
from word_bags import Consumers, bags, by_length, directions, frames, in_code, rare_objects, same_action
from word_bags import fit as fit_words

from nano_simcse.augmentations import taught_invariances
from nano_simcse.catalogue import coverage, effective_items, popularity_groups, recall_by_group
from nano_simcse.errors import InputError
from nano_simcse.geometry import mean_pair_cosine
from nano_simcse.grouping import near_duplicates, spherical_kmeans, zero_shot
from nano_simcse.layers import normalize
from nano_simcse.neighbours import NormalReference, quantile_threshold
from nano_simcse.retrieval import top_k

# Most encoders of this chapter are relu(x W1 + b1) W2 + b2 (plain_encoder.py), trained with chapter 1's loss.
rng = np.random.default_rng(0)
loss_at = loss_of_weights(PlainEncoder(5, width=3, hidden=4), *rng.standard_normal((2, 6, 5)))
start = rng.standard_normal(39)
check_close(loss_at(start)[1], numeric_gradient(lambda w: loss_at(w)[0], start), 1e-7, "plain encoder: gradient")

# By hand: three normal rows, one new one. Score = mean distance to the k nearest, on the unit sphere.
hand = NormalReference(np.array([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]]), k=2)
ids, gaps = hand.evidence(np.array([[1.0, 1.0]]))
check(ids[0], "0 1", "by hand: the evidence is rows 0 and 1, a tie in order")
check(gaps[0], "0.765366865 0.765366865", "by hand: both at sqrt(2 - sqrt 2), whatever their length")


def refused(action):
    """Whether the package refuses an action with its own error."""
    try:
        action()
    except InputError:
        return True
    return False


# A machine that shakes (sensor_windows.py): windows of 48 steps, 6 normal patterns, vibration louder than all of them.
sensor, rng = Sensor(0), np.random.default_rng(170)
fit_on, known_pattern = sensor.normal(rng, 1000)
held_out, _ = sensor.normal(rng, 999)
fresh, fresh_pattern = sensor.normal(rng, 2000)
odd = {kind: sensor.anomalies(rng, 300, kind) for kind in KINDS}

views = {
    "brightness only": brightness_by(sensor, 1.5, shake=False),
    "vibration": shaken(sensor, ["jitter"]),
    "vibration, brightness": brightness_by(sensor, 1.5),
    "vibration, crop": shaken(sensor, ["jitter", "crop"]),
}
detectors = {"raw window": lambda x: x} | {name: fit_sensor(fit_on, view).encode for name, view in views.items()}


def scorer(encode, k=5, reference=fit_on):
    """windows -> NeighbourScores in this encoder."""
    index = NormalReference(encode(reference), k)
    return lambda windows: index.scores(encode(windows))


def areas(score):
    normal = score(fresh).values
    return [auc(normal, score(odd[kind]).values) for kind in KINDS]


detected = np.array([areas(scorer(encode)) for encode in detectors.values()])
table(detected, "area under the curve (0.5 is blind)", rows=detectors, columns=KINDS, digits=3)
raw, useless, good, bright, cropped = detected
check_true(bool(good[0] > raw[0] + 0.05 and good[1] > raw[1] + 0.15), "encoder beats raw distance on pattern anomalies")
check_true(bool(np.abs(useless - 0.5).max() < 0.06), "an augmentation that leaves the nuisance in: blind to everything")
check_true(bool(good[2] > 0.9 > 0.65 > bright[2]), "brightness in the augmentations: the level anomaly is gone")
check_true(bool(bright[0] > 0.9), "and nothing else tells: pattern anomalies are found as well as before")
check_true(bool(cropped[1] < good[1] - 0.1), "crop (position is no difference) costs the anomaly of position")

# %% The list of augmentations is not the list of blind spots
# It is a part of it. Scaling rows to unit length removes the gain for any encoder that is homogeneous (no biases,
# f(g x) = g f(x)): no augmentation said so. And an encoder keeps what tells its training windows apart; a ripple that
# none of them has falls through, although raw distance sees it.
print("\n  declared by jitter and brightness:", "; ".join(taught_invariances(["jitter", "brightness"])))
no_bias = fit_sensor(fit_on, views["vibration"], bias=False).encode
by_gain = [scorer(no_bias)(g * fresh[:200]).values for g in (1.0, 4.0)]
check_close(by_gain[0], by_gain[1], 1e-9, "no biases: four times the gain, the same scores")
check_true(bool(abs(good[3] - 0.5) < 0.08 and raw[3] < 0.55), "gain: unseen by all, raw window included")
check_true(bool(good[4] < raw[4] - 0.1), "ripple: the encoder sees less of it than raw distance does")
erratum_claim(
    bool(np.allclose(*by_gain) and good[4] < raw[4] - 0.1),
    right="they are part of it: scaling to unit length hides the gain, and the encoder drops what its training never "
    "needed",
    id="augmentations-are-the-blind-spots", where="lesson 4, anomaly detection",
    says="the list of augmentations is exactly the list of what the detector cannot see",
    why="A gain and a ripple, named by no augmentation, are invisible or dimmed.",
    label="blind to what no augmentation names",
)

# %% Evidence, threshold, and what the number is not
encode = detectors["vibration"]
index = NormalReference(encode(fit_on), k=5, version="A")
ids, _ = index.evidence(encode(fresh))
same_pattern = float((known_pattern[ids] == fresh_pattern[:, None]).mean())
check_true(same_pattern > 0.85 > 1 / PATTERNS, "evidence: most neighbours of a normal window have its pattern")
scores, held = index.scores(encode(fresh)), index.scores(encode(held_out))
limit = quantile_threshold(held, 0.99)
alarms = float(scores.above(limit).mean())
check_true(abs(alarms - 0.01) < 0.01, "threshold at the 99 % quantile of held-out normals: about 1 % false alarms")
seen_itself = index.scores(encode(fit_on))  # every row is its own neighbour at distance 0
wrong_limit = quantile_threshold(seen_itself, 0.99)
check_true(float(scores.above(wrong_limit).mean()) > 10 * alarms, "threshold from reference rows: ten times the alarms")
left_out = quantile_threshold(index.scores(encode(fit_on), without_self=True), 0.99)
repaired = float(scores.above(left_out).mean())
check_true(abs(repaired - 0.01) < 0.01, "leaving each row out of its own neighbours repairs that: about 1 % again")
check_true(refused(lambda: scores + np.log(0.5)), "the package refuses score + log-likelihood")
check_true(refused(lambda: np.zeros(len(scores)) + scores), "and log-likelihoods + score")
check_true(refused(lambda: float(scores)), "and reading a score as a number")
other = NormalReference(encode(fit_on), k=5, version="B").scores(encode(fresh))
check_true(refused(lambda: other.above(limit)), "a threshold of another encoder version is refused")
# Calibrated in one sense it is: among n held-out normals, (1 + number scoring as high) / (n + 1) is uniform.
share = scores.normal_share(held)
rates = np.array([(share <= level).mean() for level in (0.01, 0.05, 0.2)])
check_true(bool(np.all(np.abs(rates / [0.01, 0.05, 0.2] - 1) < [0.8, 0.4, 0.2])), "alarm rates match their levels")
check(index.scores(encode(odd["level"])).normal_share(held).min(), "0.001", "least share that 999 held-out rows allow")
# What it is not: the chance of an anomaly. With one anomaly in 1,000 and 80 % of them found, Bayes gives
base, found = 0.001, 0.8
check(base * found / (base * found + (1 - base) * 0.01), "0.0741", "of alarms at level 0.01, the share that is real")
erratum_claim(
    bool(np.all(np.abs(rates / [0.01, 0.05, 0.2] - 1) < [0.8, 0.4, 0.2])),
    right="it is calibrated as a rate of false alarms on rows like the held-out ones; it is no probability of anomaly",
    id="quantile-has-no-calibration", where="lesson 4, anomaly detection",
    says="the score with its quantile threshold has no calibration at all",
    why="Ranks among exchangeable held-out scores are uniform.", label="rank among held-out scores is a p-value",
)

# %% Precision at the volume that can be read
# Two detectors of 10 anomalies among 1,000 normals (scores are ranks): A puts five on top and five at the bottom, B
# puts all ten just below the 50 highest normals. Ten alerts can be read.
normals = np.arange(1000.0)
on_top, below = np.r_[np.full(5, 2000.0), np.full(5, -1.0)], np.full(10, 949.5)
check([auc(normals, on_top), auc(normals, below)], "0.500 0.950", "areas of A and B")
order_a = np.argsort(-np.r_[normals, on_top], kind="stable")[:10]
order_b = np.argsort(-np.r_[normals, below], kind="stable")[:10]
check([(order_a >= 1000).mean(), (order_b >= 1000).mean()], "0.5 0.0", "precision of ten alerts: A and B")
stream = np.concatenate([fresh[:1470], odd["new pattern"][:30]])
read = []
for name in ("raw window", "vibration"):
    marks = scorer(detectors[name])(stream)
    read.append([100 * (marks.most_unusual(30) >= 1470).mean(), auc(*np.split(marks.values, [1470]))])
table(read, "30 anomalies in 1,500 windows", rows=["raw window", "vibration"],
      columns=["% of 30 alerts real", "area"], digits=2)
check_true(read[1][0] > 2 * read[0][0], "30 alerts: the encoder's hold more than twice as many real ones")

# %% Contamination, and a reference that has gone stale
# 4 % of the "normal" windows are a fault that recurs. Who is hurt: the encoder that trained on them, or the reference?
ks = (1, 5, 60)
dirt = contamination(sensor, ks)
table(dirt[..., 0].reshape(4, -1), "percent of the fault found at the 99 % threshold",
      rows=["clean both", "reference contaminated", "encoder contaminated", "both"],
      columns=[f"k = {k}" for k in ks], digits=1)
table(dirt[..., 1].reshape(4, -1), "percent of false alarms", rows=["clean both", "reference contaminated",
      "encoder contaminated", "both"], columns=[f"k = {k}" for k in ks], digits=1)
stale = new_mode(sensor, encode, fit_on)
table(stale, "percent of alarms: new normal, after 150 of it joined the reference, old normals then", digits=1)
noisy = Sensor(0, noise=0.5).normal(np.random.default_rng(171), 1000)[0]
drift = float(index.scores(encode(noisy)).above(limit).mean())
print(f"  benign shift, noise 0.1 -> 0.5: {drift:.1%} alarms")
check_true(bool(dirt[:, 1, :, 0].max() < 3 < 6 < dirt[0, 0, :, 0].min()), "contaminated reference: fault unseen")
check_true(bool(dirt[..., 1].max() < 3), "and the false alarms look right in every case: nothing offline shows it")
erratum_claim(
    bool(dirt[1, 0, :, 0].min() > 90 > 2 * dirt[0, 0, :, 0].max()),
    right="the harm is in the reference (and the held-out set); an encoder that saw the fault separates it better",
    id="contamination-sits-in-the-reference", where="lesson 4, anomaly detection",
    says="an encoder trained on contaminated data learns to place the anomalies with the normal windows",
    why="In-batch negatives tell a recurring fault from the other patterns, as they tell any two patterns apart.",
    label="contaminated encoder, clean reference: finds the fault it saw",
)
check_true(bool(stale[0] > 20 and stale[1] < stale[0] / 4), "150 windows of a new normal end its alarms")
check_true(bool(stale[2] < 2), "the old kinds are not disturbed")
check_true(drift > 2 * alarms, "benign shift (noisier sensor, same machine): the alarm rate at least doubles")

# %% [markdown]
# So a detector has four parts that go wrong apart from each other: augmentations, reference, threshold, volume. What is
# measured offline with contaminated data cannot see a contaminated reference.

# %% Forecasting by analogues
# 10 machines for 90 days; a day is 32 steps, 24 seen, 8 to forecast (day_panel.py). Find past windows that look like
# today's in the embedding, average their continuations on their own level and scale. Rolling origin: every test day is
# forecast from what was over by then. Baselines: the last value, and a ridge regression refitted as time goes on.
panel = Panel(0)
test = Backtest.of(panel, step=8)
encoders = {name: fit_days(test, name) for name in POSITIVES}
forecasts = {name: analogue_forecast(test, encode) for name, encode in encoders.items()}
seen = test.windows[test.test]
last_value = error(test, np.repeat(seen.past[:, -1:], AHEAD, axis=1))
direct = error(test, direct_forecast(test))
accuracy = np.array([error(test, found.forecast) for found in forecasts.values()])
shares = np.array([neighbours_share(panel, test, found) for found in forecasts.values()])
table(np.column_stack([accuracy, shares]), "analogues by how positives were chosen",
      rows=POSITIVES, columns=["error", "same month", "same day type"], digits=3)
table([last_value, direct], "error of the baselines", columns=["last value", "direct, linear"], digits=3)
found = forecasts[POSITIVES[2]]
check(found.weights.sum(axis=1).max(), "1.0000000", "weights of a forecast's neighbours sum to 1")
check_true(bool((test.windows.end[found.ids] <= seen.origin[:, None]).all()), "every analogue was over at its origin")
check_true(accuracy[2] < direct - 0.2 and direct < last_value, "recurring days: analogues beat the direct forecast")
check_true(accuracy[2] < accuracy[0] - 0.1, "and the learned distance beats the distance of raw windows")
# Shown to a reviewer: the neighbours. A clock finds the same month, whatever the day looks like.
check_true(bool(shares[1, 0] > 0.7 and shares[1, 1] < 0.15), "next day as positive: month shared, not type: a clock")
check_true(bool(shares[2, 0] < 0.5 < shares[2, 1]), "shape-keeping augmentations: neighbours share the type")
check_true(bool(accuracy[1] > accuracy[2] + 0.2), "the clock forecasts worse")
check_true(bool(shares[3, 1] > shares[2, 1]), "views with another month's texture: the type more often still")
# Where the future is a weighted sum of the past, the direct forecaster wins: the price of showing neighbours.
swing = Backtest.of(Panel(0, linear=True), step=8)
price = [error(swing, direct_forecast(swing)),
         error(swing, analogue_forecast(swing, fit_days(swing, POSITIVES[2], steps=100)).forecast)]
table(price, "a linear process", columns=["direct", "analogues"], digits=3)
check_true(price[1] > price[0] + 0.05, "linear process: the direct forecast is better")

# %% The future is the easiest leak
leak = error(test, analogue_forecast(test, encoders[POSITIVES[2]], allow_future=True).forecast)
print(f"  error {accuracy[2]:.3f}, with windows that were not over yet {leak:.3f}")
check_true(leak < 0.7 * accuracy[2], "without the temporal rule the error falls by over 30 %, for nothing")

# %% Overlapping windows as negatives
# Two windows of one machine that share time steps show partly the same; should they be struck out of the negatives?
taus = (1.0, 0.1, 0.02)
push = pushes(panel, test, encoders[POSITIVES[2]], taus)
table(push, "weight of a negative over the average weight", rows=["overlapping", "same type and hour"],
      columns=[f"tau {tau}" for tau in taus], digits=2)
kept = error(test, analogue_forecast(test, fit_days(test, POSITIVES[2], exclude=False)).forecast)
print(f"  error with overlaps struck out {accuracy[2]:.4f}, kept {kept:.4f}")
check_true(bool(1.5 < push[0, 2] < 4), "overlapping windows: two to three times the average push")
check_true(bool(push[1, 2] > 2 * push[0, 2]), "windows of the same type elsewhere: more than twice that")
erratum_claim(
    bool(push[1, 2] > 2 * push[0, 2] and abs(kept / accuracy[2] - 1) < 0.02),
    right="repeats of the same shape elsewhere, which nobody lists, are pushed hardest; striking out overlaps changes "
    "the forecast error by less than 2 %",
    id="overlaps-are-punished-hardest", where="lesson 4, time series",
    says="overlapping windows are the false negatives that a small temperature punishes hardest",
    why="A window that starts hours later asks another question; the same shape on another day asks the same one.",
    label="overlaps are not the hardest negatives here",
)

# %% Cold start, regimes, similar series
# A machine without history borrows: only other machines' windows are legal. Whole days cluster into types. A machine
# is described by the mean of its days' embeddings.
rows = test.test[np.isin(test.windows.series[test.test], (0, 1))]
others = test.windows.series > 1
encode_day = encoders[POSITIVES[2]]
borrowed = analogue_forecast(test, encode_day, rows=rows, library=others)
check_true(not np.isin(test.windows.series[borrowed.ids], (0, 1)).any(), "cold start: analogues of other machines only")
cold, warm = (error(test, a.forecast, rows) for a in (borrowed, analogue_forecast(test, encode_day, rows=rows)))
no_history = error(test, np.repeat(test.windows.past[rows][:, -1:], AHEAD, axis=1), rows)
table([warm, cold, no_history], "two machines", columns=["own history too", "others only", "last value"], digits=3)
check_true(cold < warm + 0.1 < no_history - 0.3, "cold start: borrowing costs little, and beats the last value by far")
days = np.flatnonzero(test.windows.start % DAY == 0)
day_type = panel.type[test.windows.series[days], test.windows.start[days] // DAY]


pure = [purity(spherical_kmeans(encoders[name](test.windows.past[days]), 24, starts=2, rounds=20).label, day_type)
        for name in (POSITIVES[1], POSITIVES[2])]
by_month = purity(test.windows.start[days] // (DAY * 15), day_type)
table([by_month, *pure], "regimes: purity of 24 clusters of days", columns=["months", "clock", "shape"], digits=3)
check_true(bool(pure[1] > 0.4 > 2 * pure[0]), "regimes: clusters of the shape encoder follow the day types")
two_kinds = Panel(1, families=2)
kinds_test = Backtest.of(two_kinds, step=8)
nearest = nearest_machine(kinds_test, fit_days(kinds_test, POSITIVES[2], steps=100))
check_true(bool((two_kinds.family[nearest] == two_kinds.family).all()), "similar series: each finds its kind")

# %% Recommendation: what the negatives make of popularity
# taste_world.py: 300 users, 240 items, p(item | user) known: popularity 1 / rank times taste. Two towers, one row per
# user and item. Negatives q(i) by three rules; the best critic under each (chapter 15's argument, plus a constant per
# user): even -> log p(i|u); as popular as they are, which is what in-batch negatives are -> log p(i|u) / q(i);
# the same with log q subtracted from the logits -> log p(i|u) again.
market = Market(0)
group = popularity_groups(market.popularity)  # each group a third of all purchases
check(popularity_groups(np.array([6, 1, 3, 1, 1])), "0 2 1 2 2", "groups by hand: 6 of 12 purchases are the head")
bought, K = market.clicks > 0, 30
lists = {
    "best sellers": top_k(np.where(bought, -np.inf, market.popularity * 1.0), K),
    "true log p": top_k(np.where(bought, -np.inf, np.log(market.p)), K),
    "true log p / q": top_k(np.where(bought, -np.inf, np.log(market.p / market.p.mean(axis=0))), K),
}
towers = {rule: train_towers(market, rule) for rule in NEGATIVES}
lists |= {rule: candidates(*rows, K, seen=bought) for rule, rows in towers.items()}
board = np.array([[*recall_by_group(chosen, market.later, group), coverage(chosen, ITEMS),
                   effective_items(chosen, ITEMS)] for chosen in lists.values()])
table(board, f"{K} candidates a user: recall by popularity, coverage (percent), effective items", rows=lists,
      columns=["head", "middle", "tail", "all", "coverage", "items"], digits=1)
best, log_p, ratio, even, plain, corrected = board
check_true(bool(best[0] > 95 and best[2] < 10), "best sellers: all of the head, nearly nothing of the tail")
check_true(bool(log_p[3] > ratio[3] and log_p[2] < ratio[2]), "truth: log p recalls more, log p / q more tail")
check_true(bool(plain[0] < 10 < 50 < corrected[0]), "head: lost by uncorrected in-batch negatives, restored by log q")
check_true(bool(corrected[3] > plain[3] + 8), "all: correction raises recall")
check_true(bool(corrected[5] < plain[5] - 20), "and it concentrates the lists: fewer items carry them")
# The best critic is not yet what a tower has learnt. Even negatives aim at log p as the corrected rule does, and are
# slower: they take 1,500 steps to the recall and closeness to log p that it has after 300, the head still missing.
near = {rule: closeness(market, *towers[rule]) for rule in NEGATIVES}
table(np.column_stack([board[3:, 0], list(near.values())]), "recall of the head, correlation of the scores with log p",
      rows=near, columns=["head", "correlation"], digits=2)
check_true(bool(even[0] < 40 < 80 < min(log_p[0], corrected[0])), "even negatives, 300 steps: head far below log p")
check_true(near["uniform"] < near["popularity, corrected"] - 0.03, "and scores farther from log p than corrected ones")
rules = (NEGATIVES[0], NEGATIVES[2])
longer = recorded("five times the steps, 1,500", ["rule", "head", "all", "correlation"],
                  [["uniform", 30.7, 48.2, 0.711], ["popularity, corrected", 89.3, 50.8, 0.776]], seeds="0")
if full():
    check_close(longer_training(market, group, rules) / longer, np.ones((2, 3)), 0.02, "the longer training again")
check_true(bool(longer[0, 1] > corrected[3] - 2 and longer[0, 2] > near[rules[1]] - 0.02 and longer[0, 0] < 40),
           "recorded: even negatives get as far in five times the steps, except for the head")
erratum_claim(
    bool(even[4] > 90 > 25 > best[4] and even[5] > 2 * best[5]),
    right="the lists cover the catalogue, best sellers a fifth of it; even negatives aim at log p(i|u), and these "
    "towers are still far from it (a quarter of the head found, not nine tenths)",
    id="even-negatives-make-best-sellers", where="lesson 4, recommendation",
    says="without popularity-sampled negatives and correction the candidates are a best-seller list",
    why="The best critic for even negatives is log p(i|u), which contains taste as well as popularity.",
    label="even negatives: not a best-seller list",
)
# Coverage as an alarm for collapse: it goes off for some collapses only. Unit rows moved by k along an axis of their
# own make a cone (mean cosine near 1) and rank as before, cos -> (cos + k^2) / (1 + k^2); a spread within one direction
# does not. A constant that is not perpendicular to all rows can turn the order round.
users, items = (normalize(rows)[0] for rows in towers["popularity, corrected"])
(cone_u, line_u), (cone_i, line_i) = cone_and_line(users), cone_and_line(items)
covers = [coverage(candidates(*pair, K), ITEMS) for pair in ((users, items), (cone_u, cone_i), (line_u, line_i))]
table([*covers, mean_pair_cosine(cone_i), mean_pair_cosine(line_i)], "coverage and mean cosine",
      columns=["as trained", "cone", "line", "cosine, cone", "cosine, line"], digits=2)
check_close(normalize(cone_u)[0] @ normalize(cone_i)[0].T, (users @ items.T + FAR**2) / (1 + FAR**2), 1e-12,
            "cone: every cosine by the same map, (cos + k^2) / (1 + k^2)")
plane, constant = np.array([[1.0, 0.0], [-1.0, 0.0], [0.9, np.sqrt(0.19)]]), np.array([10.0, 0.0])
for rows, digits, name in ((plane, "-1.0000 0.9000", "as they are"),
                           (plane + constant, "1.0000 0.9992", "(10, 0) added, no axis of its own")):
    check(normalize(rows)[0][1:] @ normalize(rows)[0][0], digits, f"cosines of (1, 0) with two items: {name}")
erratum_claim(
    bool(mean_pair_cosine(cone_i) > 0.98 and abs(covers[1] - covers[0]) < 1 and covers[2] < covers[0] - 20),
    right="a cone of mean cosine 0.99 can rank as before; a line of mean cosine 0.35 loses a quarter of the coverage",
    id="collapse-shows-in-coverage", where="lesson 4, recommendation",
    says="a collapsed embedding retrieves the same few items for everyone",
    why="A constant perpendicular to all rows, which have one length, changes every cosine by the same rising map.",
    label="coverage: untouched by a cone, lost on a line",
)

# %% Candidates, ranking, cold items, sessions, neighbours of items
# A ranker reads the K candidates and nothing else: even a perfect one finds no more than their recall.
sizes = (5, 30, 100)
ceiling, perfect = ranker_ceiling(market, users, items, sizes)
table([ceiling, perfect], "recall", rows=["of the candidates", "of a perfect ranker's top 5"],
      columns=[f"{k} candidates" for k in sizes], digits=1)
check_true(bool(perfect[0] == ceiling[0] and perfect[0] < perfect[1] < ceiling[1]), "the candidates cap the ranker")
# Cold items: 48 items without a purchase. A free row per item stays where it started; a map of content does not.
cold_recall = cold_start(market)
print(f"\n  cold items, recall at 12 of 48: free rows {cold_recall[0]:.1f}, content {cold_recall[1]:.1f}, chance 25.0")
check_true(abs(cold_recall[0] - 25) < 6 and cold_recall[1] > 45, "cold items: free rows at chance, content twice that")
# A session is a query too: the mean of the items bought. Nearest items of an item: alike in topic.
session = (market.clicks / market.clicks.sum(axis=1, keepdims=True)) @ items
by_session = recall_by_group(candidates(session, items, K, bought), market.later, group * 0)[0]
related = top_k(items @ items.T - 2 * np.eye(ITEMS), 5)
alike = np.mean([market.topics[i] @ market.topics[related[i]].T for i in range(ITEMS)])
print(f"  recall from the session {by_session:.1f}, from the user's row {ceiling[1]:.1f}; chance {100 * K / ITEMS:.1f}")
check_true(by_session > 2 * 100 * K / ITEMS, "session query: more than twice chance, without a row for the user")
check_true(bool(alike > 0.3), "related items: mean topic cosine of the five nearest, 0 for random ones")

# %% What logged clicks can judge
# The incumbent shows every user about the same 40 popular items; clicks are taste among those. Held-out clicks of that
# log, against users who were shown everything, for two lists of 20: the log's best sellers, and the true taste.
exposure = trained_on_exposure()
table(exposure, "percent of purchases found", rows=["best sellers of the log", "true taste"],
      columns=["by the log", "shown everything"], digits=1)
wrong_list_wins = exposure[0, 0] > exposure[1, 0] and exposure[0, 1] < exposure[1, 1] / 3
check_true(bool(wrong_list_wins), "the log prefers the list that finds a fifth of what taste finds")

# %% Text: duplicates, clusters, labels
# Sentences of the grammar as word bags, one matrix (word_bags.py), trained on two wordings of a scene.
rng = np.random.default_rng(174)
scenes = frames(1200, 1)
train_scenes, test_scenes = scenes[:900], scenes[900:]
first, second = (bags([say(f, rng) for f in train_scenes]) for _ in range(2))
words, _ = fit_words(first, second)
corpus = [say(f, rng) for f in test_scenes] + [say(f, rng) for f in test_scenes[:60]]  # 60 scenes told twice
rows = normalize(words.encode(bags(corpus)))[0]
truth = {(i, 300 + i) for i in range(60)}
cuts = (0.8, 0.9, 0.97)
quality = []
for cut in cuts:
    pairs, grouped = near_duplicates(rows, cut)
    hit = len(truth & set(map(tuple, pairs.tolist())))
    quality.append([100 * hit / max(len(pairs), 1), 100 * hit / 60, int(np.bincount(grouped).max())])
table(np.array(quality, dtype=object), "near-duplicates, 60 planted in 360", rows=[f"cosine {c}" for c in cuts],
      columns=["precision %", "recall %", "largest group"], digits=1)
check_true(bool(quality[0][1] > 90 and quality[2][0] > quality[0][0]), "duplicates: a higher cut is more precise")
pairs, chain = near_duplicates(np.array([[1, 0.0], [0.8, 0.6], [0.28, 0.96]]), 0.8)
check(pairs, "0 1; 1 2", "a chain by hand: a ~ b and b ~ c at cosine 0.8")
check(chain, "0 0 0", "a chain by hand: one group, although a and c are at 0.28: likeness is not transitive")
action = np.array([list(ACTIONS).index(f.action) for f in test_scenes])
by_scene = spherical_kmeans(rows[:300], len(ACTIONS))
by_topic = spherical_kmeans(fit_words(*same_action(train_scenes))[0].encode(bags(corpus[:300])), len(ACTIONS))
check_true(bool(np.all(np.diff(by_scene.objective) >= -1e-12)), "clusters: the objective never falls")
pure = [purity(found.label, action) for found in (by_scene, by_topic)]
table(pure, "purity of 12 clusters by action", columns=["pairs: same scene", "pairs: same action"], digits=2)
check_true(bool(pure[1] > 0.8 > 0.5 > pure[0]), "clusters follow what the pairs had in common, here the action or not")
labels = {"the word": [options[0][0][0] for options in ACTIONS.values()],
          "its wordings": [" ".join(present for present, _ in options[0]) for options in ACTIONS.values()]}
told = [100 * (zero_shot(rows[:300], words.encode(bags(texts)))[0] == action).mean() for texts in labels.values()]
table(told, "zero-shot action of a scene, percent right (chance 8.3)", columns=labels, digits=1)
check_true(told[1] > 60, "zero-shot: a description in words labels most scenes, no label was trained")

# %% Queries unlike those of training; one tower or two
grid = by_length(train_scenes, test_scenes)
asked_with = ("two keywords", "whole sentence")
table(grid, "recall@1 by the query's length", columns=asked_with, digits=1,
      rows=[f"{name}, {n} pairs, {t}" for name in asked_with for n in (50, 900) for t in ("one", "two")])
check_true(bool(np.all(grid[[0, 3], 1] < grid[[4, 7], 1] - 8)), "trained on keywords: whole sentences suffer")
check_true(bool(np.all(grid[[0, 4]] > grid[[1, 5]] + 20)), "50 pairs: one tower is better, at both lengths")
# Two towers pay where a word means something else on the other side: queries in code, each word another's name.
coded = in_code(train_scenes, test_scenes)
table(coded, "queries in code, 900 pairs: recall@1", columns=["one tower", "two towers"], digits=1)
check_true(coded[1] > coded[0] + 15, "other surface form: two towers are better")
rare = rare_objects()
table(rare, "whole sentences: recall@1", columns=["objects never trained", "trained objects"], digits=1)
check_true(rare[0] < rare[1] - 10, "rare words: recall is lost there, and an average over all queries hides it")

# %% Pictures: augmentations and captions as the task
# 12 x 12 pixels, five shapes, four colours, one or two copies (shape_pictures.py). First two views of one picture.
rng = np.random.default_rng(176)
pool, (x, what) = draw_pictures(rng, 1500), draw_pictures(rng, 500)
few_x, few = pool[0][:300], pool[1][:300]
seers = {"moved": two_views(pool, colour=False), "moved, recoloured": two_views(pool, colour=True)}
probes = np.array([[probe(look(few_x), few[:, k], look(x), what[:, k]) for k in range(3)]
                   for seer in seers.values() for look in (seer.hidden, seer.encode)])
table(probes, "linear probe, percent right", columns=["shape", "colour", "count"], digits=1,
      rows=[f"{name}: {layer}" for name in seers for layer in ("before the head", "head output")])
check_true(bool(probes[1, 1] > 85 > 60 > probes[3, 1]), "recoloured views: the head output has lost the colour")
check_true(bool(probes[3, 0] >= probes[1, 0] - 2), "shape: recoloured views serve it no worse")
check_true(bool(probes[2, 1] > probes[3, 1] + 15), "the layer before the head keeps some colour: discard the head")
tuned = [fine_tuned(seer, few_x, few[:, 1], x, what[:, 1]) for seer in seers.values()]
table([probes[[1, 3], 1], tuned], "colour", rows=["linear probe", "all weights trained"], columns=seers, digits=1)
check_true(probes[1, 1] - probes[3, 1] > 4 * abs(tuned[0] - tuned[1]), "fine-tuning hides what the probe shows")

# Captions that name colour and shape; then captions that also count.
answers = []
for said in (("colour", "shape"), ("colour", "shape", "count")):
    pictures, texts = with_captions(pool, say=said)
    answers.append([100 * (named(pictures, texts, x, [(word,) for word in options]) == what[:, k]).mean()
                    for k, options in enumerate((SHAPES, COLOURS, COUNTS))])
table(answers, "zero-shot by description, percent right", rows=["captions: colour, shape", "captions: and count"],
      columns=["shape", "colour", "count"], digits=1)
check_true(min(answers[0][:2]) > 90, "captions: shape and colour by their names")
check_true(abs(answers[0][2] - 50) < 8 and answers[1][2] > 85, "count: chance unless the captions contained it")

# %% Two consumers, two similarities
# A checker of facts wants the paraphrase of a scene over its denial, by 0.2. A reader of topics wants scene and denial
# together, which can mean two things. The denial like a paraphrase, within 0.1: that contradicts the checker on every
# item, and no cosine serves both; two encoders do, or one that is told the use in its input (prefixes, chapter 9).
# Or the denial over another scene, by 0.2: then one encoder that keeps the order paraphrase, denial, other scene serves
# both on most items. What cannot be had at once are contradictory demands, not two uses.
desk = Consumers()
twins = {"topic": ("topic",), "fact": ("fact",), "both": ("topic", "fact")}
cosines = np.array([desk.cosines(desk.fit(uses).encode) for uses in twins.values()])  # (3 encoders, 3, items)
met = np.array([desk.served(x) for x in cosines])
served = 100 * np.column_stack([met.mean(axis=2), (met[:, 1] & met[:, 2]).mean(axis=1)])
table(served, "percent of items that meet a demand", rows=[f"trained for {name}" for name in twins], digits=1,
      columns=[*desk.DEMANDS, "last two at once"])
table(cosines.mean(axis=2), "mean cosine with", rows=[f"trained for {name}" for name in twins], digits=2,
      columns=["paraphrase", "denial", "other scene"])
check(desk.served(np.array([0.9, 0.6, 0.1])).astype(int), "0 1 1", "cosines 0.9, 0.6, 0.1: last two demands met")
check_true(bool(served[0, :2].min() > 95 and served[1, 2] > 95), "each use is served by its own encoder")
check_true(bool(served[0, 2] < 5 and served[1, 0] < 5), "first and last demand: not by the other's encoder")
check_true(bool(served[2, 0] < 5 and served[2, 2] > 95), "trained for both in turn: denial not like a paraphrase")
check_true(bool(served[2, 3] > 80), "trained for both in turn: over 80 % of items serve both uses at once")
check_true(bool(70 < served[1, 3] < served[2, 3]), "trained for facts alone: most items do, but fewer")
check_true(bool(np.all(-np.diff(cosines[2].mean(axis=1)) > 0.2)), "trained for both: paraphrase, denial, other scene")

# %% A relation with a direction
# "The lad sells the guitar" implies "the boy sells the instrument", not the other way. cos(a, b) = cos(b, a): one tower
# scores both directions alike, to the bit. Two towers can differ.
one, two = directions(shared=True), directions(shared=False)
check(one, "0 1", "one tower: the direction is a tie for every pair")
check_true(two[0] > 0.65, "two towers: the right direction scores higher for most pairs")
