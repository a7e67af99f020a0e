"""Executor `http:v1`: puts documents into a server of the contract in docs/reference/source.md.

What stands is asked before it is written, and the write itself carries the same condition, so that of two
writers one wins. An answer that never came is found out by asking what stands; where that cannot be told the
end stays unknown, and the same step again asks first. The token is read when it is sent and stands nowhere.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from dragoman.families.outbound import CODES, Exchange, Outbound, judge, retry_after_seconds
from dragoman.kernel.errors import DragomanError, sanitize
from dragoman.kernel.identity import sha256
from dragoman.kernel.limits import DOCUMENT_BYTES_MAX
from dragoman.model.effects import Answer, Outgoing

_RACED, _SLOW_DOWN = (409, 412), 429
_HASH_CHARS = 64
_IDLE_SECONDS = 5.0
_LOOK_SHARE = 0.25
"""How much of its time a step keeps for asking what came of the write."""
_REASONS: Mapping[int, str] = {
    401: "it does not know our token",
    403: "it does not let us write there",
    404: "it has no such document",
    405: "it takes no documents",
    413: "the document is larger than it takes",
    422: "it does not take this document",
}


class HttpTarget:
    """Writes through `PUT` and `DELETE`. `token_of` gives the token of a variable's name, empty for none."""

    name = "http:v1"

    def __init__(self, token_of: Callable[[str], str]) -> None:
        self._token_of = token_of
        self._outbound = Outbound(
            allow_private=True, answer_bytes_max=DOCUMENT_BYTES_MAX, idle_seconds=_IDLE_SECONDS
        )

    async def close(self) -> None:
        """Release connections."""
        await self._outbound.close()

    async def run(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        """One write at most, between one look before it and, where its answer is missing, one after it."""
        try:
            place = _Place(outgoing, self._token_of)
        except DragomanError as error:
            return _refused(str(outgoing.facts["target"]), error.message)
        until = asyncio.get_running_loop().time() + deadline_seconds
        write_seconds = deadline_seconds * (1 - _LOOK_SHARE)
        before = await self._look(place, write_seconds)
        if isinstance(before, Answer):
            return before
        if before == place.wanted:
            return place.done()
        if before != place.expected:
            return place.raced()
        left_seconds = write_seconds - deadline_seconds + until - asyncio.get_running_loop().time()
        written = await self._exchange(place, place.method, left_seconds)
        if written.whole and not _is_open(written.status or 0):
            verdict = place.verdict(written)
            if verdict is not None:
                return verdict
        after = await self._look(place, max(until - asyncio.get_running_loop().time(), 0.0))
        return place.found_out(written, after)

    async def _look(self, place: _Place, seconds: float) -> str | Answer:
        """The SHA-256 of what stands, empty for nothing; an answer where that cannot be told now."""
        head = await self._exchange(place, "HEAD", seconds)
        if head.whole and head.status == 200 and not _etag(head):
            head = await self._exchange(place, "GET", seconds)
        if not head.whole:
            said = judge(head).message if head.status is None else "it broke off"
            return Answer("NOT_STARTED", code="PROVIDER_NOT_REACHED", message=place.says(said))
        if head.status == 404:
            return ""
        if head.status == 200:
            return _etag(head) or sha256(head.body)
        if _is_open(head.status or 0) or head.status == _SLOW_DOWN:
            return place.later(head)
        return place.refused(head.status or 0)

    async def _exchange(self, place: _Place, method: str, seconds: float) -> Exchange:
        reads = method in ("HEAD", "GET")
        return await self._outbound.exchange(
            method,
            place.url,
            headers=place.headers if reads else {**place.headers, **place.conditions},
            body=place.body if method == "PUT" else None,
            deadline_seconds=max(seconds, 0.001),
        )


class _Place:
    """One step's place at its server: how it is asked for, what shall stand there, how answers read."""

    def __init__(self, outgoing: Outgoing, token_of: Callable[[str], str]) -> None:
        facts = outgoing.facts
        self.target = str(facts["target"])
        locale, _, ref = self.target.partition("/")
        self.url = f"{facts['root']}/documents/{quote(ref, safe='/')}?{urlencode({'locale': locale})}"
        self._server = urlsplit(str(facts["root"])).hostname or ""
        self.method = "DELETE" if facts["act"] == "remove" else "PUT"
        self.body = outgoing.body
        self.wanted = "" if self.method == "DELETE" else sha256(self.body)
        self.expected = str(facts["expected"])
        self.headers = {"User-Agent": "dragoman"}
        token = token_of(str(facts.get("token_variable") or ""))
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        condition = {"If-Match": f'"{self.expected}"'} if self.expected else {"If-None-Match": "*"}
        self.conditions = {"Idempotency-Key": str(facts["step_key"]), **condition}
        if self.method == "PUT":
            self.conditions["Content-Type"] = "application/octet-stream"

    def verdict(self, written: Exchange) -> Answer | None:
        """What a write came to that was answered; None where what stands has to be asked for."""
        status = written.status or 0
        if status in _RACED:
            return None
        if status in (404, 410) and self.method == "DELETE":
            return self.done()
        if status == _SLOW_DOWN:
            return self.later(written)
        if not 200 <= status < 300:
            return self.refused(status)
        told = _etag(written)
        if self.method == "DELETE" or told == self.wanted:
            return self.done()
        return self.other() if told else None

    def found_out(self, written: Exchange, stands: str | Answer) -> Answer:
        """What a write came to, by what stands after it. A look that failed leaves its end unknown."""
        status = written.status or 0
        if stands == self.wanted:
            return self.done()
        if written.whole and isinstance(stands, str) and not _is_open(status):
            return self.raced() if status in _RACED else self.other()
        said = judge(written)
        if said.outcome == "NOT_STARTED":
            return said
        outcome = said.outcome if said.outcome.endswith("UNKNOWN") else "CONNECTION_UNKNOWN"
        return Answer(outcome, code=CODES[outcome], message=self.says(said.message or f"HTTP {status}"))

    def later(self, answered: Exchange) -> Answer:
        """Nothing was done, and the server asks for patience."""
        return Answer(
            "NOT_STARTED",
            status=answered.status,
            code="PROVIDER_NOT_REACHED",
            message=self.says(f"HTTP {answered.status}"),
            retry_after_seconds=retry_after_seconds(answered.headers or {}),
        )

    def done(self) -> Answer:
        receipt: dict[str, Any] = {
            "executor": HttpTarget.name,
            "target": self.target,
            "applied": True,
            "sha256": self.wanted,
            "bytes": len(self.body) if self.method == "PUT" else 0,
        }
        return Answer("SUCCEEDED", body=json.dumps(receipt).encode())

    def raced(self) -> Answer:
        said = f"{self.target} was written by somebody else meanwhile"
        return Answer("REJECTED", code="target_raced", message=sanitize(said))

    def other(self) -> Answer:
        return _refused(self.target, self.says("it keeps other bytes than were written"))

    def refused(self, status: int) -> Answer:
        elsewhere = "it sends us elsewhere, which is not followed" if 300 <= status < 400 else ""
        reason = _REASONS.get(status) or elsewhere or "it answers no"
        return _refused(self.target, self.says(f"{reason} (status {status})"))

    def says(self, what: str) -> str:
        return sanitize(f"{self._server}: {what}")


def _is_open(status: int) -> bool:
    """Whether a status leaves open what was done."""
    return status == 408 or status >= 500


def _etag(exchange: Exchange) -> str:
    """The SHA-256 that an answer tells; empty where it tells none."""
    tag = (exchange.headers or {}).get("etag", "").strip('"')
    return tag if len(tag) == _HASH_CHARS else ""


def _refused(target: str, why: str) -> Answer:
    return Answer("REJECTED", code="target_refused", message=sanitize(f"{target}: {why}"))
