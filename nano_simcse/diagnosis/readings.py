"""One text read in several ways: as the encoder gives it, repaired without training, and after training."""

import sys
from dataclasses import dataclass

from tqdm import tqdm

from ..geometry import collapse_guard
from ..transforms import fit_transform, require_fit, too_few
from .measures import cloud_report


@dataclass(frozen=True)
class Readings:
    """clouds: {name: embeddings (N, D)}; reports: {name: CloudReport}; notes: sentences on how to read them."""

    clouds: dict
    reports: dict
    notes: list

    @property
    def untrained(self):
        """[(name, CloudReport)] of the repairs: what there is without training, beside the raw reading."""
        return [(name, self.reports[name]) for name in self.reports if name.startswith(("centred", "whitened"))]


def take_readings(encoder, text, pooling=None, against=None, to_fit=None, ranks=()):
    """Readings of the sentences of a `Text` by a SentenceEncoder, in this order:

    raw            by `pooling` (None: the encoder's), not transformed
    centred, whitened, whitened K for every K of `ranks`
                   fitted to `to_fit`, a list of sentences; None: to those measured
    as saved       with the encoder's own transform, where it has one of this pooling
    trained        by the encoder `against`, as that one is

    A collapsed cloud is not repaired. Shows progress on a terminal. Raises InputError for a rank that the sentences to
    fit to cannot have, before anything is encoded, and as `encode` and `fit_transform` do.
    """
    bare = encoder.with_transform(None).with_reading(pooling, normalize=False)
    for rank in ranks:
        require_fit("whiten", rank, len(text.sentences if to_fit is None else to_fit), bare.dimension)
    raw, notes = bare.encode(text.sentences), []
    clouds = {"raw": raw}
    if collapse_guard(raw).collapsed:
        notes.append("Centring and whitening are left out: of a collapsed cloud they blow up the noise.")
    else:
        rows = raw if to_fit is None else bare.encode(to_fit)
        clouds["centred"] = fit_transform(rows, "centre")(raw)
        clouds["whitened"] = fit_transform(rows)(raw)
        clouds |= {f"whitened {rank}": fit_transform(rows, rank=rank)(raw) for rank in ranks}
        if few := too_few("whiten", len(rows), bare.dimension):
            notes.append(few)
    if encoder.transform is not None and encoder.pooling == bare.pooling:
        clouds["as saved"] = encoder.encode(text.sentences)
    if against is not None:
        clouds["trained"] = against.encode(text.sentences)
    reports = {}
    for name, x in tqdm(clouds.items(), desc="measure", disable=not sys.stderr.isatty(), delay=2, leave=False):
        reports[name] = cloud_report(x, text)
    return Readings(clouds, reports, notes)
