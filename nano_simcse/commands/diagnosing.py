"""nano-simcse diagnose: what is wrong with a cloud of embeddings, what would repair it, and what training changed."""

import os
from pathlib import Path

from ..data.readers import read_texts
from ..diagnosis.measures import read_text
from ..diagnosis.readings import take_readings
from ..diagnosis.words import changes, findings
from ..errors import InputError
from ..files import require_writable
from ..model import SentenceEncoder
from ..protocol import ALIKE
from ..tables import as_table
from .common import each_note_once, json_line, load_model

COLUMNS = {
    "STS": "sts",
    "alignment": "alignment",
    "uniformity": "uniformity",
    "mean cosine": "mean_pair_cosine",
    "effective rank": "effective_rank",
}


def diagnose(arguments):
    """nano-simcse diagnose."""
    picture = arguments.picture and os.path.expanduser(arguments.picture)
    if picture and Path(picture).suffix.lower() != ".png":
        raise InputError(f"--picture is {arguments.picture!r}; expected a name that ends in .png")
    if picture:
        require_writable(picture)
    ranks, text = _ranks(arguments.ranks), read_text(arguments.file)
    to_fit = read_texts(arguments.fit) if arguments.fit else None
    if to_fit and len(to_fit) < 2:
        raise InputError(f"--fit {arguments.fit} holds 1 sentence; a whitening is fitted to at least 2")
    encoder = load_model(arguments)
    against = SentenceEncoder.load(arguments.against, device=arguments.device) if arguments.against else None
    with each_note_once():
        readings = take_readings(encoder, text, arguments.pooling, against, to_fit, ranks)
    pooling, raw = arguments.pooling or encoder.pooling, readings.reports["raw"]
    found = {f"raw ({pooling})": findings(raw)}
    if against:
        made = changes(raw, readings.reports["trained"], readings.untrained)
        found[f"raw ({pooling}) -> trained ({arguments.against}, {against.pooling})"] = made
    print(_count(text))
    print(_table(readings.reports))
    for line in readings.notes:
        print(line)
    for name, parts in found.items():
        print("\n".join(["", name, *("  " + part.text for part in parts)]))
    if picture:
        from ..diagnosis.picture import draw_diagnosis  # matplotlib takes a second to load

        draw_diagnosis(picture, readings, f"{pooling} embeddings of {Path(arguments.file).name}")
        print(f"\npicture: {picture}")
    if arguments.json:
        verdict, *changed = (" ".join(part.text for part in parts) for parts in found.values())
        shown = {name: report.as_dict() for name, report in readings.reports.items()}
        print(json_line({**raw.as_dict(), "verdict": verdict, "changes": "".join(changed) or None, "readings": shown}))


def _ranks(given):
    try:
        return [int(part) for part in given.split(",")] if given else []
    except ValueError:
        raise InputError(f"--ranks is {given!r}; expected whole numbers with commas between them") from None


def _count(text):
    shown, what = len(text.sentences), f"{len(text.sentences):,} distinct sentences"
    if shown < text.total:
        what += f", drawn from {text.total:,}"
    if text.rated is None:
        return what + (f", {len(text.left):,} positive pairs" if len(text.left) else "")
    return what + f", {len(text.rated):,} rated pairs, {len(text.left):,} of them positive (scored above {ALIKE:g})"


def _table(reports):
    columns = [title for title, key in COLUMNS.items() if getattr(reports["raw"], key) is not None]
    rows = [(name, {title: getattr(report, COLUMNS[title]) for title in columns}) for name, report in reports.items()]
    return as_table(rows, columns)
