"""nano-simcse diagnose: the geometry of embeddings, in numbers and in words."""

from ..data.readers import read_training_file
from ..errors import InputError
from ..geometry import collapse_guard, geometry_report
from ..training.report import as_table
from .common import json_line, load_model


def diagnose(arguments):
    """nano-simcse diagnose."""
    text = read_training_file(arguments.file)
    paired = text.kind != "sentences"
    rows = text.rows if paired else list(dict.fromkeys(text.rows))
    if len(rows) < 2:
        unit = text.kind.removesuffix("s") if paired else "distinct sentence"
        raise InputError(f"{arguments.file} holds 1 {unit}; a geometry needs at least 2")
    encoder = load_model(arguments)
    x = encoder.encode([row[0] for row in rows] if paired else rows)
    positives = encoder.encode([row[1] for row in rows]) if paired else None
    report = geometry_report(x, positives)
    rows = [(name.replace("_", " "), {"value": value}) for name, value in report.as_dict().items() if value is not None]
    print(as_table(rows, ["value"]))
    words = verdict(report, collapse_guard(x))
    print(words)
    if arguments.json:
        print(json_line({**report.as_dict(), "verdict": words}))


def verdict(report, guard):
    """The report in plain words."""
    if guard.collapsed:
        return f"Collapsed: {'; '.join(guard.reasons)}. Such embeddings cannot tell texts apart."
    words = []
    if report.mean_pair_cosine > 0.5:
        words.append(
            f"Narrow cone: two random sentences have cosine {report.mean_pair_cosine:.2f} on average, so absolute "
            "similarities mean little; ranking may still work."
        )
    elif report.mean_pair_cosine > 0.2:
        words.append(f"A wide cone: two random sentences have cosine {report.mean_pair_cosine:.2f} on average.")
    else:
        words.append(f"Well spread: two random sentences have cosine {report.mean_pair_cosine:.2f} on average.")
    words.append(f"The rows use about {report.centred_effective_rank:.0f} directions around their mean.")
    if report.max_pair_cosine > 0.999:
        words.append("Some different texts have the same embedding to three digits: look for near-duplicates.")
    if report.alignment is not None:
        random_distance = 2 - 2 * report.mean_pair_cosine
        share = 100 * report.alignment / random_distance
        words.append(f"Positive pairs lie at {share:.0f} % of the squared distance of random pairs (lower is better).")
    return " ".join(words)
