"""All state machines of Dragoman, as data (law 8).

Read a row as: in this state, this event leads there. `movers` answers the question of three in the morning:
who moves a row on that stands here, and what happens if that mover dies.
"""

from __future__ import annotations

from dragoman.machines.machine import Machine

_SWEEP = (
    "its lease runs out, or the sweep frees it at once when its process is gone on the same host, or lives"
    " and works on it no more"
)

MANIFEST = Machine(
    name="manifest",
    initial="enumerating",
    terminal=frozenset({"ended"}),
    table=(
        ("enumerating", "enumerated", "open"),
        ("enumerating", "all_terminal", "ended"),
        ("open", "all_terminal", "ended"),
        ("open", "relist", "enumerating"),
    ),
    reopens=(("ended", "retry", "open"), ("ended", "relist", "enumerating")),
    movers={
        "enumerating": f"the site worker expands pairs or walks the scope; {_SWEEP}",
        "open": "its intents: the transaction that ends the last one ends it",
    },
    groups={"ACTIVE": frozenset({"enumerating", "open"})},
)

INTENT = Machine(
    name="intent",
    initial="pending",
    terminal=frozenset({"completed", "failed", "protected", "skipped"}),
    table=(
        ("pending", "claim", "preparing"),
        ("pending", "cancel", "skipped"),
        ("pending", "leave_out", "skipped"),
        ("pending", "refuse", "failed"),
        ("preparing", "prepare", "prepared"),
        ("preparing", "nothing_to_do", "skipped"),
        ("preparing", "all_protected", "protected"),
        ("preparing", "refuse", "failed"),
        ("preparing", "lease_expired", "pending"),
        ("prepared", "source_moved", "pending"),
        ("prepared", "accept", "queued"),
        ("prepared", "refuse", "failed"),
        ("prepared", "cancel", "skipped"),
        ("queued", "start", "processing"),
        ("queued", "complete", "completed"),
        ("queued", "fail", "failed"),
        ("queued", "cancel", "skipped"),
        ("processing", "complete", "completed"),
        ("processing", "fail", "failed"),
        ("processing", "cancel", "skipped"),
        ("preparing", "cancel", "skipped"),
    ),
    reopens=(("failed", "retry", "pending"),),
    movers={
        "pending": "preparation, once due; parked for a pair, the end of the other intent makes it due; "
        "held, the enumerator once its canary's sample is stored",
        "preparing": f"the holder of its shard's lease; {_SWEEP} and it returns to pending",
        "prepared": "the holder of its shard's lease groups it into a submission; any later holder may",
        "queued": "the engine's callback, or reconciliation when the callback is lost",
        "processing": "the engine's callback, or reconciliation when the callback is lost",
    },
    groups={
        "PREPARING": frozenset({"pending", "preparing", "prepared"}),
        "LINKED": frozenset({"queued", "processing"}),
        "TERMINAL": frozenset({"completed", "failed", "protected", "skipped"}),
    },
)

SUBMISSION = Machine(
    name="submission",
    initial="pending",
    terminal=frozenset({"accepted", "failed"}),
    table=(
        ("pending", "claim", "submitting"),
        ("submitting", "accept", "accepted"),
        ("submitting", "wait", "retry_wait"),
        ("submitting", "refuse", "failed"),
        ("submitting", "lease_expired", "pending"),
        ("retry_wait", "claim", "submitting"),
        ("retry_wait", "give_up", "failed"),
    ),
    movers={
        "pending": "any site worker sends its stored bytes",
        "submitting": f"its holder; {_SWEEP} and the same bytes are sent again",
        "retry_wait": "any site worker, once due",
    },
)

JOB = Machine(
    name="job",
    initial="queued",
    terminal=frozenset({"completed", "failed", "canceled"}),
    table=(
        ("queued", "claim", "processing"),
        ("queued", "cancel", "canceled"),
        ("queued", "give_up", "failed"),
        ("processing", "complete", "completed"),
        ("processing", "fail", "failed"),
        ("processing", "cancel", "canceled"),
        ("processing", "park", "queued"),
        ("processing", "claim", "processing"),
    ),
    reopens=(("failed", "redrive", "queued"),),
    movers={
        "queued": "any engine worker, once due; parked, the end of the cause makes it due",
        "processing": f"its holder; {_SWEEP} and the next holder finishes its open calls first",
    },
)

FIELD = Machine(
    name="field",
    initial="open",
    terminal=frozenset({"done", "failed", "passed"}),
    table=(("open", "translate", "done"), ("open", "fail", "failed"), ("open", "pass_through", "passed")),
    reopens=(("failed", "redrive", "open"),),
    movers={"open": "the holder of its job"},
)

CALL = Machine(
    name="call",
    initial="open",
    terminal=frozenset({"closed"}),
    table=(
        ("open", "validate", "closed"),
        ("open", "hold", "held"),
        ("held", "release", "open"),
        ("held", "close", "closed"),
    ),
    movers={
        "open": "the holder of its job: it sends, asks, or uses the stored answer",
        "held": "a person, or a wider money policy: its outcome is unknown and may be paid",
    },
)

EFFECT = Machine(
    name="effect",
    initial="READY",
    terminal=frozenset({"NOT_REQUIRED", "SUCCEEDED", "CANCELED", "SUPPRESSED"}),
    table=(
        ("READY", "decline", "NOT_REQUIRED"),
        ("READY", "claim", "CLAIMED"),
        ("READY", "start", "IN_FLIGHT"),
        ("READY", "cancel", "CANCELED"),
        ("READY", "suppress", "SUPPRESSED"),
        ("CLAIMED", "start", "IN_FLIGHT"),
        ("CLAIMED", "release", "READY"),
        ("CLAIMED", "cancel", "CANCELED"),
        ("IN_FLIGHT", "succeed", "SUCCEEDED"),
        ("IN_FLIGHT", "accept", "PROVIDER_ACCEPTED_LOCAL_PENDING"),
        ("IN_FLIGHT", "fail", "FAILED_RETRYABLE"),
        ("IN_FLIGHT", "refuse", "FAILED_MANUAL"),
        ("IN_FLIGHT", "lose", "UNKNOWN"),
        ("IN_FLIGHT", "require_compensation", "COMPENSATION_REQUIRED"),
        ("PROVIDER_ACCEPTED_LOCAL_PENDING", "link", "SUCCEEDED"),
        ("PROVIDER_ACCEPTED_LOCAL_PENDING", "require_compensation", "COMPENSATION_REQUIRED"),
        ("FAILED_RETRYABLE", "start", "IN_FLIGHT"),
        ("FAILED_RETRYABLE", "give_up", "FAILED_MANUAL"),
        ("FAILED_RETRYABLE", "cancel", "CANCELED"),
        ("FAILED_MANUAL", "approve", "READY"),
        ("FAILED_MANUAL", "cancel", "CANCELED"),
        ("UNKNOWN", "find_done", "SUCCEEDED"),
        ("UNKNOWN", "find_absent", "FAILED_RETRYABLE"),
        ("UNKNOWN", "find_refused", "FAILED_MANUAL"),
        ("UNKNOWN", "find_local_missing", "PROVIDER_ACCEPTED_LOCAL_PENDING"),
        ("UNKNOWN", "resend", "IN_FLIGHT"),
        ("UNKNOWN", "require_compensation", "COMPENSATION_REQUIRED"),
        ("COMPENSATION_REQUIRED", "compensate", "CANCELED"),
    ),
    movers={
        "READY": "its owner's holder, or the effects worker when it is free",
        "CLAIMED": f"its holder; {_SWEEP}",
        "IN_FLIGHT": "its sender; whoever takes over asks first and never resends blindly",
        "PROVIDER_ACCEPTED_LOCAL_PENDING": "inquiry: the result is fetched or linked, never bought again",
        "FAILED_RETRYABLE": "its owner, once due",
        "FAILED_MANUAL": "a person",
        "UNKNOWN": "inquiry; then the family's policy, or a person",
        "COMPENSATION_REQUIRED": "a person, by an approved counter-act",
    },
    groups={"ANSWERED": frozenset({"SUCCEEDED", "PROVIDER_ACCEPTED_LOCAL_PENDING"})},
)

ATTEMPT = Machine(
    name="attempt",
    initial="STARTED",
    terminal=frozenset(
        {
            "NOT_STARTED",
            "ACCEPTED",
            "REJECTED",
            "SUCCEEDED",
            "INVALID_RESPONSE_UNKNOWN",
            "LOCAL_PERSIST_FAILED",
            "CALLBACK_PENDING",
            "ACCEPTED_LATE",
        }
    ),
    table=(
        ("STARTED", "not_sent", "NOT_STARTED"),
        ("STARTED", "accepted", "ACCEPTED"),
        ("STARTED", "rejected", "REJECTED"),
        ("STARTED", "succeeded", "SUCCEEDED"),
        ("STARTED", "timed_out", "TIMEOUT_UNKNOWN"),
        ("STARTED", "connection_lost", "CONNECTION_UNKNOWN"),
        ("STARTED", "unreadable", "INVALID_RESPONSE_UNKNOWN"),
        ("STARTED", "save_failed", "LOCAL_PERSIST_FAILED"),
        ("STARTED", "answer_follows", "CALLBACK_PENDING"),
        ("STARTED", "found_absent", "ABSENT"),
        ("TIMEOUT_UNKNOWN", "found_absent", "ABSENT"),
        ("CONNECTION_UNKNOWN", "found_absent", "ABSENT"),
        ("ABSENT", "late_answer", "ACCEPTED_LATE"),
        ("TIMEOUT_UNKNOWN", "late_answer", "ACCEPTED_LATE"),
        ("CONNECTION_UNKNOWN", "late_answer", "ACCEPTED_LATE"),
    ),
    movers={
        "STARTED": "its sender; a take-over moves it to CONNECTION_UNKNOWN",
        "ABSENT": "nobody but its own sender's late answer",
        "TIMEOUT_UNKNOWN": "its sender's late answer, or an inquiry that finds its batch ended without",
        "CONNECTION_UNKNOWN": "its sender's late answer, or an inquiry that finds its batch ended without",
    },
    groups={
        "UNKNOWN": frozenset({"TIMEOUT_UNKNOWN", "CONNECTION_UNKNOWN"}),
        "PAID": frozenset(
            {"ACCEPTED", "SUCCEEDED", "INVALID_RESPONSE_UNKNOWN", "LOCAL_PERSIST_FAILED", "ACCEPTED_LATE"}
        ),
        "FREE": frozenset({"NOT_STARTED", "REJECTED", "ABSENT"}),
        "LATE": frozenset({"ABSENT", "TIMEOUT_UNKNOWN", "CONNECTION_UNKNOWN"}),
    },
)

WORK = Machine(
    name="work",
    initial="AVAILABLE",
    terminal=frozenset({"COMPLETED", "CANCELED", "EXPIRED"}),
    table=(
        ("AVAILABLE", "claim", "LEASED"),
        ("AVAILABLE", "cancel", "CANCELED"),
        ("AVAILABLE", "expire", "EXPIRED"),
        ("LEASED", "start", "RUNNING"),
        ("LEASED", "release", "AVAILABLE"),
        ("RUNNING", "complete", "COMPLETED"),
        ("RUNNING", "retry_later", "WAITING_RETRY"),
        ("RUNNING", "answer_follows", "WAITING_CALLBACK"),
        ("RUNNING", "need_person", "MANUAL_REVIEW"),
        ("WAITING_RETRY", "claim", "LEASED"),
        ("WAITING_RETRY", "cancel", "CANCELED"),
        ("WAITING_RETRY", "expire", "EXPIRED"),
        ("WAITING_CALLBACK", "complete", "COMPLETED"),
        ("WAITING_CALLBACK", "claim", "LEASED"),
        ("MANUAL_REVIEW", "resolve", "COMPLETED"),
        ("MANUAL_REVIEW", "retry", "AVAILABLE"),
        ("MANUAL_REVIEW", "cancel", "CANCELED"),
    ),
    movers={
        "AVAILABLE": "the effects worker",
        "LEASED": f"its holder; {_SWEEP}",
        "RUNNING": f"its holder; {_SWEEP} and it is asked about first",
        "WAITING_RETRY": "the effects worker, once due",
        "WAITING_CALLBACK": "the callback, or inquiry once due",
        "MANUAL_REVIEW": "a person",
    },
)

OUTBOX = Machine(
    name="outbox",
    initial="pending",
    terminal=frozenset({"delivered", "dead"}),
    table=(
        ("pending", "claim", "delivering"),
        ("pending", "endpoint_gone", "dead"),
        ("delivering", "claim", "delivering"),
        ("delivering", "deliver", "delivered"),
        ("delivering", "wait", "pending"),
        ("delivering", "give_up", "dead"),
    ),
    reopens=(("dead", "redrive", "pending"),),
    movers={
        "pending": "the delivery worker, once due",
        "delivering": f"its holder; {_SWEEP} and the same bytes are sent again under the same id",
    },
)

RECEIPT = Machine(
    name="receipt",
    initial="RECEIVED",
    terminal=frozenset({"DUPLICATE", "OUT_OF_ORDER", "APPLIED", "IGNORED", "FAILED_MANUAL"}),
    table=(
        ("RECEIVED", "apply", "APPLIED"),
        ("RECEIVED", "repeat", "DUPLICATE"),
        ("RECEIVED", "stale", "OUT_OF_ORDER"),
        ("RECEIVED", "unrelated", "IGNORED"),
        ("RECEIVED", "fail", "FAILED_RETRYABLE"),
        ("RECEIVED", "contradict", "FAILED_MANUAL"),
        ("RECEIVED", "lose", "UNKNOWN"),
        ("FAILED_RETRYABLE", "apply", "APPLIED"),
        ("FAILED_RETRYABLE", "give_up", "FAILED_MANUAL"),
        ("UNKNOWN", "apply", "APPLIED"),
        ("UNKNOWN", "give_up", "FAILED_MANUAL"),
    ),
    movers={
        "RECEIVED": "the request that brought it, its redelivery, or the sweep",
        "FAILED_RETRYABLE": "the sweep, once due",
        "UNKNOWN": "reconciliation",
    },
    groups={"APPLICABLE": frozenset({"RECEIVED", "FAILED_RETRYABLE", "UNKNOWN"})},
)

REQUEST = Machine(
    name="publication_request",
    initial="pending",
    terminal=frozenset({"planned", "failed"}),
    table=(("pending", "plan", "planned"), ("pending", "give_up", "failed")),
    movers={"pending": "the publishing worker, once due"},
)

EXECUTION = Machine(
    name="execution",
    initial="QUEUED",
    terminal=frozenset({"SUCCEEDED", "FAILED"}),
    table=(
        ("QUEUED", "deliver", "RUNNING"),
        ("RUNNING", "succeed", "SUCCEEDED"),
        ("RUNNING", "fail", "FAILED"),
        ("RUNNING", "requeue", "QUEUED"),
        ("QUEUED", "fail", "FAILED"),
    ),
    movers={
        "QUEUED": "the publishing worker, once its command is due",
        "RUNNING": "the holder of its command; after its lease the same step goes again under the same key",
    },
)

STEP = Machine(
    name="step",
    initial="PENDING",
    terminal=frozenset({"SUCCEEDED", "FAILED", "CONFLICT"}),
    table=(
        ("PENDING", "start", "RUNNING"),
        ("PENDING", "found_done", "SUCCEEDED"),
        ("RUNNING", "succeed", "SUCCEEDED"),
        ("RUNNING", "refuse", "FAILED"),
        ("RUNNING", "conflict", "CONFLICT"),
        ("RUNNING", "race", "PENDING"),
        ("RUNNING", "take_over", "PENDING"),
        ("RUNNING", "lose", "UNKNOWN"),
        ("UNKNOWN", "retry", "PENDING"),
        ("UNKNOWN", "give_up", "FAILED"),
    ),
    movers={
        "PENDING": "the holder of its command, in order",
        "RUNNING": "the holder of its command; a take-over starts it again under the same key",
        "UNKNOWN": "the next delivery reads back first; after five, a person",
    },
)

COMMAND = Machine(
    name="command",
    initial="PENDING",
    terminal=frozenset({"DELIVERED", "FAILED"}),
    table=(
        ("PENDING", "claim", "PROCESSING"),
        ("PROCESSING", "claim", "PROCESSING"),
        ("PROCESSING", "deliver", "DELIVERED"),
        ("PROCESSING", "fail", "FAILED"),
        ("PROCESSING", "wait", "PENDING"),
    ),
    movers={
        "PENDING": "the publishing worker, once due",
        "PROCESSING": f"its holder; {_SWEEP}",
    },
)

RUN = Machine(
    name="run",
    initial="looking",
    terminal=frozenset({"complete", "stalled", "canceled", "failed"}),
    table=(
        ("looking", "begin_pass", "passing"),
        ("looking", "complete", "complete"),
        ("looking", "stall", "stalled"),
        ("looking", "cancel", "canceled"),
        ("looking", "fail", "failed"),
        ("passing", "end_pass", "looking"),
        ("passing", "fail", "failed"),
    ),
    movers={
        "looking": f"any site worker, once due: it reads what is wanted; {_SWEEP}",
        "passing": f"any site worker, once the pass's manifest has ended; {_SWEEP}",
    },
)

ALL: tuple[Machine, ...] = (
    MANIFEST, INTENT, SUBMISSION, JOB, FIELD, CALL, EFFECT, ATTEMPT, WORK, OUTBOX, RECEIPT, REQUEST,
    EXECUTION, STEP, COMMAND, RUN,
)  # fmt: skip
