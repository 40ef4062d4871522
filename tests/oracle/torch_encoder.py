"""The same encoder, poolings and loss in torch.nn, on padded rows, with autograd: an independent second opinion.

Nothing of the package's numerics is used. Dropout masks are handed in as bits. Parameters carry torch's own layout,
(out, in) weights with separate query, key and value projections; `load` and `gradients` translate.
"""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional


class Layer(nn.Module):
    def __init__(self, width, heads, inner, eps, form):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output, self.norm = nn.Linear(width, width), nn.LayerNorm(width, eps)
        self.up, self.down, self.norm2 = nn.Linear(width, inner), nn.Linear(inner, width), nn.LayerNorm(width, eps)
        self.heads, self.activation = heads, nn.GELU("none" if form == "erf" else "tanh")

    def forward(self, x, real, drops):
        b, t, width = x.shape
        q, k, v = (
            f(x).view(b, t, self.heads, width // self.heads).transpose(1, 2) for f in (self.query, self.key, self.value)
        )
        scores = torch.einsum("bhqc,bhkc->bhqk", q, k) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(~real[:, None, None, :], -math.inf)
        context = drops[0](torch.softmax(scores, dim=-1)) @ v
        x = self.norm(x + drops[1](self.output(context.transpose(1, 2).reshape(b, t, width))))
        return self.norm2(x + drops[2](self.down(self.activation(self.up(x)))))


class TorchEncoder(nn.Module):
    def __init__(self, vocab, layers, width, heads, inner, positions, types=2, eps=1e-12, form="erf", mlm=False):
        super().__init__()
        self.word, self.position, self.kind = (nn.Embedding(n, width) for n in (vocab, positions, types))
        self.norm = nn.LayerNorm(width, eps)
        self.layers = nn.ModuleList(Layer(width, heads, inner, eps, form) for _ in range(layers))
        self.head = nn.Linear(width, width)
        if mlm:
            self.transform, self.mlm_norm = nn.Linear(width, width), nn.LayerNorm(width, eps)
            self.mlm_bias = nn.Parameter(torch.zeros(vocab))
        self.activation = nn.GELU("none" if form == "erf" else "tanh")
        self.double()

    def forward(self, ids, real, keep=None, scale=1.0):
        """States 0 ... L of ids (B, T); real (B, T) False on padding; keep: list of bool masks, one a site."""

        def drop(site):
            return (lambda x: x) if keep is None else (lambda x: torch.where(keep[site], x * scale, 0.0))

        places = torch.arange(ids.shape[1])
        x = self.word(ids) + self.position(places) + self.kind(torch.zeros_like(ids))
        states = [drop(0)(self.norm(x))]
        for i, layer in enumerate(self.layers):
            states.append(layer(states[-1], real, [drop(3 * i + j) for j in (1, 2, 3)]))
        return states

    def predict_tokens(self, rows):
        """Logits of the masked-language-model head, tied to the word table."""
        return self.mlm_norm(self.activation(self.transform(rows))) @ self.word.weight.T + self.mlm_bias

    def tensors(self):
        """Name in the package -> (torch parameters laid side by side, whether they are transposed there)."""
        table = {
            "embeddings.word": ([self.word.weight], False),
            "embeddings.position": ([self.position.weight], False),
            "embeddings.type": ([self.kind.weight], False),
            "embeddings.norm.gamma": ([self.norm.weight], False),
            "embeddings.norm.beta": ([self.norm.bias], False),
        }

        def linear(name, *modules):
            table[f"{name}.weight"] = ([m.weight for m in modules], True)
            table[f"{name}.bias"] = ([m.bias for m in modules], False)

        def norm(name, module):
            table[f"{name}.gamma"], table[f"{name}.beta"] = ([module.weight], False), ([module.bias], False)

        for i, layer in enumerate(self.layers):
            linear(f"layers.{i}.attention.qkv", layer.query, layer.key, layer.value)
            linear(f"layers.{i}.attention.output", layer.output)
            norm(f"layers.{i}.attention.norm", layer.norm)
            linear(f"layers.{i}.feed_forward.up", layer.up)
            linear(f"layers.{i}.feed_forward.down", layer.down)
            norm(f"layers.{i}.feed_forward.norm", layer.norm2)
        linear("head", self.head)
        if hasattr(self, "transform"):
            linear("mlm.transform", self.transform)
            norm("mlm.norm", self.mlm_norm)
            table["mlm.bias"] = ([self.mlm_bias], False)
        return table

    def load(self, arrays):
        with torch.no_grad():
            for name, (parts, transposed) in self.tensors().items():
                if name not in arrays:
                    continue
                for part, array in zip(parts, np.split(np.asarray(arrays[name]), len(parts), axis=-1), strict=True):
                    part.copy_(torch.from_numpy(np.array(array.T if transposed else array)))
        return self

    def read(self, values):
        """name -> array in the package's layout; values: torch parameter -> tensor."""
        return {
            name: np.concatenate([values(p).numpy().T if transposed else values(p).numpy() for p in parts], axis=-1)
            for name, (parts, transposed) in self.tensors().items()
        }

    def gradients(self):
        return self.read(lambda p: torch.zeros_like(p) if p.grad is None else p.grad)

    def arrays(self):
        return self.read(lambda p: p.detach())


def pad(rows):
    """ids (B, T) and real (B, T) of token rows."""
    length = max(len(row) for row in rows)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    real = torch.zeros(len(rows), length, dtype=torch.bool)
    for i, row in enumerate(rows):
        ids[i, : len(row)], real[i, : len(row)] = torch.as_tensor(row, dtype=torch.long), True
    return ids, real


def pool(states, real, pooling):
    if pooling.startswith("cls"):
        return states[-1][:, 0]
    mixed = {
        "mean": states[-1],
        "avg_first_last": (states[0] + states[-1]) / 2,
        "avg_top2": (states[-2] + states[-1]) / 2,
    }[pooling]
    return (mixed * real[..., None]).sum(1) / real.sum(1, keepdim=True)


def info_nce(queries, keys, temperature, hard_negatives=None, log_weight=0.0, exclude=None, symmetric=False):
    """Cross-entropy of cosine logits with the labels 0 ... N - 1."""
    n = len(queries)
    logits = functional.cosine_similarity(queries[:, None], keys[None], dim=-1) / temperature
    if hard_negatives is not None:
        hard = functional.cosine_similarity(queries[:, None], hard_negatives[None], dim=-1) / temperature
        own = torch.eye(n, dtype=torch.bool).repeat_interleave(len(hard_negatives) // n, dim=1)
        logits = torch.cat([logits, torch.where(own, hard + log_weight, hard)], dim=1)
    if exclude is not None:
        logits = logits.masked_fill(torch.as_tensor(exclude), -math.inf)
    loss = functional.cross_entropy(logits, torch.arange(n))
    if symmetric:
        loss = (loss + functional.cross_entropy(logits[:, :n].T, torch.arange(n))) / 2
    return loss
