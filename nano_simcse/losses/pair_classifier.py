"""Sentence-BERT's training head: name the relation of two sentences from (u, v, |u - v|).

Forward      f_i = (u_i, v_i, |u_i - v_i|)            u, v (B, D) -> f (B, 3 D), the bars entry by entry
             z = f W + b                               W (3 D, C), b (C,)
             loss = mean_i ( log sum_c exp z_ic - z_i,label )

Backward     dz = (p - onehot) / B, and the linear layer gives df = (d1, d2, d3) in its three parts:
             du =  d1 + sign(u - v) d3
             dv =  d2 - sign(u - v) d3                 sign(0) = 0: |x| has a kink there

             Without the third part the logits are a function of u plus a function of v, and
             z(a, a) + z(b, b) = z(a, b) + z(b, a) for any two sentences: whether the two agree cannot be said at all.

The head serves training only. Afterwards sentences are compared by their cosine, which no term of this loss mentions.

Source: Reimers and Gurevych, arXiv 1908.10084, Section 3 (classification objective) and Table 6.
"""

from ..arrays import require_classes, require_floats
from ..backend import array_module
from ..errors import InputError
from ..layers.linear import linear
from .masked_lm import masked_lm

PARTS = ("u", "v", "|u-v|")


def pair_features(u, v, parts=PARTS):
    """Rows of u, v and |u - v| side by side, in the order of `parts`.

    u, v (B, D), not normalised. Returns (features (B, D * len(parts)), backward);
    backward(dfeatures) -> (du, dv). Raises InputError for arrays that are not of floats, shapes that differ or an
    unknown part.
    """
    require_floats(u=u, v=v)
    if u.ndim != 2 or u.shape != v.shape:
        raise InputError(f"u {u.shape} and v {v.shape} must be two (B, D) arrays of one shape")
    if not parts or any(part not in PARTS for part in parts):
        raise InputError(f"parts are {parts!r}; expected one or more of {', '.join(PARTS)}")
    xp, width = array_module(u), u.shape[1]
    difference = u - v
    values = {"u": u, "v": v, "|u-v|": xp.abs(difference)}
    features = xp.concatenate([values[part] for part in parts], axis=1)

    def backward(dfeatures):
        du, dv = xp.zeros_like(u), xp.zeros_like(v)
        for k, part in enumerate(parts):
            d = dfeatures[:, k * width : (k + 1) * width]
            if part == "u":
                du += d
            elif part == "v":
                dv += d
            else:
                d = xp.sign(difference) * d
                du += d
                dv -= d
        return du, dv

    return features, backward


def pair_classifier(u, v, weight, bias, labels, *, parts=PARTS):
    """Mean softmax cross-entropy of B pairs over C relations.

    u, v (B, D); weight (D * len(parts), C); bias (C,); labels (B,) integers in [0, C).
    Returns (loss, backward): loss a 0-d array; backward() -> (du, dv, dweight, dbias).
    Raises InputError for arrays that are not of floats, shapes that do not fit, and labels that are not integers or,
    on the host, lie outside [0, C).
    """
    require_floats(weight=weight, bias=bias)
    features, features_back = pair_features(u, v, parts)
    if weight.ndim != 2 or weight.shape[0] != features.shape[1] or bias.shape != weight.shape[1:]:
        raise InputError(
            f"weight {weight.shape} and bias {bias.shape} must be ({features.shape[1]}, C) and (C,) "
            f"for {len(parts)} parts of width {u.shape[1]}"
        )
    require_classes("labels", labels, weight.shape[1])
    logits, linear_back = linear(features, weight, bias)
    loss, loss_back = masked_lm(logits, labels)  # name the token, name the relation: one cross-entropy

    def backward():
        dfeatures, dweight, dbias = linear_back(loss_back())
        return (*features_back(dfeatures), dweight, dbias)

    return loss, backward
