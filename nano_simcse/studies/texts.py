"""The text of a study: the files as given, other columns of them, and whether they are what the plan needs."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from ..data.readers import read_sts, read_training_files
from ..errors import InputError
from ..evaluation import check_rated
from ..files import atomic_write
from .plan import ROLES


@dataclass(frozen=True)
class Texts:
    """files: Paths, none for the docstrings; kind: "sentences", "pairs" or "triples"; rows: of the files; dev: STS
    pairs or None; dev_file: where they are; digests: of the bytes of every file and of the dev file, by name."""

    files: list
    kind: str
    rows: list
    dev: list | None
    dev_file: Path | None
    digests: dict


def read_texts(plan, files, dev):
    """Texts for `plan`. Raises InputError where something that the plan needs is not there, or a file is unusable."""
    files, dev = [Path(file).expanduser() for file in files], dev and Path(dev).expanduser()
    text = read_training_files(files) if files else None
    kind = text.kind if text else "docstrings"
    found = Texts(
        files, kind, text.rows if text else [], check_rated(read_sts(dev)) if dev else None, dev,
        {"files": [_digest(file) for file in files], "dev": dev and _digest(dev)},
    )  # fmt: skip
    _require(plan, found)
    return found


def _require(plan, texts):
    if "dev" in plan.needs and not texts.dev:
        raise InputError(f"study {plan.name} needs an STS file to score by, the same for all arms; give --dev FILE")
    triples = "triples" in plan.needs or any(arm.columns or arm.options.get("log_weight") for arm in plan.arms)
    if triples and texts.kind != "triples":
        have = f"{texts.files[0]} holds {texts.kind}" if texts.files else "no FILE is given"
        raise InputError(
            f"study {plan.name} needs a file of triples (anchor, positive and hard negative), but {have}"
        )
    for arm in plan.arms:
        if "init" in plan.needs and not arm.options.get("init"):
            raise InputError(f"study {plan.name} needs a pretrained model to start from; give --init MODEL")
        if arm.options.get("positives") == "pairs" and texts.kind == "sentences":
            others = ",".join(other.name for other in plan.arms if other.options.get("positives") != "pairs")
            raise InputError(
                f"arm {arm.name!r} trains on pairs, but {texts.files[0]} holds plain sentences; give a file of pairs, "
                f"or --arms {others}"
            )


def files_of(arm, texts, folder):
    """The files an arm trains on: those given, or `folder`/COLUMNS.jsonl with the columns it asks for."""
    if not arm.columns or arm.columns == ROLES:
        return texts.files
    path = folder / ("-".join(arm.columns) + ".jsonl")
    places = [ROLES.index(role) for role in arm.columns]
    lines = (json.dumps([row[place] for place in places], ensure_ascii=False) + "\n" for row in texts.rows)
    with atomic_write(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)
    return [path]


def _digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
