"""python -m chapters.play NAME: open a window, in a desktop window, in the browser, or as a picture."""

import argparse
import difflib
import importlib.util
import pathlib
import sys

import matplotlib
from matplotlib import pyplot as plt
from matplotlib.backend_bases import FigureManagerBase

from nano_simcse.files import atomic_write

from . import WINDOWS, build


class Refusal(Exception):
    """What was asked for cannot be done; the message is one sentence."""


def main(argv=None):
    """Do what the arguments ask; return 0, 2 when it cannot be done, 130 after Ctrl-C."""
    args = _arguments(argv)
    try:
        if args.window is None:
            print("\n".join(f"{name:12} {what}" for name, what in WINDOWS.items()))
        else:
            _open(_known(args.window), args)
    except Refusal as error:
        print(f"play: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    return 0


def _arguments(argv):
    about = "Windows to play with the numbers of the lesson."
    ask = argparse.ArgumentParser(prog="python -m chapters.play", description=about)
    ask.add_argument("window", nargs="?", help="one of " + ", ".join(WINDOWS) + " (default: list them)")
    how = ask.add_mutually_exclusive_group()
    how.add_argument("--browser", action="store_true", help="show it in a web browser, served to this machine only")
    how.add_argument("--save", metavar="FILE.png", type=pathlib.Path, help="write the first frame and open nothing")
    ask.add_argument("--port", type=int, default=8988, help="with --browser: the first port to try (default 8988)")
    ask.add_argument("--no-open", action="store_true", help="with --browser: print the address, start no browser")
    return ask.parse_args(argv)


def _known(name):
    if name not in WINDOWS:
        near = difflib.get_close_matches(name.lower(), WINDOWS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(WINDOWS)}."
        raise Refusal(f"no window {name!r}; {hint}")
    return name


def _open(name, args):
    if args.save:
        _save(name, args.save)
        return
    if args.browser:
        _serve_here(args)
    if not _opens_windows():
        raise Refusal(
            f"there is no display here that matplotlib's backend {plt.get_backend()!r} could open a window on; "
            "add --browser to see it in a web browser, or --save FILE.png for a picture"
        )
    window = build(name)  # kept until show() returns: its widgets live as long as it does
    plt.show()
    plt.close(window.figure)


def _opens_windows():
    """Whether the backend loads here and shows what it draws: it then overrides one of the two methods that do so."""
    try:
        plt.switch_backend(plt.get_backend())
    except ImportError:  # a window toolkit, asked for by name, that finds no display
        return False
    manager = plt.figure().canvas.manager_class
    plt.close()
    does_nothing = (FigureManagerBase.pyplot_show, FigureManagerBase.start_main_loop)
    shows = (manager.pyplot_show, manager.start_main_loop)
    return any(own.__func__ is not base.__func__ for own, base in zip(shows, does_nothing, strict=True))


def _serve_here(args):
    """Choose matplotlib's web backend, which needs tornado, on the loopback address."""
    if importlib.util.find_spec("tornado") is None:
        raise Refusal("--browser needs the package tornado, which the extra 'play' installs: pip install tornado")
    if not 1 <= args.port <= 65535:
        raise Refusal(f"port {args.port} is not between 1 and 65535")
    matplotlib.use("WebAgg")
    served = {"address": "127.0.0.1", "port": args.port, "open_in_browser": not args.no_open}
    matplotlib.rcParams.update({f"webagg.{key}": value for key, value in served.items()})


def _save(name, path):
    if path.suffix.lower() != ".png":
        raise Refusal(f"--save writes PNG pictures; {str(path)!r} does not end in .png")
    matplotlib.use("agg")
    try:
        with atomic_write(path) as temporary:
            build(name).figure.savefig(temporary, format="png", dpi=120)
    except OSError as error:
        raise Refusal(f"{str(path)!r} cannot be written: {error.strerror}") from None
    print(f"wrote {path}")


if __name__ == "__main__":
    sys.exit(main())
