"""A BERT-shaped encoder: post-LN transformer, forward and backward.

    x_0 = dropout(LN(word[ids] + position[places] + type[0]))
    for each layer:
        a = LN(x + dropout(W_o attention(x W_qkv)))         residual inside the norm: "post-LN"
        x = LN(a + dropout(W_down gelu(W_up a)))

Dropout sites are numbered 0 for the embeddings and 3 l + 1, 3 l + 2, 3 l + 3 in layer l for the attention
probabilities, the attention output and the feed-forward output: 1 + 3 L sites.

Source: Devlin et al., arXiv 1810.04805.
"""

from .architecture import EncoderConfig, dropout_inventory, init_parameters, parameter_shapes
from .layers import embedding, gelu, layer_norm, linear, linear_backward
from .parameters import accumulate
from .self_attention import attention_labels, drop, first_token_attention, self_attention

__all__ = ["EncoderConfig", "dropout_inventory", "encoder_forward", "init_parameters", "parameter_shapes"]

KEPT = 1 << 21  # elements up to which the output and the slope of a GELU are kept for the backward


def encoder_forward(params, config, batch, dropout=None, grad=True, first_only=False):
    """Hidden states of a packed batch.

    params: Parameters of `parameter_shapes(config)`; batch: Batch; dropout: Masks of this step, or None for none;
    grad: whether a backward is wanted (False frees each layer's cache at once); first_only: whether only the first
    token of each row, [CLS], will be read from the last state, which is then (B, D), in the order of the rows given.
    Returns (hidden, backward). hidden: list of L + 1 arrays (M, D), the embedding output and each layer's output.
    backward(dhidden, into=None) -> Parameters of gradients, added to `into` where given; dhidden is the gradient
    (M, D) of the last state, or a list of L + 1 gradients with None for states nobody read.
    """
    masks = dropout
    undo = []
    labels = None if masks is None else attention_labels(batch, config.heads)
    x, back = _embeddings(params, config, batch, masks)
    hidden = [x]
    undo.append(back if grad else None)
    for i in range(config.layers):
        first = first_only and i == config.layers - 1
        x, back = _layer(params, config, batch, masks, labels, i, x, first, grad)
        hidden.append(x)
        undo.append(back if grad else None)

    def backward(dhidden, into=None):
        gradients = params.zeros_like() if into is None else into
        if not isinstance(dhidden, list | tuple):
            dhidden = [None] * config.layers + [dhidden]
        dx = dhidden[-1]
        for i in reversed(range(config.layers)):
            if dx is not None:
                dx = undo[i + 1](dx, gradients)
            dx = dhidden[i] if dx is None else dx if dhidden[i] is None else dx + dhidden[i]
        undo[0](dx, gradients)
        return gradients

    return hidden, backward if grad else None


def _embeddings(params, config, batch, masks):
    word, word_back = embedding(params["embeddings.word"], batch.ids)
    place, place_back = embedding(params["embeddings.position"], batch.positions)
    word += place
    word += params["embeddings.type"][0]
    normed, norm_back = layer_norm(
        word, params["embeddings.norm.gamma"], params["embeddings.norm.beta"], config.eps
    )
    x, drop_back = drop(masks, 0, normed, batch.tokens)

    def backward(dx, gradients):
        dsum, dgamma, dbeta = norm_back(drop_back(dx))
        accumulate(gradients, "embeddings.norm", ("gamma", "beta"), dgamma, dbeta)
        with gradients.lock:
            gradients["embeddings.type"][0] += dsum.sum(axis=0)
            place_back(dsum, into=gradients["embeddings.position"])
            word_back(dsum, into=gradients["embeddings.word"])

    return x, backward


def _layer(params, config, batch, masks, labels, i, x, first_only, grad):
    attend = first_token_attention if first_only else self_attention
    mixed, attention_back = attend(params, config, batch, masks, labels, i, x)
    name = f"layers.{i}.attention.norm"
    mixed += x[batch.first] if first_only else x
    a, norm1_back = layer_norm(mixed, params[f"{name}.gamma"], params[f"{name}.beta"], config.eps)
    tokens = batch.tokens[batch.first] if first_only else batch.tokens
    fed, feed_back = _feed_forward(params, config, tokens, masks, i, a, grad)
    fed += a
    name2 = f"layers.{i}.feed_forward.norm"
    y, norm2_back = layer_norm(fed, params[f"{name2}.gamma"], params[f"{name2}.beta"], config.eps)

    def backward(dy, gradients):
        dsum, dgamma, dbeta = norm2_back(dy)
        accumulate(gradients, name2, ("gamma", "beta"), dgamma, dbeta)
        da = feed_back(dsum, gradients)
        da += dsum  # the residual path
        dsum, dgamma, dbeta = norm1_back(da)
        accumulate(gradients, name, ("gamma", "beta"), dgamma, dbeta)
        dx = attention_back(dsum, gradients)
        if first_only:
            dx[batch.first] += dsum  # the residual path, of the first tokens
        else:
            dx += dsum  # the residual path
        return dx

    return y, backward


def _feed_forward(params, config, tokens, masks, i, a, grad):
    name = f"layers.{i}.feed_forward"
    weight = params[f"{name}.down.weight"]
    up, up_back = linear(a, params[f"{name}.up.weight"], params[f"{name}.up.bias"])
    large = grad and up.size > KEPT
    active, gelu_back = gelu(up, config.gelu, grad and not large, out=None if large else up)
    down, _ = linear(active, weight, params[f"{name}.down.bias"])
    y, drop_back = drop(masks, 3 * i + 3, down, tokens)
    # a large pair is made once more in the backward: kept, it would be a quarter of the memory
    activation = (lambda: gelu(up, config.gelu)) if large else (lambda: (active, gelu_back))

    def backward(dy, gradients):
        active, gelu_back = activation()
        dactive, dweight, dbias = linear_backward(active, weight, drop_back(dy), out=active if large else None)
        accumulate(gradients, f"{name}.down", ("weight", "bias"), dweight, dbias)
        da, dweight, dbias = up_back(gelu_back(dactive, out=dactive))
        accumulate(gradients, f"{name}.up", ("weight", "bias"), dweight, dbias)
        return da

    return y, backward
