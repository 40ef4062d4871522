"""The masked-language-model auxiliary: hide some tokens, name them from their hidden states.

15 % of the tokens are chosen; of these 80 % become [MASK], 10 % a random token, 10 % stay. The head is BERT's:
logits = LN(gelu(h W + b)) E^T + bias, with E the word embeddings themselves ("tied"), which so receive a gradient
from both ends of the network.

Source: Devlin et al., arXiv 1810.04805; as an auxiliary of SimCSE: arXiv 2104.08821, Section 4 and Table 3.
"""

import numpy as np

from ..backend import array_module
from ..layers import gelu, layer_norm, linear
from ..losses import masked_lm

CHOSEN, AS_MASK, AS_RANDOM = 0.15, 0.8, 0.1


def hide_tokens(ids, special_ids, mask_id, vocab_size, generator):
    """(ids with some hidden, places (n,), targets (n,)) for packed ids (M,); special tokens are never chosen.

    At least one token is chosen where there is any that may be.
    """
    allowed = ~np.isin(ids, special_ids)
    chosen = allowed & (generator.random(len(ids)) < CHOSEN)
    if allowed.any() and not chosen.any():
        chosen[np.flatnonzero(allowed)[0]] = True
    places = np.flatnonzero(chosen)
    hidden, fate = ids.copy(), generator.random(len(places))
    hidden[places[fate < AS_MASK]] = mask_id
    swapped = places[(fate >= AS_MASK) & (fate < AS_MASK + AS_RANDOM)]
    hidden[swapped] = generator.integers(0, vocab_size, len(swapped))
    return hidden, places, ids[places]


def mlm_loss(params, config, last, places, targets):
    """Loss at the hidden `places` of the last state (M, D), and its backward.

    backward(weight, gradients) -> dlast (M, D), the gradient times `weight`; the head's own go into `gradients`.
    """
    rows = last[places]
    a, linear_back = linear(rows, params["mlm.transform.weight"], params["mlm.transform.bias"])
    b, gelu_back = gelu(a, config.gelu)
    c, norm_back = layer_norm(b, params["mlm.norm.gamma"], params["mlm.norm.beta"], config.eps)
    logits, logits_back = linear(c, params["embeddings.word"].T, params["mlm.bias"])
    loss, loss_back = masked_lm(logits, targets)

    def backward(weight, gradients):
        dlogits = loss_back()
        dlogits *= dlogits.dtype.type(weight)
        dc, dtable, dbias = logits_back(dlogits)
        db, dgamma, dbeta = norm_back(dc)
        drows, dweight, dlinear_bias = linear_back(gelu_back(db))
        gradients["embeddings.word"] += dtable.T
        gradients["mlm.bias"] += dbias
        gradients["mlm.norm.gamma"] += dgamma
        gradients["mlm.norm.beta"] += dbeta
        gradients["mlm.transform.weight"] += dweight
        gradients["mlm.transform.bias"] += dlinear_bias
        dlast = array_module(last).zeros_like(last)
        dlast[places] = drows  # places are distinct
        return dlast

    return loss, backward
