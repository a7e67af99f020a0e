"""Anthropic's Message Batches: one request a batch, known by the custom id that the results carry.

A batch has no metadata, and a listing shows no custom ids. Where the answer to its making was lost, the
batches of one request that were made about when the attempt was are looked through, and the results of those
that have ended say whose they are; while one of them is still worked on, nothing is decided. None that fits
leaves the attempt as unknown as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Unpack
from urllib.parse import quote, urlencode

from dragoman.kernel import limits
from dragoman.kernel.identity import made_seconds
from dragoman.model.completions import ProviderAnswer
from dragoman.providers import batching, exchange, failures
from dragoman.providers.batching import Batching, Spoken
from dragoman.providers.codes import Choose
from dragoman.providers.hosted import Hosted, KeyReader, Options, parsed
from dragoman.providers.vendors import ANTHROPIC

_STATUSES: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
"""The status that a plain call has for a type of error; any other type is the server's own trouble."""
_PAGE = 100
_WINDOW_SECONDS = limits.BATCH_CLOCKS_SECONDS + limits.CALL_TIMEOUT_SECONDS


class AnthropicBatchesProvider(Batching):
    """One account at Anthropic, for one model."""

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str,
        key_reader: KeyReader,
        choose_code: Choose,
        *,
        spoken: Spoken,
        **options: Unpack[Options],
    ) -> None:
        options["vendor"] = options.get("vendor") or ANTHROPIC
        super().__init__(spoken, Hosted(name, model, base_url, key_reader, choose_code, **options))
        address = str(self._hosted.url).rstrip("/")
        self._url = f"{address if address.endswith('/v1') else address + '/v1'}/messages/batches"

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """One POST; the answer is the batch's id."""
        asked = {"requests": [{"custom_id": attempt_id, "params": json.loads(body)}]}
        made = exchange.compact(asked).encode()
        return batching.created(await self._hosted.call("POST", self._url, made, deadline_seconds))

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """The batch whose results carry this attempt's id; see the module for what can be known of it."""
        left_seconds = batching.left(deadline_seconds)
        candidates, undecided = await self._candidates(attempt_id, left_seconds)
        for batch in candidates:
            found = await self._ended_or_working(batch, attempt_id, left_seconds)
            if found is not None and (found.outcome == failures.SUCCEEDED or found.final):
                return found
            undecided = undecided or (failures.unclear(found) if found is not None else None)
        return undecided

    async def _candidates(
        self, attempt_id: str, left_seconds: Callable[[], float]
    ) -> tuple[list[dict[str, object]], ProviderAnswer | None]:
        """The batches that an attempt may have made, and what kept us from seeing all of them, if anything.

        Listed newest first, page by page, back to those of before the attempt.
        """
        candidates: list[dict[str, object]] = []
        after = ""
        for _ in range(limits.BATCH_LIST_PAGES):
            query = {"limit": str(_PAGE), **({"after_id": after} if after else {})}
            listing = await self._hosted.call("GET", f"{self._url}?{urlencode(query)}", None, left_seconds())
            if failures.is_closed_to_looks(listing):
                break
            if listing.outcome != failures.SUCCEEDED:
                return candidates, failures.unclear(listing)
            page, said = batching.members(listing), parsed(listing.body or b"") or {}
            candidates += [one for one in page if _holds_one(one) and _is_of_its_time(one, attempt_id)]
            after = str(said.get("last_id") or "")
            if not (page and after and said.get("has_more")) or _is_before(page[-1], attempt_id):
                break
        return candidates, None

    async def fetch(self, reference: str, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """One look at a batch; its answer, once it has ended. None where none is there (any more)."""
        left_seconds = batching.left(deadline_seconds)
        seen = await self._hosted.call("GET", self._url_of(reference), None, left_seconds())
        if batching.is_unknown_there(seen):
            return None
        batch = parsed(seen.body or b"") if seen.outcome == failures.SUCCEEDED else None
        if batch is None:
            return failures.unclear(seen, reference)
        return await self._ended_or_working(batch, attempt_id, left_seconds)

    async def cancel(self, reference: str, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """Ask the provider to stop a batch; what it has answered until then is paid for."""
        return await self._hosted.call("POST", f"{self._url_of(reference)}/cancel", b"", deadline_seconds)

    async def _ended_or_working(
        self, batch: Mapping[str, object], attempt_id: str, left_seconds: Callable[[], float]
    ) -> ProviderAnswer | None:
        """None where the results are gone, or are another attempt's."""
        reference = str(batch.get("id", ""))
        if batch.get("processing_status") != "ended":
            return failures.working(reference)
        url = f"{self._url_of(reference)}/results"
        file = await self._hosted.call("GET", url, None, left_seconds())
        if batching.is_unknown_there(file):
            return None
        if file.outcome != failures.SUCCEEDED:
            return failures.unclear(file, reference)
        line = batching.line_of(file, attempt_id)
        return None if line is None else self._line(line, reference)

    def _line(self, line: Mapping[str, object], reference: str) -> ProviderAnswer:
        result = line.get("result")
        said = result if isinstance(result, dict) else {}
        if said.get("type") == "succeeded":
            return self.judged(200, said.get("message"), reference)
        if said.get("type") != "errored":
            return failures.unworked(reference, f"the batch's request is {said.get('type')}")
        told = said.get("error")
        error = told.get("error", told) if isinstance(told, dict) else {}
        kind = str(error.get("type")) if isinstance(error, dict) else ""
        return self.judged(_STATUSES.get(kind, 500), {"type": "error", "error": error}, reference)

    def _url_of(self, reference: str) -> str:
        return f"{self._url}/{quote(reference, safe='')}"


def _holds_one(batch: Mapping[str, object]) -> bool:
    counts = batch.get("request_counts")
    return isinstance(counts, dict) and sum(exchange.tokens(count) for count in counts.values()) == 1


def _is_of_its_time(batch: Mapping[str, object], attempt_id: str) -> bool:
    """Whether a batch may have been made by an attempt, whose id tells when that began; doubt says yes."""
    later = _seconds_later(batch, attempt_id)
    return later is None or abs(later) <= _WINDOW_SECONDS


def _is_before(batch: Mapping[str, object], attempt_id: str) -> bool:
    """Whether a batch was surely made before an attempt began, as all were that are listed after it."""
    later = _seconds_later(batch, attempt_id)
    return later is not None and later < -_WINDOW_SECONDS


def _seconds_later(batch: Mapping[str, object], attempt_id: str) -> float | None:
    began = made_seconds(attempt_id)
    try:
        made = datetime.fromisoformat(str(batch.get("created_at"))).timestamp()
    except ValueError:
        return None
    return None if began is None else made - began
