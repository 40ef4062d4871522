"""The public sets the paper uses, by short names, and what is known about their files.

    stsb     STS Benchmark: train, dev and test (Cer et al. 2017)          sts     STS 2012-2016, test
    sickr    SICK relatedness, test                                        nli     triples with hard negatives
    wiki1m   a million sentences of English Wikipedia, the paper's unsupervised corpus

The sentences and triples are those of the authors, known by checksum; the rated pairs are known by their numbers of
rows. Any other name with a slash is a model of the hub.
"""

import filecmp
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from .data.readers import read_sts
from .errors import InputError
from .files import atomic_write
from .hub import fetch, model_folder


@dataclass(frozen=True)
class PublicFile:
    """One file: name here, repository and name there, and its SHA-256 or its number of rated pairs."""

    name: str
    repo: str
    path: str
    sha256: str | None = None
    pairs: int | None = None


@dataclass(frozen=True)
class PublicSet:
    """Files that belong together, and the command to go on with."""

    files: tuple
    use: str = field(default="nano-simcse evaluate {folder} --model MODEL")


AUTHORS = "princeton-nlp/datasets-for-simcse"
SETS = {
    "stsb": PublicSet(
        tuple(
            PublicFile(f"stsb-{here}.jsonl.gz", "mteb/stsbenchmark-sts", f"{there}.jsonl.gz", pairs=pairs)
            for here, there, pairs in (("train", "train", 5749), ("dev", "validation", 1500), ("test", "test", 1379))
        )
    ),
    "sts": PublicSet(
        tuple(
            PublicFile(f"sts{year}-test.jsonl.gz", f"mteb/sts{year}-sts", "test.jsonl.gz", pairs=pairs)
            for year, pairs in ((12, 3108), (13, 1500), (14, 3750), (15, 3000), (16, 1186))
        )
    ),
    "sickr": PublicSet((PublicFile("sickr-test.jsonl.gz", "mteb/sickr-sts", "test.jsonl.gz", pairs=9927),)),
    "wiki1m": PublicSet(
        (
            PublicFile(
                "wiki1m_for_simcse.txt",
                AUTHORS,
                "wiki1m_for_simcse.txt",
                "7b1825863a99aa76479b0456f7c210539dfaeeb69598b41fb4de4f524dd5a706",
            ),
        ),
        "nano-simcse train {files}",
    ),
    "nli": PublicSet(
        (
            PublicFile(
                "nli_for_simcse.csv",
                AUTHORS,
                "nli_for_simcse.csv",
                "0747687ec3594fa449d2004fd3757a56c24bf5f7428976fb5b67176775a68d48",
            ),
        ),
        "nano-simcse train {files} --positives pairs",
    ),
}


def download(name, folder="data"):
    """Fetch one of SETS, or the model with this hub id; returns the paths of its files.

    Files of a set are checked and copied to `folder` under their names here. A model stays in the cache, from which
    SentenceEncoder.load takes it by its id; its one path is the folder there. What has arrived stays for the next
    call, and what is in the cache is not sent again. Raises InputError for an unknown name, a checksum or a number
    of rows that is not the known one, and as `hub.fetch` does.
    """
    if name not in SETS:
        if name.count("/") != 1:
            raise InputError(f"{name!r} is not one of {', '.join(SETS)}, and no hub id of a model like owner/name")
        return [model_folder(name, refresh=True)]
    arrived = []
    for file in SETS[name].files:
        known = {file.path: file.sha256} if file.sha256 else None
        cached = fetch(file.repo, [file.path], kind="dataset", sha256=known) / file.path
        if file.pairs is not None and (found := len(read_sts(cached))) != file.pairs:
            raise InputError(f"{file.repo}/{file.path} has {found} pairs; expected {file.pairs}")
        target = Path(folder) / file.name
        if not (target.is_file() and filecmp.cmp(cached, target, shallow=False)):
            with atomic_write(target) as temporary:
                shutil.copyfile(cached, temporary)
        arrived.append(target)
    return arrived
