"""A job in its holder's hands: what is still open of it, what was asked, and why it stops.

Kept in memory only. Everything that must survive its process stands in the database before it counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from dragoman.content import prompting, verdicts
from dragoman.content.glossary import NO_TERMS, Glossary, Terms
from dragoman.content.prompting import NO_HELP, Help, Piece
from dragoman.flow.engine.translation.gate import Caller
from dragoman.kernel.errors import LeaseLost
from dragoman.kernel.identity import Chance, key_hash
from dragoman.kernel.limits import PROMPT_ID_CHARS
from dragoman.model.budgets import UNBOUNDED, Bounds
from dragoman.model.completions import CompletionRequest, PromptItem, Reply
from dragoman.model.contracts import Provider
from dragoman.model.documents import Text
from dragoman.model.jobs import Account, Asked, CallPlan, Claimed, Field, Halt, Purpose, Result, Start, Via
from dragoman.model.memories import Shelf
from dragoman.store.acts.job_views import Loaded
from dragoman.store.keeping import Lease

Complaints = Mapping[tuple[int, str], str]
"""(field, category) → what was wrong with the last translation."""


class JobWork:
    """One claimed job, its provider, and what has become of it so far."""

    def __init__(
        self,
        claimed: Claimed,
        loaded: Loaded,
        provider: Provider,
        lease: Lease,
        chance: Chance,
        bounds: Bounds = UNBOUNDED,
    ) -> None:
        self.job = loaded.job
        self.fence = claimed.fence
        self.lease = lease
        self.provider = provider
        self.account = _account(loaded, provider, bounds)
        self.open: dict[int, Field] = {field.ordinal: field for field in loaded.fields}
        self.caller = Caller(self.job.id, self.job.workspace, provider.name, provider.account)
        self._open_at_first = len(self.open)
        self.slots = asyncio.Semaphore(loaded.job.options.concurrency)
        self.stop: Halt | None = Halt("canceled") if loaded.cancel_asked else None
        self.failure: tuple[str, str] | None = None
        """Code and message of what makes the whole job impossible."""
        self.waits: list[int] = []
        """When calls that wait may be tried again."""
        self.holds = False
        """Whether a call is held for a person or a wider policy."""
        self.runs_on = False
        """Whether the provider works on something of it in the background: what that costs is known only when
        it has ended, be it because it was told to stop.
        """
        self._chance = chance
        self._last_call = loaded.last_call
        self._pieces: dict[int, tuple[Piece, ...]] = {}
        self.library = loaded.library
        self.has_trials = loaded.has_trials
        """Whether texts of this workspace have ever been tried in vain."""
        self.similar: dict[int, tuple[tuple[str, str], ...]] = {}
        """Field → texts like it with their translations, to be shown."""
        self._glossaries: dict[str, Glossary] = {}
        self._terms: dict[int, Terms] = {}
        self._bases: dict[Terms, str] = {}
        self._plain_basis = ""

    @property
    def shelf(self) -> Shelf:
        """Where the project's texts of this source locale stand."""
        return Shelf(self.job.project, self.job.source_locale)

    @property
    def has_progressed(self) -> bool:
        """Whether anything has come of it since it was claimed."""
        return len(self.open) < self._open_at_first

    @property
    def is_unwanted(self) -> bool:
        """Whether nobody waits for more: what is under way is found out or stopped, and nothing is begun."""
        return self.stop is not None and self.stop.cause in ("canceled", "quarantined")

    @property
    def may_start(self) -> bool:
        """Whether another attempt makes sense."""
        return self.stop is None and self.failure is None

    def plan(
        self, purpose: Purpose, fields: Sequence[Field], complaints: Complaints, parent: int | None = None
    ) -> CallPlan:
        """A call for these fields of one locale, under prompt ids of its own."""
        asked: list[Asked] = []
        items: list[PromptItem] = []
        pieces = [self.pieces(field) for field in fields]
        names = iter(self._fresh_names(sum(map(len, pieces))))
        near = {field.value for field in fields if isinstance(field.value, str)}
        for field, mine in zip(fields, pieces, strict=True):
            help_ = self._help(field, near)
            for piece in mine:
                name = next(names)
                asked.append(Asked(name, field.ordinal, piece.category))
                complaint = complaints.get((field.ordinal, piece.category), "") if complaints else ""
                items.append(prompting.prompt_item(field, piece, name, complaint, help_))
        target_locale = fields[0].target_locale
        request = CompletionRequest(
            self.job.source_locale,
            target_locale,
            tuple(items),
            self.job.options.tone,
            self.library.manner.style,
        )
        self._last_call += 1
        return CallPlan(
            self._last_call,
            purpose,
            target_locale,
            tuple(asked),
            self.provider.render(request),
            parent,
        )

    def pieces(self, field: Field) -> tuple[Piece, ...]:
        """What of a field goes out; found out once."""
        found = self._pieces.get(field.ordinal)
        if found is None:
            found = self._pieces[field.ordinal] = prompting.pieces(field)
        return found

    def terms(self, field: Field) -> Terms:
        """What the project's terms in a field ask for; found out once."""
        if not self.library.terms:
            return NO_TERMS
        found = self._terms.get(field.ordinal)
        if found is None:
            texts = [field.value] if isinstance(field.value, str) else field.value.values()
            found = self._terms[field.ordinal] = self._glossary(field.target_locale).used("\n".join(texts))
        return found

    def basis(self, field: Field) -> str:
        """What a translation made now is made from, beside the text and its context."""
        terms = self.terms(field)
        if terms is NO_TERMS and self._plain_basis:
            return self._plain_basis
        if terms not in self._bases:
            self._bases[terms] = key_hash(
                self.provider.model,
                prompting.VERSION,
                verdicts.VERSION,
                self.job.options.tone,
                self.library.manner.style,
                *terms.key,
            )
        if terms is NO_TERMS:
            self._plain_basis = self._bases[terms]
        return self._bases[terms]

    def _glossary(self, locale: str) -> Glossary:
        if locale not in self._glossaries:
            terms = self.library.terms
            self._glossaries[locale] = Glossary((*terms.get("", ()), *terms.get(locale, ())))
        return self._glossaries[locale]

    def _help(self, field: Field, near: Collection[str]) -> Help:
        """Terms, examples, and the neighbours that the call does not hold anyway."""
        before, after = [
            prompting.glimpse(text, field.syntax) if text and text not in near else ""
            for text in (field.before, field.after)
        ]
        terms, similar = self.terms(field), self.similar.get(field.ordinal, ())
        if not (before or after or similar) and terms is NO_TERMS:
            return NO_HELP
        return Help(terms, similar, before, after)

    def start(self, plan: CallPlan, worker: str, call_timeout_seconds: float) -> Start:
        """How one attempt may be made now. Raises `LeaseLost`."""
        reserved = self.provider.reserve(plan.request) if self.account.priced else (0, 0)
        return Start(worker, min(call_timeout_seconds, self.left_seconds()), reserved)

    def left_seconds(self) -> float:
        """How long this process may still act for the job. Raises `LeaseLost` where that is over."""
        left_seconds = self.lease.left_seconds()
        if self.lease.lost or left_seconds <= 0:
            raise LeaseLost(f"the lease of job {self.job.id} has run out here")
        return left_seconds

    def results(self, field: Field, value: Text, via: Via, review: tuple[str, ...]) -> list[Result]:
        """A field's translation, for the field and for its repeats."""
        return [Result(ordinal, value, via, review=review) for ordinal in (field.ordinal, *field.repeats)]

    def failures(
        self, field: Field, code: str, message: str, check: str = "", missing: tuple[str, ...] = ()
    ) -> list[Result]:
        """Why a field has none, for the field and for its repeats."""
        return [
            Result(ordinal, code=code, check=check, message=message, missing=missing)
            for ordinal in (field.ordinal, *field.repeats)
        ]

    def ended(self, results: Iterable[Result]) -> None:
        """These results stand in the database: nobody asks for them any more."""
        for result in results:
            self.open.pop(result.ordinal, None)
            self._pieces.pop(result.ordinal, None)
            self._terms.pop(result.ordinal, None)
            self.similar.pop(result.ordinal, None)

    def quarantine(self, code: str, message: str) -> None:
        """The job has cost too many workers: it fails once what it has under way is known."""
        self.stop = Halt("quarantined")
        self.failure = code, message

    def fail(self, code: str, message: str) -> None:
        """The whole job is impossible; the first reason stays."""
        self.failure = self.failure or (code, message)

    def trial_key(self, field: Field) -> str:
        """What was tried when a field failed for good; another text, model or version is another trial."""
        return key_hash(
            field.source_hash,
            field.context_hash,
            self.job.source_locale,
            field.target_locale,
            self.basis(field),
        )

    def _fresh_names(self, count: int) -> Iterable[str]:
        """So many different prompt ids, out of one draw as a rule."""
        names: dict[str, None] = {}
        while len(names) < count:
            drawn = self._chance.token(PROMPT_ID_CHARS * (count - len(names)))
            names.update(
                (drawn[at : at + PROMPT_ID_CHARS], None) for at in range(0, len(drawn), PROMPT_ID_CHARS)
            )
        return names


def _account(loaded: Loaded, provider: Provider, bounds: Bounds) -> Account:
    job = loaded.job
    return Account(
        workspace=job.workspace,
        project=job.project,
        job_id=job.id,
        client_job_id=job.client_job_id,
        provider=job.options.provider,
        model=provider.model,
        account=provider.account,
        priced=provider.priced,
        read=_careful(provider.read),
        bounds=bounds,
        speed=job.options.speed,
    )


def _careful(read: Callable[[bytes], Reply]) -> Callable[[bytes], Reply]:
    """A reader whose defect cannot lose an answer that was paid for: what it chokes on is unreadable."""

    def careful(body: bytes) -> Reply:
        try:
            return read(body)
        except Exception:  # noqa: BLE001 - the bytes are kept all the same, and the call goes on as garbled
            return Reply((), "unreadable")

    return careful
