"""Texts answered by position: ids travel beside the body. Shared ground of this room, no member of it.

Some engines take an array of texts and give an array back; they know no ids. A line of JSON before the bytes
says which id stands at which place, in what is asked and in what is kept; the engine sees and gives only what
follows that line, and the kept answer holds its bytes as they came. Knows no vendor.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from dragoman.model.completions import Finish, ProviderAnswer, Reply, Usage
from dragoman.providers import exchange


@dataclass(frozen=True, slots=True)
class Places:
    """The ids of the texts in order, how many characters were sent, and whether they stood in markup."""

    ids: tuple[str, ...]
    characters: int
    marked: bool = False


def framed(places: Places, body: bytes) -> bytes:
    """Bytes behind the line that names their texts."""
    line = exchange.compact({"ids": places.ids, "characters": places.characters, "marked": places.marked})
    return line.encode() + b"\n" + body


def unframed(kept: bytes) -> tuple[Places, bytes] | None:
    """The line and the bytes behind it, None where the line is not whole."""
    line, found, body = kept.partition(b"\n")
    try:
        said = json.loads(line) if found else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or not isinstance(said.get("ids"), list):
        return None
    ids = tuple(map(str, said["ids"]))
    return Places(ids, exchange.tokens(said.get("characters")), said.get("marked") is True), body


def opened(question: bytes) -> tuple[Places, bytes]:
    """What `framed` made. Raises `ValueError` for anything else."""
    found = unframed(question)
    if found is None:
        raise ValueError("a question without the line that names its texts")
    return found


def kept(places: Places, answer: ProviderAnswer) -> ProviderAnswer:
    """An answer whose bytes say which texts they hold; a refusal holds none."""
    if answer.body is None or not 200 <= (answer.status or 0) < 300:
        return answer
    return replace(answer, body=framed(places, answer.body))


def reply(places: Places, texts: Sequence[object], usage: Usage, *, whole: bool) -> Reply:
    """Texts under their ids. Too many or too few in a whole answer belong to nobody knows which id."""
    if whole and len(texts) != len(places.ids):
        return Reply((), "unreadable", usage)
    pairs = exchange.pairs(
        [{"id": name, "text": text} for name, text in zip(places.ids, texts, strict=False)]
    )
    finish: Finish = "complete" if whole else "unreadable"
    return Reply(pairs, finish, usage)


def by_characters(characters: int, price: Decimal = Decimal(0), named: str = "") -> Usage:
    """Usage where characters are counted: a character of the source stands for a token.

    `price` is USD per million characters, which is micro-USD per character, rounded up once a call; `named`
    says whose price it is.
    """
    counted = exchange.tokens(characters)
    prices = f"{named} {price} USD/1M characters" if price else ""
    return Usage(counted, 0, 0, counted, microusd(counted, price), prices)


def microusd(characters: int, price: Decimal) -> int:
    """What characters cost."""
    return math.ceil(characters * price)
