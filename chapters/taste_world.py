"""Users, items and clicks whose true probabilities are known, for candidate generation.

Item i is bought by user u with probability p(i|u) = softmax_i( log popularity_i + STRENGTH * taste_u . topic_i ).
Popularity falls as 1 / rank; topics and tastes are random unit vectors in TOPICS dimensions. Three ways of choosing the
negatives of the same two towers are compared: items drawn evenly, items drawn as popular as they are (what in-batch
negatives are), and the latter with the logarithm of their sampling probability subtracted from the logits.
"""

import numpy as np

from nano_simcse.catalogue import recall_by_group
from nano_simcse.layers import normalize
from nano_simcse.losses import candidate_info_nce
from nano_simcse.optim import Adam
from nano_simcse.parameters import Parameters
from nano_simcse.retrieval import top_k

USERS, ITEMS, TOPICS, STRENGTH = 300, 240, 6, 4.0
NEGATIVES = ("uniform", "popularity", "popularity, corrected")
FAR = 10.0  # how far cone_and_line moves the rows


class Market:
    """p (users, items): true probabilities; clicks (users, items): counts of `per_user` purchases each; popularity."""

    def __init__(self, seed=0, per_user=30, skew=1.0):
        rng = np.random.default_rng([seed, 90])
        self.topics = normalize(rng.standard_normal((ITEMS, TOPICS)))[0]
        self.tastes = normalize(rng.standard_normal((USERS, TOPICS)))[0]
        weight = 1 / np.arange(1, ITEMS + 1) ** skew
        self.affinity = self.tastes @ self.topics.T
        p = np.log(weight / weight.sum()) + STRENGTH * self.affinity
        p = np.exp(p - p.max(axis=1, keepdims=True))
        self.p = p / p.sum(axis=1, keepdims=True)
        self.clicks = np.array([rng.multinomial(per_user, row) for row in self.p])
        later = np.array([rng.multinomial(per_user // 3, row) for row in self.p])
        self.later = (later > 0) & (self.clicks == 0)  # what each user buys next, for the first time
        self.popularity = self.clicks.sum(axis=0)


def train_towers(
    market, negatives, steps=300, seed=0, batch=128, width=12, tau=0.15, lr=0.05, content=None, known=None
):
    """User rows (users, width) and item rows (items, width), trained with one of NEGATIVES.

    A batch is `batch` clicks (u, i); the queries are the users, the positives the items, and the negatives `batch`
    items of a queue (drawn evenly) or the other clicks of the batch (drawn by popularity). content (items, c): item
    rows are content @ W instead of a free row each. known: item numbers that have clicks (the rest is cold).
    """
    rng = np.random.default_rng([seed, 91])
    users, items = np.nonzero(market.clicks if known is None else market.clicks * known)
    share = market.clicks[users, items] / market.clicks[users, items].sum()
    features = np.eye(ITEMS) if content is None else content  # (items, c)
    params = Parameters({"users": (USERS, width), "items": (features.shape[1], width)}, dtype=np.float64)
    params["users"][...] = rng.standard_normal((USERS, width)) / np.sqrt(width)
    params["items"][...] = rng.standard_normal((features.shape[1], width)) / np.sqrt(width)
    adam = Adam(params)
    log_q = np.log(np.bincount(items, share, minlength=ITEMS) + 1e-12)
    for _ in range(steps):
        drawn = rng.choice(len(users), batch, p=share)
        u, i = users[drawn], items[drawn]
        columns = np.concatenate([i, i])
        queue = None
        if negatives == "uniform":
            even = rng.integers(ITEMS, size=batch)
            columns = np.concatenate([i, i, even])
            queue = features[even] @ params["items"]
        weights = np.zeros((batch, len(columns)))
        if negatives == "popularity, corrected":
            weights -= log_q[columns]
        repeat = columns == i[:, None]  # the same item as the positive is no negative
        if negatives == "uniform":
            repeat[:, :batch] = True  # no in-batch negatives here
        repeat[np.arange(batch), np.arange(batch)] = False
        weights[repeat] = -np.inf
        x = features[i] @ params["items"]
        _, back = candidate_info_nce(params["users"][u], x, tau, log_weights=weights, queue=queue)
        du, dx = back()
        gradients = params.zeros_like()
        np.add.at(gradients["users"], u, du)
        gradients["items"][...] = features[i].T @ dx
        adam.step(gradients, lr)
    return params["users"].copy(), features @ params["items"]


def item_content(market, seed=0, width=20, noise=0.3):
    """What can be read off an item before anyone has bought it: its topic through a fixed map, with noise."""
    rng = np.random.default_rng([seed, 93])
    features = market.topics @ rng.standard_normal((TOPICS, width))
    return features + noise * rng.standard_normal(features.shape)


def candidates(user_rows, item_rows, count, seen=None):
    """int (users, count): the nearest items by cosine; seen (users, items) are left out."""
    scores = normalize(user_rows)[0] @ normalize(item_rows)[0].T
    return top_k(np.where(seen, -np.inf, scores) if seen is not None else scores, count)


def closeness(market, user_rows, item_rows):
    """Correlation of the cosines with log p(i|u), both less their mean for the user: 1 for the best critic."""
    scores, log_p = normalize(user_rows)[0] @ normalize(item_rows)[0].T, np.log(market.p)
    return float(np.corrcoef(*((x - x.mean(axis=1, keepdims=True)).ravel() for x in (scores, log_p)))[0, 1])


def longer_training(market, group, rules, steps=1500, count=30):
    """(rules, 3): recall of the head, recall of all, closeness to log p, after this many steps."""
    rows = []
    for rule in rules:
        towers = train_towers(market, rule, steps)
        recalls = recall_by_group(candidates(*towers, count, market.clicks > 0), market.later, group)
        rows.append([recalls[0], recalls[3], closeness(market, *towers)])
    return np.array(rows)


def trained_on_exposure(seed=0, shown=40, places=20, purchases=40):
    """What logged clicks can judge. The incumbent shows every user the `shown` most popular items (a little shuffled);
    users buy among those by taste. Two candidate lists of `places` items: the best sellers of the log, and the items
    nearest to the true taste. Returns percent of held-out purchases found, for each list: (from the log, from users who
    were shown everything).
    """
    rng = np.random.default_rng([seed, 92])
    market = Market(seed)
    prior = np.log(1 / np.arange(1, ITEMS + 1)) + 0.3 * rng.standard_normal((USERS, ITEMS))
    exposed = np.zeros((USERS, ITEMS), bool)
    np.put_along_axis(exposed, top_k(prior, shown), True, axis=1)
    interest = np.exp(STRENGTH * market.affinity)

    def buy(allowed):
        weight = interest * allowed
        return np.array([rng.multinomial(purchases, row / row.sum()) for row in weight])

    log, held_out, free = buy(exposed), buy(exposed), buy(np.ones_like(exposed))
    best_sellers = np.broadcast_to(top_k(log.sum(axis=0).astype(float), places), (USERS, places))
    by_taste = top_k(market.affinity, places)

    def found(lists, bought):
        return 100 * float(np.take_along_axis(bought, lists, axis=1).sum() / bought.sum())

    return np.array([[found(lists, bought) for bought in (held_out, free)] for lists in (best_sellers, by_taste)])


def ranker_ceiling(market, users, items, sizes, places=5):
    """Percent of the next purchases found (2, sizes): by the whole candidate list of each size, and by the first
    `places` of it after a ranker that knows the true p."""
    bought, everything = market.clicks > 0, np.zeros(ITEMS, int)
    result = np.empty((2, len(sizes)))
    for column, size in enumerate(sizes):
        pool = candidates(users, items, size, bought)
        order = top_k(np.take_along_axis(np.log(market.p), pool, axis=1), places)
        ranked = np.take_along_axis(pool, order, axis=1)
        result[:, column] = [recall_by_group(chosen, market.later, everything)[0] for chosen in (pool, ranked)]
    return result


def cold_start(market, cold=48, places=12, steps=200):
    """Percent of purchases of `cold` items, hidden in training, found among their nearest `places`: with a free row for
    each item, and with item rows that are a map of the content."""
    hidden = np.isin(np.arange(ITEMS), np.random.default_rng(94).choice(ITEMS, cold, replace=False))
    wanted, result = (market.clicks > 0) & hidden, []
    for content in (None, item_content(market)):
        u, v = train_towers(market, "popularity", steps, content=content, known=~hidden)
        scores = np.where(hidden, normalize(u)[0] @ normalize(v)[0].T, -np.inf)
        result.append(recall_by_group(top_k(scores, places), wanted, np.zeros(ITEMS, int))[0])
    return result


def cone_and_line(rows):
    """The unit rows (n, D) moved by FAR along a new axis (a cone), and squeezed onto their first axis (a line)."""
    n, width = rows.shape
    first = np.eye(width)[0]
    return np.c_[rows, np.full(n, FAR)], np.outer(rows @ first, first) + 1e-3 * rows
