"""The encoder a run begins with: a fresh one, or one that is there already.

A fresh one has random weights, and word vectors that are counted in its training text or random as well.

From a loaded encoder come its tokenizer, its architecture and its parameters. The run's own options say the rest:
pooling, length, and which heads are trained. `head` with a checkpoint that has one (BERT's pooler, or the head of an
earlier run) goes on from it; with a checkpoint that has none, it begins fresh; without `head` the checkpoint's is
left out. The masked-language-model head follows `mlm_weight` in the same way. A fitted transform is left out with a
warning: it belongs to the embeddings as they were before training.
"""

import warnings
from dataclasses import fields, replace

import numpy as np

from ..architecture import INITIAL_STD
from ..backend import to_device, to_host
from ..data.tokenizer import Tokenizer
from ..encoder import EncoderConfig, init_parameters
from ..errors import InputError
from ..model import SentenceEncoder, new_encoder
from ..parameters import Parameters
from ..ppmi import cooccurrences, ppmi, ppmi_vectors
from ..ranks import SERIAL
from .config import TrainingConfig

OF_THE_CHECKPOINT = ("layers", "width", "heads", "vocab")
WORD_STD = 20 * INITIAL_STD  # of counted word vectors: well above the positions, with which they share a layer norm


def initial_encoder(config, texts, device, folder=None, ranks=SERIAL, progress=None):
    """SentenceEncoder to train: of the run in `folder` where it is given (to resume; its parameters are to be restored
    by the caller), of config.init, or new, with a vocabulary and word vectors learned from `texts`.

    Raises InputError where an option contradicts the checkpoint, and as SentenceEncoder.load does.
    """
    if config.init is None:
        tokenizer = Tokenizer.load(folder) if folder else Tokenizer.train(texts, config.vocab)
        architecture = EncoderConfig(
            vocab_size=tokenizer.vocab_size,
            layers=config.layers,
            width=config.width,
            heads=config.heads,
            max_positions=config.max_length,
            head=config.head,
            mlm=config.mlm_weight > 0,
        )
        encoder = new_encoder(architecture, tokenizer, config.pooling, config.max_length, config.seed, device)
        if config.word_vectors == "ppmi" and not folder:
            begin_with_counts(encoder, texts, ranks, progress)
        return encoder
    if folder:
        return SentenceEncoder.load(folder, device)
    default = {field.name: field.default for field in fields(TrainingConfig)}
    for name in OF_THE_CHECKPOINT:
        if getattr(config, name) != default[name]:
            raise InputError(f"{name} is {getattr(config, name)}, but with init it is the checkpoint's; leave it out")
    encoder = SentenceEncoder.load(config.init)
    if encoder.transform is not None:
        kind = encoder.transform.kind
        warnings.warn(f"{config.init} is trained without its transform ({kind}); fit one anew afterwards", stacklevel=2)
    return with_heads(encoder, config, device)


def with_heads(encoder, config, device="cpu"):
    """`encoder` with the heads, the pooling and the length of the run; parameters that both have are kept, bit for
    bit, and others drawn from the run's seed."""
    wanted = replace(encoder.config, head=config.head, mlm=config.mlm_weight > 0)
    params = init_parameters(wanted, config.seed)
    for name, view in params.items():
        if name in encoder.params:
            view[...] = to_host(encoder.params[name])
    params = Parameters(params.shapes, to_device(params.flat, device))
    return SentenceEncoder(
        params, wanted, encoder.tokenizer, config.pooling, config.max_length, device, encoder.normalize
    )


def begin_with_counts(encoder, texts, ranks=SERIAL, progress=None):
    """Fill in the word embeddings with vectors counted in `texts` (ppmi.py), scaled to WORD_STD.

    [CLS] and [SEP] are in every text and are not counted. They, tokens that never occur and columns the counts do not
    fill keep what they are. One rank counts for all, so that all begin with the same bits.
    """
    word = encoder.params["embeddings.word"]

    def counted():
        rows, _ = encoder.tokenizer.encode(texts, encoder.max_length)
        counts = cooccurrences([row[1:-1] for row in rows], len(word), progress=progress)
        tokens, vectors = ppmi_vectors(ppmi(counts), word.shape[1], progress)
        return tokens, vectors * (WORD_STD / np.sqrt(np.mean(vectors**2))) if len(tokens) else vectors

    tokens, vectors = ranks.broadcast(counted)
    if len(tokens):
        start = to_host(word)[tokens]
        start[:, : vectors.shape[1]] = vectors
        word[to_device(tokens, encoder.device)] = to_device(start, encoder.device)
