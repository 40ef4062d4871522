"""What starting up imports: a list of modules, not a time."""

import subprocess
import sys

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
