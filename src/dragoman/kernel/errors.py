"""The error tree, sorted by who can mend it.

    DragomanError
    ├─ CallerError            the request is wrong: change it and ask again
    │   ├─ DocumentError        a file is not what it says (line named)
    │   ├─ LocaleError          an unknown or unsupported locale
    │   └─ SettingsError        configuration is missing, unsafe or contradicts itself
    ├─ OutsideError           something that we depend on said no or nothing
    │   ├─ SourceError          a source cannot be listed or read now
    │   ├─ QueueError           the queue's server refuses or does not answer: the database leads alone
    │   └─ StoreError           the database is gone, locked, older or newer than this program
    │       └─ CommitUnknown      the connection was lost after COMMIT was sent
    └─ Halted                 this worker must stop what it does
        ├─ LeaseLost            another holder took over: write nothing more
        └─ QueueClosed          the queue was shut down

"We do not know" is not in the tree: it is an outcome of an attempt (machines/tables.py), never an exception.
Codes, their HTTP status, whether a person may retry, and the remedy stand in `CODES`; no other code appears
in an answer, a row or a log line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from dragoman.kernel import limits

Kind = Literal["admission", "intent", "skipped", "field", "job", "publication", "effect", "settings", "store"]


@dataclass(frozen=True, slots=True)
class Code:
    """One stable code. `status` is its HTTP status where a request is answered with it."""

    name: str
    kind: Kind
    status: int
    retryable: bool
    remedy: str


_TABLE: tuple[tuple[str, Kind, int, bool, str], ...] = (
    # what a request can be told
    (
        "invalid_request",
        "admission",
        422,
        False,
        "Correct the place that the message names and send it again.",
    ),
    (
        "invalid_json",
        "admission",
        422,
        False,
        "Send one well-formed JSON object in UTF-8, without duplicate keys.",
    ),
    ("duplicate_pair", "admission", 422, False, "Name each document and locale once."),
    ("empty_request", "admission", 422, False, "Name at least one document and one locale."),
    ("source_is_target", "admission", 422, False, "Leave the source locale out of the targets."),
    (
        "output_conflict",
        "admission",
        422,
        False,
        "Choose an output pattern that gives each pair its own path.",
    ),
    ("output_outside_tree", "admission", 422, False, "Choose an output pattern inside the working tree."),
    ("unsupported_collection", "admission", 422, False, "Name a collection or global that the source has."),
    (
        "unsupported_format",
        "admission",
        422,
        False,
        "Use one of the formats that `dragoman translate --help` lists.",
    ),
    ("path_not_found", "admission", 404, False, "Check the spelling of the path."),
    ("request_too_large", "admission", 413, False, "Send fewer pairs, or raise the limit in the settings."),
    ("request_id_conflict", "admission", 409, False, "Use a new request id for another request."),
    ("submission_id_conflict", "admission", 409, False, "Use a new submission id for another request."),
    (
        "nothing_to_retry",
        "admission",
        409,
        False,
        "Nothing that failed can be retried; read the failures' codes.",
    ),
    (
        "nothing_to_promote",
        "admission",
        409,
        False,
        "Promote a canary once its sample is chosen, and only where pairs were left out.",
    ),
    (
        "nothing_lost",
        "admission",
        409,
        False,
        "Only what the engine was asked about and did not know is given up; see health.last_error.",
    ),
    ("already_ended", "admission", 409, False, "It has ended; look at its status."),
    ("lease_held", "admission", 409, True, "A worker has it; ask again after its lease."),
    ("callback_contradiction", "admission", 409, False, "The callback contradicts what is on record."),
    ("unauthorized", "admission", 401, False, "Send a valid bearer token (`dragoman tokens create`)."),
    ("forbidden", "admission", 403, False, "Use a token that has the capability named."),
    ("not_owner", "admission", 403, False, "Only the person who asked for it may do this."),
    ("not_found", "admission", 404, False, "Check the id and the workspace of your token."),
    (
        "method_not_allowed",
        "admission",
        405,
        False,
        "Use a method that the path has; /openapi.json lists them.",
    ),
    ("unsupported_media_type", "admission", 415, False, "Send application/json."),
    ("rate_limited", "admission", 429, True, "Wait as long as Retry-After says."),
    ("admission_closed", "admission", 503, True, "New work is not taken now; ask again later."),
    ("worker_unavailable", "admission", 503, True, "Start a worker: `dragoman worker` or `dragoman serve`."),
    ("schema_unavailable", "admission", 503, True, "Bring the database up to date: `dragoman migrate`."),
    (
        "sealing_key_missing",
        "admission",
        503,
        False,
        "Set DRAGOMAN_SEALING_KEY, or submit without a callback.",
    ),
    ("source_unavailable", "admission", 503, True, "The source did not answer; ask again later."),
    # why an intent failed
    (
        "authorization_revoked",
        "intent",
        403,
        False,
        "Give the person the right to edit the document, then start anew.",
    ),
    ("document_not_found", "intent", 404, False, "Check that the document exists under that name."),
    (
        "unsupported_locale",
        "intent",
        422,
        False,
        "Choose a locale that is well formed and that the provider translates.",
    ),
    ("target_protected", "intent", 409, False, "Release the protected text, or use mode force."),
    ("invalid_fields", "intent", 422, False, "Mend the document at the line named, then start again."),
    ("payload_too_large", "intent", 413, False, "Split the document, or raise the limit in the settings."),
    ("backend_rate_limited", "intent", 429, True, "Retry later; the engine takes less work now."),
    ("backend_unavailable", "intent", 503, True, "Retry once the engine can be reached."),
    (
        "submission_conflict",
        "intent",
        409,
        False,
        "The engine knows other bytes under this id; start a new manifest.",
    ),
    ("lease_lost", "intent", 503, True, "Retry; a worker was interrupted."),
    ("retry_exhausted", "intent", 503, True, "Find the cause in the attempts, then retry."),
    (
        "content_refused",
        "intent",
        422,
        True,
        "The provider refuses this text; reword it or use another provider.",
    ),
    ("checks_failed", "intent", 422, True, "Retry, or translate the fields named by hand."),
    ("gave_up", "intent", 422, False, "Change the text, the model or the prompt, or retry with --force."),
    (
        "job_lost",
        "intent",
        410,
        True,
        "Retry: it is asked for anew. What the lost job did may have been paid, and may be paid again.",
    ),
    ("budget_exhausted", "intent", 402, True, "Raise the budget, then retry."),
    ("internal_error", "intent", 500, True, "Retry; if it comes again, send the log lines with this code."),
    # why an intent was skipped
    ("canceled", "skipped", 409, False, "It was canceled; start a new manifest."),
    ("up_to_date", "skipped", 200, False, "Nothing to do."),
    ("canary_not_sampled", "skipped", 200, False, "Promote the canary to translate the rest."),
    # why a job failed
    ("provider_unknown", "job", 422, False, "Name a provider that the settings know."),
    ("provider_credentials_missing", "job", 422, False, "Put the provider's key into the environment."),
    (
        "provider_rejected",
        "job",
        502,
        False,
        "Read the provider's message; mend the key, the model or the request.",
    ),
    ("provider_unavailable", "job", 503, True, "Retry once the provider answers."),
    ("callback_secret_missing", "job", 503, True, "Set the callback secret; the submission waits for it."),
    # publishing
    ("plan_mismatch", "publication", 409, False, "Make a new plan: what was stored does not verify."),
    (
        "target_conflict",
        "publication",
        409,
        False,
        "Somebody changed the target; compare, then translate with --force.",
    ),
    ("source_moved", "publication", 409, False, "The source changed meanwhile; translate it again."),
    ("target_raced", "publication", 409, True, "Somebody wrote at the same moment; it is tried again."),
    (
        "target_refused",
        "publication",
        403,
        False,
        "Give the process the right to write there, or free disk space.",
    ),
    (
        "verify_failed",
        "publication",
        500,
        False,
        "The written file would not read back; nothing was written. Report it.",
    ),
    (
        "would_empty",
        "publication",
        409,
        False,
        "The result is empty where content stands; nothing was written.",
    ),
    # effects
    ("EFFECT_PAYLOAD_CONFLICT", "effect", 409, False, "The same key asks for something else; use a new key."),
    ("EFFECT_IN_FLIGHT", "effect", 409, True, "An attempt is under way; wait for its end."),
    ("EFFECT_ALREADY_COMPLETE", "effect", 409, False, "It is done; look at its result."),
    (
        "PROVIDER_TIMEOUT_UNKNOWN",
        "effect",
        504,
        False,
        "Nobody knows whether it happened; ask, do not repeat.",
    ),
    (
        "PROVIDER_CONNECTION_UNKNOWN",
        "effect",
        502,
        False,
        "Nobody knows whether it happened; ask, do not repeat.",
    ),
    ("PROVIDER_RESPONSE_INVALID", "effect", 502, False, "The answer cannot be read; its bytes are kept."),
    ("PROVIDER_NOT_REACHED", "effect", 503, True, "Nothing was sent; it is tried again."),
    ("PROVIDER_RATE_LIMITED", "effect", 429, True, "The provider asks to slow down; it is tried again."),
    ("PROVIDER_SPEND_LIMIT", "effect", 402, True, "Raise the limit at the provider; work goes on by itself."),
    ("PROVIDER_REJECTED", "effect", 422, False, "Read the provider's message and mend the cause."),
    # settings and store
    ("invalid_settings", "settings", 500, False, "Correct the setting that the message names."),
    ("database_unavailable", "store", 503, True, "Start the database, or check the URL."),
    (
        "queue_unavailable",
        "store",
        503,
        True,
        "Check the queue's address, region and credentials; jobs are found in the database meanwhile.",
    ),
    ("database_newer", "store", 503, False, "Use the newer program that migrated this database."),
    (
        "commit_unknown",
        "store",
        503,
        True,
        "The connection broke while committing; ask again under the same id.",
    ),
)

CODES: dict[str, Code] = {row[0]: Code(*row) for row in _TABLE}

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


def sanitize(message: str) -> str:
    """One line, without control or bidi characters, at most `limits.MESSAGE_BYTES` UTF-8 bytes."""
    line = _CONTROL.sub(" ", message).strip()
    cut = line.encode("utf-8", "replace")[: limits.MESSAGE_BYTES]
    return cut.decode("utf-8", "ignore")


class DragomanError(Exception):
    """Every error of ours: a stable `code`, a sanitized `message`, and where it lies (`place`)."""

    code = "internal_error"

    def __init__(self, message: str, code: str | None = None, place: str = "") -> None:
        self.code = code or type(self).code
        if self.code not in CODES:
            raise ValueError(f"unknown error code {self.code!r}")
        self.message = sanitize(message)
        self.place = place
        super().__init__(self.message)

    @property
    def remedy(self) -> str:
        """What the reader can do now."""
        return CODES[self.code].remedy


class CallerError(DragomanError):
    """The request is wrong: change it and ask again."""

    code = "invalid_request"


class DocumentError(CallerError):
    """A file is not what it says it is. `line` counts from 1; 0 where no line can be named."""

    code = "invalid_fields"

    def __init__(self, message: str, line: int = 0, code: str | None = None) -> None:
        self.line = line
        super().__init__(
            f"line {line}: {message}" if line else message, code, place=f"line {line}" if line else ""
        )


class LocaleError(CallerError):
    """An ill-formed, unknown or unsupported locale."""

    code = "unsupported_locale"


class SettingsError(CallerError):
    """Configuration is missing, unsafe, or contradicts itself."""

    code = "invalid_settings"


class OutsideError(DragomanError):
    """Something that we depend on said no, or nothing."""

    code = "backend_unavailable"


class SourceError(OutsideError):
    """A source cannot be listed or read now."""

    code = "source_unavailable"


class QueueError(OutsideError):
    """The queue's server refuses, or does not answer."""

    code = "queue_unavailable"


class StoreError(OutsideError):
    """The database is gone, locked, older or newer than this program."""

    code = "database_unavailable"


class CommitUnknown(StoreError):
    """The connection was lost after COMMIT was sent: behave as if the process had died here."""

    code = "commit_unknown"


class Halted(DragomanError):
    """This worker must stop what it does."""

    code = "lease_lost"


class LeaseLost(Halted):
    """Zero rows under this fence: another holder took over."""


class QueueClosed(Halted):
    """The queue was shut down."""
