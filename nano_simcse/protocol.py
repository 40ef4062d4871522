"""The evaluation protocol of Gao et al. 2021: seven STS test sets, their average, and the two properties beside it.

A suite is a folder of rated files known by name, NAME.tsv, .csv or .jsonl, each also .gz:

    sts12-test ... sts16-test, stsb-test, sickr-test    the seven whose average the tables of the paper give
    stsb-dev                                            for choices; never part of the average

Of each set the "all" Spearman counts (`evaluation.sts_scores`). Alignment is taken over the STS-B pairs scored above
4 and uniformity over all STS-B sentences (section 5 and figure 2 of the paper; Wang and Isola, arXiv 2005.10242).
Files of pairs without scores have no correlation; for them the question is whether a text finds its partner.
"""

import os
import re
from pathlib import Path

import numpy as np

from .data.readers import TrainingText, is_rated, read_sts, read_training_file
from .errors import InputError
from .evaluation import Embedded, check_rated, evaluate_sts, rank_report
from .geometry import alignment, uniformity
from .partners import Partners

TESTS = ("sts12-test", "sts13-test", "sts14-test", "sts15-test", "sts16-test", "stsb-test", "sickr-test")
DEV = "stsb-dev"
ALIKE = 4.0  # pairs of STS-B scored above this are the positives of the alignment

_SUITE_FILE = re.compile(r"(.+)\.(tsv|csv|jsonl|json|ndjson)(\.gz)?")


def find_suite(folders):
    """{set: path} of the files of the suite in one or several folders, TESTS first, then DEV; others are left alone.

    Raises InputError for a folder that does not exist or holds no set, and for two files of one set.
    """
    found = {}
    for folder in folders:
        root, inside = Path(os.path.expanduser(folder)), 0
        if not root.is_dir():
            raise InputError(f"{folder} is not a folder; expected one with the files of the suite")
        for path in sorted(root.iterdir()):
            match = _SUITE_FILE.fullmatch(path.name.lower())
            if not match or match[1] not in (*TESTS, DEV) or path.is_dir():
                continue
            name, inside = match[1], inside + 1
            if name in found:
                raise InputError(f"{found[name]} and {path} are both {name}; expected one file of each set")
            found[name] = path
        if not inside:
            raise InputError(
                f"{folder} holds no set of the suite; expected files named like {TESTS[0]}.tsv or {DEV}.jsonl.gz"
            )
    return {name: found[name] for name in (*TESTS, DEV) if name in found}


def read_set(path, rated=None):
    """The rows of a file to evaluate: list[STSPair] where it has scores, else TrainingText of pairs or triples.

    rated: True where a set of the suite is read, which must have scores; None: look. Raises InputError as the
    readers do, and already here for rows that could not be evaluated after the encoding.
    """
    if rated or is_rated(path):
        try:
            return check_rated(read_sts(path))
        except InputError as error:
            raise error if str(path) in str(error) else InputError(f"{path}: {error}") from None
    text = read_training_file(path)
    if len({row[1] for row in text.rows}) < 2:
        raise InputError(f"{path} holds one partner only; expected at least 2 to tell apart")
    return text


def read_suite(folders):
    """{set: list[STSPair]} of the suite in one or several folders; raises as `find_suite` and `read_set` do."""
    return {name: read_set(path, rated=True) for name, path in find_suite(folders).items()}


def evaluate_sets(encoder, sets, batch_size=64, show_progress_bar=None):
    """Report on every set; each distinct sentence of all of them is encoded once.

    encoder: has encode(list[str], batch_size=, show_progress_bar=) -> (n, D); sets: {name: rows}, rows as from
    `read_set`. Returns {"sets": {name: report of `evaluate_sts` or `evaluate_pairs`}} and, where a name is one of
    the suite, "average" (`suite_average`; None without a test set) and "geometry" (`sts_geometry` of DEV, else of
    stsb-test, with "set", its name; None without either). Raises InputError as those do.
    """
    texts = {}
    for rows in sets.values():
        for row in rows.rows if isinstance(rows, TrainingText) else [pair[1:3] for pair in rows]:
            texts.update(dict.fromkeys(row))
    embedded = Embedded(texts, encoder.encode(list(texts), batch_size=batch_size, show_progress_bar=show_progress_bar))
    reports = {
        name: evaluate_pairs(embedded, rows.rows) if isinstance(rows, TrainingText) else evaluate_sts(embedded, rows)
        for name, rows in sets.items()
    }
    result = {"sets": reports}
    if any(name in (*TESTS, DEV) for name in sets):
        source = next((name for name in (DEV, "stsb-test") if name in sets), None)
        result["average"] = suite_average(reports)
        result["geometry"] = source and {"set": source, **sts_geometry(embedded, sets[source])}
    return result


def suite_average(reports):
    """Mean of the "all" Spearman over those of TESTS that `reports` {name: report} holds; None where it holds none.

    Returns {"spearman", "over": the names averaged, "missing": the names absent}: an average over fewer than seven
    is not the one of the paper. nan where a set has no correlation.
    """
    over = [name for name in TESTS if name in reports]
    if not over:
        return None
    mean = float(np.mean([reports[name]["all"]["spearman"] for name in over]))
    return {"spearman": mean, "over": over, "missing": [name for name in TESTS if name not in over]}


def sts_geometry(encoder, pairs):
    """Alignment of the pairs scored above ALIKE and uniformity of all distinct sentences of STS `pairs`.

        alignment    mean |u - v|^2 over positives (u, v)               lower is better
        uniformity   log mean exp(-2 |u - v|^2) over distinct sentences     lower is better

    Returns {"alignment" (None without such a pair, as for scores on a scale up to 1), "positives": their number,
    "uniformity", "sentences": their number}. Raises InputError for a zero or non-finite embedding.
    """
    row_of = {}
    for pair in pairs:
        for text in (pair.sentence1, pair.sentence2):
            row_of.setdefault(text, len(row_of))
    x = encoder.encode(list(row_of))
    alike = [(row_of[pair.sentence1], row_of[pair.sentence2]) for pair in pairs if pair.score > ALIKE]
    left, right = np.array(alike, int).reshape(-1, 2).T
    return {
        "alignment": alignment(x[left], x[right]) if alike else None,
        "positives": len(alike),
        "uniformity": uniformity(x) if len(x) > 1 else None,
        "sentences": len(x),
    }


def evaluate_pairs(encoder, rows, batch_size=64, show_progress_bar=None):
    """Recall of finding each anchor's partner by cosine among all partners (and the hard negatives, in triples).

    rows: (anchor, positive) or (anchor, positive, negative) strings. Candidates are distinct texts; other partners of
    the same anchor, and its own text, are left out of its ranking (`partners.Partners`). Ties count against the anchor.
    Returns: the dict of `rank_report` (recall in percent) plus "candidates" and "sentences", numbers of distinct
    texts. Raises InputError for no rows, a NaN or a zero vector.
    """
    rows = list(rows)
    if not rows:
        raise InputError("there is no pair to evaluate.")
    partners, texts = Partners(rows), list(dict.fromkeys(text for row in rows for text in row))
    x = Embedded(texts, encoder.encode(texts, batch_size=batch_size, show_progress_bar=show_progress_bar))
    ranks = partners.cosine_ranks(x.encode(partners.anchors), x.encode(partners.candidates))
    return {**rank_report(ranks), "candidates": len(partners.candidates), "sentences": len(texts)}
