"""The lesson as runnable modules; `python -m chapters` runs them all.

Chapters import their helpers by the short name `lesson`, which Python finds beside a chapter that is run as
a script or opened in a notebook. Putting this folder on the path here makes the same import work for
`python -m chapters.chNN_name`, for the runner and for pytest.
"""

import pathlib
import sys

_HERE = pathlib.Path(__file__).resolve().parent
for _folder in (str(_HERE), str(_HERE.parent)):
    if _folder not in sys.path:
        sys.path.append(_folder)
