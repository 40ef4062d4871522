"""nano-simcse train, and its report."""

from dataclasses import fields

from .. import training
from ..errors import InputError
from ..ranks import current_ranks
from ..retrieval import EQUAL_WEIGHT
from ..tables import as_table
from ..training.config import TrainingConfig, read_config
from ..training.report import MEASURES, before_after
from .common import json_line, say


def train(arguments):
    """nano-simcse train."""
    given = vars(arguments)
    options = read_config(arguments.config) if arguments.config else {}
    options.update({f.name: given[f.name] for f in fields(TrainingConfig) if f.name in given})
    common = {"dev": arguments.dev, "out": arguments.out, "overwrite": arguments.overwrite, "say": say}
    if arguments.compare:
        if "positives" in options:
            raise InputError("--compare trains every kind of positives; leave out --positives")
        return _compare(arguments, options, common)
    result = training.train(arguments.files, resume=arguments.resume, **common, **options)
    if current_ranks().rank:
        return 0  # rank 0 says how it ended
    say(_summary(result))
    if arguments.json:
        say(json_line(public(result.report)))
    return 0 if result.finished else 130


def _compare(arguments, options, common):
    results, path = training.compare(arguments.files, resume=arguments.resume, **common, **options)
    if current_ranks().rank:
        return 0
    names = ["untrained", *(r.report["positives"] for r in results)]
    rows = [
        (title, dict(zip(names, [results[0].report["before"].get(key), *(r.report["after"].get(key) for r in results)],
                         strict=True)))
        for key, title in MEASURES.items() if key in results[0].report["after"]
    ]  # fmt: skip
    rows.append(("fused with BM25", {r.report["positives"]: r.report["search"].get("fused") for r in results}))
    rows.append(("seconds", {r.report["positives"]: r.report["seconds"] for r in results}))
    print(f"\n{as_table(rows, names)}")
    bm25 = results[0].report["search"].get("bm25")
    if bm25 is not None:
        print(f"BM25 alone finds {bm25:.1f} % ({results[0].report['task']}, {results[0].report['held_out']} held out)")
    print(f"picture: {path / 'compare.png'}")
    if not results[-1].finished:
        print(f"stopped early; go on with: nano-simcse train --compare --resume --out {path}")
    if arguments.json:
        print(json_line({"out": str(path), "runs": [public(r.report) for r in results]}))
    return 0 if all(r.finished for r in results) else 130


def public(report):
    """The part of a report that --json prints."""
    names = ("positives", "steps", "seconds", "out", "before", "after", "search", "best_step", "finished")
    return {name: report[name] for name in names if name in report}


def _summary(result):
    report = result.report
    lines = ["", before_after(report["before"], report["after"])] if report["after"] else []
    if report["search"]:
        found = report["search"]
        weight = found["dense_weight"]
        weights = "equal weights" if weight == EQUAL_WEIGHT else f"weight {weight} on the embeddings"
        lines.append(
            f"recall@1 of finding {report['task']}, among {report['held_out']} held out; BM25 {found['bm25']:.1f} %, "
            f"fused with it {found['fused']:.1f} % ({weights})"
        )
    if report["best_step"] != report["steps"]:
        score = report["last"].get("dev_spearman", report["last"].get("recall_at_1"))
        last = "" if score is None else f"; the last step has {score:.1f}"
        lines.append(f"best checkpoint: step {report['best_step']}{last}")
    lines.append(f"{report['steps']} steps in {report['seconds']:.0f} s; model, log and picture in {report['out']}")
    if not result.finished:
        lines.append(f"stopped early; go on with: nano-simcse train --resume --out {report['out']}")
    return "\n".join(lines)
