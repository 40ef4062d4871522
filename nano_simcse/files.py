"""Where files go and how they get there: whole or not at all.

A reader of a file written through `atomic_write` sees the old file or the new one, never half of either,
because the name changes hands in one `os.replace` after the last byte is written.
"""

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from .errors import InputError

APPLICATION = "nano_simcse"
NO_ROOM = {errno.ENOSPC, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC)}  # said of the file being written
ASIDE = "replaced"  # where, in a temporary folder, old files wait while new ones take their places
WRITING = ".writing-"  # how the name of a file begins until it is complete
LONGEST_SUFFIX = 16  # characters: what follows a dot in a long name need not be a suffix


@contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it to `path` on success, remove it on any failure.

        with atomic_write("model/config.json") as temporary:
            temporary.write_text(text, encoding="utf-8")

    Missing parent folders are created, and of a link the file it leads to is replaced. The temporary name has
    the suffix of `path`, for writers that look at it. Raises what the body raises, and OSError (disk full, no
    permission, a pipe or a device) that names `path`, never the temporary one; `path` is then what it was before.
    """
    path, target = Path(path), _target(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # The same folder, because a rename is atomic only within one file system.
    try:
        handle, name = tempfile.mkstemp(prefix=WRITING, suffix=path.suffix[:LONGEST_SUFFIX], dir=target.parent)
    except OSError as error:
        error.filename = str(path)
        raise
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes the file private, and so may the body; a finished file gets the rights any new file would have.
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(FileNotFoundError):
            temporary.unlink()
        if isinstance(error, OSError) and _is_about(error, name):
            error.filename, error.filename2 = str(path), None
        raise


def save_array(path: str | os.PathLike, x: np.ndarray) -> None:
    """Write a NumPy array to `path`, whole or not at all."""
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        np.save(file, x, allow_pickle=False)  # given a name, it might append .npy to it


@contextmanager
def new_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Give a temporary folder beside `path`; rename it to `path` on success, remove it on any failure.

    Raises what the body raises; before the body runs, InputError as `require_unused` does, and where none can be made.
    """
    require_unused(path)
    path = Path(os.path.realpath(path))  # of a link to an empty folder, that folder is replaced
    with _said_of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=WRITING, dir=path.parent)
    with scratch as temporary:
        made = Path(temporary) / "made"
        made.mkdir()  # with the rights of any new folder, which the temporary one does not have
        with told_of(path, made):
            yield made
        if path.exists():
            path.rmdir()
        os.replace(made, path)


@contextmanager
def staged(folder: str | os.PathLike, names: Sequence[str]) -> Iterator[Path]:
    """Give a temporary folder inside `folder`, which is made if need be; on success its files take their places in
    `folder`, on any failure nothing there has changed.

    names: of all files that belong together, by the last of which the rest are known: it goes first and comes last,
    and an old one of them that was not made anew goes too. Other files of `folder` stay.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with told_of(folder, Path(tempfile.mkdtemp(prefix=WRITING, dir=folder))) as scratch:
        try:
            yield scratch
            _exchange(folder, scratch, names)
        finally:
            shutil.rmtree(scratch)


def _exchange(folder, scratch, names):
    """Move the old files of `names` out of `folder` and the new ones in; back again where it cannot be finished."""
    aside, moved = scratch / ASIDE, []
    aside.mkdir()
    moves = [(folder / name, aside / name) for name in reversed(names)]
    moves += [(scratch / name, folder / name) for name in names]
    try:
        for source, target in moves:
            if source.exists():
                os.replace(source, target)
                moved.append((source, target))
    except BaseException:
        for source, target in reversed(moved):
            os.replace(target, source)
        raise


def put_back(folder: Path, names: Sequence[str]) -> None:
    """Remove what killed processes left of `staged` in `folder`; an exchange that was cut short is undone."""
    for left in folder.glob(f"{WRITING}*"):
        if (left / ASIDE).is_dir() and not (folder / names[-1]).exists():
            for name in names:
                if (left / ASIDE / name).exists():
                    os.replace(left / ASIDE / name, folder / name)
        shutil.rmtree(left) if left.is_dir() else left.unlink()


@contextmanager
def told_of(path: Path, temporary: Path) -> Iterator[Path]:
    """Give the temporary folder, and let errors of the body speak of `path` where they speak of it."""
    try:
        yield temporary
    except Exception as error:
        error.args = tuple(
            part.replace(str(temporary), str(path)) if isinstance(part, str) else part for part in error.args
        )
        if getattr(error, "filename", None) is not None:
            error.filename = str(error.filename).replace(str(temporary), str(path))
        raise


def require_writable(path: str | os.PathLike) -> None:
    """Raise InputError, naming `path`, where no file can be made there: asked before long work, not after it."""
    with _said_of(path):
        target = _target(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=target.parent).close()


def _target(path):
    """The file that writing to `path` makes or replaces: behind all links, so that the links stay."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if target.exists() and not target.is_file():  # it would be gone, and a file in its place
        raise OSError(errno.EINVAL, "it is a pipe or a device", str(path))
    return target


@contextmanager
def _said_of(path):
    """An OSError of the body as an InputError that names `path`, not the temporary names on the way."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written ({error.strerror}); give another place") from None


def require_unused(path: str | os.PathLike) -> None:
    """Raise InputError, naming `path`, unless a new folder can be made there: nothing, or an empty folder."""
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{str(path)!r} is in use; expected a new or empty folder to write to")


def user_cache_folder() -> Path:
    """Folder for results that can be rebuilt; it need not exist yet.

    In this order: $NANO_SIMCSE_CACHE as it is, $XDG_CACHE_HOME/nano_simcse, on Windows
    %LOCALAPPDATA%/nano_simcse, on macOS ~/Library/Caches/nano_simcse, elsewhere ~/.cache/nano_simcse.
    An empty variable counts as unset.
    """
    if own := os.environ.get("NANO_SIMCSE_CACHE"):
        return Path(own).expanduser()
    if base := os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA"):
        return Path(base) / APPLICATION
    home = Path(os.path.expanduser("~"))
    return (home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache") / APPLICATION


def _is_about(error: OSError, temporary: str) -> bool:
    if error.filename is None:
        return error.errno in NO_ROOM
    return str(error.filename) == temporary


def _umask() -> int:
    # The mask can be read only by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
