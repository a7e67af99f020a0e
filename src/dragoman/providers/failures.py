"""What is known after a send, as tables. Shared ground of this room, no member of it.

An exception says how far the request came; a status says something only when it is the provider's own. Both
tables follow one rule: what may have been paid for is never called failed. Knows no vendor but by the headers
that prove one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp

from dragoman.kernel import limits
from dragoman.kernel.errors import sanitize
from dragoman.model.completions import ProviderAnswer

NOT_STARTED: Final = "NOT_STARTED"
REJECTED: Final = "REJECTED"
SUCCEEDED: Final = "SUCCEEDED"
TIMEOUT_UNKNOWN: Final = "TIMEOUT_UNKNOWN"
CONNECTION_UNKNOWN: Final = "CONNECTION_UNKNOWN"
INVALID_RESPONSE_UNKNOWN: Final = "INVALID_RESPONSE_UNKNOWN"

CODES: Mapping[str, str] = {
    NOT_STARTED: "PROVIDER_NOT_REACHED",
    REJECTED: "PROVIDER_REJECTED",
    SUCCEEDED: "",
    TIMEOUT_UNKNOWN: "PROVIDER_TIMEOUT_UNKNOWN",
    CONNECTION_UNKNOWN: "PROVIDER_CONNECTION_UNKNOWN",
    INVALID_RESPONSE_UNKNOWN: "PROVIDER_RESPONSE_INVALID",
}
"""The code that goes with an outcome where nothing more exact is known."""

EXCEPTIONS: Sequence[tuple[type[BaseException], str]] = (
    (aiohttp.ClientConnectorError, NOT_STARTED),  # refused, unreachable, no such name, TLS refused
    (aiohttp.ConnectionTimeoutError, NOT_STARTED),  # before a connection stood
    (aiohttp.InvalidURL, NOT_STARTED),
    (TimeoutError, TIMEOUT_UNKNOWN),
    (aiohttp.ClientError, CONNECTION_UNKNOWN),  # closed, reset or garbled after the request may have left
    (OSError, CONNECTION_UNKNOWN),
)
"""First match wins. A request that never got a connection is NOT_STARTED whatever the exception."""


ReadError = Callable[[bytes], Mapping[str, object] | None]
"""Gives the error of a protocol's error body, its text as `message`; None where the body is no such thing."""


@dataclass(frozen=True, slots=True)
class StatusRow:
    """What some statuses mean; `attributed` rows hold only where the provider itself has answered."""

    statuses: Collection[int]
    attributed: bool
    outcome: str
    code: str


STATUSES: Sequence[StatusRow] = (
    StatusRow((408, 504), False, TIMEOUT_UNKNOWN, CODES[TIMEOUT_UNKNOWN]),
    StatusRow((500, 502), False, CONNECTION_UNKNOWN, CODES[CONNECTION_UNKNOWN]),
    StatusRow((402, 456), True, REJECTED, "PROVIDER_SPEND_LIMIT"),
    StatusRow((429, 503, 529), True, REJECTED, "PROVIDER_RATE_LIMITED"),
    StatusRow(range(300, 500), True, REJECTED, CODES[REJECTED]),
)
"""Statuses outside 2xx; first match wins, and what no row takes is CONNECTION_UNKNOWN."""

SPEND_LIMIT_REASONS = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "billing_hard_limit_reached",
        "billing_not_active",
        "enforced_spend_limit_reached",
        "spend_limit_reached",
        "insufficient_balance",
    }
)
"""A 429 with one of these means no money, and waiting does not help."""

SPEND_LIMIT_MESSAGES = (
    "your credit balance is too low",
    "you have reached your specified api usage limits",
    "you have reached your specified workspace api usage limits",
    "prepayment credits are depleted",
    "spending cap",
    "spend cap",
)
"""What a 400 or 429 says (lower case) where its vendor has no machine-readable word for no money."""

REFUSAL_REASONS = frozenset(
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "invalid_prompt"}
)
"""A 400 with one of these refuses this content and nothing else."""

REASONS_MEANT: Mapping[str, int] = {
    "api_key_invalid": 401,
    "context_length_exceeded": 413,
    "request_too_large": 413,
}
"""Reasons that some give under 400, as the statuses that others have for them: who reads an answer's status
need not know who gave it.
"""

RESETS = ("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens")
"""When a rate is open again, as a duration: told with every answer, and of use where no Retry-After is."""

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)")
_DURATION = re.compile(r"\d+(?:\.\d+)?|(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")


@dataclass(frozen=True, slots=True)
class Sent:
    """The facts of one send.

    `status` is None where no head of an answer came; `body` is what came of it, `whole` whether that is all.
    `connected` says that a connection stood, so that the request may have left. Header names are lower case.
    """

    connected: bool
    status: int | None = None
    headers: Mapping[str, str] | None = None
    body: bytes = b""
    whole: bool = False
    error: BaseException | None = None


def judge(sent: Sent, known_headers: Collection[str], read_error: ReadError | None = None) -> ProviderAnswer:
    """The answer that the facts amount to.

    A status is the provider's own when it carries one of `known_headers`, or, where none is known, when the
    body is the protocol's error envelope. `read_error` reads that of another protocol than OpenAI's.
    """
    if sent.status is None:
        return _unanswered(sent)
    if 200 <= sent.status < 300:
        return _accepted(sent, known_headers)
    return _refused(sent, known_headers, (read_error or envelope)(sent.body))


def not_started(message: str, code: str = CODES[NOT_STARTED]) -> ProviderAnswer:
    """An attempt that ended before anything left this process."""
    return ProviderAnswer(NOT_STARTED, code=code, message=sanitize(message))


def working(reference: str, status: int | None = None) -> ProviderAnswer:
    """Work in the background, known by this name, that has not ended."""
    return ProviderAnswer(
        TIMEOUT_UNKNOWN,
        status=status,
        code=CODES[TIMEOUT_UNKNOWN],
        message="the provider works on it in the background",
        provider_ref=reference,
    )


def unworked(reference: str, message: str) -> ProviderAnswer:
    """Work in the background that has ended without an answer, and is not paid for."""
    return ProviderAnswer(
        NOT_STARTED,
        code=CODES[NOT_STARTED],
        message=sanitize(message),
        provider_ref=reference,
        final=True,
    )


def unclear(looked: ProviderAnswer, reference: str = "") -> ProviderAnswer:
    """A look at work in the background that failed: whatever befell it says nothing about the work.

    That the provider asks to be left alone for a while is heard all the same.
    """
    limited = looked.code == "PROVIDER_RATE_LIMITED"
    return ProviderAnswer(
        TIMEOUT_UNKNOWN,
        status=looked.status,
        code=looked.code if limited else CODES[TIMEOUT_UNKNOWN],
        message=looked.message,
        retry_after_seconds=looked.retry_after_seconds if limited else None,
        provider_ref=reference,
    )


def is_closed_to_looks(looked: ProviderAnswer) -> bool:
    """Whether the provider lets this key look at nothing, or has nothing to look at: so nothing can be asked.

    A key may be allowed to send and not to read; waiting for it to be allowed would have no end.
    """
    return looked.outcome == REJECTED and looked.status in (401, 403, 404, 405)


def outcome_of(error: BaseException | None, connected: bool) -> str:
    """What an exception says about the request."""
    if not connected:
        return NOT_STARTED
    return next((outcome for kind, outcome in EXCEPTIONS if isinstance(error, kind)), CONNECTION_UNKNOWN)


def envelope(body: bytes) -> Mapping[str, object] | None:
    """The `error` object of a protocol's error body, None where the body is no such thing."""
    error = error_body(body).get("error")
    return error if isinstance(error, dict) else None


def compatible_envelope(body: bytes) -> Mapping[str, object] | None:
    """The same of servers that speak a vendor's protocol, and spell its errors in two more ways.

    LM Studio gives the text alone, `{"error": "…"}`; vLLM gave `{"object": "error", "message": "…", …}`.
    """
    said = error_body(body)
    if isinstance(said.get("error"), str):
        return {"message": said["error"]}
    return said if said.get("object") == "error" else envelope(body)


def error_body(body: bytes) -> Mapping[str, object]:
    """The JSON object that a body is, an empty one where it is none."""
    said = _json(body)
    return said if isinstance(said, dict) else {}


def retry_after_seconds(
    headers: Mapping[str, str], error: Mapping[str, object] | None = None
) -> float | None:
    """How long the provider asks us to wait: a number of seconds, or a date beside its own `Date`.

    Without such a header, the error's own delay (Google's RetryInfo), then the time at which the last of the
    vendor's rates is open again.
    """
    milliseconds, said = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    try:
        if milliseconds:
            wait = float(milliseconds) / 1000
        elif said.replace(".", "", 1).isdecimal():
            wait = float(said)
        elif said:
            until, now = parsedate_to_datetime(said), parsedate_to_datetime(headers.get("date", ""))
            wait = (until - now).total_seconds()
        else:
            wait = max(_delays(headers, error or {}))
    except (ValueError, TypeError):
        return None
    return min(max(wait, 0.0), float(limits.PROVIDER_RETRY_AFTER_SECONDS_MAX))


def duration_seconds(said: str) -> float:
    """A duration as vendors write it: `12`, `1s`, `6m0s`, `20ms`, `1h2m3.5s`. Raises `ValueError`."""
    if not _DURATION.fullmatch(said):
        raise ValueError(f"no duration: {said[:20]}")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(said))


def _delays(headers: Mapping[str, str], error: Mapping[str, object]) -> list[float]:
    """The error's delay, else the resets that headers name. Raises `ValueError` where one is no duration."""
    details = error.get("details")
    told = [
        str(detail.get("retryDelay"))
        for detail in (details if isinstance(details, list) else [])
        if isinstance(detail, Mapping) and detail.get("retryDelay")
    ]
    return [duration_seconds(one) for one in told or [headers[name] for name in RESETS if name in headers]]


def _unanswered(sent: Sent) -> ProviderAnswer:
    outcome = outcome_of(sent.error, sent.connected)
    return ProviderAnswer(outcome, code=CODES[outcome], message=_told(sent.error))


def _accepted(sent: Sent, known_headers: Collection[str]) -> ProviderAnswer:
    if sent.whole and _json(sent.body) is not None:
        outcome, message = SUCCEEDED, ""
    elif isinstance(sent.error, TimeoutError) and not sent.body.strip():
        outcome, message = TIMEOUT_UNKNOWN, "the answer began, and its body did not come in time"
    else:
        outcome = INVALID_RESPONSE_UNKNOWN
        message = (
            "the answer is not readable JSON" if sent.whole else f"the answer broke off: {_told(sent.error)}"
        )
    return ProviderAnswer(
        outcome,
        body=sent.body,
        status=sent.status,
        code=CODES[outcome],
        message=sanitize(message),
        provider_ref=_reference(sent, known_headers),
    )


def _refused(
    sent: Sent, known_headers: Collection[str], error: Mapping[str, object] | None
) -> ProviderAnswer:
    status, headers = sent.status or 0, sent.headers or {}
    attributed = any(name in headers for name in known_headers) if known_headers else error is not None
    said = (error or {}).get("message")
    outcome, code = _status(status, attributed)
    meant = status
    if outcome == REJECTED:
        reasons = _reasons(error or {})
        if status == 400:
            meant = next((REASONS_MEANT[reason] for reason in reasons if reason in REASONS_MEANT), status)
        if reasons & SPEND_LIMIT_REASONS or (status in (400, 429) and _is_about_money(said)):
            code = "PROVIDER_SPEND_LIMIT"
        elif status == 400 and reasons & REFUSAL_REASONS:
            code = "content_refused"
    return ProviderAnswer(
        outcome,
        body=sent.body,
        status=meant,
        code=code,
        message=sanitize(f"HTTP {status}: {said if isinstance(said, str) else 'no message'}"),
        retry_after_seconds=_asked_wait(headers, error, code),
        spend_limit=code == "PROVIDER_SPEND_LIMIT",
        provider_ref=_reference(sent, known_headers),
    )


def _status(status: int, attributed: bool) -> tuple[str, str]:
    for row in STATUSES:
        if status in row.statuses and (attributed or not row.attributed):
            return row.outcome, row.code
    return CONNECTION_UNKNOWN, CODES[CONNECTION_UNKNOWN]


def _asked_wait(headers: Mapping[str, str], error: Mapping[str, object] | None, code: str) -> float | None:
    """The wait that an answer asks for; resets of rates say something of an answer about rates only."""
    if code == "PROVIDER_RATE_LIMITED":
        return retry_after_seconds(headers, error)
    return retry_after_seconds({name: value for name, value in headers.items() if name not in RESETS})


def _is_about_money(said: object) -> bool:
    words = said.lower() if isinstance(said, str) else ""
    return any(phrase in words for phrase in SPEND_LIMIT_MESSAGES)


def _reasons(error: Mapping[str, object]) -> frozenset[str]:
    """Every machine-readable reason that an error envelope gives, in lower case."""
    details = error.get("details")
    listed = details if isinstance(details, list) else [details]
    found = (
        place.get(name)
        for place in (error, error.get("innererror"), *listed)
        if isinstance(place, Mapping)
        for name in ("code", "type", "error_code", "reason")
    )
    return frozenset(reason.lower() for reason in found if isinstance(reason, str))


def _reference(sent: Sent, known_headers: Collection[str]) -> str:
    headers = sent.headers or {}
    return next((sanitize(headers[name])[:200] for name in known_headers if name in headers), "")


def _told(error: BaseException | None) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer before the deadline"
    return sanitize(f"{type(error).__name__}: {error}" if error else "no answer")


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
