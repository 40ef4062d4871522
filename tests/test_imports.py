"""What starting up imports: a list of modules, not a time; and who may import whom, by the table in CONTRIBUTING.md."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("scipy", "matplotlib", "tokenizers", "bm25s", "safetensors", "huggingface_hub", "tqdm", "cupy", "torch")
HELP = "from nano_simcse.cli import main\ntry:\n    main(['train', '--help'])\nexcept SystemExit:\n    pass"


@pytest.mark.parametrize("code", ["import nano_simcse", "import nano_simcse.losses, nano_simcse.layers", HELP])
def test_starting_up_imports_nothing_heavy(code):
    report = f"{code}\nimport sys\nprint('LOADED', *(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED"


def test_every_exported_name_is_there():
    import nano_simcse
    from nano_simcse import training

    for module in (nano_simcse, training):
        for name in module.__all__:
            assert getattr(module, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = nano_simcse.nonsense


# ---- the floors of the house ----

ROOT = Path(__file__).parents[1]


def part_of(names):
    """The file or folder of the package that a module belongs to, as the table writes it."""
    return names[0] if names else "__init__"


def floors(text):
    """Files and folders in the order in which they may build on each other: floor 1 first, each row from the left."""
    rows = dict(re.findall(r"^\| (\d+) \| (.+?) \|", text, re.MULTILINE))
    return [name for floor in sorted(rows, key=int) for name in re.findall(r"`(\w+)(?:\.py|/)`", rows[floor])]


def imported(source, names):
    """Parts of the package that a module, whose dotted name is `names`, imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ["nano_simcse", *names[: len(names) - node.level]] if node.level else []
            base += node.module.split(".") if node.module else []
            targets = [base] if base != ["nano_simcse"] else [[*base, alias.name] for alias in node.names]
        else:
            continue
        found |= {part_of(target[1:]) for target in targets if target[0] == "nano_simcse"}
    return found


def offences(text, modules):
    """What the table in `text` does not allow, modules being {dotted name as a tuple: source}."""
    order = floors(text)
    faults = [f"{name} stands twice" for name in set(order) if order.count(name) > 1]
    parts = {part_of(names) for names in modules}
    faults += [f"{part} stands nowhere" for part in sorted(parts - {*order})]
    faults += [f"{name} is no file" for name in order if name not in parts]
    place = {name: i for i, name in enumerate(order)}
    for names, source in modules.items():
        own = part_of(names)
        for part in sorted(imported(source, names) - {own}):
            if place.get(part, len(order)) >= place.get(own, -1):
                faults.append(f"{'.'.join(names)} imports {part}")
    return faults


def test_every_file_has_a_floor_and_imports_from_below():
    package = ROOT / "nano_simcse"
    modules = {
        file.relative_to(package).with_suffix("").parts: file.read_text(encoding="utf-8")
        for file in package.rglob("*.py")
    }
    assert len(modules) > 100
    assert offences((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), modules) == []


@pytest.mark.parametrize(
    ("where", "line", "fault"),
    [
        (("low",), "from .high import x", "low imports high"),
        (("high", "deep"), "from ..top import x", "high.deep imports top"),
        (("left",), "def f():\n    import nano_simcse.low", "left imports low"),  # beside it, further right
        (("low",), "from nano_simcse import left, high", "low imports high"),
        (("low",), "from . import SentenceEncoder", "low imports SentenceEncoder"),
        (("new",), "", "new stands nowhere"),
    ],
)
def test_an_import_upwards_and_a_file_without_a_floor_are_seen(where, line, fault):
    text = "| floor | files |\n| 3 | `top.py` |\n| 2 | `high/` | x |\n| 1 | `left.py`, `low.py` | see `z.py` |\n"
    modules = {("top",): "import nano_simcse.high.deep", ("high", "__init__"): "from .deep import a\nimport numpy",
               ("high", "deep"): "from .. import low", ("left",): "", ("low",): "from .left import b"}  # fmt: skip
    assert offences(text, modules) == []
    assert offences(text, {**modules, where: line}) == [fault]
