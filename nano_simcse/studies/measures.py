"""The geometry of an encoder on an STS file, as the paper measures it, and its effective rank."""

import math

from ..evaluation import Embedded
from ..geometry import effective_rank
from ..protocol import sts_geometry


def dev_geometry(encoder, pairs):
    """{"alignment", "uniformity", "effective_rank"} of `encoder` on STS `pairs` (data.readers.STSPair).

    alignment, uniformity: as `sts_geometry`, nan where it has none; effective rank: of all distinct sentences.
    """
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.sentence1, pair.sentence2)))
    x = encoder.encode(texts, show_progress_bar=False)
    found = sts_geometry(Embedded(texts, x), pairs)  # from the embeddings that are there: encoding takes longest
    result = {name: math.nan if found[name] is None else found[name] for name in ("alignment", "uniformity")}
    return {**result, "effective_rank": effective_rank(x)}
