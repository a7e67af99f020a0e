"""OpenAI's Batch API: a file with one request, a batch made of it, its answer read from another file.

Only the request that makes the batch can cost anything: a file that was uploaded and led to no batch is
deleted by the vendor after its time. A batch carries the attempt's id in its metadata, by which it is found
in the list of batches where the answer to its making was lost. What an expired or canceled batch had answered
until then is paid for, and is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Unpack
from urllib.parse import quote, urlencode

from dragoman.kernel import limits
from dragoman.model.completions import ProviderAnswer
from dragoman.providers import batching, exchange, failures
from dragoman.providers.batching import Batching, Spoken
from dragoman.providers.codes import Choose
from dragoman.providers.hosted import Hosted, KeyReader, Options, parsed

_WORKING = frozenset({"validating", "in_progress", "finalizing", "cancelling"})
_STATUSES: Mapping[str, int] = {"token_limit_exceeded": 429, "model_not_found": 404}
"""Reasons for which a whole batch is refused, as the statuses that a plain call has for them; else 400."""
_PAGE = 100


class OpenAIBatchesProvider(Batching):
    """One account at one server, for one model. `endpoint` is where the one request would go."""

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str,
        key_reader: KeyReader,
        choose_code: Choose,
        *,
        spoken: Spoken,
        endpoint: str = "/v1/chat/completions",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(spoken, Hosted(name, model, base_url, key_reader, choose_code, **options))
        address = str(self._hosted.url).rstrip("/")
        self._files_url, self._batches_url = f"{address}/files", f"{address}/batches"
        self._endpoint = endpoint

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """Upload the request, then make a batch of it; the answer is the batch's id."""
        left_seconds = batching.left(deadline_seconds)
        line = {"custom_id": attempt_id, "method": "POST", "url": self._endpoint, "body": json.loads(body)}
        kind, form = _form(attempt_id, exchange.compact(line).encode() + b"\n")
        headers = {"Content-Type": kind}
        file = await self._call("POST", self._files_url, form, attempt_id, left_seconds(), headers)
        file_id = batching.named(file)
        if file.outcome != failures.SUCCEEDED or not file_id:
            return _not_uploaded(file)
        asked = {
            "input_file_id": file_id,
            "endpoint": self._endpoint,
            "completion_window": "24h",
            "metadata": {"attempt_id": attempt_id},
        }
        made = exchange.compact(asked).encode()
        return batching.created(await self._call("POST", self._batches_url, made, attempt_id, left_seconds()))

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """The batch that carries this attempt's id, looked for among the newest; None where none does."""
        left_seconds, after = batching.left(deadline_seconds), ""
        for _ in range(limits.BATCH_LIST_PAGES):
            query = {"limit": str(_PAGE), **({"after": after} if after else {})}
            url = f"{self._batches_url}?{urlencode(query)}"
            listing = await self._call("GET", url, None, attempt_id, left_seconds())
            if failures.is_closed_to_looks(listing):
                return None
            if listing.outcome != failures.SUCCEEDED:
                return failures.unclear(listing)
            batches = batching.members(listing)
            for batch in batches:
                metadata = batch.get("metadata")
                if isinstance(metadata, dict) and metadata.get("attempt_id") == attempt_id:
                    return await self._ended_or_working(batch, attempt_id, left_seconds)
            after = str(batches[-1].get("id", "")) if batches else ""
            if not after or not (parsed(listing.body or b"") or {}).get("has_more"):
                return None
        return None

    async def fetch(self, reference: str, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """One look at a batch; its answer, once it has ended. None where none is there (any more)."""
        left_seconds = batching.left(deadline_seconds)
        seen = await self._call("GET", self._url_of(reference), None, attempt_id, left_seconds())
        if batching.is_unknown_there(seen):
            return None
        batch = parsed(seen.body or b"") if seen.outcome == failures.SUCCEEDED else None
        if batch is None:
            return failures.unclear(seen, reference)
        return await self._ended_or_working(batch, attempt_id, left_seconds)

    async def cancel(self, reference: str, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """Ask the provider to stop a batch; what it has answered until then is paid for."""
        url = f"{self._url_of(reference)}/cancel"
        return await self._call("POST", url, b"", attempt_id, deadline_seconds)

    async def _ended_or_working(
        self, batch: Mapping[str, object], attempt_id: str, left_seconds: Callable[[], float]
    ) -> ProviderAnswer | None:
        reference, status = str(batch.get("id", "")), batch.get("status")
        if status in _WORKING:
            return failures.working(reference)
        if status == "failed":
            return self._refused(batch, reference)
        for name in ("output_file_id", "error_file_id"):
            if not batch.get(name):
                continue
            url = f"{self._files_url}/{quote(str(batch[name]), safe='')}/content"
            file = await self._call("GET", url, None, attempt_id, left_seconds())
            if batching.is_unknown_there(file):
                return None  # it was answered, and is kept no longer
            if file.outcome != failures.SUCCEEDED:
                return failures.unclear(file, reference)
            line = batching.line_of(file, attempt_id)
            if line is not None:
                return self._line(line, reference)
        return failures.unworked(reference, f"the batch is {status}, and its request was not worked")

    def _line(self, line: Mapping[str, object], reference: str) -> ProviderAnswer:
        response, error = line.get("response"), line.get("error")
        if isinstance(response, dict) and isinstance(response.get("status_code"), int):
            return self.judged(response["status_code"], response.get("body"), reference)
        code = error.get("code") if isinstance(error, dict) else None
        return failures.unworked(reference, f"the batch's request was not worked: {code or 'no reason'}")

    def _refused(self, batch: Mapping[str, object], reference: str) -> ProviderAnswer:
        """A batch that did not pass the vendor's own look at it: nothing of it was worked."""
        errors = batch.get("errors")
        listed = errors.get("data") if isinstance(errors, dict) else None
        first = next((one for one in listed if isinstance(one, dict)), {}) if isinstance(listed, list) else {}
        status = _STATUSES.get(str(first.get("code")), 400)
        return self.judged(status, {"error": first}, reference)

    def _url_of(self, reference: str) -> str:
        return f"{self._batches_url}/{quote(reference, safe='')}"

    async def _call(
        self,
        method: str,
        url: str,
        body: bytes | None,
        attempt_id: str,
        deadline_seconds: float,
        headers: Mapping[str, str] | None = None,
    ) -> ProviderAnswer:
        told = {"X-Client-Request-Id": attempt_id, **(headers or {})}
        return await self._hosted.call(method, url, body, deadline_seconds, told)


def _not_uploaded(file: ProviderAnswer) -> ProviderAnswer:
    """No batch was asked for: nothing is unknown about what it costs."""
    if file.outcome in (failures.REJECTED, failures.NOT_STARTED):
        return file
    return failures.not_started(f"the file of the batch was not taken: {file.message or 'it has no id'}")


def _form(attempt_id: str, lines: bytes) -> tuple[str, bytes]:
    """The multipart form of an upload, and its content type."""
    mark = f"dragoman-{attempt_id}"
    fields = {
        "purpose": "batch",
        "expires_after[anchor]": "created_at",
        "expires_after[seconds]": str(limits.BATCH_FILE_SECONDS),
    }
    head = "".join(
        f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    )
    file = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{attempt_id}.jsonl"\r\n'
    opening = f"{head}{file}Content-Type: application/jsonl\r\n\r\n".encode()
    return f"multipart/form-data; boundary={mark}", opening + lines + f"\r\n--{mark}--\r\n".encode()
