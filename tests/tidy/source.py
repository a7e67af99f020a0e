"""Python source as the checkers see it: modules, what they import, and what their names stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Module:
    """One file. `name` is dotted and relative to the package; the package itself is the empty name."""

    package: str
    name: str
    path: Path

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def base(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def full_name(self) -> str:
        return ".".join(filter(None, (self.package, self.name)))

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    def imports(self) -> Iterator[tuple[str, int]]:
        """(dotted target, line) of every import, wherever in the file it stands."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                source = self._absolute(node)
                yield from ((f"{source}.{alias.name}", node.lineno) for alias in node.names)

    def uses(self) -> Iterator[tuple[str, int]]:
        """(dotted name, line) of every name and attribute chain that stands for something from elsewhere."""
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.Name, ast.Attribute)):
                head = dotted(node).partition(".")[0]
                if head in self._names or head.startswith("__"):
                    yield self.resolve(node), node.lineno

    def resolve(self, node: ast.expr) -> str:
        """The full dotted name that an expression stands for, "" where it is not a plain name."""
        head, _, rest = dotted(node).partition(".")
        full = self._names.get(head, head)
        return f"{full}.{rest}" if rest else full

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """What the file's own names stand for: its definitions, and what it imports."""
        defined = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        names = {n.name: f"{self.full_name}.{n.name}" for n in self.tree.body if isinstance(n, defined)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    head = alias.name.partition(".")[0]
                    names[alias.asname or head] = alias.name if alias.asname else head
            elif isinstance(node, ast.ImportFrom):
                source = self._absolute(node)
                names |= {alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names}
        return names

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        here = self.full_name.split(".")
        parents = here[: len(here) - node.level + (1 if self.is_package else 0)]
        return ".".join([*parents, *filter(None, [node.module])])


def dotted(node: ast.expr) -> str:
    """`a.b.c` for a plain attribute chain, "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (head := dotted(node.value)):
        return f"{head}.{node.attr}"
    return ""


def modules(root: Path) -> list[Module]:
    """All modules of the package that lies at `root`, by name."""
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        found.append(Module(root.name, name, path))
    return found


def within(name: str, room: str) -> bool:
    """Whether `name` is `room` or lies in it."""
    return name == room or name.startswith(f"{room}.")
