"""The plan of a study: which arms, which seeds, and which order of the arms is to be examined.

A plan is one small TOML file:

    title = "..."                 headline of the table and the picture
    varies = "dropout rate"       what the arms differ in
    seeds = [0, 1, 2]
    needs = ["triples", "dev"]    what must be given on the command line: "triples", "dev", "init" (optional)
    equal_examples = true         [train] steps hold for the common batch; an arm of another batch sees as many
                                  examples, in more or fewer steps, and is measured as often (optional)
    [train]                       options of `train` that all arms share
    [with_init]                   options that take their place where training goes on from a checkpoint (optional)

    [[arms]]                      name, and the options in which the arm differs; besides options of `train`:
    name = "p = 0.1"              columns = ["anchor", "positive"]   texts of a triple to train on, in this order
    dropout = 0.1                 steps = 0                          the model as it is, read but not trained
                                  transform = "centre" | "whiten"    fitted on training text, for an arm of 0 steps

    [[orderings]]                 better and worse name arms; paper: the two figures a source gives, and table, where it
    better = "p = 0.1"            gives them; without paper the order is what one expects, and the report says so
    worse = "p = 0"
    paper = [82.5, 71.1]
    table = "Table 3"
"""

import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import InputError
from ..training.config import TrainingConfig, check_names, nearest
from ..transforms import FITTED
from . import TOPICS

FOLDER = Path(__file__).parent
KINDS = {
    "title": str, "varies": str, "seeds": list, "needs": list, "equal_examples": bool,
    "train": dict, "with_init": dict, "arms": list, "orderings": list,
}  # fmt: skip
OF_AN_ORDERING = ("better", "worse", "paper", "table")
NEEDS = ("triples", "dev", "init")
ROLES = ("anchor", "positive", "negative")
COLUMNS = (["anchor", "positive"], ["anchor", "positive", "negative"], ["anchor", "negative", "positive"])
ELSEWHERE = {"seed": "seeds, at the top", "epochs": "steps"}  # options a plan says in another way


@dataclass(frozen=True)
class Arm:
    """One way of training. name: as in the table; options: fields of TrainingConfig by name, without the seed;
    columns: roles of the texts of a triple, in the order to train on them, None for the files as they are; trained:
    False for a model that is only read; transform: what is then fitted to its embeddings, "centre", "whiten", None."""

    name: str
    options: dict
    columns: tuple | None = None
    trained: bool = True
    transform: str | None = None

    @property
    def slug(self):
        """The name as part of a file's name."""
        return re.sub(r"[^\w.=+-]+", "-", self.name).strip("-")


@dataclass(frozen=True)
class Ordering:
    """The arm `better` should score higher than `worse`; paper: (figure of better, figure of worse) as published in
    `table`, or None where the order is expected and not quoted."""

    better: str
    worse: str
    paper: tuple | None = None
    table: str | None = None


@dataclass(frozen=True)
class Plan:
    """name: of the files it writes; title, varies: words for the reader; arms, orderings, seeds: tuples; needs: of
    NEEDS."""

    name: str
    title: str
    varies: str
    arms: tuple
    orderings: tuple
    seeds: tuple
    needs: tuple = ()

    def only(self, names):
        """The plan with the named arms alone, and the orderings between them. Raises InputError for other names."""
        known = [arm.name for arm in self.arms]
        if not names:
            raise InputError(f"no arm is chosen; expected one of {', '.join(known)}")
        for name in names:
            if name not in known:
                raise InputError(
                    f"study {self.name} has no arm {name!r}{nearest(name, known)}; its arms are {', '.join(known)}"
                )
        orderings = tuple(o for o in self.orderings if {o.better, o.worse} <= set(names))
        return replace(self, arms=tuple(arm for arm in self.arms if arm.name in names), orderings=orderings)


def load_plan(topic, config=None, *, init=None, seeds=None, steps=None, arms=None, threads=None):
    """The plan of a shipped topic (TOPICS), or of the TOML file `config`, which then goes by the name `topic`.

    init: model every arm goes on from, which brings [with_init] into force; seeds, steps, threads: instead of the
    plan's (steps of an arm that is trained, at the common batch); arms: names of the arms to run, None for all.
    Raises InputError, naming the file and the place in it, for anything that does not fit.
    """
    if config is None and topic not in TOPICS:
        raise InputError(f"study {topic!r} is not one of {', '.join(TOPICS)}{nearest(topic, TOPICS)}")
    if not re.fullmatch(r"\w[\w.+=-]*", topic):
        raise InputError(f"{topic!r} cannot name the files of a study; expected letters, digits and .+=-_")
    path = Path(config).expanduser() if config else FOLDER / f"{topic}.toml"
    source = _read(path)
    TrainingConfig(steps=steps)  # refuses a number that is none
    given = {name: value for name, value in {"init": init, "steps": steps, "threads": threads}.items()
             if value is not None}  # fmt: skip
    try:
        plan = _plan(topic, source, given, source["seeds"] if seeds is None else seeds)
    except InputError as error:
        raise InputError(f"study {str(path) if config else topic!r}: {error}") from None
    return plan if arms is None else plan.only(arms)


def _read(path):
    """The table in a TOML file, its top level checked."""
    try:
        source = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"study file {str(path)!r} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"study file {str(path)!r} is not valid TOML ({error})") from None
    for name, value in source.items():
        if name not in KINDS:
            raise InputError(f"study file {str(path)!r}: {name!r} does not exist{nearest(name, KINDS)}")
        if not isinstance(value, KINDS[name]):
            raise InputError(f"study file {str(path)!r}: {name} is {value!r}; expected {WORDS[KINDS[name]]}")
    for name in ("title", "varies", "seeds", "arms"):
        if name not in source:
            raise InputError(f"study file {str(path)!r} has no {name}")
    return source


WORDS = {str: "text", list: "a list", dict: "a table", bool: "true or false"}


def _plan(name, source, given, seeds):
    for seed in seeds:
        TrainingConfig(seed=seed)
    if not seeds or len(set(seeds)) != len(seeds):
        raise InputError(f"seeds are {list(seeds)}; expected at least one, each once")
    for need in source.get("needs", []):
        if need not in NEEDS:
            raise InputError(f"needs names {need!r}; expected {', '.join(NEEDS)}{nearest(need, NEEDS)}")
    common = dict(source.get("train", {}))
    if given.get("init", common.get("init")) is not None:
        common.pop("word_vectors", None)  # a checkpoint brings its own
        common.update(source.get("with_init", {}))
    _check_options(source.get("with_init", {}), "[with_init]")
    _check_options(common, "[train]")
    arms = tuple(_arm(table, common, given, source.get("equal_examples", False)) for table in source["arms"])
    if len(arms) < 1:
        raise InputError("arms is empty; expected at least one [[arms]]")
    for i, arm in enumerate(arms):
        if twin := next((other for other in arms[:i] if other.slug.lower() == arm.slug.lower()), None):
            raise InputError(f"two arms have one name, {twin.name!r} and {arm.name!r}")
    orderings = tuple(_ordering(table, [arm.name for arm in arms]) for table in source.get("orderings", []))
    return Plan(
        name, source["title"], source["varies"], arms, orderings, tuple(seeds), tuple(source.get("needs", ()))
    )


def _arm(table, common, given, equal_examples):
    own = dict(_table(table, "arms"))
    name, columns, transform = own.pop("name", None), own.pop("columns", None), own.pop("transform", None)
    if not isinstance(name, str) or not Arm(name, {}).slug or "," in name:
        raise InputError(f"an arm's name is {name!r}; expected text without a comma")
    where = f"arm {name!r}"
    _check_options(own, where)
    trained = own.get("steps", common.get("steps")) != 0
    if transform is not None and transform not in FITTED:
        raise InputError(f"{where}: transform {transform!r} is not one of {', '.join(FITTED)}")
    if transform and trained:
        raise InputError(f"{where}: transform {transform!r} is for a model that is not trained; expected steps = 0")
    if columns is not None and columns not in COLUMNS:
        raise InputError(f"{where}: columns are {columns!r}; expected one of {', '.join(map(str, COLUMNS))}")
    options = {**common, **own, **given}
    if not trained:
        del options["steps"]
    elif equal_examples:
        _scale(options, common.get("batch", TrainingConfig.batch))
    _check_options(options, where)
    return Arm(name, options, columns and tuple(columns), trained, transform)


def _scale(options, batch):
    """Change steps and eval_every, which hold for `batch`, so that the arm sees as many examples with its own."""
    for name in ("steps", "eval_every"):
        count = options.get(name, getattr(TrainingConfig, name))
        if count is not None:
            options[name] = max(1, round(count * batch / options.get("batch", TrainingConfig.batch)))


def _check_options(options, where):
    """Raise InputError, naming `where`, for options that `train` would refuse, but for steps = 0."""
    try:
        for name, other in ELSEWHERE.items():
            if name in options:
                raise InputError(f"option {name!r} is no choice of an arm; expected {other}")
        check_names(options)
        TrainingConfig(**{**options, "steps": options.get("steps") or None})
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _ordering(table, names):
    for key in _table(table, "orderings"):
        if key not in OF_AN_ORDERING:
            raise InputError(f"an ordering has {key!r}, which does not exist{nearest(key, OF_AN_ORDERING)}")
    for key in ("better", "worse"):
        if table.get(key) not in names:
            raise InputError(
                f"an ordering's {key} is {table.get(key)!r}, which names no arm{nearest(table.get(key), names)}"
            )
    paper, source = table.get("paper"), table.get("table")
    if table["better"] == table["worse"]:
        raise InputError(f"an ordering compares {table['better']!r} with itself")
    if (paper is None) != (source is None):
        raise InputError(f"the ordering of {table['better']!r} has paper or table; expected both or neither")
    if paper is not None:
        if not (isinstance(paper, list) and len(paper) == 2 and all(type(x) in (int, float) for x in paper)):
            raise InputError(f"the ordering of {table['better']!r} has paper = {paper!r}; expected two numbers")
        if paper[0] <= paper[1]:
            raise InputError(f"the ordering of {table['better']!r} has paper = {paper}; expected the larger one first")
    return Ordering(table["better"], table["worse"], paper and tuple(map(float, paper)), source)


def _table(value, name):
    if not isinstance(value, dict):
        raise InputError(f"{name} holds {value!r}; expected tables, [[{name}]]")
    return value
