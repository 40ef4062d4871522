"""The door to the ecosystem: BERT folders of transformers and sentence-transformers, read and written.

    names.py     which of their weights is which of our parameters
    bert.py      their config.json, model.safetensors and tokenizer files
    reading.py   sentence-transformers' modules: pooling, length, head, normalisation
    folders.py   a whole folder, in and out
    sources.py   where a folder is: a path, an installed Python package, the hub
"""

from .folders import Contents, export_folder, import_folder, is_foreign
from .sources import find_folder

__all__ = ["Contents", "export_folder", "find_folder", "import_folder", "is_foreign"]
