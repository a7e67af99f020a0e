"""Family `withdrawal`: a provider is told to stop what it works on in the background.

Safe to repeat: what has ended stays as it is. It says nothing of what the work came to.
"""

from __future__ import annotations

from dataclasses import replace

from dragoman.model.contracts import Resolver, Withdrawing
from dragoman.model.effects import Answer, Idempotency, Outgoing


class Withdrawal:
    """Tells providers, each found by name, model and speed (`resolve`)."""

    name = "withdrawal"
    idempotency: Idempotency = "PROVIDER_IDEMPOTENT"

    def __init__(self, resolve: Resolver) -> None:
        self._resolve = resolve

    async def deliver(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        """One request to stop; its answer's bytes are of no use to anybody."""
        facts = outgoing.facts
        provider = self._resolve(str(facts["provider"]), str(facts["model"]), str(facts["speed"]))
        if not isinstance(provider, Withdrawing):
            return Answer("NOT_STARTED", code="PROVIDER_NOT_REACHED", message="it cannot be told to stop")
        told = await provider.cancel(str(facts["reference"]), str(facts["of_attempt"]), deadline_seconds)
        return replace(told, body=None)

    async def inquire(self, outgoing: Outgoing, deadline_seconds: float) -> Answer | None:
        """Nothing to ask: whoever does not know tells it once more."""
        return None
