"""Grade the exercises: python -m chapters.exercises --help says how."""

import sys

from chapters.exercises.command import main

if __name__ == "__main__":
    sys.exit(main())
