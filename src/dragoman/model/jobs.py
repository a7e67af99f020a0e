"""Nouns of the translating side: a submission, the job made of it, its fields, calls and results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dragoman.kernel import limits
from dragoman.machines.tables import EFFECT
from dragoman.model.completions import Reply
from dragoman.model.documents import Syntax, Text
from dragoman.model.memories import Remembered, Term

Purpose = Literal["first", "repair", "alone", "split", "bisect"]
Via = Literal["memory", "ai", "passed"]
SLOW_DOWN = frozenset({"PROVIDER_RATE_LIMITED", "PROVIDER_SPEND_LIMIT"})
"""Codes with which a provider asks to be left alone for a while."""
PARKINGS = frozenset({"budget", "provider", "unknown"})
"""What a queued job may wait for."""
ADDRESSED = "@"
"""Stands in the name of a provider whose address a command line gave: `openai@` and a mark of the address.
Only a process that was given the same one can ask it: the name is what its jobs need.
"""
Status = Literal["completed", "failed", "canceled"]
SPEEDS = ("standard", "batch")
"""How soon answers are wanted: at once, or within a day through the provider's batches at their price."""


def named(provider: str) -> str:
    """What jobs of a provider need whose name stands in settings: a process whose settings name it too."""
    return f"{provider}{ADDRESSED}"


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one submission may hold, by settings within `kernel/limits`; a far engine tells its own."""

    items_max: int = limits.ITEMS_PER_SUBMISSION
    body_bytes_max: int = limits.SUBMISSION_BYTES_MAX
    fields_per_item_max: int = limits.FIELDS_PER_ITEM
    field_chars_max: int = limits.FIELD_CHARS_MAX
    batch_size_max: int = limits.BATCH_SIZE_MAX
    concurrency_max: int = limits.CONCURRENCY_MAX


@dataclass(frozen=True, slots=True)
class SubmittedField:
    """One text of an item as it was sent; `value` None passes through like an empty text."""

    wire_key: str
    value: Text | None
    syntax: Syntax = "none"
    note: str = ""
    context: str = ""
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class SubmittedItem:
    """One ref of a submission: texts that go into one locale."""

    ref: str
    target_locale: str
    fields: tuple[SubmittedField, ...]


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What a submission may choose: all of it is inside the fingerprint. `speed` is one of `SPEEDS`."""

    provider: str = ""
    model: str = ""
    batch_size: int = 0
    concurrency: int = 0
    speed: str = "standard"
    tone: str = ""
    on_unknown: str = ""
    force: bool = False
    push_id: str = ""
    first: str = ""
    """Not chosen, but written by the engine: the provider whose list of others counts, once it was left."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission's body, read and found valid; locales are canonical. `project` may be empty."""

    id: str
    client_job_id: str
    source_locale: str
    callback_url: str
    options: JobOptions
    items: tuple[SubmittedItem, ...]
    project: str = ""
    budget: tuple[int | None, int | None] | None = None
    """(tokens, micro-USD) that all jobs of the client job may cost, until a control says otherwise."""
    style: str = ""
    terms: tuple[Term, ...] = ()
    """What a site that the engine shares no database with asks its translations to keep to."""


@dataclass(frozen=True, slots=True)
class NewField:
    """A submitted field with what acceptance found out about it.

    A field that `passes` is never sent and has its `result` already. `repeat_of` is the ordinal of an equal
    field of this job.
    """

    ordinal: int
    item: int
    submitted: SubmittedField
    source_hash: str
    context_hash: str
    passes: bool
    result: Text | None = None
    repeat_of: int | None = None


@dataclass(frozen=True, slots=True)
class NewJob:
    """Everything that acceptance writes. `id` is used unless the submission has a job already."""

    id: str
    workspace: str
    project: str
    principal: str
    fingerprint: str
    submission: Submission
    fields: tuple[NewField, ...]
    model: str
    needs: str
    """What a process must hold to work it: a credential reference, or the name of a provider that is
    `ADDRESSED` or `named`.
    """
    callback_secret: str


QUARANTINED = "gave_up"
"""The code of a job that cost too many workers: a person may have it tried again."""


class Accepted(NamedTuple):
    """The job that answers a submission, made now (`created`) or before."""

    job_id: str
    created: bool
    submission_id: str
    status: str


class Claimed(NamedTuple):
    """A job leased to this process. `vanished` is how many workers have, with it in hand."""

    job_id: str
    workspace: str
    fence: int
    vanished: int


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed job as it stood when it was loaded."""

    id: str
    workspace: str
    project: str
    client_job_id: str
    source_locale: str
    options: JobOptions
    deadline_at: int


class Field(NamedTuple):
    """A field of a job that is still to be translated. `calls` counts how often it was asked for."""

    ordinal: int
    target_locale: str
    value: Text
    syntax: Syntax
    note: str
    context: str
    max_length: int | None
    source_hash: str
    context_hash: str
    calls: int = 0
    repeats: tuple[int, ...] = ()
    """Ordinals of equal fields, which take this one's result."""
    before: str = ""
    after: str = ""
    """Source texts of the neighbours in the same item."""


class Asked(NamedTuple):
    """One item of a prompt: its id in this call, and the field (and plural category) that it stands for."""

    id: str
    field: int
    category: str


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A call about to be written down. `request` is the provider's body without attempt metadata."""

    ordinal: int
    purpose: Purpose
    target_locale: str
    asked: tuple[Asked, ...]
    request: bytes
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that is not closed, and what is known of its effect; without an effect it is only planned.

    `attempt` is the newest attempt's id, '' where none was made, `reference` the provider's for it. `answer`
    holds the bytes that nobody has judged yet. `failure`, `message` and `status` are what the newest attempt
    came to.
    """

    plan: CallPlan
    id: str = ""
    effect_id: str = ""
    effect_state: str = ""
    idempotent: bool = False
    """Whether the same bytes may be sent again whatever became of them: unpriced when it was first sent."""
    batched: bool = False
    """Whether it went out as a batch: it is looked at from time to time."""
    held: bool = False
    attempt: str = ""
    reference: str = ""
    attempt_outcome: str = ""
    attempts: int = 0
    due_at: int = 0
    answer: bytes | None = None
    failure: str = ""
    message: str = ""
    status: int = 0

    @property
    def is_answered(self) -> bool:
        """Whether the provider has answered, and nobody has judged it."""
        return self.effect_state in EFFECT.groups["ANSWERED"]

    @property
    def is_refused(self) -> bool:
        """Whether the provider has said no, and nobody has dealt with it."""
        return self.effect_state == EFFECT.next("IN_FLIGHT", "refuse")

    @property
    def is_doubtful(self) -> bool:
        """Whether nobody knows what became of its newest attempt."""
        return self.effect_state == EFFECT.next("IN_FLIGHT", "lose")

    @property
    def is_under_way(self) -> bool:
        """Whether the provider may be working on it still, and can be told to stop."""
        return self.is_doubtful and (self.batched or bool(self.reference))


@dataclass(frozen=True, slots=True)
class Account:
    """Who is asked and who pays, as the transactions around a call need it.

    `bounds` are the settings' for the account's calendar month: (tokens, micro-USD), None for unbounded.
    """

    workspace: str
    project: str
    job_id: str
    client_job_id: str
    provider: str
    model: str
    account: str
    priced: bool
    read: Callable[[bytes], Reply]
    bounds: tuple[int | None, int | None] = (None, None)
    speed: str = "standard"


@dataclass(frozen=True, slots=True)
class Start:
    """How one attempt is to be made. `reserved` is its worst case: (tokens, micro-USD)."""

    worker: str
    deadline_seconds: float
    reserved: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Halt:
    """Why no attempt was begun, and until when it makes no sense to try."""

    cause: Literal["paused", "canceled", "quarantined", "budget", "provider", "held", "elsewhere"]
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """What an attempt came to. `reply` is set where an answer is to be judged now."""

    attempt_id: str
    effect_id: str
    outcome: str
    reply: Reply | None = None
    code: str = ""
    message: str = ""
    status: int | None = None
    due_at: int = 0
    reference: str = ""

    @property
    def is_pause(self) -> bool:
        """Whether the provider asks everybody of this account to wait."""
        return self.code in SLOW_DOWN


class Result(NamedTuple):
    """How one field ended: with a text, or with a code."""

    ordinal: int
    value: Text | None = None
    via: Via | Literal[""] = ""
    code: str = ""
    check: str = ""
    message: str = ""
    missing: tuple[str, ...] = ()
    review: tuple[str, ...] = ()
    """The checks whose warnings ask a person to look at the text."""


@dataclass(frozen=True, slots=True)
class Closing:
    """What becomes true when a call's answer has been judged."""

    effect_id: str
    results: tuple[Result, ...] = ()
    counted: tuple[tuple[int, int], ...] = ()
    """For fields that stay open: ordinal, and how often it has been asked for, this call included."""
    target_locale: str = ""
    memorable: tuple[Remembered, ...] = ()
    """Translations that passed their checks."""
    spent: tuple[str, ...] = ()
    """Trial keys of fields that have failed for good in this job."""
    follow_ups: tuple[CallPlan, ...] = ()


@dataclass(frozen=True, slots=True)
class Control:
    """What the site decided for all jobs of one client job. None leaves a limit away."""

    revision: int
    paused: bool
    canceled: bool
    on_unknown: str
    budget_tokens: int | None
    budget_microusd: int | None
    sets_budget: bool = True
    """False leaves the limits as they are."""
