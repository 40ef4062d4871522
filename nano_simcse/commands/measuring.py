"""nano-simcse encode, evaluate and probe."""

import os
from collections import Counter
from pathlib import Path

from ..data.labelled import read_labelled
from ..errors import InputError
from ..files import require_writable, save_array
from ..probes import check_labels
from ..probes import probe as run_probe
from ..protocol import evaluate_sets, read_set, read_suite
from ..tables import as_table
from .common import json_line, load_model, one_a_line


def encode(arguments):
    """nano-simcse encode."""
    out = os.path.expanduser(arguments.out)
    if Path(out).suffix != ".npy":
        raise InputError(f"--out is {arguments.out!r}; expected a name that ends in .npy")
    require_writable(out)
    encoder = load_model(arguments)
    sentences = one_a_line(arguments.file)
    x = encoder.encode(
        sentences,
        batch_size=arguments.batch_size,
        normalize_embeddings=arguments.normalize,
        max_length=arguments.max_length,
    )
    try:
        save_array(out, x)
    except OSError as error:
        if error.errno is not None:
            raise
        # NumPy counts the bytes that arrived and gives no reason.
        raise InputError(f"cannot write {out}: the disk is full or the write was cut short") from None
    print(f"{len(x):,} embeddings of {x.shape[1]} numbers in {out}")


def evaluate(arguments):
    """nano-simcse evaluate."""
    folders = [file for file in arguments.files if Path(os.path.expanduser(file)).is_dir()]
    sets = read_suite(folders) | {file: read_set(file) for file in arguments.files if file not in folders}
    labels = _labels(sets)
    readings = []
    for encoder in _in_every_way(load_model(arguments), arguments.pooling, arguments.max_length):
        report = evaluate_sets(encoder, sets)
        readings.append({"pooling": encoder.pooling, **report})
        print(f"pooling {encoder.pooling}\n{_as_text(report, labels)}\n", flush=True)
    if len(readings) > 1:
        print(_side_by_side(readings, labels), end="\n\n")
    rated = any(isinstance(rows, list) for rows in sets.values())
    print("\n".join([RATED] * rated + [PAIRED] * any(not isinstance(rows, list) for rows in sets.values())))
    if arguments.json:
        print(json_line({"readings": readings}))


def probe(arguments):
    """nano-simcse probe."""
    rows = read_labelled(arguments.file)
    labels = [row.label for row in rows]
    try:
        check_labels(labels, arguments.folds, arguments.seed)
    except InputError as error:
        hint = "; is the label in the first column?" if len(set(labels)) > len(labels) / 2 else ""
        raise InputError(f"{arguments.file}: {error}{hint}") from None
    readings, table = [], []
    for encoder in _in_every_way(load_model(arguments), arguments.pooling):
        x = encoder.encode([row.sentence for row in rows])
        report = run_probe(x, labels, arguments.folds, arguments.seed)
        readings.append({"pooling": encoder.pooling, **report})
        values = {name: f"{report[name]:.2f}" for name in ("accuracy", "sd", "majority")}
        table.append((encoder.pooling, values | {"lambda": _range(report["l2"])}))
    classes = ", ".join(f"{label} {count:,}" for label, count in report["classes"].items())
    print(f"{len(rows):,} rows: {classes}")
    print(as_table(table, ["accuracy", "sd", "majority", "lambda"]))
    print(f"percent of rows a linear classifier names right, mean and sd over {arguments.folds} folds; "
          "majority: the largest class, always")  # fmt: skip
    if arguments.json:
        print(json_line({"file": arguments.file, "readings": readings}))


def _in_every_way(encoder, poolings, max_length=None):
    """The encoder once for every pooling asked for, all made before the first of them begins to work."""
    return [encoder.with_reading(pooling, max_length) for pooling in dict.fromkeys(poolings or [None])]


RATED = ("Spearman x 100 of cosine with the given scores: all = over all rows at once, the setting of the paper; "
         "mean, wmean = over subsets; Pearson over all rows")  # fmt: skip
PAIRED = "recall@k in percent: the partner is among the k nearest of all candidates; MRR = mean of 1 / rank"


def _as_text(report, labels):
    """The tables of one reading, and what stands beside the suite."""
    parts, rated, paired = [], [], []
    for name, found in report["sets"].items():
        if "spearman" in found:
            values = {key: f"{found[key]['spearman']:.2f}" for key in ("all", "mean", "wmean") if key in found}
            rated.append((labels[name], {"n": f"{found['count']:,}", **values, "pearson": f"{found['pearson']:.2f}"}))
        else:
            values = {f"recall@{k}": f"{found[f'recall_at_{k}']:.2f}" for k in (1, 5, 10)}
            values |= {"MRR": f"{found['mean_reciprocal_rank']:.3f}"}
            paired.append((labels[name], {"n": f"{found['count']:,}", "of": f"{found['candidates']:,}", **values}))
    average, geometry = report.get("average"), report.get("geometry")
    if average:
        # after the sets it averages, before the dev set, which is none of them
        rated.insert(len(average["over"]), (_title(average), {"all": f"{average['spearman']:.2f}"}))
    if rated:
        parts.append(as_table(rated, ["n", "all", "mean", "wmean", "pearson"]))
    if average and average["missing"]:
        parts.append(f"missing: {', '.join(average['missing'])}")
    if geometry:
        parts.append(_geometry_line(geometry))
    if paired:
        parts.append(as_table(paired, ["n", "of", "recall@1", "recall@5", "recall@10", "MRR"]))
    return "\n".join(parts)


def _title(average):
    whole = len(average["over"]) + len(average["missing"])
    return f"average of the {whole}" if not average["missing"] else f"average of {len(average['over'])} of {whole}"


def _geometry_line(geometry):
    if geometry["alignment"] is None:
        near = "alignment: no pair is scored above 4"
    else:
        near = f"alignment {geometry['alignment']:.3f} ({geometry['positives']:,} pairs scored above 4)"
    return f"{geometry['set']}: {near}, uniformity {geometry['uniformity']:.3f} ({geometry['sentences']:,} sentences)"


def _side_by_side(readings, labels):
    """One row a reading: "all" of every rated set, recall@1 of every set of pairs, the average and the geometry."""
    rows, columns = [], {}
    for reading in readings:
        values = {}
        for name, found in reading["sets"].items():
            short = labels[name] if name in ("stsb-test", "stsb-dev") else labels[name].removesuffix("-test")
            if "all" in found:
                values[short] = f"{found['all']['spearman']:.2f}"
            else:
                values[f"{short} recall@1"] = f"{found['recall_at_1']:.2f}"
        if reading.get("average"):
            values[_title(reading["average"])] = f"{reading['average']['spearman']:.2f}"
        for name in ("alignment", "uniformity"):
            if (reading.get("geometry") or {}).get(name) is not None:
                values[name] = f"{reading['geometry'][name]:.3f}"
        rows.append((reading["pooling"], values))
        columns.update(dict.fromkeys(values))
    return as_table(rows, list(columns))


def _labels(sets):
    """{set: what a table calls it}: names of the suite as they are, files by name, or by path where names repeat."""
    uses = Counter(Path(name).name for name in sets)
    return {name: Path(name).name if uses[Path(name).name] == 1 else name for name in sets}


def _range(values):
    return " to ".join(f"{value:g}" for value in dict.fromkeys((min(values), max(values))))
