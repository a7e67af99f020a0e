"""Files and functions that fit into a reader's head."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.rules import FILE_LINES_MAX, FUNCTION_LINES_MAX
from tests.tidy.source import Module, modules


def problems(root: Path) -> list[str]:
    """One line for each file or function in the package at `root` that is too long."""
    house = modules(root)
    return [*long_files(root), *(found for module in house for found in _long_functions(module))]


def long_files(root: Path) -> list[str]:
    """Python files under `root` that are too long."""
    return [
        f"{path.relative_to(root)}: {lines} lines, {FILE_LINES_MAX} at most"
        for path in sorted(root.rglob("*.py"))
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > FILE_LINES_MAX
    ]


def _long_functions(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{module.full_name}.{node.name}: {lines} lines, {FUNCTION_LINES_MAX} at most"
