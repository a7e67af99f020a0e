"""The backward direction: takes a publication back, where the target still holds what it wrote.

What a person changed since is left alone and listed. A file that did not exist before is removed. Out of a
file that holds all locales only this step's texts are taken, one by one, where others wrote in it since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.content import documents
from dragoman.content.selection import text_hash
from dragoman.kernel.errors import DragomanError, SourceError
from dragoman.kernel.identity import key_hash, sha256
from dragoman.model.contracts import Format, Source
from dragoman.model.publications import (
    Command,
    Ending,
    Material,
    Order,
    PlannedStep,
    Snapshot,
    Step,
    Written,
)


class Restoring:
    """Puts back what stood at a target before a forward step."""

    def __init__(self, source_of: Callable[[Mapping[str, Any]], Source], formats: Sequence[Format]) -> None:
        self._source_of = source_of
        self._formats = formats

    def order(self, command: Command, step: Step, material: Material) -> Order | Ending:
        """The snapshot's bytes, if ours or already they stand at the target; else what is left of ours."""
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
        if not moved and (stands == snapshot.body or found == snapshot.written_fingerprint):
            return Order(snapshot.body, found, snapshot.written)
        try:
            order = None if moved or stands is None else self._text_by_text(planned, snapshot, stands)
        except DragomanError as error:
            return Ending("conflict", code=error.code, message=error.message)
        message = f"somebody changed {planned.target} since; it is left as it is"
        return order or Ending("conflict", code="target_conflict", message=message)

    def _text_by_text(self, planned: PlannedStep, snapshot: Snapshot, stands: bytes) -> Order | None:
        """The file as it stands, without the step's texts; None where it is not shared or holds none of them.

        A text that is neither what was written nor what stood there before is a person's, and stays.
        """
        form = documents.choose_format(self._formats, planned.document, stands)
        if not form.shared or snapshot.body is None:
            return None
        now, before = (
            documents.open_document(form, planned.target, data, "target", planned.locale)
            for data in (stands, snapshot.body)
        )
        said = {key_hash(block.key): (block.key, text_hash(block.value)) for block in now.blocks}
        former = {key_hash(block.key): text_hash(block.value) for block in before.blocks}
        ours = tuple(
            unit
            for unit in snapshot.written.units
            if said.get(unit.key_hash, ("", ""))[1] in (unit.written_hash, former.get(unit.key_hash))
        )
        if not ours:
            return None
        keys = [said[unit.key_hash][0] for unit in ours]
        rendered = documents.take_back(form, now, before, keys, planned.locale)
        left = len(snapshot.written.units) - len(ours)
        return Order(rendered.data, sha256(stands), Written(ours, left, whole=False))
