"""Providers of a world. They belong to it and outlive its processes; what they took is the oracle of money.

A plain one answers at once. Those that work in the background answer with a reference, and their work ends by
virtual time, whatever anybody does, or when they are told to stop. In a batch nothing is paid for that was
not worked.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from dragoman.content import locales
from dragoman.model.completions import ProviderAnswer
from dragoman.providers import failures
from dragoman.providers.rehearsal import Call, RehearsalProvider
from dragoman.wiring.settings import ProviderSettings
from tests.simulation.processes import HERE, Process
from tests.simulation.settings import Setting
from tests.simulation.virtual import HostClock

HEIRS: Mapping[str, tuple[str, ...]] = {"vendor": ("spare",), "spare": ("third",), "third": ()}
"""Who goes on for whom: of a job that the first was asked for, the last one never hears."""
_WORKS_SECONDS = {"background": (0.2, 3.0, 90.0), "batch": (5.0, 300.0, 4_000.0)}
_WINDS_DOWN_SECONDS = 20.0
_CANCELED = b'{"status": "cancelled"}'


class Rules(Protocol):
    """What a world says about calls to its vendors."""

    clock: HostClock

    def leave(self, label: str) -> None:
        """Somebody asks the outside; a problem where a transaction is open."""
        ...

    def tell(self, process: Process, text: str) -> None:
        """Write down what the outside did."""
        ...


class Vendor(RehearsalProvider):
    """The rehearsal provider, asked from within a world."""

    rules: Rules

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """Plays one move, never within a transaction."""
        self.rules.leave("a provider's send")
        before = len(self.calls)
        answer = await super().send(body, attempt_id, deadline_seconds)
        if len(self.calls) > before and (process := HERE.get(None)):
            self.rules.tell(process, f"{self.name} played {self.calls[before].move}")
        return answer

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """The kept answer, never within a transaction."""
        self.rules.leave("a question to the provider")
        return await super().ask(attempt_id, deadline_seconds)

    def clear_up(self) -> None:
        """From now on the weather is fair."""
        self._weather = {}

    def sent(self) -> Mapping[str, list[Call]]:
        """What was worked, and is paid for where one pays, by attempt id."""
        found: dict[str, list[Call]] = {}
        for call in self.accepted:
            found.setdefault(call.attempt_id, []).append(call)
        return found

    def left_running(self) -> list[str]:
        """Attempts that it works on although nobody waits for them."""
        return []


@dataclass(slots=True)
class Work:
    """One piece of work in the background. `fate` is what it comes to, if nobody stops it before."""

    call: Call
    ends_at: float
    fate: str
    stopped: bool = False


class BackgroundVendor(Vendor):
    """Answers with a reference, works meanwhile, and is fetched by the reference alone."""

    kind = "background"

    def __init__(self, *said: Any, **more: Any) -> None:
        super().__init__(*said, **more)
        self.works: dict[str, Work] = {}
        self.stops: Counter[str] = Counter()

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """The short request: what it came to, or the reference of what is being worked on."""
        before = len(self.calls)
        answer = await super().send(body, attempt_id, deadline_seconds)
        for call in self.calls[before:]:
            if call.accepted and call.attempt_id == attempt_id:
                self._begin(call)
        if answer.outcome == failures.INVALID_RESPONSE_UNKNOWN:
            return replace(answer, outcome=failures.CONNECTION_UNKNOWN, body=None)
        return answer if answer.body is None else failures.working(attempt_id)

    async def fetch(self, reference: str, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """What this reference has come to."""
        self.rules.leave("a fetch from the provider")
        work = self.works.get(reference)
        if work is None:
            return None
        return failures.working(reference) if self._is_working(work) else self._ended(work, reference)

    async def cancel(self, reference: str, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """Stop, unless it has ended."""
        self.rules.leave("a word to the provider")
        self.stops[reference] += 1
        work = self.works.get(reference)
        if work is not None and self._is_working(work) and not work.stopped:
            self._stop(work)
        return ProviderAnswer("SUCCEEDED", status=200)

    def left_running(self) -> list[str]:
        """Work that goes on."""
        return [reference for reference, work in self.works.items() if self._is_working(work)]

    def _begin(self, call: Call) -> None:
        dice = random.Random(f"{self._seed} works {call.attempt_id}")
        now = self.rules.clock.monotonic()
        self.works[call.attempt_id] = Work(call, now + dice.choice(_WORKS_SECONDS[self.kind]), "done")

    def _is_working(self, work: Work) -> bool:
        return self.rules.clock.monotonic() < work.ends_at

    def _stop(self, work: Work) -> None:
        """At once, with nothing to show for it: what that costs the vendor says in its last word."""
        work.stopped, work.ends_at = True, self.rules.clock.monotonic()
        index = self.calls.index(work.call)
        self.calls[index] = work.call = replace(work.call, answer=_CANCELED)

    def _ended(self, work: Work, reference: str) -> ProviderAnswer:
        return ProviderAnswer("SUCCEEDED", body=work.call.answer, status=200, provider_ref=reference)


class BatchVendor(BackgroundVendor):
    """Makes a batch of each call, is asked by the attempt's id as well, and bills what a batch has answered.

    Some batches expire; where the weather knows of no money, some find that there is none.
    """

    kind = "batch"

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """The batch that carries this id, found in the list of all."""
        return await self.fetch(attempt_id, attempt_id, deadline_seconds)

    def sent(self) -> Mapping[str, list[Call]]:
        """Calls whose batch has answered them, each once for every batch that was made of it."""
        worked = super().sent()
        return {one: calls for one, calls in worked.items() if self.works[one].fate == "done"}

    def _begin(self, call: Call) -> None:
        super()._begin(call)
        drawn = random.Random(f"{self._seed} fate of {call.attempt_id}").random()
        work = self.works[call.attempt_id]
        if self._weather and drawn < 0.12:
            work.fate = "expired"
        elif "spend_limit" in self._weather and drawn < 0.25:
            work.fate = "no money"

    def _stop(self, work: Work) -> None:
        work.stopped, work.fate = True, "canceled"
        work.ends_at = self.rules.clock.monotonic() + _WINDS_DOWN_SECONDS

    def _ended(self, work: Work, reference: str) -> ProviderAnswer:
        if work.fate == "done":
            return super()._ended(work, reference)
        spent = work.fate == "no money"
        return ProviderAnswer(
            "REJECTED" if spent else "NOT_STARTED",
            status=429 if spent else None,
            code="PROVIDER_SPEND_LIMIT" if spent else "PROVIDER_NOT_REACHED",
            message=f"the batch is {work.fate}",
            spend_limit=spent,
            provider_ref=reference,
            final=True,
        )


def vendor_of(setting: Setting, name: str) -> Vendor:
    """One vendor of a world; each has its own price."""
    in_background = setting.background and setting.priced
    return (BatchVendor if setting.batched else BackgroundVendor if in_background else Vendor)(
        name,
        locales.choose_code,
        seed=f"{setting.seed}" if name == "vendor" else f"{setting.seed} {name}",
        weather=setting.weather,  # type: ignore[arg-type]
        microusd_per_token=(2 if name == "vendor" else 3) if setting.priced else 0,
        askable=setting.askable,
        answer_seconds=0.5,
    )


def named(with_heirs: bool) -> dict[str, ProviderSettings]:
    """The vendors as settings name them, and who goes on for whom."""
    return {
        name: ProviderSettings(protocol="rehearsal", fallback=others if with_heirs else ())
        for name, others in HEIRS.items()
    }
