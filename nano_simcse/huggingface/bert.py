"""Their config.json, model.safetensors and tokenizer_config.json, read and written.

What is read is checked by name. A weight that is missing is not drawn at random, one that is unexpected is not
dropped, and a setting this encoder does not have is refused, because each of these gives vectors that look fine and
are wrong.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ..backend import to_host
from ..checkpoint import open_safetensors, write_arrays
from ..encoder import EncoderConfig, parameter_shapes
from ..errors import CheckpointError
from ..files import atomic_write
from ..parameters import Parameters
from .names import IGNORED, PREFIX, TIED, name_table, plain, their_shape, to_ours, to_theirs

SIZES = {
    "vocab_size": "vocab_size",
    "num_hidden_layers": "layers",
    "hidden_size": "width",
    "num_attention_heads": "heads",
    "intermediate_size": "feed_forward",
    "max_position_embeddings": "max_positions",
    "type_vocab_size": "types",
}
BERT_DEFAULTS = {"type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
ACTIVATIONS = {"gelu": "erf", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}
# Setting -> the one value that means what this encoder computes; absent means that value.
ONLY = {
    "model_type": "bert",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "is_encoder_decoder": False,
    "tie_word_embeddings": True,
    "pruned_heads": {},
    "quantization_config": None,
    "auto_map": None,
}


def read_config(values, path):
    """EncoderConfig from the dict of a config.json; head and mlm are left False, for the weights to say.

    path: named in errors. Raises CheckpointError naming the setting that is missing, wrong or not supported.
    """
    for name, only in ONLY.items():
        if values.get(name, only) not in (only, None):
            raise CheckpointError(f"{path}: {name} {values[name]!r} is not supported; expected {only!r}")
    values = BERT_DEFAULTS | values
    sizes = {}
    for theirs, ours in SIZES.items():
        value = values.get(theirs)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise CheckpointError(f"{path}: {theirs} is {value!r}; expected a whole number above 0")
        sizes[ours] = value
    eps, activation = values["layer_norm_eps"], values["hidden_act"]
    if not isinstance(eps, int | float) or not eps > 0:
        raise CheckpointError(f"{path}: layer_norm_eps is {eps!r}; expected a number above 0")
    if activation not in ACTIVATIONS:
        expected = ", ".join(ACTIVATIONS)
        raise CheckpointError(f"{path}: hidden_act {activation!r} is not supported; expected one of {expected}")
    try:
        return EncoderConfig(**sizes, eps=float(eps), gelu=ACTIVATIONS[activation])
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from None


def config_values(config, pad_id, all_states=False):
    """The dict of a config.json; all_states: whether the reading needs the hidden states of every layer."""
    values = {"architectures": ["BertForMaskedLM" if config.mlm else "BertModel"], "model_type": "bert"}
    values |= {theirs: getattr(config, ours) for theirs, ours in SIZES.items()}
    values |= {
        "layer_norm_eps": config.eps,
        "hidden_act": "gelu" if config.gelu == "erf" else "gelu_new",
        "pad_token_id": pad_id,
        "dtype": "float32",
        "torch_dtype": "float32",
    }
    if all_states:
        values["output_hidden_states"] = True
    return values


def read_weights(path, config):
    """(config with head and mlm as stored, Parameters in host memory) from a model.safetensors.

    Raises CheckpointError listing every missing, unexpected and misshapen weight by its name in the file, or the
    tied weights that differ.
    """
    with open_safetensors(path) as file:
        stored = {}
        for name in file.keys():
            if plain(name) in stored:
                raise CheckpointError(f"{path} holds both {stored[plain(name)]} and {name}; expected one of them")
            stored[plain(name)] = name
        config = replace(
            config,
            head=any(name.startswith("pooler.") for name in stored),
            mlm=any(name.startswith("cls.predictions.") for name in stored),
        )
        table, shapes = name_table(config), parameter_shapes(config)
        _check(path, file, stored, table, shapes)

        def tensor(name):
            return _tensor(path, file, stored[name])

        params = Parameters(shapes)
        for ours, theirs in table.items():
            params[ours][...] = to_ours(ours, [tensor(name) for name in theirs])
        for copy, original in TIED.items():
            if copy in stored and not np.array_equal(tensor(copy), tensor(original)):
                raise CheckpointError(f"{path}: {stored[copy]} differs from {stored[original]}; expected tied weights")
    return config, params


def _check(path, file, stored, table, shapes):
    expected = {
        name: their_shape(ours, shapes[ours], len(theirs)) for ours, theirs in table.items() for name in theirs
    }
    prefix = PREFIX if any(name.startswith(PREFIX) for name in stored.values()) else ""
    faults = [
        f"missing {name if name.startswith('cls.') else prefix + name}" for name in expected if name not in stored
    ]
    known = {*expected, *TIED, *IGNORED}
    faults += [f"unexpected {name}" for key, name in stored.items() if key not in known]
    for key, shape in expected.items():
        if key in stored:
            found = tuple(file.get_slice(stored[key]).get_shape())
            if found != tuple(shape):
                faults.append(f"{stored[key]} has shape {found}, expected {tuple(shape)}")
    if faults:
        raise CheckpointError(f"{path} does not hold the weights its config.json describes: {'; '.join(faults)}")


def _tensor(path, file, name):
    kind = file.get_slice(name).get_dtype()
    if kind not in ("F32", "F16"):
        raise CheckpointError(f"{path}: {name} is stored as {kind}; expected F32 or F16")
    return file.get_tensor(name)


def write_weights(path, config, params):
    """Write `params` under their names. With a masked-language-model head the encoder's names get their prefix."""
    prefix, arrays = PREFIX if config.mlm else "", {}
    for ours, theirs in name_table(config).items():
        for name, array in zip(theirs, to_theirs(ours, to_host(params[ours]), len(theirs)), strict=True):
            arrays[name if name.startswith("cls.") else prefix + name] = array
    save_arrays(path, arrays)


def save_arrays(path, arrays):
    """Write name -> array as a safetensors file that PyTorch readers accept."""
    with atomic_write(path) as temporary:
        write_arrays(path, arrays, temporary, {"format": "pt"})


def require_readable(folder):
    """The path of model.safetensors; CheckpointError, naming what is there instead, where it is missing."""
    path = Path(folder) / "model.safetensors"
    if path.is_file():
        return path
    for other, kind in (
        ("model.safetensors.index.json", "weights in several files"),
        ("pytorch_model.bin", "weights as a pickle"),
        ("tf_model.h5", "weights of TensorFlow"),
    ):
        if (Path(folder) / other).exists():
            raise CheckpointError(f"{folder} holds {kind} ({other}); expected one model.safetensors")
    raise CheckpointError(f"{path} does not exist; expected the weights of a BERT model")


def tokenizer_values(config):
    """The dict of a tokenizer_config.json; the rules themselves stand in tokenizer.json."""
    return {
        # The class that takes tokenizer.json as it is; BertTokenizer builds its own rules from vocab.txt.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.max_positions,
        "model_input_names": ["input_ids", "attention_mask"],
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    }
