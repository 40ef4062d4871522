"""What is kept of every run of a study: runs/STUDY/ARM-seedS.json, beside the run folder of the same name.

It is written before the run begins, with all the run depends on, so that a changed plan is noticed before any time is
spent; the row of the table is added when the run is done. Studies that share an output folder share their runs: what
another of them has trained with equal options, seed and texts is not trained again.
"""

import math
from dataclasses import fields

from ..checkpoint import read_json, write_json
from ..errors import CheckpointError, InputError
from ..training.config import TrainingConfig

DEFAULTS = {field.name: field.default for field in fields(TrainingConfig)}
DIGESTED = ("text", "dev", "model")  # inputs known by a digest, which would say nothing to a reader
BULK = ("model.safetensors", "last.safetensors", "config.json", "tokenizer.json", "vocab.txt")


class Record:
    """The record of one arm and seed in `runs`, the folder of a study's runs."""

    def __init__(self, runs, arm, seed, texts, model=None):
        """model: fingerprint of the encoder that the arm goes on from."""
        self.arm, self.seed = arm, seed
        self.name = f"{arm.slug}-seed{seed}"
        self.folder, self.file = runs / self.name, runs / f"{self.name}.json"
        self.inputs = {
            "options": arm.options,
            "columns": arm.columns and list(arm.columns),
            "transform": arm.transform,
            "trained": arm.trained,
            "model": model,
            "text": texts.digests["files"],
            "dev": texts.digests["dev"],
        }

    def row(self):
        """The row of a run that is done, here or in another study of the folder, None for one that is not.

        Raises InputError, naming the first difference, where the run was started with other inputs than the plan's.
        """
        if self.file.exists():
            inputs, row = _read(self.file)
            self._require_same(inputs)
            return row
        for file in sorted(self.file.parent.parent.glob(f"*/*-seed{self.seed}.json")):
            inputs, row = _read(file)
            if row and _in_full(inputs) == _in_full(self.inputs):
                row = {**row, "arm": self.arm.name}
                self._write(row, same_as=f"{file.parent.name}/{file.stem}")
                return row
        return None

    def begin(self):
        """Say what the run will be."""
        self._write(None)

    def finish(self, row, keep_models):
        """Store the row; then remove the model and the state to resume from, unless they are to be kept."""
        self._write(row)
        if not keep_models:
            for name in BULK:
                (self.folder / name).unlink(missing_ok=True)

    def _write(self, row, **more):
        if row:  # JSON has no nan
            row = {name: None if value != value else value for name, value in row.items()}
        write_json(self.file, {"arm": self.arm.name, "seed": self.seed, "inputs": self.inputs, "row": row, **more})

    def _require_same(self, stored):
        where = f"run {self.folder} was started"
        for name in sorted({*stored["options"], *self.inputs["options"]}):
            old, new = (inputs["options"].get(name, DEFAULTS.get(name)) for inputs in (stored, self.inputs))
            if old != new:
                raise InputError(f"{name} is {new!r}, but the {where} with {old!r}; give another --out, or remove it")
        for name in self.inputs.keys() - {"options"}:
            if stored[name] != self.inputs[name]:
                other = f"on another {name}" if name in DIGESTED else f"with {stored[name]!r}"
                own = f"the {name} is" if name in DIGESTED else f"{name} is {self.inputs[name]!r},"
                raise InputError(f"{own} not what the {where} {other}; give another --out, or remove it")


def _read(file):
    """(inputs, row) of the record in a file; row None for a run that is not done."""
    stored = read_json(file)
    try:
        inputs, row = stored["inputs"], stored["row"]
        if not {"options", "columns", "transform", "trained", "model", "text", "dev"} <= inputs.keys():
            raise KeyError("inputs")
        return inputs, row and {name: math.nan if value is None else value for name, value in row.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{file} does not describe a run of a study ({error})") from None


def _in_full(inputs):
    """The inputs with every option that training has, so that two ways of saying the same are equal."""
    return {**inputs, "options": {**DEFAULTS, **inputs["options"]}}
