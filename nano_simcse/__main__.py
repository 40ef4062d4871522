"""python -m nano_simcse, and the command nano-simcse."""

import sys


def run():
    """The exit code of the command; Ctrl-C while it is still being imported ends it like any later one."""
    try:
        from .cli import main

        return main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(run())
