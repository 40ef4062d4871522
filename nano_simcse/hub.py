"""Files of the Hugging Face hub, fetched once into the user's cache.

`huggingface_hub` (the extra `hub`) knows addresses, tokens and the hub's errors. The transfer is here because it has
to survive the end of the process: what has arrived stays in a .partial file, and the next call asks for the rest.
A file gets its name only when its size is the announced one and its SHA-256 the known one, or, for large files, the
one the hub announces. HF_ENDPOINT names another hub.

    cache/hub/model/owner--name/<commit>/config.json ...    all files of one commit, never a mixture of two
    cache/hub/model/owner--name/snapshot.json               which commit is complete
"""

import hashlib
import http.client
import os
import re
import urllib.error
import urllib.request
import warnings
from urllib.parse import urlsplit

from tqdm import tqdm

from .checkpoint import read_json, write_json
from .errors import InputError
from .files import user_cache_folder

BLOCK = 1 << 20
ATTEMPTS = 3  # transfers of one file before giving up for now
PATIENCE = 20  # seconds without an answer
EARLY = "the connection closed early"
REQUIRED = ("config.json", "model.safetensors")
LENGTH = "sentence_bert_config.json"
OPTIONAL = ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "modules.json", LENGTH,
            "config_sentence_transformers.json")  # fmt: skip


class Offline(InputError):
    """The hub cannot be reached, and what was asked for is not in the cache."""


class Absent(InputError):
    """The hub has no such repository or file."""


def model_folder(repo, refresh=False):
    """Folder with the files of model `repo`, "owner/name": from the cache, or else fetched.

    refresh: ask the hub for a newer commit although one is in the cache. Raises InputError, one sentence, where the
    extra is not installed, the hub cannot be reached, or the repository or a file it must have does not exist.
    """
    folder = fetch(repo, REQUIRED, OPTIONAL, refresh=refresh)
    modules = folder / "modules.json"
    if not modules.is_file():
        return folder
    # The modules of sentence-transformers keep files of their own, in folders that modules.json names.
    paths = [str(m.get("path", "")) for m in read_json(modules) if isinstance(m, dict)]
    if strange := [path for path in paths if path and not re.fullmatch(r"[\w-][\w.-]*", path)]:
        raise InputError(f"{repo}/modules.json names the folder {strange[0]!r}; expected the name of a folder inside")
    inside = [f"{path}/{name}" for path in paths if path for name in (*REQUIRED, LENGTH)]
    return fetch(repo, (), inside, refresh=refresh, commit=folder.name) if inside else folder


def fetch(repo, names, optional=(), *, kind="model", sha256=None, refresh=True, commit=None):
    """Folder of the cache with the files `names`, and those of `optional` that exist, of one commit of `repo`.

    kind: "model" or "dataset"; sha256: name -> hex digest where known; refresh: ask the hub even where the cache has
    all; commit: take this one. Without a connection the cache is used.
    Raises InputError, Offline or Absent.
    """
    root = user_cache_folder() / "hub" / kind / repo.replace("/", "--")
    record = root / "snapshot.json"
    known = read_json(record) if record.is_file() else {"commit": None, "names": [], "absent": []}
    wanted = {*names, *optional}
    complete = commit in (None, known["commit"]) and wanted <= {*known["names"], *known["absent"]}
    complete = complete and all((root / known["commit"] / name).is_file() for name in wanted & {*known["names"]})
    if complete and not refresh:
        return root / known["commit"]
    try:
        revision, found, absent = commit or "main", [], []
        for name in (*names, *optional):
            try:
                revision = _fetch_file(root, repo, name, kind, revision, (sha256 or {}).get(name))
                found.append(name)
            except Absent:
                if name in names:
                    raise
                absent.append(name)
    except Offline as error:
        if not complete:
            raise
        warnings.warn(f"{error}; the files in the cache are used", stacklevel=2)
        return root / known["commit"]
    if known["commit"] == revision:
        found, absent = {*known["names"], *found}, {*known["absent"], *absent} - {*found}
    write_json(record, {"commit": revision, "names": sorted(found), "absent": sorted(absent)})
    return root / revision


def _fetch_file(root, repo, name, kind, revision, sha256):
    """Bring one file into the cache; returns its commit."""
    url, metadata = _look_up(repo, name, kind, revision)
    target = root / metadata.commit_hash / name
    announced = metadata.etag if metadata.etag and re.fullmatch("[0-9a-f]{64}", metadata.etag) else None
    expected = sha256 or announced
    if target.is_file() and metadata.size in (None, target.stat().st_size) and sha256 in (None, _digest(target)):
        return metadata.commit_hash
    target.parent.mkdir(parents=True, exist_ok=True)
    # The tag in the name: the rest of another version is never appended.
    tag = re.sub("[^0-9A-Za-z]", "", metadata.etag or "")[:16]
    partial = target.with_name(f".{target.name}.{tag}.partial")
    location = metadata.location or url
    headers = _headers() if urlsplit(location).netloc == urlsplit(url).netloc else {}
    label = f"{repo}/{name}"
    _transfer(location, headers, partial, metadata.size, label)
    found = _digest(partial) if expected else None
    if found != expected:
        partial.unlink()
        raise InputError(f"{label} arrived with SHA-256 {found}; expected {expected}, so it was thrown away")
    os.replace(partial, target)
    return metadata.commit_hash


def _look_up(repo, name, kind, revision):
    """(address, metadata) of a file: commit_hash, etag, size, location."""
    try:
        import huggingface_hub as library
        from huggingface_hub import errors
    except ImportError:
        raise Offline(
            f"{repo!r} is no folder here, and fetching it from the hub needs huggingface_hub; "
            "expected: pip install 'nano_simcse[hub]'"
        ) from None
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    try:
        url = library.hf_hub_url(repo, name, repo_type=kind, revision=revision, endpoint=endpoint)
        metadata = library.get_hf_file_metadata(url, timeout=PATIENCE)
    except errors.EntryNotFoundError:
        raise Absent(f"{kind} {repo!r} at {endpoint} has no file {name!r}") from None
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError):
        raise Absent(f"{endpoint} has no {kind} {repo!r} that is open to you; expected an id like owner/name") from None
    except Exception as error:
        # Each version of the library has network errors of its own kind.
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise Offline(f"{endpoint} cannot be reached for {repo}/{name} ({reason})") from None
    if not metadata.commit_hash:
        raise InputError(f"{endpoint} does not answer like a hub: {repo}/{name} has no X-Repo-Commit header")
    return url, metadata


def _headers():
    from huggingface_hub.utils import build_hf_headers

    return build_hf_headers()


def _transfer(url, headers, partial, size, label):
    """Bring `partial` to `size` bytes, from where it stands."""
    hide = size is not None and size < BLOCK
    have, reason = 0, "no byte came"
    with tqdm(total=size, desc=label, unit="B", unit_scale=True, disable=hide or None, leave=False) as bar:
        for _ in range(ATTEMPTS):
            have = _size(partial)
            if size is not None and have > size:
                partial.unlink()
                have = 0
            if have == size:
                return
            try:
                _append(url, headers, partial, have, bar)
            except (OSError, http.client.HTTPException) as error:
                reason = str(error) or type(error).__name__
            else:
                if size is None and _size(partial):
                    return  # nobody says how long it is; it ended as an answer should
                reason = EARLY
            have = _size(partial)
            if have == size:
                return
    raise Offline(
        f"{label} stopped after {have:,} of {size:,} bytes ({reason}); the same command goes on from there"
        if size is not None
        else f"{label} could not be fetched ({reason})"
    )


def _append(url, headers, partial, have, bar):
    headers = {**headers, "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE) as answer:
        # A server that does not know ranges answers 200 and begins at the beginning.
        goes_on = have and answer.status == 206
        bar.n = have if goes_on else 0
        with open(partial, "ab" if goes_on else "wb") as file:
            while block := answer.read(BLOCK):
                file.write(block)
                bar.update(len(block))
        if answer.length:  # bytes still to come: http.client ends a shortened body without a word
            raise ConnectionError(EARLY)


def _size(file):
    return file.stat().st_size if file.exists() else 0


def _digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
