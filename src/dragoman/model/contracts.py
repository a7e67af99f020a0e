"""The protocols that plug-ins implement. `ledger` and `flow` see these, and name no member."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from dragoman.model.completions import CompletionRequest, ProviderAnswer, Reply
from dragoman.model.documents import Document, Role, Text, Writing
from dragoman.model.effects import Answer, Idempotency, Outgoing
from dragoman.model.walks import Contents, Listing


class Format(Protocol):
    """A file format: locates texts, and writes by splicing. `whole` files are written complete or not at
    all.
    """

    name: str
    extensions: tuple[str, ...]
    whole: bool
    shared: bool
    """Whether one file holds all locales: the target is the source's file, and a write touches one locale.

    Such a format takes a text out where its translation is empty; a `source` in the role of a target is then
    the file as it was before.
    """
    renames: Mapping[str, str]
    """Extensions that change on the way from source to target (`.pot` becomes `.po`)."""

    def detect(self, path: str, head: str) -> bool:
        """Whether a file of this name and beginning is of this format."""
        ...

    def charset(self, data: bytes) -> str | None:
        """The encoding that the file itself declares; None where it is Unicode by definition."""
        ...

    def read(self, text: str, role: Role, locale: str) -> Document:
        """Locate all blocks. Raises `DocumentError` with a line number where the text is not valid."""
        ...

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """Splice translations (unescaped, by block key) into `base`; untouched bytes stay as they are.

        `base` is the existing target (role `target`), or `source` itself where no target stands.
        """
        ...

    def second_opinion(self, before: Document, after: Document) -> str:
        """What an independent parser holds against `after`, written over `before`; empty where nothing."""
        ...


class Provider(Protocol):
    """Who translates. One send per `send`; no retries, no redirects, no hidden repeats."""

    name: str
    model: str
    account: str
    """Names the account that pays and is rate limited: all jobs of one account share a gate."""
    priced: bool
    askable: bool
    """Whether answers are kept where `ask` can find them: decides how an unknown outcome is settled."""
    texts_max: int | None
    """The most texts of one call; None where their tokens alone bound it."""

    def target_code(self, locale: str) -> str:
        """This provider's code for a BCP 47 locale. Raises `LocaleError` before any spend."""
        ...

    def render(self, request: CompletionRequest) -> bytes:
        """The exact body to be sent, without attempt metadata. Deterministic."""
        ...

    def reserve(self, body: bytes) -> tuple[int, int]:
        """Worst case of one call: (tokens, micro-USD)."""
        ...

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """Exactly one send. Never raises for what the outside did: the answer's outcome says it."""
        ...

    def read(self, answer: bytes) -> Reply:
        """Parse kept bytes. Never raises: what cannot be read has finish `unreadable`."""
        ...

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """Look an attempt up by our id: SUCCEEDED with the kept bytes where it is found.

        None where this provider cannot be asked or does not know it (yet); any other outcome is that of the
        inquiry itself, which leaves the attempt as unknown as it was, unless the answer is `final`.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


@runtime_checkable
class Fetching(Protocol):
    """A provider that works in the background: `send` gives a reference, and the answer is fetched by it."""

    async def fetch(self, reference: str, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """One look: the answer, once it has come.

        None where the provider knows no such reference (any more); any other outcome than SUCCEEDED leaves
        the attempt as unknown as it was, unless the answer is `final`.
        """
        ...


@runtime_checkable
class Withdrawing(Protocol):
    """A provider that can be told to stop what it works on in the background."""

    async def cancel(self, reference: str, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """Ask it to stop; what it has done until then is paid for, and what became of it is fetched."""
        ...


@runtime_checkable
class ReadsExamples(Protocol):
    """A provider that translates better when it is shown how texts like the present ones were translated."""

    reads_examples: bool


@runtime_checkable
class Expects(Protocol):
    """A provider whose calls usually cost much less than their worst case."""

    def expect(self, body: bytes, characters: int) -> tuple[int, int]:
        """What a call with so many characters of text will likely come to: (tokens, micro-USD)."""
        ...


Resolver = Callable[[str, str, str], Provider]
"""Gives the provider of (name, model, speed): no name and `platform` mean the platform's own account, no
model the configured one; at speed `batch` it is the one that sends calls as batches, at their price.

Raises `CallerError` where it sends none, `DragomanError` with code provider_unknown or
provider_credentials_missing, and `OutsideError` where its server cannot be asked now for what must be known
before any call.
"""


class Family(Protocol):
    """One kind of act on the outside world; providers are reached through the family `completion`."""

    name: str
    idempotency: Idempotency

    async def deliver(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        """Exactly one try. Never raises for what the outside did: the answer's outcome says it."""
        ...

    async def inquire(self, outgoing: Outgoing, deadline_seconds: float) -> Answer | None:
        """Ask what became of an attempt; None where it cannot be asked or is not known there."""
        ...


class Queue(Protocol):
    """Wakes workers. The database decides; a lost message costs one sweep, a doubled one nothing."""

    async def enqueue(self, job_id: str) -> None:
        """Say that a job is due. Called after the commit that made it so."""
        ...

    async def dequeue(self) -> tuple[str, Callable[[], Awaitable[None]], Callable[[], Awaitable[None]]]:
        """Wait for a job id; gives `(job_id, ack, nack)`. Raises `QueueClosed` once closed."""
        ...

    async def close(self) -> None:
        """Free what is held and end waiting consumers; a second close does nothing."""
        ...


class Source(Protocol):
    """Where documents live: reading only. Asked in a thread, never inside a transaction.

    References are the source's own and begin with the collection where there are several (`posts/42.json`);
    their ending names the format. Whatever does not answer in time, or not as it should, is a `SourceError`.
    """

    def contents(self) -> Contents:
        """The collections and globals that can be walked."""
        ...

    def list(self, collection: str, cursor: str, limit: int, drafts: bool) -> Listing:
        """One page of a collection's sources in a stable order, by key where the source can.

        `cursor` is empty for the first page, else what the page before gave as `next`. Raises `SourceError`,
        and `CallerError` unsupported_collection.
        """
        ...

    def collection_of(self, ref: str) -> str:
        """The collection that a reference belongs to; a global is a collection of its own. Asks nobody."""
        ...

    def exists(self, refs: Sequence[str]) -> Mapping[str, bool]:
        """Which of these documents can be read, in one batch."""
        ...

    def can_edit(self, actor: str, refs: Sequence[str]) -> Mapping[str, bool]:
        """The actor's present right on each document."""
        ...

    def read(self, ref: str) -> bytes:
        """The source document's bytes. Raises `SourceError`."""
        ...

    def read_target(self, ref: str, locale: str) -> bytes | None:
        """The bytes that stand at the target of (document, locale), None where nothing stands."""
        ...

    def fingerprint(self, ref: str) -> str:
        """The SHA-256 of what `read` gives now, in hex. Raises as `read` does."""
        ...

    def target_path(self, ref: str, locale: str) -> str:
        """Where the translation of (document, locale) goes, relative to the target's root."""
        ...


class EngineClient(Protocol):
    """The translating side as the owner's side sees it: in this process, or across the network."""

    async def submit(
        self,
        workspace: str,
        submission_id: str,
        body: bytes,
        deadline_seconds: float,
        secret_mark: str = "",
    ) -> Answer:
        """Create the job of a submission, or get the one that stands. Never raises for what the outside did.

        `secret_mark` says under which callback secret it was first sent; '' takes the one in force.
        The body of a SUCCEEDED answer is a JSON object with `job_id, status, submissionId, created`.
        """
        ...

    async def control(
        self, workspace: str, client_job_id: str, body: bytes, deadline_seconds: float
    ) -> Answer:
        """Pause, cancel or fund all jobs of a client job; a lower revision is ignored there."""
        ...

    async def job(self, workspace: str, job_id: str, deadline_seconds: float) -> Mapping[str, object] | None:
        """The job as it stands, None where the engine knows none. Raises `OutsideError` without an answer."""
        ...

    async def items(
        self, workspace: str, job_id: str, cursor: str, deadline_seconds: float
    ) -> Mapping[str, object]:
        """One page of a job's results: `items` and `next_cursor`. Raises `OutsideError` without an answer."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class WebhookTransport(Protocol):
    """Carries one signed event to whoever asked for it."""

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], deadline_seconds: float
    ) -> Answer:
        """Exactly one send, no redirect followed. Never raises for what the outside did."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class Executor(Protocol):
    """Puts one step of a publication in place. The same step twice has one effect and one answer.

    `outgoing.body` is what shall stand at `facts["target"]` under `facts["root"]`; `facts["act"]` is
    `write` or `remove`, `facts["expected"]` the SHA-256 of what stands there now, empty for nothing.
    SUCCEEDED carries the target's answer as JSON; REJECTED has code `target_refused`, `target_raced` or
    `target_conflict`.
    """

    name: str

    async def run(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        """One try. Never raises for what the outside did."""
        ...
