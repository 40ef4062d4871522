"""The same training step in PyTorch, for its time only: padded rows, two views in one batch, InfoNCE, AdamW."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from .workload import LONGEST


class Encoder(nn.Module):
    """Post-LN transformer with a tanh head on the first token or on the mean of the tokens."""

    def __init__(self, size, pooling="cls"):
        super().__init__()
        width, self.pooling = size.width, pooling
        self.word, self.position = nn.Embedding(size.vocabulary, width), nn.Embedding(LONGEST, width)
        self.norm, self.drop, self.head = nn.LayerNorm(width), nn.Dropout(0.1), nn.Linear(width, width)
        layer = nn.TransformerEncoderLayer(width, size.heads, 4 * width, 0.1, "gelu", batch_first=True)
        layer.dropout = nn.Identity()  # BERT drops nothing inside the feed-forward
        self.layers = nn.TransformerEncoder(layer, size.layers, enable_nested_tensor=False)

    def forward(self, ids, padding):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.drop(self.norm(self.word(ids) + self.position(places)))
        x = self.layers(x, src_key_padding_mask=padding)
        if self.pooling == "cls":
            pooled = x[:, 0]
        elif padding is None:
            pooled = x.mean(1)
        else:
            real = ~padding[:, :, None]
            pooled = (x * real).sum(1) / real.sum(1)
        return torch.tanh(self.head(pooled))


class TorchBench:
    """A model and its optimiser on `device` ("cuda" or "cpu"), in float32 without TF32; compiled or eager."""

    encoder = Encoder

    def __init__(self, size, device, compiled=False, pooling="cls"):
        torch.manual_seed(0)
        torch.backends.cuda.matmul.allow_tf32 = False
        self.model = self.encoder(size, pooling).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-4, weight_decay=0.0, fused=True)
        self.forward = torch.compile(self.model) if compiled else self.model
        self.device = device

    def batch(self, step):
        """Ids padded to the longest row of the batch, and the mask of padding (None where there is none)."""
        ids = np.zeros((len(step.rows), max(map(len, step.rows))), np.int64)
        padding = np.ones(ids.shape, bool)
        for i, row in enumerate(step.rows):
            ids[i, : len(row)], padding[i, : len(row)] = row, False
        mask = torch.from_numpy(padding).to(self.device) if padding.any() else None
        return torch.from_numpy(ids).to(self.device), mask

    def train(self, step):
        """One training step, from token rows; returns the loss as a tensor."""
        z = functional.normalize(self.forward(*self.batch(step)), dim=1)
        first, second = z.chunk(2)
        loss = functional.cross_entropy(first @ second.T / 0.05, torch.arange(len(first), device=self.device))
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss

    def synchronize(self):
        if self.device == "cuda":
            torch.cuda.synchronize()
