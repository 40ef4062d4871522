"""The training step of torch_step.py on packed tokens, which tells apart what is arithmetic and what is padding.

The same modules, and so the same parameters from the same seed, read differently: the linear layers, norms and dropout
see the M real tokens of the batch end to end; attention is one scaled_dot_product_attention a group of rows of one
length; where only [CLS] is pooled, queries, output projection and feed-forward of the last layer see one token a row.
"""

import numpy as np
import torch
from torch.nn import functional

from nano_simcse.data.batches import pack

from .torch_step import Encoder, TorchBench


class PackedEncoder(Encoder):
    """Encoder on packed tokens; its parameters have the names and the first values of Encoder's."""

    def forward(self, ids, positions, shapes, first, order):
        """Pooled rows after the tanh head, (B, D), in the order the rows were given.

        ids, positions (M,): tokens of all rows, rows of one length side by side; shapes: (rows, length) of each such
        group; first (B,): places of the rows' first tokens, ascending; order (B,): place of each given row among them.
        """
        x = self.drop(self.norm(self.word(ids) + self.position(positions)))
        last = len(self.layers.layers) - 1
        for i, layer in enumerate(self.layers.layers):
            x = self._layer(layer, x, shapes, first if i == last and self.pooling == "cls" else None)
        if self.pooling != "cls":
            x = torch.cat([rows.view(*shape, -1).mean(1) for rows, shape in _groups(x, shapes)])
        return torch.tanh(self.head(x[order]))

    def _layer(self, layer, x, shapes, first):
        """One post-LN layer; first: compute only these tokens' output, None: all."""
        attention = layer.self_attn
        residual = x if first is None else x[first]
        mixed = attention.out_proj(self._attention(attention, x, residual, shapes, first))
        a = layer.norm1(residual + layer.dropout1(mixed))
        return layer.norm2(a + layer.dropout2(layer.linear2(layer.activation(layer.linear1(a)))))

    def _attention(self, attention, x, asking, shapes, first):
        """Contexts of the tokens `asking`, (M, D) or (B, D)."""
        weight, bias, heads = attention.in_proj_weight, attention.in_proj_bias, attention.num_heads
        width = x.shape[1]
        rate = attention.dropout if self.training else 0.0
        if first is None:  # one product for queries, keys and values
            groups = _groups(functional.linear(x, weight, bias), shapes)
            triples = [part.view(n, t, 3, heads, -1).permute(2, 0, 3, 1, 4) for part, (n, t) in groups]
        else:
            queries = functional.linear(asking, weight[:width], bias[:width]).split([n for n, _ in shapes])
            groups = _groups(functional.linear(x, weight[width:], bias[width:]), shapes)
            triples = [
                (query.view(n, heads, 1, -1), *part.view(n, t, 2, heads, -1).permute(2, 0, 3, 1, 4))
                for query, (part, (n, t)) in zip(queries, groups, strict=True)
            ]
        contexts = [functional.scaled_dot_product_attention(q, k, v, dropout_p=rate) for q, k, v in triples]
        return torch.cat([c.transpose(1, 2).reshape(-1, width) for c in contexts])


def _groups(x, shapes):
    """Each group's tokens with its (rows, length)."""
    return zip(x.split([n * t for n, t in shapes]), shapes, strict=True)


class TorchPackedBench(TorchBench):
    """TorchBench without a token of padding. `python -m benchmarks.step` shows it beside the padded one."""

    encoder = PackedEncoder

    def batch(self, step):
        """What PackedEncoder reads."""
        packed = pack(step.rows)
        order = np.empty(len(step.rows), np.int64)
        order[np.concatenate([group.rows for group in packed.groups])] = np.arange(len(order))
        arrays = (packed.ids.astype(np.int64), packed.positions, np.sort(packed.first), order)
        ids, positions, first, order = (torch.from_numpy(x).to(self.device) for x in arrays)
        return ids, positions, [(group.count, group.length) for group in packed.groups], first, order
