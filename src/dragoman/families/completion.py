"""Family `completion`: one paid translation call, through whichever provider the call names.

Holds the providers of this process, by the name that the settings give them, and makes each when it is first
asked for. A call is told apart by its attempt's id, where the provider keeps such a thing, and is asked about
by it. Resending what is unknown is the engine's decision, never made here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman.kernel.errors import CallerError
from dragoman.model.contracts import Fetching, Provider
from dragoman.model.effects import Answer, Idempotency, Outgoing
from dragoman.model.jobs import ADDRESSED, named

PLATFORM = frozenset({"", "platform"})
"""Both spellings, and only these, of the platform's own account."""


class Completion:
    """The family and the registry in one. `makers` gives each provider for a model, '' for its own.

    `batchers` give, for those names that have one, the provider that sends calls as batches. `default` is the
    name behind the platform's account. `needs` gives the credential reference that a name cannot do without;
    names that need none may be left out. A maker may raise `DragomanError`, such as
    provider_credentials_missing.
    """

    name = "completion"
    idempotency: Idempotency = "LOCAL_IDEMPOTENT_ONLY"

    def __init__(
        self,
        makers: Mapping[str, Callable[[str], Provider]],
        default: str,
        batchers: Mapping[str, Callable[[str], Provider]] | None = None,
        needs: Mapping[str, str] | None = None,
    ) -> None:
        self._makers = {"standard": dict(makers), "batch": dict(batchers or {})}
        self._default = default
        self._needs = {} if needs is None else needs
        self._made: dict[tuple[str, str, str], Provider] = {}

    def resolve(self, name: str, model: str, speed: str = "standard") -> Provider:
        """The provider of a name and a model.

        Raises `DragomanError`: provider_unknown, invalid_request where it has no such speed, or what a maker
        raises.
        """
        known = self._default if name in PLATFORM else name
        made = self._made.get((known, model, speed))
        if made is not None:
            return made
        standard = self._makers["standard"]
        if known not in standard:
            raise CallerError(
                f"no provider {known!r}; known are {', '.join(sorted(standard))}", "provider_unknown"
            )
        maker = self._makers.get(speed, {}).get(known)
        if maker is None:
            raise CallerError(f"provider {known} offers no speed {speed!r}", place="$.options.speed")
        made = maker(model)
        self._made[known, model, speed] = self._made.setdefault((known, made.model, speed), made)
        return self._made[known, model, speed]

    def need(self, name: str) -> str:
        """What a process must hold to ask the provider of a name, '' for nothing."""
        known = self._default if name in PLATFORM else name
        if ADDRESSED in known:
            return known
        return self._needs.get(known, "" if known in self._makers["standard"] else named(known))

    async def deliver(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        """Exactly one send of the stored bytes."""
        return await self._of(outgoing).send(outgoing.body, outgoing.attempt_id, deadline_seconds)

    async def inquire(self, outgoing: Outgoing, deadline_seconds: float) -> Answer | None:
        """Look an attempt up by the provider's reference where that is how it answers, else by its own id.

        None where this provider cannot be asked, or does not know it.
        """
        provider, reference = self._of(outgoing), str(outgoing.facts.get("reference", ""))
        if reference and isinstance(provider, Fetching):
            return await provider.fetch(reference, outgoing.attempt_id, deadline_seconds)
        return await provider.ask(outgoing.attempt_id, deadline_seconds)

    async def close(self) -> None:
        """Release every provider's connections."""
        for provider in dict.fromkeys(self._made.values()):
            await provider.close()

    def _of(self, outgoing: Outgoing) -> Provider:
        facts = outgoing.facts
        speed = str(facts.get("speed", "standard"))
        return self.resolve(str(facts["provider"]), str(facts["model"]), speed)
