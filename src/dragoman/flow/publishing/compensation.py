"""The backward direction: takes a publication back, where the target still holds what it wrote.

What a person changed since is left alone and listed. A file that did not exist before is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.kernel.errors import DragomanError, SourceError
from dragoman.kernel.identity import sha256
from dragoman.model.contracts import Source
from dragoman.model.publications import Command, Ending, Material, Order, Step


class Restoring:
    """Puts back what stood at a target before a forward step."""

    def __init__(self, source_of: Callable[[Mapping[str, Any]], Source]) -> None:
        self._source_of = source_of

    def order(self, command: Command, step: Step, material: Material) -> Order | Ending:
        """The snapshot's bytes, if ours or already they stand at the target."""
        snapshot, planned = material.snapshot, step.planned
        if snapshot is None:
            return Ending("succeed")
        try:
            source = self._source_of(command.settings)
            stands = source.read_target(planned.document, planned.locale)
            moved = source.target_path(planned.document, planned.locale) != planned.target
        except SourceError as error:
            return Ending("wait", code=error.code, message=error.message)
        except DragomanError as error:
            return Ending("conflict", code=error.code, message=error.message)
        found = "" if stands is None else sha256(stands)
        if moved or (stands != snapshot.body and found != snapshot.written_fingerprint):
            message = f"somebody changed {planned.target} since; it is left as it is"
            return Ending("conflict", code="target_conflict", message=message)
        return Order(snapshot.body, found, snapshot.written)
