"""The corpus that is already on the machine: English prose from the docstrings of installed packages.

Sources are read with `ast`; nothing is imported and nothing is executed. A docstring gives sentences to
learn from and, where it has both, a pair: its summary and its description.
"""

import ast
import gzip
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import sysconfig
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from nano_simcse.data.prose import read_docstring, same_text
from nano_simcse.data.public_names import PublicNames
from nano_simcse.errors import InputError
from nano_simcse.files import atomic_write, user_cache_folder
from nano_simcse.progress import hidden

PACKAGES = ("stdlib", "numpy", "scipy", "matplotlib")

# Raised whenever the same sources would give another corpus; part of the name of the cached file.
EXTRACTION_VERSION = 1

# Tests, and code that other projects wrote and these ship.
SKIPPED_FOLDERS = frozenset(
    "test tests idlelib lib2to3 site-packages dist-packages __pycache__ lib-dynload ensurepip turtledemo "
    "_vendor _vendored vendor vendored extern externals _externals array_api_compat array_api_extra "
    "cobyqa pyprima highspy _uarray".split()
)
SKIPPED_FILES = frozenset({"conftest.py", "setup.py"})

# A sentence found in more descriptions than this is boilerplate, and says nothing about any of them.
BOILERPLATE = 4


class Entry(NamedTuple):
    """What the documentation says about one public name; `description` is "" where there is only a summary."""

    name: str  # "numpy.linalg.svd"
    summary: str
    description: str


@dataclass(frozen=True)
class Corpus:
    """Distinct sentences, and one entry for each distinct text about a public name, in the order of the files."""

    sentences: list[str]
    entries: list[Entry]
    versions: dict[str, str]  # package -> version; "stdlib" is the version of Python

    @property
    def pairs(self) -> list[Entry]:
        """The entries that have both sides."""
        return [entry for entry in self.entries if entry.description]


def load_corpus(packages: Sequence[str] = PACKAGES, cache: bool = True, progress: bool | None = None) -> Corpus:
    """Read the docstrings of installed `packages`, or the cached result of the last reading.

    packages: top-level import names, "stdlib" for the standard library.
    cache: keep the result in `user_cache_folder()`, under a name made from the versions of Python and of the
        packages. An unreadable cache is rebuilt; a folder that cannot be written is done without.
    progress: True for a bar, False for none, None for a bar on a terminal.
    Raises InputError for a package that is not installed or holds no documentation.
    """
    roots = {name: package_folder(name) for name in packages}
    versions = {name: _version(name) for name in packages}
    file = user_cache_folder() / f"docstrings-{_key(versions)}.json.gz"
    if cache and (corpus := _read_cache(file, versions)):
        return corpus
    corpus = read_corpus(roots, versions, progress)
    if not corpus.sentences:
        raise InputError(f"no docstrings found in {', '.join(packages)}; their Python sources are needed")
    if cache:
        _write_cache(file, corpus)
    return corpus


def package_folder(name: str) -> Path:
    """Where the sources of a package are; raises InputError when it is not installed."""
    if name == "stdlib":
        return Path(sysconfig.get_path("stdlib"))
    # A dotted name would import its parent package.
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    if spec is None or not (spec.submodule_search_locations or spec.has_location):
        raise InputError(f"package {name!r} is not installed; expected 'stdlib' or the name of an installed package")
    return Path(spec.submodule_search_locations[0] if spec.submodule_search_locations else spec.origin)


def read_corpus(roots: dict[str, Path], versions: dict[str, str], progress: bool | None = None) -> Corpus:
    """Read every docstring below `roots` (package -> folder); "stdlib" is the one whose modules have no prefix."""
    files = [file for name, root in roots.items() for file in source_files(name, root)]
    names, documents = PublicNames(), []
    bar = tqdm(files, desc="reading docstrings", unit="file", disable=hidden(progress))
    for module, path in bar:
        tree = _parse(path)
        if tree is not None:
            names.add(module, tree, path.name == "__init__.py")
            documents += [(owner, local, read_docstring(text)) for owner, local, text in docstrings(module, tree)]

    sentences, found = {}, {}
    repeated = Counter(same_text(s) for _, _, prose in documents for s in set(prose.description))
    for owner, local, prose in documents:
        for sentence in prose.sentences:
            sentences.setdefault(same_text(sentence), sentence)
        name = names.name(owner, local)
        if name and prose.summary:
            own = " ".join(s for s in prose.description if repeated[same_text(s)] <= BOILERPLATE)
            found.setdefault((same_text(prose.summary), same_text(own)), Entry(name, prose.summary, own))
    # One entry per name: the first, except that one with a description beats one without.
    entries: dict[str, Entry] = {}
    for entry in found.values():
        if entry.name not in entries or (entry.description and not entries[entry.name].description):
            entries[entry.name] = entry
    return Corpus(list(sentences.values()), list(entries.values()), versions)


def source_files(name: str, root: Path) -> list[tuple[str, Path]]:
    """(dotted module, file) for every source below `root`, sorted by path, tests and vendored code left out."""
    if root.is_file():
        return [(name, root)]
    found = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [s for s in subfolders if s.isidentifier() and s not in SKIPPED_FOLDERS]
        for file in files:
            if file.endswith(".py") and file not in SKIPPED_FILES:
                path = Path(folder, file)
                found.append((path.relative_to(root).as_posix(), path))
    prefix = [] if name == "stdlib" else [name]
    return [
        (".".join(prefix + relative.removesuffix(".py").removesuffix("/__init__").split("/")), path)
        if relative != "__init__.py"
        else (name, path)
        for relative, path in sorted(found)
    ]


def docstrings(module: str, tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """(module, local dotted name, docstring) of the module, its classes, methods and functions.

    Also reads `add_newdoc("name", "text")`, with which numpy and scipy document compiled functions.
    """
    if text := ast.get_docstring(tree, clean=False):
        yield module, "", text
    waiting = [("", node) for node in reversed(tree.body)]
    while waiting:
        prefix, node = waiting.pop()
        inner = prefix
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{prefix}{node.name}."
            if text := ast.get_docstring(node, clean=False):
                yield module, inner[:-1], text
            if not isinstance(node, ast.ClassDef):
                continue
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _added_docstrings(module, node.value)
        # if, try and with hold definitions as well
        branches = [getattr(node, field, []) for field in ("body", "orelse", "handlers", "finalbody")]
        if not isinstance(node, ast.Expr):
            waiting += [(inner, child) for branch in reversed(branches) for child in reversed(branch)]


def _added_docstrings(module: str, call: ast.Call) -> Iterator[tuple[str, str, str]]:
    if getattr(call.func, "id", getattr(call.func, "attr", "")) != "add_newdoc":
        return
    try:
        arguments = [ast.literal_eval(argument) for argument in call.args]
    except ValueError:  # a text that is computed
        return
    if len(arguments) == 2:
        arguments.insert(0, module)
    if len(arguments) < 3 or not all(isinstance(a, str) for a in arguments[:2]):
        return
    place, name, documented = arguments[:3]
    for item in documented if isinstance(documented, list) else [documented]:
        local, text = (f"{name}.{item[0]}", item[1]) if isinstance(item, tuple) else (name, item)
        if isinstance(text, str):
            yield place, local, text


def _parse(path: Path) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's docstrings
            return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # templates and files for other versions of Python are among the sources


def _version(package: str) -> str:
    if package == "stdlib":
        return platform.python_version()
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _key(versions: dict[str, str]) -> str:
    python = [sys.implementation.name, platform.python_version(), sys.platform]
    text = json.dumps([EXTRACTION_VERSION, python, list(versions.items())])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read_cache(file: Path, versions: dict[str, str]) -> Corpus | None:
    try:
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            kept = json.load(stream)
        sentences, entries = kept["sentences"], [Entry(*entry) for entry in kept["entries"]]
        sound = kept["versions"] == versions and all(
            isinstance(text, str) for text in [*sentences, *(side for entry in entries for side in entry)]
        )
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):
        return None
    return Corpus(sentences, entries, versions) if sound and sentences else None


def _write_cache(file: Path, corpus: Corpus) -> None:
    text = json.dumps(
        {"versions": corpus.versions, "sentences": corpus.sentences, "entries": corpus.entries}, ensure_ascii=False
    )
    # A full or read-only disk costs the next run ten seconds, not this one its corpus.
    with suppress(OSError), atomic_write(file) as temporary:
        temporary.write_bytes(gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0))
