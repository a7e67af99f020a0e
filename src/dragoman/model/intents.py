"""Nouns of the site side: what is asked for, what is taken into work, what is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Mode = Literal["missing", "changed", "all", "force"]
Origin = Literal["ours", "person", "imported"]
"""Whose a target text is: what we wrote, what a person made of it since, or what stood there before us."""
MODES: tuple[Mode, ...] = ("missing", "changed", "all", "force")


@dataclass(frozen=True, slots=True)
class ManifestDraft:
    """An admitted request, canonical and complete, about to be persisted.

    `pairs` are (document, locale), sorted and distinct; `settings` is frozen JSON text. `resume_key` is
    empty where the caller does not resume.
    """

    workspace: str
    project_id: str
    actor: str
    request_id: str
    fingerprint: str
    settings: str
    pairs: tuple[tuple[str, str], ...]
    resume_key: str = ""
    push_id: str = ""
    scope: str = ""
    """The stored text of a `Walk`; empty where `pairs` are named."""
    canary_limit: int = 0
    promotes: str = ""
    """The canary that this one goes on with, and `total` is how many pairs it left out."""
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Admitted:
    """The manifest that answers a request. `how` says whether it is new, the same again, or an active one
    resumed.
    """

    manifest_id: str
    total: int
    how: Literal["created", "replayed", "resumed"]
    total_known: bool = True


@dataclass(frozen=True, slots=True)
class DueIntent:
    """One intent taken into preparation or submission, as it stood when it was taken."""

    id: str
    workspace: str
    project_id: str
    manifest_id: str
    shard: int
    ordinal: int
    document: str
    locale: str
    state: str
    generation: int
    generation_attempt_count: int
    attempt_count: int
    actor: str
    submission_id: str | None = None
    prepared: str | None = None
    source_fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class ShardWork:
    """A leased shard and the intents of it that are to be worked now."""

    workspace: str
    manifest_id: str
    shard: int
    fence: int
    settings: Mapping[str, object]
    intents: tuple[DueIntent, ...]


@dataclass(frozen=True, slots=True)
class Preparation:
    """What preparing one intent came to. `outcome` is an event of machine `intent`, or `wait` for a retry.

    `prepared` is the envelope (JSON) and `key_map` wire key → block key (JSON), both only with `prepare`.
    """

    intent: DueIntent
    outcome: Literal["prepare", "nothing_to_do", "all_protected", "refuse", "wait"]
    code: str = ""
    message: str = ""
    prepared: str = ""
    key_map: str = ""
    source_fingerprint: str = ""
    selection_fingerprint: str = ""
    fields: int = 0
    retry_after_seconds: float | None = None
    seen: tuple[SeenText, ...] = ()
    relabeled: tuple[Relabel, ...] = ()


@dataclass(frozen=True, slots=True)
class Relabel:
    """An entry that is another's than is on record, for as long as we have written nothing else there.

    `written_hash` is what is on record of what we wrote.
    """

    key_hash: str
    written_hash: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class SeenText:
    """A target text met without an entry of ours: it becomes an entry of origin `imported`."""

    key_hash: str
    source_hash: str
    written_hash: str


@dataclass(frozen=True, slots=True)
class Link:
    """One item of a submission: (a part of) one generation of one intent."""

    intent_id: str
    generation: int
    part: int
    parts: int
    ref: str
    fields_hash: str


def ref_of(intent_id: str, generation: int, part: int = 1, parts: int = 1) -> str:
    """How an item is called on the wire: (a part of) one generation of one intent."""
    ref = f"dragoman:{intent_id}:g{generation}"
    return ref if parts == 1 else f"{ref}:p{part}/{parts}"


@dataclass(frozen=True, slots=True)
class SubmissionDraft:
    """The exact bytes of one request to the engine, and the intents in it. Made without any I/O."""

    id: str
    body: bytes
    fingerprint: str
    links: tuple[Link, ...]


LOCAL = "local"
"""The account of a site whose engine is in its own process."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends submissions: an account at an engine, and the callback secret in force.

    `mark` tells that secret from others and tells nobody what it is; '' where there is none.
    """

    engine: str = LOCAL
    mark: str = ""


@dataclass(frozen=True, slots=True)
class SendTicket:
    """A submission that this process holds and has begun to send."""

    submission_id: str
    fence: int


@dataclass(frozen=True, slots=True)
class FieldResult:
    """One field of an event's item: a text (or plural forms as JSON), or why there is none."""

    wire_key: str
    text: str | None
    plural: bool = False
    via: str = ""
    code: str = ""
    check: str = ""
    message: str = ""
    review: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemResult:
    """One ref of an event: completed or failed, with its fields."""

    ref: str
    status: Literal["completed", "failed"]
    code: str
    fields: tuple[FieldResult, ...]


USAGE = tuple(f"{kind}_{unit}" for kind in ("paid", "wasted", "at_risk") for unit in ("tokens", "microusd"))
"""What an event tells of a job's money; `paid` holds `wasted`."""


JOB_LOST = "job_lost"
"""The code of what waited for a job that its engine does not know any more."""


@dataclass(frozen=True, slots=True)
class JobEvent:
    """The end of a job as the engine tells it, by callback or when asked."""

    submission_id: str
    job_id: str
    client_job_id: str
    event_sequence: int
    status: Literal["completed", "failed", "canceled"]
    code: str
    message: str
    items: tuple[ItemResult, ...] = field(default_factory=tuple)
    usage: Mapping[str, int] = field(default_factory=dict)
    """The job's money by the names of `USAGE`."""
