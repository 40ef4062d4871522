"""Make step.safetensors: gradients of every parameter and ten step losses, computed by torch autograd in float64.

    pip install -e '.[oracle]'
    python tests/reference/make_reference.py              # rewrites tests/reference/step.safetensors

Run it only when the case itself changes; a test compares the file with a fresh run. Of the package only the bits of
the dropout masks are used, and they are stored in the file. One thread, float64, parameters from NumPy's generator:
the same machine writes the same bytes, another one may differ in the last digits.

Contents (names of parameters as in the package, weights (in, out)):
    rows, lengths           token ids of the sentences, padded with 0
    masks.STEP.SITE         packed bits (np.packbits) of the padded keep mask, (rows, T, D) or (rows, H, T, T)
    start.NAME, end.NAME    parameters before the first step and after the last
    gradient.NAME           gradients of the first step: twins, [CLS], tanh head, InfoNCE
    losses, norms           loss and global gradient norm of each of the ten steps
    triple.NAME, triple     gradients and loss of a step with hard negatives, mean pooling and every option
    mlm.NAME, mlm           gradients and loss of masked language modelling through the tied table
"""

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "oracle"), str(HERE.parents[1])]

SETTINGS = {
    "vocab_size": 20, "layers": 2, "width": 8, "heads": 2, "feed_forward": 16, "max_positions": 8,
    "seed": 11, "rate": 0.1, "steps": 10, "temperature": 0.05, "lr": 0.01, "weight_decay": 0.01,
    "betas": [0.9, 0.999], "eps": 1e-8, "log_weight": 0.5, "lengths": [5, 3, 8, 5, 2, 7],
    "mlm_row": [0, 2, 5, 5, 9], "mlm_place": [1, 6, 0, 3, 2], "mlm_targets": [4, 19, 0, 4, 7],
}  # fmt: skip


def draw_case(model):
    """Token rows and parameters far from their initial scale."""
    generator = np.random.default_rng(2024)
    rows = [generator.integers(0, SETTINGS["vocab_size"], n).astype(np.int32) for n in SETTINGS["lengths"]]
    start = {}
    for name, array in sorted(model.arrays().items()):
        start[name] = 0.4 * generator.standard_normal(array.shape) + name.endswith("gamma")
    return rows, start


def exclude_mask(n):
    """Row i must not count the key of its neighbour i + 1 nor the hard negative of i + 2."""
    return np.concatenate([np.eye(n, k=1, dtype=bool), np.eye(n, k=2, dtype=bool)], axis=1)


def build():
    """name -> array of the whole file."""
    import torch
    from cases import padded_masks, view_labels
    from torch_encoder import TorchEncoder, info_nce, pad, pool

    from nano_simcse.encoder import EncoderConfig
    from nano_simcse.masks import Masks

    torch.set_num_threads(1)
    s = SETTINGS
    sizes = [s[k] for k in ("vocab_size", "layers", "width", "heads", "feed_forward", "max_positions")]
    config = EncoderConfig(*sizes)
    model = TorchEncoder(*sizes, mlm=True)
    rows, start = draw_case(model)
    n = len(rows)
    out = {"rows": pad(rows)[0].numpy().astype(np.int32), "lengths": np.array(s["lengths"], np.int32)}
    out |= {f"start.{name}": array for name, array in start.items()}

    def forward(step, views):
        masks = Masks(s["seed"], step, s["rate"])
        keep = padded_masks(masks, view_labels(n, views), out["rows"].shape[1], config)
        if views == 2:
            out.update({f"masks.{step}.{site}": np.packbits(bits) for site, bits in keep.items()})
        ids, real = pad(rows * views)
        return model(ids, real, [torch.from_numpy(keep[i]) for i in sorted(keep)], masks.scale), real

    def twins(step):
        states, real = forward(step, 2)
        z = torch.tanh(model.head(pool(states, real, "cls")))
        return info_nce(z[:n], z[n:], s["temperature"])

    def triples():
        states, real = forward(0, 3)
        z = torch.tanh(model.head(pool(states, real, "mean")))
        options = {"log_weight": s["log_weight"], "symmetric": True, "exclude": exclude_mask(n)}
        return info_nce(z[:n], z[n : 2 * n], s["temperature"], z[2 * n :], **options)

    def masked_lm():
        states, _ = forward(0, 2)
        logits = model.predict_tokens(states[-1][s["mlm_row"], s["mlm_place"]])
        return torch.nn.functional.cross_entropy(logits, torch.tensor(s["mlm_targets"]))

    for name, loss_of in (("triple", triples), ("mlm", masked_lm)):
        model.load(start).zero_grad()
        loss = loss_of()
        loss.backward()
        out[name] = np.array(loss.item())
        out |= {f"{name}.{key}": array for key, array in model.gradients().items()}

    model.load(start).zero_grad()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)  # AdamW then decays what the loss does not reach as well
    adamw = torch.optim.AdamW(
        model.parameters(), lr=s["lr"], betas=s["betas"], eps=s["eps"], weight_decay=s["weight_decay"]
    )
    losses, norms = [], []
    for step in range(s["steps"]):
        adamw.zero_grad(set_to_none=False)
        loss = twins(step)
        loss.backward()
        if step == 0:
            out |= {f"gradient.{name}": array for name, array in model.gradients().items()}
        losses.append(loss.item())
        norms.append(float(torch.sqrt(sum((p.grad**2).sum() for p in model.parameters()))))
        adamw.step()
    out |= {"losses": np.array(losses), "norms": np.array(norms)}
    out |= {f"end.{name}": array for name, array in model.arrays().items()}
    return {name: np.array(array, order="C") for name, array in out.items()}


if __name__ == "__main__":
    path = HERE / "step.safetensors"
    save_file(build(), path, metadata={"settings": json.dumps(SETTINGS)})
    print(f"{path}: {path.stat().st_size} bytes")
