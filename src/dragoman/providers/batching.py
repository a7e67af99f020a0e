"""What providers of batches share: one call is one batch with one request in it. Shared ground, no member.

A batch is made by a short request, whose answer is the batch's id, and it is fetched by that id until the
provider's day for it is over. The words of its one request, and how its answer is read and priced, are those
of the provider that speaks the protocol. Promises that a look which fails decides nothing, and that only an
ended batch says that its request was refused or never worked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from dragoman.model.completions import CompletionRequest, ProviderAnswer, Reply
from dragoman.providers import failures
from dragoman.providers.hosted import Hosted, parsed


class Spoken(Protocol):
    """Of the provider whose protocol a batch's request is written in, all but the sending."""

    def target_code(self, locale: str) -> str:
        """Its code for a locale."""
        ...

    def render(self, request: CompletionRequest) -> bytes:
        """The request's body."""
        ...

    def reserve(self, body: bytes) -> tuple[int, int]:
        """The worst case."""
        ...

    def expect(self, body: bytes, characters: int) -> tuple[int, int]:
        """The usual case."""
        ...

    def read(self, answer: bytes) -> Reply:
        """What an answer says."""
        ...

    async def close(self) -> None:
        """Release what it holds."""
        ...


class Batching:
    """The half of a provider that is not about batches: it is `spoken`'s, at the price of `hosted`."""

    reads_examples = True

    askable = True
    texts_max: int | None = None

    def __init__(self, spoken: Spoken, hosted: Hosted) -> None:
        self._spoken = spoken
        self._hosted = hosted
        self.name = hosted.name
        self.model = hosted.model
        self.account = hosted.account
        self.priced = hosted.priced
        self.price_known = hosted.price_known

    def target_code(self, locale: str) -> str:
        """The tag under which the model is asked for a locale. Raises `LocaleError`."""
        return self._spoken.target_code(locale)

    def render(self, request: CompletionRequest) -> bytes:
        """The body of the batch's one request. Raises `LocaleError`."""
        return self._spoken.render(request)

    def reserve(self, body: bytes) -> tuple[int, int]:
        """Worst case, at the price of a batch."""
        return self._spoken.reserve(body)

    def expect(self, body: bytes, characters: int) -> tuple[int, int]:
        """A usual call, at the price of a batch."""
        return self._spoken.expect(body, characters)

    def read(self, answer: bytes) -> Reply:
        """Parse the bytes of the one request's answer. Never raises."""
        return self._spoken.read(answer)

    async def close(self) -> None:
        """Release connections; nothing is sent any more."""
        await self._spoken.close()
        await self._hosted.close()

    def judged(
        self, status: int, body: object, reference: str, headers: Mapping[str, str] | None = None
    ) -> ProviderAnswer:
        """What an ended batch says of its request: answered, refused, or not worked and not paid.

        By the table that judges statuses; an error that would leave a plain call unknown leaves none here,
        for a batch is billed for answers alone.
        """
        marks = dict.fromkeys(self._hosted.vendor.known_headers, reference) | dict(headers or {})
        kept = json.dumps(body, ensure_ascii=False).encode()
        sent = failures.Sent(connected=True, status=status, headers=marks, body=kept, whole=True)
        answer = replace(failures.judge(sent, self._hosted.vendor.known_headers), provider_ref=reference)
        if answer.outcome == failures.SUCCEEDED:
            return answer
        if answer.outcome == failures.REJECTED:
            return replace(answer, body=None, final=True)
        return failures.unworked(reference, answer.message)


def created(answer: ProviderAnswer) -> ProviderAnswer:
    """What the request that makes a batch came to: its id, with the outcome still unknown.

    An answer that cannot be read names no batch, though one may stand: it is lost, and asked about.
    """
    reference = named(answer)
    if answer.outcome == failures.SUCCEEDED and reference:
        return failures.working(reference)
    if answer.outcome in (failures.SUCCEEDED, failures.INVALID_RESPONSE_UNKNOWN):
        outcome = failures.CONNECTION_UNKNOWN
        return ProviderAnswer(
            outcome, status=answer.status, code=failures.CODES[outcome], message="the answer names no batch"
        )
    return replace(answer, provider_ref="")  # a request's id is none that could be fetched


def named(answer: ProviderAnswer) -> str:
    """The id in an answer that tells of one thing, '' for none."""
    said = (parsed(answer.body or b"") or {}).get("id")
    return said if isinstance(said, str) else ""


def is_unknown_there(answer: ProviderAnswer) -> bool:
    """Whether the provider says that it has no such thing (any more)."""
    return answer.outcome == failures.REJECTED and answer.status == 404


def left(deadline_seconds: float) -> Callable[[], float]:
    """How long is left of a deadline that several requests share."""
    loop = asyncio.get_running_loop()
    end = loop.time() + deadline_seconds
    return lambda: end - loop.time()


def members(listing: ProviderAnswer) -> list[dict[str, object]]:
    """The objects of a listing's `data`."""
    kept = (parsed(listing.body or b"") or {}).get("data")
    return [one for one in kept if isinstance(one, dict)] if isinstance(kept, list) else []


def line_of(file: ProviderAnswer, attempt_id: str) -> dict[str, object] | None:
    """The one line of a batch's file, None where it is not this attempt's."""
    line = parsed(file.body or b"")
    return line if line is not None and line.get("custom_id") == attempt_id else None
