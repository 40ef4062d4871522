"""Multi-head scaled dot-product attention.

For one head with queries Q, keys K and values V, each (T, K) for a sentence of T tokens and K columns a head:

Forward      1  S = Q K^T / sqrt(K)                         scores (T, T)
             2  P = softmax of each row of S                probabilities; keys that are padding get 0
             3  A = P * keep / (1 - p)                      dropout on the probabilities
             4  O = A V                                     context (T, K)

Backward     4  dV = A^T dO,   dA = dO V^T
             3  dP = dA * keep / (1 - p)
             2  dS = P * (dP - rowsum(dP * P))              Jacobian of softmax: diag(P) - P P^T, row by row
             1  dQ = dS K / sqrt(K),   dK = dS^T Q / sqrt(K)

             Passes 3 and 2 join, because P * dP = A * dA: with G = A * dA, dS = G - P * rowsum(G).
             A is made again from P and the mask, which is a quarter of its size.

Source: Vaswani et al., arXiv 1706.03762, equation 1; dropout on the probabilities as in BERT.
"""

from ..backend import array_module


def softmax(scores, keep=None):
    """exp(s_j) / sum_k exp(s_k) along the last axis, after subtracting the row maximum.

    scores (..., T); keep: bool, broadcastable to scores, False where a candidate does not exist (probability 0);
    each row needs at least one True. Returns (probabilities, backward); backward(dp) -> dscores.
    """
    xp = array_module(scores)
    if keep is not None:
        scores = xp.where(keep, scores, scores.dtype.type(-float("inf")))
    p = scores - scores.max(axis=-1, keepdims=True)
    xp.exp(p, out=p)
    p /= _row_sums(p)

    def backward(dp):
        product = dp * p
        return product - p * _row_sums(product)

    return p, backward


def _row_sums(x):
    """Sums (..., 1) along the last axis, as a product with a column of ones: faster where rows are short."""
    return x @ array_module(x).ones((x.shape[-1], 1), x.dtype)


def attention(q, k, v, keep_keys=None, keep=None, scale=1.0, out=None, root=None):
    """Context vectors of a batch of sentences of one length.

    q (n, H, Tq, K), k and v (n, H, T, K); keep_keys bool (n, T), False on padding, or None where there is none;
    keep bool (n, H, Tq, T), the dropout mask of the probabilities, or None, with scale = 1 / (1 - p);
    out: where to write the context; root: factor of the scores, 1 / sqrt(K) by default.
    Returns (context (n, H, Tq, K), backward);
    backward(do, out=None) -> (dq, dk, dv), written to the three arrays of `out` where given.
    """
    xp = array_module(q)
    root = q.dtype.type(q.shape[-1] ** -0.5 if root is None else root)
    s = xp.matmul(q, k.swapaxes(-1, -2))  # 1
    s *= root
    p, _ = softmax(s, None if keep_keys is None else keep_keys[:, None, None, :])  # 2

    def dropped():
        if keep is None:
            return p
        a = p * keep  # 3
        a *= q.dtype.type(scale)
        return a

    context = xp.matmul(dropped(), v, out=out)  # 4

    def backward(do, out=(None, None, None)):
        a = dropped()
        dv = xp.matmul(a.swapaxes(-1, -2), do, out=out[2])  # undoes 4
        ds = xp.matmul(do, v.swapaxes(-1, -2))
        ds *= a  # undoes 3 and 2 together
        ds -= p * _row_sums(ds)
        ds *= root  # undoes 1
        dq = xp.matmul(ds, k, out=out[0])
        dk = xp.matmul(ds.swapaxes(-1, -2), q, out=out[1])
        return dq, dk, dv

    return context, backward
