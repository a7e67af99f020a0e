"""Family `publication_step`: one write of one translation to one target, by the executor that the plan names.

The step key stands for the write: the same step again has no second effect and the same answer. So an
attempt whose end nobody knows is simply made again.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.model.contracts import Executor
from dragoman.model.effects import Answer, Idempotency, Outgoing


class PublicationStep:
    """Hands a step to its executor. `executors` are by the names that settings use, such as `files:v1`."""

    name = "publication_step"
    idempotency: Idempotency = "PROVIDER_IDEMPOTENT"

    def __init__(self, executors: Mapping[str, Executor]) -> None:
        self._executors = executors

    async def deliver(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        """Exactly one try."""
        name = str(outgoing.facts["executor"])
        executor = self._executors.get(name)
        if executor is None:
            known = ", ".join(sorted(self._executors))
            return Answer(
                "REJECTED",
                code="invalid_settings",
                message=f"there is no executor {name} here; known are: {known}",
            )
        return await executor.run(outgoing, deadline_seconds)

    async def inquire(self, outgoing: Outgoing, deadline_seconds: float) -> Answer | None:
        """The same step again reads back before it writes, so there is nothing to ask beside it."""
        return None
