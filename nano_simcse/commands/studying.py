"""nano-simcse study."""

import shlex

from ..errors import InputError
from ..studies import load_plan, run_study
from ..studies.table import as_text, summary
from .common import each_note_once, json_line, say


def study(arguments):
    """nano-simcse study."""
    plan = load_plan(
        arguments.topic, arguments.config, init=arguments.init, seeds=_whole(arguments.seeds), steps=arguments.steps,
        arms=_listed(arguments.arms), threads=arguments.threads,
    )  # fmt: skip
    with each_note_once():
        result = run_study(
            plan, arguments.files, dev=arguments.dev, out=arguments.out, keep_models=arguments.keep_models, say=say
        )
    if result.rows:
        say(f"\n{as_text(plan, result.rows, result.measure)}")
        say(f"table, summary, orderings and picture: {result.path / plan.name}*")
    if not result.finished:
        total = len(plan.arms) * len(plan.seeds)
        say(f"stopped after {len(result.rows)} of {total} runs; go on with: {_command(arguments)}")
    if arguments.json:
        say(json_line({"study": plan.name, "out": str(result.path), "finished": result.finished, "rows": result.rows,
                       "summary": summary(plan, result.rows), "orderings": result.orderings}))  # fmt: skip
    return 0 if result.finished else 130


def _whole(text):
    """The seeds in "0,1,2", None for None."""
    try:
        return None if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--seeds is {text!r}; expected whole numbers with commas between them") from None


def _listed(text):
    return None if text is None else [part.strip() for part in text.split(",")]


def _command(arguments):
    """The command that was given, as one line for a shell."""
    words = ["nano-simcse", "study", arguments.topic, *arguments.files]
    for name in ("config", "dev", "init", "seeds", "steps", "arms", "out", "threads"):
        if (value := getattr(arguments, name)) is not None:
            words += [f"--{name}", str(value)]
    return shlex.join(words + ["--keep-models"] * arguments.keep_models + ["--json"] * arguments.json)
