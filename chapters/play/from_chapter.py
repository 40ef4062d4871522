"""The functions and values of a chapter without its whole run: a window should open at once."""

import contextlib
import functools
import io

from lesson import cells, runner
from lesson.records import recording


@functools.cache
def from_chapter(chapter, *names):
    """The values of `names` after the first cell of a chapter that leaves all of them defined.

    chapter as for `python -m chapters`: "5", "ch05" or "temperature". Arrays are the chapter's own: copy before
    changing one. Raises LookupError for a name the chapter never defines.
    """
    (path,) = runner.find([chapter])
    namespace = {"__name__": path.stem, "__file__": str(path)}
    with recording(path.stem), contextlib.redirect_stdout(io.StringIO()):
        for cell in cells.split(path):
            if cell.code is not None:
                exec(cell.code, namespace)
            if all(name in namespace for name in names):
                return tuple(namespace[name] for name in names)
    missing = [name for name in names if name not in namespace]
    raise LookupError(f"{path.stem} defines no {', '.join(missing)}")
