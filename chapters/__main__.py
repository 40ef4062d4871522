"""Run the lesson: python -m chapters --help says how."""

import sys

from lesson.command import main

if __name__ == "__main__":
    sys.exit(main())
