"""Under which name a definition is known: `numpy.linalg.svd`, though it is written in `numpy/linalg/_linalg.py`.

A package publishes what its `__init__.py` imports, and any module what its `__all__` lists. Reading those
(nothing is executed) and taking the shortest module name that publishes a definition gives the name users
write. What stands in a private module and is published nowhere is private.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator

# Modules of the standard library that are written in one place and imported from another.
STANDS_FOR = {
    "_pydecimal": "decimal",
    "_pyio": "io",
    "_collections_abc": "collections.abc",
    "posixpath": "os.path",
    "genericpath": "os.path",
}


class PublicNames:
    """Collects what modules publish with `add`, then answers `name(module, local)`."""

    def __init__(self):
        self._publishers = defaultdict(set)  # (source module, name or "*") -> modules that publish it
        self._listed = {}  # module -> its __all__, where that is written out as a list
        self._instances = {}  # (module, class) -> the module-level object made from it: norm = norm_gen(...)

    def add(self, module: str, tree: ast.Module, is_package: bool) -> None:
        """Note what `tree`, the source of `module`, lists, imports for others, and makes of its own classes."""
        imports = []
        for node in _module_level(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._assignment(module, node.targets[0].id, node.value)
            elif isinstance(node, ast.ImportFrom):
                imports.append(node)
        listed = self._listed.get(module)
        if module.split(".")[-1].startswith("_") or not (is_package or listed):
            return
        for node in imports:
            source = _imported_from(node, module, is_package)
            for alias in node.names:
                if alias.asname in (None, alias.name) and (is_package or alias.name == "*" or alias.name in listed):
                    self._publishers[source, alias.name].add(module)

    def _assignment(self, module: str, target: str, value: ast.expr) -> None:
        if target == "__all__" and isinstance(value, ast.List | ast.Tuple):
            self._listed[module] = {getattr(item, "value", None) for item in value.elts}
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            self._instances.setdefault((module, value.func.id), target)

    def name(self, module: str, local: str) -> str:
        """The public dotted name of `local` ("" for the module itself), or "" when it is private."""
        public = STANDS_FOR.get(module, module)
        hidden = any(part.startswith("_") for part in public.split("."))
        if not local:
            return "" if hidden else public
        if any(part.startswith("_") for part in local.split(".")):
            return ""
        first, _, inside = local.partition(".")
        for known_as in (first, self._instances.get((module, first))):
            publishers = self._published_by(module, known_as) if known_as else []
            if not publishers and not hidden:
                publishers = [public]
            if publishers:
                return ".".join([min(publishers, key=lambda p: (p.count("."), p)), known_as, *filter(None, [inside])])
        return ""

    def _published_by(self, module: str, name: str) -> list[str]:
        parts = module.split(".")
        found = set()
        # Imports may name the defining module or a package above it that hands the name on.
        for length in range(1, len(parts) + 1):
            found |= self._publishers.get((".".join(parts[:length]), name), set())
        if name in self._listed.get(module, {name}):
            found |= self._publishers.get((module, "*"), set())
        return [publisher for publisher in found if publisher.split(".")[0] == parts[0] and "._" not in publisher]


def _module_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run on import: those of the module and of its if, try and with blocks, in order."""
    waiting = list(reversed(tree.body))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            inside = [getattr(node, field, []) for field in ("body", "handlers", "orelse", "finalbody")]
            waiting += [child for branch in reversed(inside) for child in reversed(branch)]


def _imported_from(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The absolute name of the module that `from ... import` names inside `module`."""
    if not node.level:
        return node.module or ""
    # One dot is the package the module stands in, each further dot one package up.
    parts = module.split(".")
    base = parts[: len(parts) - node.level + is_package]
    return ".".join([*base, *([node.module] if node.module else [])])
