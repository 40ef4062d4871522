"""python -m nano_simcse: the same as the command nano-simcse."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
