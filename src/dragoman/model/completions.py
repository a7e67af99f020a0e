"""What is asked of a translation provider, and what came back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

Finish = Literal["complete", "length", "refused", "unreadable"]


_NO_MARKERS: Mapping[str, str] = MappingProxyType({})


class PromptItem(NamedTuple):
    """One text of a request. `id` is short, random and of this call only; `complaint` is set on repair."""

    id: str
    text: str
    note: str = ""
    max_length: int | None = None
    glossary: tuple[tuple[str, str], ...] = ()
    markers: Mapping[str, str] = _NO_MARKERS
    complaint: str = ""
    avoid: tuple[tuple[str, str], ...] = ()
    """Terms, and words that their translation must not use."""
    similar: tuple[tuple[str, str], ...] = ()
    """Texts like this one, and how they were translated before."""
    before: str = ""
    after: str = ""
    """Its neighbours in the document, where the call holds them not."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One call: texts of one locale pair."""

    source_locale: str
    target_locale: str
    items: tuple[PromptItem, ...]
    tone: str = ""
    style: str = ""
    """The project's note on how it wants to sound: the same in all its calls."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; `microusd` is the price, rounded up, in millionths of a dollar.

    `prices` names the list of prices that it was reckoned by; empty where nobody bills.
    """

    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    total_tokens: int = 0
    microusd: int = 0
    prices: str = ""


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """What one send came to. `outcome` is a state of machine `attempt`.

    `body` holds the answer's bytes as received (also partial ones), before anyone parsed them.
    `retry_after_seconds` is what the provider asked for; `spend_limit` says that the account has no money
    left. `final` is set where the provider says what has become of work that it was given before: refused, or
    not worked, and in either case not paid for. `place` is where in what was sent a refusal says the fault
    is.
    """

    outcome: str
    body: bytes | None = None
    status: int | None = None
    code: str = ""
    message: str = ""
    retry_after_seconds: float | None = None
    spend_limit: bool = False
    provider_ref: str = ""
    final: bool = False
    place: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A parsed answer. `items` keeps the order and duplicates of the answer: (id, text) pairs.

    `refused` with empty items means that the provider would not answer this content. With `length` or
    `unreadable`, `items` holds whatever was complete.
    """

    items: tuple[tuple[str, str], ...]
    finish: Finish
    usage: Usage = Usage()
