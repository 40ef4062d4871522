"""The numbers of a study as CSV and as text."""

import csv
import io
import math
import statistics

from ..files import atomic_write
from ..tables import aligned
from .verdicts import RULE, verdict

COLUMNS = (
    "arm", "seed", "score_best", "score_last", "best_step", "alignment", "uniformity", "effective_rank", "seconds"
)  # fmt: skip
GEOMETRY = ("alignment", "uniformity", "effective_rank")
DECIMALS = 6


def write_csv(path, columns, rows):
    """Write dicts `rows`, whole or not at all; numbers to DECIMALS places, None and nan as nothing."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    with atomic_write(path) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8", newline="\n")


def _cell(value):
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(round(value, DECIMALS)) if isinstance(value, float) else value


def summary(plan, rows):
    """One dict an arm of `plan` that has rows: seeds, mean, sample standard deviation, smallest and largest of both
    scores, and means of the geometry and the seconds. Seeds without a score are left out of the statistics."""
    result = []
    for arm in plan.arms:
        own = [row for row in rows if row["arm"] == arm.name]
        if not own:
            continue
        line = {"arm": arm.name, "seeds": len(own)}
        for which in ("best", "last"):
            line.update({f"{key}_{which}": value for key, value in _spread(own, f"score_{which}").items()})
        line.update({name: _spread(own, name)["mean"] for name in (*GEOMETRY, "seconds")})
        result.append(line)
    return result


def _spread(rows, column):
    values = [row[column] for row in rows if row[column] is not None and not math.isnan(row[column])]
    if not values:
        return dict.fromkeys(("mean", "sd", "min", "max"), math.nan)
    sd = statistics.stdev(values) if len(values) > 1 else math.nan
    return {"mean": statistics.fmean(values), "sd": sd, "min": min(values), "max": max(values)}


def judged(plan, rows):
    """One dict an ordering of `plan`: the arms, the paper's figures and table, and the verdict (see verdicts) on the
    best checkpoints and on the last steps."""
    scores = {}
    for row in rows:
        for which in ("best", "last"):
            scores.setdefault((row["arm"], which), {})[row["seed"]] = row[f"score_{which}"]
    result = []
    for ordering in plan.orderings:
        paper = ordering.paper or (None, None)
        line = {"better": ordering.better, "worse": ordering.worse, "paper_better": paper[0], "paper_worse": paper[1],
                "table": ordering.table or "expected"}  # fmt: skip
        for which in ("best", "last"):
            found = verdict(scores.get((ordering.better, which), {}), scores.get((ordering.worse, which), {}))
            line.update({f"difference_{which}": found.difference, f"spread_{which}": found.spread,
                         f"verdict_{which}": found.answer})  # fmt: skip
        result.append(line)
    return result


SUMMARY = (
    "arm", "seeds", "mean_best", "sd_best", "min_best", "max_best", "mean_last", "sd_last", "min_last", "max_last",
    *GEOMETRY, "seconds",
)  # fmt: skip
ORDERINGS = (
    "better", "worse", "paper_better", "paper_worse", "table",
    "difference_best", "spread_best", "verdict_best", "difference_last", "spread_last", "verdict_last",
)  # fmt: skip


def as_text(plan, rows, measure):
    """The table and the orderings for reading; measure: what a score is, in words."""
    lines = [["", "best", "spread", "range", "last", "spread", "alignment", "uniformity", "eff. rank", "s a run"]]
    for line in summary(plan, rows):
        span = f"{_shown(line['min_best'])} to {_shown(line['max_best'])}"
        lines.append(
            [line["arm"], _shown(line["mean_best"]), _shown(line["sd_best"]), span, _shown(line["mean_last"]),
             _shown(line["sd_last"]), _shown(line["alignment"], 3), _shown(line["uniformity"], 3),
             _shown(line["effective_rank"], 1), _shown(line["seconds"], 0)]
        )  # fmt: skip
    text = [aligned(lines)]
    text.append(f"{measure}; mean over {_seeds(rows)}, spread: sample standard deviation")
    if plan.orderings:
        text += ["", *(_sentence(line) for line in judged(plan, rows)), RULE]
    return "\n".join(text)


def _sentence(line):
    """The verdict on one ordering in words: the last step is told where it disagrees with the best checkpoint."""
    source = "expected"
    if line["paper_better"] is not None:
        source = f"paper {line['paper_better']:g} over {line['paper_worse']:g}, {line['table']}"
    text = f"{line['better']} over {line['worse']} ({source}): {line['verdict_best']} (here {_gap(line, 'best')})"
    if line["verdict_last"] != line["verdict_best"]:
        text += f"; at the last step {line['verdict_last']} ({_gap(line, 'last')})"
    return text


def _gap(line, which):
    difference = line[f"difference_{which}"]
    return "no runs" if math.isnan(difference) else f"{difference:+.2f} +- {_shown(line[f'spread_{which}'])}"


def _seeds(rows):
    count = len({row["seed"] for row in rows})
    return f"{count} seed{'s' if count != 1 else ''}"


def _shown(value, digits=2):
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"
