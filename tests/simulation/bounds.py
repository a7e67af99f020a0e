"""The product's limits, made small for the time of one world, wherever a module holds one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from unittest import mock

from dragoman.kernel import limits


@contextmanager
def bounded(bounds: Mapping[str, int]) -> Iterator[None]:
    """Every module of the package reads these values under these names."""
    with ExitStack() as stack:
        for name, value in bounds.items():
            usual = getattr(limits, name)
            for module in [loaded for key, loaded in sys.modules.items() if key.startswith("dragoman.")]:
                if getattr(module, name, None) == usual:
                    stack.enter_context(mock.patch.object(module, name, value))
        yield
