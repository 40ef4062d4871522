"""The Dense modules of sentence-transformers that this package has a word for.

    y = tanh(x W^T + b)     square, after [CLS] pooling: the head
    y = x W^T + b           identity activation: a fitted transform, z = (x - mean) @ matrix with

                            matrix = W^T,   mean @ matrix = -b

The mean of a transform that keeps fewer directions than there are is not in such a file, only its image under the
matrix; the shortest mean with that image gives the same embeddings.
"""

import numpy as np

from ..checkpoint import open_safetensors, read_json
from ..errors import CheckpointError
from ..transforms import Transform

TANH = "torch.nn.modules.activation.Tanh"  # what a missing activation_function means
IDENTITY = "torch.nn.modules.linear.Identity"
ONLY = {"use_residual": False, "module_input_name": "sentence_embedding"}
HEAD_NAMES = {"head.weight": "linear.weight", "head.bias": "linear.bias"}
REACHED = 1e-9  # of the largest number of b: what mean @ matrix may miss -b by


def is_linear(folder):
    """Whether the Dense module in `folder` has the identity activation."""
    return read_json(folder / "config.json").get("activation_function", TANH) == IDENTITY


def require_head(folder, after_cls):
    """Raise CheckpointError, naming the setting, unless the Dense module in `folder` can be the tanh head."""
    values = _settings(folder, {"activation_function": TANH, "bias": True, **ONLY})
    if not after_cls or values.get("in_features") != values.get("out_features"):
        path = folder / "config.json"
        raise CheckpointError(f"{path}: a Dense module is supported as a square tanh head after cls pooling alone")


def read_head(folder):
    """{"head.weight", "head.bias"} from a Dense module's folder, in our orientation."""
    arrays = _arrays(folder, set(HEAD_NAMES.values()))
    return {ours: arrays[theirs].T for ours, theirs in HEAD_NAMES.items()}


def read_transform(folder, width):
    """The Transform of rows of `width` numbers that a Dense module with the identity activation is.

    Its kind is "centre" where the matrix is I, else "linear". Raises CheckpointError for a module of another width,
    and for one whose b no mean reaches, which an (x - mean) @ matrix cannot say.
    """
    values = _settings(folder, {"activation_function": IDENTITY, **ONLY})
    arrays = _arrays(folder, {"linear.weight", "linear.bias"} if values.get("bias", True) else {"linear.weight"})
    matrix = arrays["linear.weight"].astype(np.float64).T
    if matrix.ndim != 2 or len(matrix) != width or not np.isfinite(matrix).all():
        shape = arrays["linear.weight"].shape
        raise CheckpointError(f"{folder}: linear.weight has shape {shape}; expected finite numbers (K, {width})")
    bias = arrays.get("linear.bias", np.zeros(matrix.shape[1])).astype(np.float64)
    if bias.shape != matrix.shape[1:] or not np.isfinite(bias).all():
        raise CheckpointError(f"{folder}: linear.bias has shape {bias.shape}; expected finite numbers (K,), K as above")
    if np.array_equal(matrix, np.eye(width)):
        return Transform("centre", -bias)
    mean = np.zeros(width)
    for _ in range(2):  # the second solves for what rounding left of the first
        mean -= np.linalg.lstsq(matrix.T, bias + mean @ matrix, rcond=None)[0]
    if np.abs(mean @ matrix + bias).max() > REACHED * np.abs(bias).max():
        raise CheckpointError(f"{folder}: its linear.bias is not -mean @ matrix for any mean; expected a centred map")
    return Transform("linear", mean, matrix)


def head_module(width, head):
    """(config.json, arrays) of the Dense module that is the head: `head` as `read_head` gives it."""
    arrays = {theirs: np.ascontiguousarray(head[ours].T) for ours, theirs in HEAD_NAMES.items()}
    return {"in_features": width, "out_features": width, "bias": True, "activation_function": TANH}, arrays


def transform_module(transform):
    """(config.json, arrays) of the Dense module that is a Transform, rounded to float32."""
    matrix = np.eye(transform.inputs) if transform.matrix is None else transform.matrix
    size = {"in_features": transform.inputs, "out_features": transform.outputs}
    arrays = {"linear.weight": matrix.T, "linear.bias": -(transform.mean @ matrix)}
    arrays = {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}
    return {**size, "bias": True, "activation_function": IDENTITY}, arrays


def _settings(folder, only):
    path = folder / "config.json"
    values = read_json(path)
    for name, value in only.items():
        if values.get(name, value) != value:
            raise CheckpointError(f"{path}: {name} {values[name]!r} is not supported; expected {value!r}")
    return values


def _arrays(folder, names):
    with open_safetensors(folder / "model.safetensors") as file:
        if set(file.keys()) != names:
            raise CheckpointError(f"{folder} holds {sorted(file.keys())}; expected {sorted(names)}")
        return {name: file.get_tensor(name) for name in names}
