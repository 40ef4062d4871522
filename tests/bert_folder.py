"""A tiny BERT folder as transformers writes it, made by hand: names and orientations are that library's."""

import json

import numpy as np
from safetensors.numpy import save_file

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sees a ##s river in . old".split()
CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "vocab_size": len(WORDS),
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 10,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
}
SENTENCES = ["the cat sees a dog.", "dogs", "the old cats in the river", ""]


def weights(head=True, mlm=False, prefix="", seed=0):
    """Name -> float32 array, drawn in the order of this list, large enough for every path to matter."""
    generator = np.random.default_rng(seed)
    d, f = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (CONFIG["vocab_size"], d),
        "embeddings.position_embeddings.weight": (CONFIG["max_position_embeddings"], d),
        "embeddings.token_type_embeddings.weight": (2, d),
        "embeddings.LayerNorm.weight": (d,),
        "embeddings.LayerNorm.bias": (d,),
    }
    for i in range(CONFIG["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        for name, out, inside in (
            ("attention.self.query", d, d),
            ("attention.self.key", d, d),
            ("attention.self.value", d, d),
            ("attention.output.dense", d, d),
            ("intermediate.dense", f, d),
            ("output.dense", d, f),
        ):
            shapes[f"{layer}{name}.weight"], shapes[f"{layer}{name}.bias"] = (out, inside), (out,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{layer}{name}.weight"] = shapes[f"{layer}{name}.bias"] = (d,)
    if head:
        shapes |= {"pooler.dense.weight": (d, d), "pooler.dense.bias": (d,)}
    arrays = {prefix + name: generator.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    if mlm:
        transform = "cls.predictions.transform."
        for name, shape in {
            transform + "dense.weight": (d, d),
            transform + "dense.bias": (d,),
            transform + "LayerNorm.weight": (d,),
            transform + "LayerNorm.bias": (d,),
            "cls.predictions.bias": (CONFIG["vocab_size"],),
        }.items():
            arrays[name] = generator.normal(0, 0.5, shape).astype(np.float32)
    return arrays


def write_bert(folder, arrays=None, config=(), tokenizer=()):
    """Write config.json, model.safetensors and vocab.txt; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", CONFIG | dict(config))
    save_file(weights() if arrays is None else arrays, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    write_json(folder / "tokenizer_config.json", {"do_lower_case": True, "tokenizer_class": "BertTokenizer",
                                                  "model_max_length": 9} | dict(tokenizer))  # fmt: skip
    return folder


def write_modules(folder, *kinds, pooling="mean", length=7, lowercase=False):
    """Turn a BERT folder into one of sentence-transformers with these modules after the Transformer."""
    kinds = ("Transformer", *kinds)
    paths = [f"{i}_{kind}" if i else "" for i, kind in enumerate(kinds)]
    write_json(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ])  # fmt: skip
    for kind, path in zip(kinds, paths, strict=True):
        if kind == "Pooling":
            flags = {f"pooling_mode_{mode}": name == pooling for name, mode in
                     (("cls", "cls_token"), ("mean", "mean_tokens"), ("max", "max_tokens"))}  # fmt: skip
            write_json(folder / path / "config.json", {"word_embedding_dimension": CONFIG["hidden_size"], **flags})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": length, "do_lower_case": lowercase})
    return folder


def write_json(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")
