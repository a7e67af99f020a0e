"""The shapes of what goes in and out over HTTP, for the contract (OpenAPI): nothing is parsed through them.

Requests are read strictly by the steps that take them, which know more than a schema can say; answers are
what the views give. Tests hold both to these shapes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dragoman.kernel import limits

EXAMPLE_ID = "0199d3f0-4a1b-7c55-9c1e-3a7f6f2b8d10"
Uuid = Annotated[str, Field(min_length=36, max_length=36, examples=[EXAMPLE_ID])]
Moment = Annotated[
    str, Field(description="ISO 8601, UTC with offset", examples=["2026-11-29T20:45:00.000+00:00"])
]
Locale = Annotated[str, Field(max_length=limits.LOCALE_CHARS_MAX, examples=["fr"])]
Next = Annotated[str | None, Field(description="Cursor of the next page; null where the list ends.")]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Answer(BaseModel):
    model_config = ConfigDict(extra="allow")


class Problem(_Answer):
    """RFC 9457: what is wrong, where, and what to do now. Codes stand in docs/reference/errors.md."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    place: str
    remedy: str
    retryable: bool
    request_id: str


class Pair(_Request):
    """One document into one locale."""

    document: str = Field(min_length=1, max_length=limits.DOCUMENT_REF_CHARS_MAX)
    locale: Locale


class Budget(_Request):
    """The most that something may cost; what is absent is unbounded."""

    tokens: int | None = Field(None, gt=0)
    usd: float | None = Field(None, gt=0)


class Scope(_Request):
    """What is walked: collections and globals, or documents by name. An absent list is an empty one."""

    collections: list[str] = Field(default_factory=list, max_length=limits.SCOPE_NAMES_MAX)
    exclude_collections: list[str] = Field(default_factory=list, max_length=limits.SCOPE_NAMES_MAX)
    globals: list[str] = Field(default_factory=list, max_length=limits.SCOPE_NAMES_MAX)
    documents: list[str] = Field(
        default_factory=list,
        max_length=limits.PAIRS_MAX,
        description="Full references (`posts/42.json`); they replace the walk through collections. A bare "
        "name is looked for in every collection.",
    )
    locales: list[Locale] = Field(min_length=1, max_length=limits.SCOPE_NAMES_MAX)
    drafts: bool = True


class ManifestRequest(_Request):
    """Many documents into many locales, admitted as one: either `pairs` or a `scope`."""

    request_id: str | None = Field(None, min_length=1, max_length=limits.REQUEST_ID_CHARS_MAX)
    project: str = Field("default", max_length=128)
    pairs: list[Pair] | None = Field(None, min_length=1, max_length=limits.PAIRS_MAX)
    scope: Scope | None = None
    canary: bool | None = Field(
        None,
        description=f"Translate only `canary_limit`, {limits.CANARY_LIMIT} where none is said.",
    )
    canary_limit: int | None = Field(
        None, ge=0, le=limits.CANARY_LIMIT_MAX, description="Translate only so many, spread over collections."
    )
    mode: Literal["missing", "changed", "all", "force"] = "missing"
    publish: Literal["auto", "manual", "none"] = "auto"
    partial: Literal["auto", "never"] = "auto"
    on_unknown: Literal["resend", "resend:unlimited", "hold"] = "resend"
    speed: Literal["standard", "batch"] = Field(
        "standard", description="`batch`: within a day, through the provider's batches at their price."
    )
    provider: str = Field("", max_length=255, description="The name of a configured provider.")
    tone: str = Field("", max_length=255)
    budget: Budget | None = None


class ManifestAccepted(_Answer):
    """It is durable; workers take it from here."""

    manifest_id: Uuid
    status: Literal["preparing"]
    total: int
    total_known: bool = Field(description="False while a scope is walked: `total` is the count so far.")
    status_url: str


class Estimate(_Answer):
    """What a request would cost, by locale and in all; `at_most` is what its calls would reserve."""

    provider: str
    model: str
    priced: bool
    locales: list[dict[str, Any]]
    total: dict[str, Any]
    unreadable: list[dict[str, Any]]


class Counts(_Answer):
    """The seven states sum to `total` at every moment."""

    total: int
    preparing: int
    queued: int
    processing: int
    completed: int
    failed: int
    protected: int
    skipped: int


class Failure(_Answer):
    """Why one document has no translation into one locale."""

    intent_id: Uuid
    document: str
    locale: Locale
    code: str
    message: str
    remedy: str
    retryable: bool
    attempts: int
    fields: list[dict[str, Any]]


class FailurePage(_Answer):
    """Failures in the order of the request; `total` counts all of them."""

    items: list[Failure]
    next: Next
    total: int


class Health(_Answer):
    """How its work is doing. `scheduling_delayed`: something has been due for more than a minute."""

    next_due_at: Moment | None
    oldest_due_at: Moment | None
    scheduling_delayed: bool
    stale_claims: int
    engine_told: bool
    last_error: dict[str, str] | None


class ManifestStatus(_Answer):
    """All that is known of a manifest."""

    manifest_id: Uuid
    status: Literal["preparing", "queued", "processing", "paused", "completed", "failed", "canceled"]
    total_known: bool
    enumeration: dict[str, Any] = Field(
        description="`phase`, `ignored_without_id`, and `unavailable`: collections that could not be listed."
    )
    canary: dict[str, Any] = Field(description="`limit`, `promotes` and `promoted_to`.")
    counts: Counts
    retryable_failed: int
    cost: dict[str, float]
    publication: dict[str, Any]
    health: Health
    failures: FailurePage
    created_at: Moment
    started_at: Moment | None
    updated_at: Moment
    completed_at: Moment | None


class ResultPage(_Answer):
    """Texts by document and locale, in the order of the request."""

    items: list[dict[str, Any]]
    next: Next


class Chosen(_Request):
    """Some intents of a manifest; without `intent_ids`, all that are eligible."""

    intent_ids: list[Uuid] | None = Field(None, max_length=limits.CHOSEN_INTENTS_MAX)


class Steered(_Answer):
    """What was asked for is durable. `intents` is how many it concerns."""

    manifest_id: Uuid
    intents: int
    status_url: str


class Decided(_Answer):
    """It rests, goes on, or is canceled. `changed` is false where it was so before, or has ended.

    Where `control` is `pending` the engine has not said yet that it knows, and is told until it does.
    """

    manifest_id: Uuid
    changed: bool
    control: Literal["told", "pending"]
    status_url: str


class Reverted(_Answer):
    """The first executions that undo what was published, newest plan first; where there is more to undo,
    others follow by themselves.
    """

    manifest_id: Uuid
    executions: list[Uuid]


class ExecutionPage(_Answer):
    """Executions of a manifest's publications, newest first."""

    items: list[dict[str, Any]]
    next: Next


class BulkItem(_Request):
    """One document into one locale. A field is a text, or an object with `text` or `plural`, `syntax` …"""

    ref: str = Field(min_length=1, max_length=limits.REF_CHARS_MAX)
    targetLang: Locale  # noqa: N815 - the wire's own spelling
    fields: dict[str, Any] | None = None
    title: Any = None
    excerpt: Any = None
    content: Any = None


class GlossaryTerm(_Request):
    """How a word is to be translated, or not; for all locales where none is named."""

    source: str = Field(min_length=1, max_length=limits.TERM_CHARS_MAX)
    target: str = Field("", max_length=limits.TERM_CHARS_MAX)
    targetLang: Locale | None = None  # noqa: N815
    status: Literal["preferred", "forbidden", "kept"] = "preferred"
    caseSensitive: bool = False  # noqa: N815


class EngineCapacity(_Answer):
    """What one submission may hold, and as whom the caller is known."""

    account: str
    workspace: str
    items_max: int
    body_bytes_max: int
    fields_per_item_max: int
    field_chars_max: int
    batch_size_max: int
    concurrency_max: int


class BulkRequest(_Request):
    """One submission to the engine; the same bytes again are answered by the same job."""

    submissionId: Uuid  # noqa: N815
    clientJobId: str = Field(min_length=1, max_length=191)  # noqa: N815
    sourceLang: Locale  # noqa: N815
    project: str = Field("default", max_length=128)
    tone: str | None = None
    options: dict[str, Any] | None = None
    callbackUrl: str | None = Field(None, max_length=500)  # noqa: N815
    budget: Budget | None = Field(None, description="Bounds the client job until a control says otherwise.")
    style: str | None = Field(None, max_length=limits.STYLE_CHARS_MAX)
    glossary: list[GlossaryTerm] | None = Field(None, max_length=limits.TERMS_PER_SUBMISSION)
    items: list[BulkItem] = Field(min_length=1, max_length=limits.ITEMS_SETTING_MAX)


class JobAccepted(_Answer):
    """The one job of a submission."""

    job_id: Uuid
    submissionId: Uuid  # noqa: N815
    status: str
    created: bool
    status_url: str


class TranslateRequest(_Request):
    """One item into one locale, without a manifest and without a callback."""

    sourceLang: Locale  # noqa: N815
    targetLang: Locale  # noqa: N815
    fields: dict[str, Any]
    item: str = Field("item", min_length=1, max_length=limits.REF_CHARS_MAX)
    submissionId: Uuid | None = None  # noqa: N815
    project: str = Field("default", max_length=128)
    tone: str | None = None
    options: dict[str, Any] | None = None


class Job(_Answer):
    """A job as it stands; an ended one is shown as its event was sent."""

    job_id: Uuid
    submissionId: Uuid  # noqa: N815
    clientJobId: str  # noqa: N815
    status: Literal["queued", "processing", "completed", "failed", "canceled"]
    usage: dict[str, Any]


class JobPage(_Answer):
    """Jobs, newest first."""

    jobs: list[dict[str, Any]]
    next_cursor: str


class ItemPage(_Answer):
    """Results of a job, by ref."""

    items: list[dict[str, Any]]
    next_cursor: str


class Usage(_Answer):
    """What a workspace may spend in this calendar month (UTC), and what it has."""

    period_start: Moment
    period_end: Moment
    used: int
    reserved: int


class ControlRequest(_Request):
    """What holds for all present and future jobs of a client job; a lower revision is ignored."""

    revision: int = Field(ge=1)
    paused: bool = False
    canceled: bool = False
    budget: Budget | None = Field(None, description="Null is unbounded; absent leaves it as it is.")
    on_unknown: Literal["resend", "resend:unlimited", "hold"] | None = None


class Control(_Answer):
    """`applied` is false where a decision of this revision or a later one is in force."""

    revision: int
    applied: bool


class Event(BaseModel):
    """A job has ended. Signed as docs/reference/http.md says; the bytes never change between attempts."""

    model_config = ConfigDict(extra="allow")

    event: Literal["job.completed", "job.failed", "job.canceled"]
    submission_id: Uuid
    job_id: Uuid
    clientJobId: str  # noqa: N815
    event_sequence: int
    status: Literal["completed", "failed", "canceled"]


class Received(_Answer):
    """`applied`, also where it was before; `kept` where it is applied later."""

    receipt: Literal["applied", "kept"]


class DeliveryPage(_Answer):
    """Events on their way out, newest first; no secret, no text."""

    items: list[dict[str, Any]]
    next: Next


class Redriven(_Answer):
    """It is due again, under the same id and with the same bytes."""

    id: Uuid
    state: Literal["pending"]


class JobRedriven(_Answer):
    """It is tried again, under the same id."""

    id: Uuid
    status: Literal["queued"]


class Alive(_Answer):
    """The process answers."""

    status: Literal["alive"]


class Trouble(_Answer):
    """One reason why new work should go elsewhere."""

    name: str
    detail: str


class Readiness(_Answer):
    """Whether new work can be taken, and if not, why."""

    ready: bool
    problems: list[Trouble]
    warnings: list[Trouble]


class RunRequest(_Request):
    """Why a project is to be brought up to date. The same `push_id` again joins the same run."""

    trigger: Literal["manual", "push", "up"] = "manual"
    push_id: str | None = Field(None, min_length=1, max_length=255)
    locales: list[str] | None = Field(
        None, min_length=1, max_length=1000, description="Those of the server's settings where absent."
    )


class FilePage(_Answer):
    """Files of a project's tree, in the order of their paths."""

    source_locale: str
    items: list[dict[str, str]] = Field(description="`path` and `sha256` of each.")
    next: str | None = Field(description="The path to go on behind, as `after`; null where the list ends.")


class RunStarted(_Answer):
    """The run, begun now or joined."""

    run_id: Uuid
    joined: bool
    status_url: str


class RunStatus(_Answer):
    """A run as it stands: its passes in order, what came from memory and from AI, money."""

    run_id: Uuid
    project: str
    trigger: Literal["manual", "push", "up"]
    push_id: str | None
    state: Literal["looking", "passing", "complete", "stalled", "canceled", "failed"]
    passes: list[dict[str, Any]]
    fields: dict[str, int]
    cost: dict[str, float]
    created_at: Moment
    ended_at: Moment | None
    last_error: str | None = None


REQUESTS: tuple[type[BaseModel], ...] = (
    ManifestRequest, Chosen, BulkRequest, TranslateRequest, ControlRequest, Event, RunRequest,
)  # fmt: skip
"""What is read from bodies: FastAPI does not see these in any signature, so the contract adds them itself."""
