"""Names of a package that are imported when first used, so that `import nano_simcse` and `--help` cost little."""

import importlib


def lazy_names(package, where):
    """`__getattr__` for a package (PEP 562): where maps an exported name to the submodule that defines it.

    A name in `where` is imported at its first use and then kept; any other raises AttributeError as usual.
    """

    def get(name):
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(where[name], package), name)

    return get
