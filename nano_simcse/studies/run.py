"""Running a study: every arm at every seed, one after the other, each a run folder of its own.

The order is seed by seed, so that a study stopped half way has compared all arms. What is done is never done twice:
a finished run is read from its record, an interrupted one goes on from its last checkpoint.
"""

import math
import time
from dataclasses import dataclass
from pathlib import Path

from ..backend import resolve_device
from ..errors import InputError, NonFiniteLoss
from ..model import SentenceEncoder
from ..ranks import current_ranks
from ..training.config import TrainingConfig
from ..training.initial import initial_encoder
from ..training.material import gather
from ..training.report import Judge
from ..training.run_folder import RunFolder
from ..training.runs import filled, train
from ..transforms import with_fitted_transform
from .measures import dev_geometry
from .picture import draw_study
from .records import Record
from .table import COLUMNS, GEOMETRY, ORDERINGS, SUMMARY, judged, summary, write_csv
from .texts import files_of, read_texts

FITTED_ON = 10_000  # training texts, from the first on, that a transform is fitted to
RECALL, SPEARMAN = "recall@1 (%) on held-out pairs", "Spearman x 100 on the dev file"


@dataclass(frozen=True)
class StudyResult:
    """A study as it ended: plan; path of its folder; rows: one dict (table.COLUMNS) for every run that is done, in the
    order of the plan; orderings: one dict each (table.ORDERINGS); measure: what a score is, in words; finished."""

    plan: object
    path: Path
    rows: list
    orderings: list
    measure: str
    finished: bool


def run_study(plan, files=(), *, dev=None, out=None, keep_models=False, progress=None, say=None):
    """Train and measure every arm of `plan` (load_plan) at every seed; what `nano-simcse study` does.

    files, dev, progress: as for `train`. The score is Spearman x 100 on `dev`, or recall@1 in percent on the pairs
    held out of the text where there is no dev file. out: folder, studies/NAME by default, in which runs/NAME/ holds
    the runs, and NAME.csv, NAME_summary.csv, NAME_orderings.csv and NAME.png are written anew after every run; what
    another study in the same folder has trained with equal options, seed and texts is taken from there. Checkpoints of
    a finished run are removed unless keep_models. say: called with lines of text on the way.

    Returns StudyResult; its `finished` is False after Ctrl-C. The same call goes on from there. Raises InputError,
    before any work is done, where the plan and the files do not fit or `out` holds runs of another plan.
    """
    if current_ranks().size > 1:
        raise InputError(f"a study runs in one process, not in {current_ranks().size} ranks")
    if isinstance(files, str | Path):
        files = [files]
    folder, say = Path(out or Path("studies") / plan.name).expanduser(), say or (lambda line: None)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"output folder {str(folder)!r} is a file")
    texts = read_texts(plan, files, dev)
    started_from = {arm.options.get("init") for arm in plan.arms} - {None}
    models = {name: SentenceEncoder.load(name).fingerprint() for name in started_from}
    records = [
        Record(folder / "runs" / plan.name, arm, seed, texts, models.get(arm.options.get("init")))
        for seed in plan.seeds for arm in plan.arms
    ]  # fmt: skip
    rows = {(record.arm.name, record.seed): row for record in records if (row := record.row())}
    study = _Study(plan, folder, texts, SPEARMAN if texts.dev else RECALL, rows, keep_models, progress)
    say(f"{plan.title}: {len(plan.arms)} arms, {len(plan.seeds)} seeds, {len(rows)} runs done; varied: {plan.varies}")
    finished, started, before = True, time.perf_counter(), len(rows)
    try:
        for record in records:
            if (record.arm.name, record.seed) in rows:
                continue
            rows[record.arm.name, record.seed] = row = study.one_run(record)
            study.write()
            a_run = (time.perf_counter() - started) / (len(rows) - before)
            say(_line(row, len(rows), len(records), a_run))
    except KeyboardInterrupt:  # what was being trained is saved, what is done has its record
        finished = False
    if rows and finished:
        study.write()  # also where nothing was left to do: the plan's seeds or arms may be fewer now
    return StudyResult(plan, folder, study.in_order(), judged(plan, study.in_order()), study.measure, finished)


@dataclass
class _Study:
    plan: object
    folder: Path
    texts: object
    measure: str
    rows: dict
    keep_models: bool
    progress: bool | None

    def one_run(self, record):
        """The row of one arm and seed. Raises KeyboardInterrupt where it was interrupted."""
        record.begin()
        values = self.trained(record) if record.arm.trained else self.untrained(record)
        row = {"arm": record.arm.name, "seed": record.seed, **values}
        record.finish(row, self.keep_models)
        return row

    def trained(self, record):
        """Train, or go on; the best checkpoint's measures."""
        arm, folder = record.arm, RunFolder(record.folder)
        files = files_of(arm, self.texts, self.folder / "data")
        try:
            result = train(
                files, dev=self.texts.dev_file, out=record.folder, resume=folder.training.exists(),
                progress=self.progress, **arm.options, seed=record.seed,
            )  # fmt: skip
        except NonFiniteLoss:
            saved = folder.read_progress()
            return self.row({}, None, None, saved["best_step"], saved["seconds"])
        report = result.report
        if not result.finished:  # `train` saved its state and returned
            raise KeyboardInterrupt
        return self.row(
            report["after"], report["last"], result.encoder, report["best_step"], report["seconds"]
        )

    def untrained(self, record):
        """Read the model as it is, after the transform that the arm asks for."""
        started = time.perf_counter()
        config = TrainingConfig(**record.arm.options, seed=record.seed)
        files = files_of(record.arm, self.texts, self.folder / "data")
        material = gather(config.positives, files, self.progress, config.held_out)
        config = filled(config, material)
        encoder = initial_encoder(config, material.texts, resolve_device(config.device))
        if record.arm.transform:
            encoder = with_fitted_transform(encoder, material.texts[:FITTED_ON], record.arm.transform)
        measures = Judge(material.test, self.texts.dev).measure(encoder)
        return self.row(measures, measures, encoder, 0, time.perf_counter() - started)

    def row(self, best, last, encoder, best_step, seconds):
        """The columns of the table from the measures of the best and the last checkpoint; {} and None for a run whose
        loss was not finite, which has no score."""
        score = "dev_spearman" if self.texts.dev else "recall_at_1"
        if encoder is None:
            return {"score_best": math.nan, "score_last": math.nan, "best_step": best_step,
                    **dict.fromkeys(GEOMETRY, math.nan), "seconds": seconds}  # fmt: skip
        if score not in best:
            raise InputError(f"study {self.plan.name}: the text is too short to hold pairs out; give more, or --dev")
        geometry = dev_geometry(encoder, self.texts.dev) if self.texts.dev else best
        return {"score_best": best[score], "score_last": last[score], "best_step": best_step,
                **{name: geometry[name] for name in GEOMETRY}, "seconds": seconds}  # fmt: skip

    def in_order(self):
        """The rows of the plan that are there, arm by arm."""
        keys = [(arm.name, seed) for arm in self.plan.arms for seed in self.plan.seeds]
        return [self.rows[key] for key in keys if key in self.rows]

    def write(self):
        """The files of the study, from the rows so far."""
        rows, stem = self.in_order(), self.folder / self.plan.name
        write_csv(stem.with_name(f"{stem.name}.csv"), COLUMNS, rows)
        write_csv(stem.with_name(f"{stem.name}_summary.csv"), SUMMARY, summary(self.plan, rows))
        write_csv(stem.with_name(f"{stem.name}_orderings.csv"), ORDERINGS, judged(self.plan, rows))
        draw_study(stem.with_name(f"{stem.name}.png"), self.plan, rows, self.measure)


def _line(row, done, total, a_run):
    """What to say after a run; a_run: seconds that one takes with all its measuring."""
    score, last = (f"{row[name]:.2f}" for name in ("score_best", "score_last"))
    left = f"; about {(total - done) * a_run / 60:.0f} min left" if done < total else ""
    what = f"{row['arm']}, seed {row['seed']}"
    return f"{done} of {total}: {what}: {score} at step {row['best_step']}, {last} at the last{left}"
