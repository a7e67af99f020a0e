"""Family `submission`: what the owner's side asks of the translating side, over one `EngineClient`.

Create-or-return makes it safe to send the same bytes again, so an answer that is lost is repaired by asking
anew. The callback secret and the token are read at send time and travel in headers only. Refusals come back
under the codes of intents; what the engine may have taken is never called refused.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from dragoman.families.outbound import Exchange, Outbound, retry_after_seconds, unanswered
from dragoman.kernel import limits, signing
from dragoman.kernel.errors import CODES, DragomanError, OutsideError, sanitize
from dragoman.model.contracts import EngineClient
from dragoman.model.effects import Answer, Idempotency, Outgoing

CALLBACK_SECRET = "X-Dragoman-Callback-Secret"  # noqa: S105 - the name of a header

_STATUSES: Sequence[tuple[Collection[int], str, str]] = (
    ((409,), "REJECTED", "submission_conflict"),
    ((413,), "REJECTED", "payload_too_large"),
    ((400, 422), "REJECTED", "invalid_fields"),
    ((429,), "REJECTED", "backend_rate_limited"),
    ((408, 504), "TIMEOUT_UNKNOWN", "PROVIDER_TIMEOUT_UNKNOWN"),
    (range(300, 500), "REJECTED", "backend_unavailable"),
)
"""What the engine's statuses mean for a submission; first match wins, what no row takes is unknown."""

_OWN_WORDS = {
    "submission_id_conflict": "submission_conflict",
    "request_id_conflict": "submission_conflict",
    "request_too_large": "payload_too_large",
    "invalid_request": "invalid_fields",
    "invalid_json": "invalid_fields",
    "rate_limited": "backend_rate_limited",
    "not_found": "submission_conflict",  # the id belongs to somebody else
    "callback_secret_missing": "callback_secret_missing",
    "sealing_key_missing": "sealing_key_missing",
}
"""The engine's own codes in the words of intents; codes of intents and jobs stay as they are."""


class Submission:
    """Hands frozen bytes to the engine. `facts` name `submission_id`, or `client_job_id` for a control."""

    name = "submission"
    idempotency: Idempotency = "PROVIDER_IDEMPOTENT"

    def __init__(self, client: EngineClient) -> None:
        self._client = client

    async def deliver(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        """Exactly one send of the stored bytes."""
        client_job_id = outgoing.facts.get("client_job_id")
        if client_job_id is not None:
            return await self._client.control(
                outgoing.workspace, str(client_job_id), outgoing.body, deadline_seconds
            )
        submission_id = str(outgoing.facts["submission_id"])
        mark = str(outgoing.facts.get("secret_mark", ""))
        return await self._client.submit(
            outgoing.workspace, submission_id, outgoing.body, deadline_seconds, mark
        )

    async def inquire(self, outgoing: Outgoing, deadline_seconds: float) -> Answer | None:
        """The same bytes again are the question."""
        return None


class LocalEngine:
    """The engine in this process: its own acts, called with what HTTP would carry.

    `accept(workspace, body)` gives the answer's object, `control(workspace, client_job_id, body)` its own;
    `job` and `items` are the engine's views. All raise errors of ours.
    """

    def __init__(
        self,
        *,
        accept: Callable[[str, bytes], Awaitable[Mapping[str, Any]]],
        control: Callable[[str, str, bytes], Awaitable[Mapping[str, Any]]],
        job: Callable[[str, str], Awaitable[Mapping[str, object] | None]],
        items: Callable[[str, str, str], Awaitable[Mapping[str, object]]],
    ) -> None:
        self._accept = accept
        self._control = control
        self._job = job
        self._items = items

    async def submit(
        self,
        workspace: str,
        submission_id: str,
        body: bytes,
        deadline_seconds: float,
        secret_mark: str = "",
    ) -> Answer:
        """Create the job, or get the one that stands."""
        return await _answered(self._accept(workspace, body), deadline_seconds)

    async def control(
        self, workspace: str, client_job_id: str, body: bytes, deadline_seconds: float
    ) -> Answer:
        """Pause, cancel or fund."""
        return await _answered(self._control(workspace, client_job_id, body), deadline_seconds)

    async def job(self, workspace: str, job_id: str, deadline_seconds: float) -> Mapping[str, object] | None:
        """The job as it stands."""
        return await self._job(workspace, job_id)

    async def items(
        self, workspace: str, job_id: str, cursor: str, deadline_seconds: float
    ) -> Mapping[str, object]:
        """One page of results."""
        return await self._items(workspace, job_id, cursor)

    async def close(self) -> None:
        """Nothing is held."""


class HttpEngine:
    """The engine across the network. Its address comes from the settings, so any address may be called.

    `callback_secrets` gives those that may sign events, the one in force first; without it submissions ask
    for no callbacks. Where one that a submission was first sent under is gone, nothing is sent, unless
    `forgets` says that it is gone for good.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: Callable[[], str],
        callback_secrets: Callable[[], Sequence[str]] | None,
        forgets: bool = False,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._token = token
        self._callback_secrets = callback_secrets
        self._forgets = forgets
        self._outbound = Outbound(
            allow_private=True,
            answer_bytes_max=limits.ENGINE_ANSWER_BYTES_MAX,
            idle_seconds=limits.ENGINE_IDLE_SECONDS,
        )

    async def submit(
        self,
        workspace: str,
        submission_id: str,
        body: bytes,
        deadline_seconds: float,
        secret_mark: str = "",
    ) -> Answer:
        """Create the job, or get the one that stands. Where the secret is missing nothing is sent."""
        extra: dict[str, str] = {}
        if self._callback_secrets is not None:
            secret = self._secret(self._callback_secrets(), secret_mark)
            if not secret:
                told = "the callback secret that this was first sent under is gone"
                return Answer(
                    "NOT_STARTED",
                    code="callback_secret_missing",
                    message=told if secret_mark else "there is no callback secret to send",
                )
            extra = {CALLBACK_SECRET: secret}
        sent = await self._send("POST", "/v1/jobs/bulk-content", deadline_seconds, body, extra)
        return _judged(sent, "job_id")

    def _secret(self, held: Sequence[str], secret_mark: str) -> str:
        """The one of this mark, or the one in force; '' where it is not there."""
        in_force = held[0] if held else ""
        if not secret_mark:
            return in_force
        same = (secret for secret in held if signing.mark(secret) == secret_mark)
        return next(same, in_force if self._forgets else "")

    async def capacity(self, deadline_seconds: float) -> Mapping[str, object]:
        """What the engine takes in one submission. Raises `OutsideError` where it does not say."""
        return _view(await self._send("GET", "/v1/engine/capacity", deadline_seconds))

    async def control(
        self, workspace: str, client_job_id: str, body: bytes, deadline_seconds: float
    ) -> Answer:
        """Pause, cancel or fund all jobs of a client job."""
        path = f"/v1/engine/controls/{quote(client_job_id, safe='')}"
        return _judged(await self._send("PUT", path, deadline_seconds, body))

    async def job(self, workspace: str, job_id: str, deadline_seconds: float) -> Mapping[str, object] | None:
        """The job as it stands; None for the engine's own 404."""
        sent = await self._send("GET", f"/v1/jobs/{quote(job_id, safe='')}", deadline_seconds)
        if sent.status == 404 and _object(sent).get("code") == "not_found":
            return None
        return _view(sent)

    async def items(
        self, workspace: str, job_id: str, cursor: str, deadline_seconds: float
    ) -> Mapping[str, object]:
        """One page of results."""
        path = f"/v1/jobs/{quote(job_id, safe='')}/items?{urlencode({'cursor': cursor})}"
        return _view(await self._send("GET", path, deadline_seconds))

    async def close(self) -> None:
        """Release connections."""
        await self._outbound.close()

    async def _send(
        self,
        method: str,
        path: str,
        deadline_seconds: float,
        body: bytes | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> Exchange:
        headers = {
            "Authorization": f"Bearer {self._token()}",
            "Content-Type": "application/json",
            "User-Agent": "dragoman-site",
            **(extra or {}),
        }
        return await self._outbound.exchange(
            method, self._base_url + path, headers=headers, body=body, deadline_seconds=deadline_seconds
        )


async def _answered(asked: Awaitable[Mapping[str, Any]], deadline_seconds: float) -> Answer:
    """What the engine in this process says, judged as its HTTP door's answer would be."""
    try:
        async with asyncio.timeout(deadline_seconds):
            said = await asked
    except TimeoutError as late:
        return unanswered(late, connected=True)
    except DragomanError as error:
        outcome, code = _verdict(CODES[error.code].status, error.code)
        status = CODES[error.code].status
        return Answer(outcome, status=status, code=code, message=error.message, place=error.place)
    return Answer("SUCCEEDED", body=json.dumps(said).encode(), status=200)


def _judged(sent: Exchange, *needed: str) -> Answer:
    """What came of a request, with the answer's bytes where it was taken."""
    if sent.status is None:
        answer = unanswered(sent.error, sent.connected)
        return replace(answer, code="backend_unavailable") if answer.outcome == "NOT_STARTED" else answer
    said = _object(sent)
    if not 200 <= sent.status < 300:
        outcome, code = _verdict(sent.status, str(said.get("code", "")))
        told = said.get("detail") or said.get("title") or "no message"
        return Answer(
            outcome,
            status=sent.status,
            code=code,
            message=sanitize(f"the engine answers HTTP {sent.status}: {told}"),
            retry_after_seconds=retry_after_seconds(sent.headers or {}),
            place=str(said.get("place") or ""),
        )
    if not said or not all(isinstance(said.get(name), str) for name in needed):
        return Answer(
            "INVALID_RESPONSE_UNKNOWN",
            body=sent.body,
            status=sent.status,
            code="PROVIDER_RESPONSE_INVALID",
            message="the engine's answer cannot be read",
        )
    return Answer("SUCCEEDED", body=sent.body, status=sent.status)


def _verdict(status: int, own_word: str) -> tuple[str, str]:
    """Outcome and code of a refusal.

    `own_word` is the engine's own code. Its 503 is a refusal, but for a store that went away: that may have
    come after the commit. A stranger's 503 says nothing.
    """
    kind = CODES[own_word].kind if own_word in CODES else ""
    meant = own_word if kind in ("intent", "job") else _OWN_WORDS.get(own_word, "")
    for statuses, outcome, code in _STATUSES:
        if status in statuses:
            return outcome, meant or code
    if status == 503 and kind not in ("", "store"):
        return "REJECTED", meant or "backend_unavailable"
    return "CONNECTION_UNKNOWN", "PROVIDER_CONNECTION_UNKNOWN"


def _view(sent: Exchange) -> Mapping[str, object]:
    """The object that a GET gave. Raises `OutsideError` where none came."""
    said = _object(sent)
    if sent.status == 200 and sent.whole and said:
        return said
    if sent.status is None:
        raise OutsideError(f"the engine cannot be reached: {sent.error}")
    limited = sent.status == 429
    raise OutsideError(
        f"the engine answers HTTP {sent.status}", "backend_rate_limited" if limited else "backend_unavailable"
    )


def _object(sent: Exchange) -> Mapping[str, Any]:
    """The JSON object of a whole answer, empty where it is none."""
    try:
        said = json.loads(sent.body) if sent.whole else None
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
