"""What providers are asked and answer: one JSON object each way. Shared ground of this room, no member of it.

The question is `{"source_locale", "target_locale", "items": [{"id", "text", …}]}`, the reply
`{"items": [{"id", "text"}]}`. Members that run in this process send exactly that; the others wrap it in their
protocol. Promises that a reply is read as far as it is whole: an item counts once its closing brace has come.
Knows no vendor and no transport.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dragoman.model.completions import CompletionRequest, Finish, PromptItem, Reply, Usage

MARKER = re.compile(r"⟦⟦|⟦/?\d+⟧")
"""What stands in a text for something protected: a doubled bracket is a literal one."""

TOKENS_MAX = 10**12
"""More than any call can use; a count beyond it is a defect of the provider's, and no column holds it."""

_ESCAPES_MAX = 6
"""Characters of the longest JSON escape, which a cut may have split."""

_DECODER = json.JSONDecoder(strict=False)  # models write raw line breaks into strings
_FINISHES: dict[str, Finish] = {"complete": "complete", "length": "length", "refused": "refused"}


@dataclass(frozen=True, slots=True)
class Question:
    """A question as an in-process member finds it in a body: codes and (id, text) pairs."""

    source: str
    target: str
    items: tuple[tuple[str, str], ...]


def question(request: CompletionRequest, source: str, target: str) -> str:
    """The question as compact JSON, members in reading order, empty optional ones left out."""
    return compact(
        {
            "source_locale": source,
            "target_locale": target,
            "items": [_asked(item) for item in request.items],
        }
    )


def read_question(body: bytes) -> Question:
    """The question in a body that `question` made."""
    asked = json.loads(body)
    items = tuple((item["id"], item["text"]) for item in asked["items"])
    return Question(asked["source_locale"], asked["target_locale"], items)


def answer(items: Iterable[tuple[str, str]], usage: Usage, finish: Finish = "complete") -> bytes:
    """An in-process member's answer. Items come first, so that a cut loses the tail only."""
    return compact(
        {
            "items": [{"id": name, "text": text} for name, text in items],
            "finish": finish,
            "usage": {
                "prompt_tokens": usage.prompt_tokens,
                "output_tokens": usage.output_tokens,
                "microusd": usage.microusd,
            },
        }
    ).encode()


def read_answer(kept: bytes) -> Reply:
    """An in-process member's answer, whole or cut. Never raises."""
    text = kept.decode("utf-8", "ignore")
    items, whole = read_items(text)
    if not whole:
        return Reply(items, "unreadable")
    said = _first_object(text) or {}
    used = said.get("usage")
    counted = used if isinstance(used, dict) else {}
    prompt, output, microusd = (
        tokens(counted.get(name)) for name in ("prompt_tokens", "output_tokens", "microusd")
    )
    finish = _FINISHES.get(str(said.get("finish")), "unreadable")
    return Reply(items, finish, Usage(prompt, output, 0, prompt + output, microusd))


def read_items(text: str) -> tuple[tuple[tuple[str, str], ...], bool]:
    """The reply's (id, text) pairs in order, duplicates kept, and whether the object was whole.

    Code fences and words around the object are passed over. Items that are not of this shape, or whose text
    no database could hold (NUL, lone surrogates), are left out as if they had not been answered.
    """
    reply = _first_object(text)
    if reply is None:
        return pairs(complete_elements(text, "items")), False
    items = reply.get("items")
    return (pairs(items), True) if isinstance(items, list) else ((), False)


def complete_elements(text: str, member: str) -> list[object]:
    """The elements of the top level's array `member` that are complete in a text which breaks off."""
    found: list[object] = []
    try:
        at = _past(text, max(text.find("{"), 0), "{")
        while True:
            name, at = _DECODER.raw_decode(text, _skip(text, at))
            at = _past(text, at, ":")
            if name == member:
                break
            _, at = _DECODER.raw_decode(text, _skip(text, at))
            at = _past(text, at, ",")
        at = _past(text, at, "[")
        while True:
            item, at = _DECODER.raw_decode(text, _skip(text, at))
            found.append(item)
            at = _past(text, at, ",")
    except (ValueError, RecursionError):
        return found


def pairs(items: Sequence[object]) -> tuple[tuple[str, str], ...]:
    """(id, text) of every item that has both, and a text that a database can hold."""
    shaped = [(item.get("id"), item.get("text")) for item in items if isinstance(item, dict)]
    return tuple(
        [
            (name, text)
            for name, text in shaped
            if isinstance(name, str) and isinstance(text, str) and _storable(text) and _storable(name)
        ]
    )


def compact(value: object) -> str:
    """JSON without spaces, text as it is, members in the order given."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def spliced(body: bytes, extra: Mapping[str, object]) -> bytes:
    """A frozen body with more members before its closing brace; the rest stays as it is."""
    return body[:-1] + b"," + compact(extra).encode()[1:]


def joined(parts: object, member: str, but: str = "") -> str:
    """The strings of a protocol's content parts, in order; parts that are or have `but` are left out."""
    texts = (
        part.get(member)
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict) and not (but and (part.get(but) or part.get("type") == but))
    )
    return "".join(text for text in texts if isinstance(text, str))


def broken_string(answer: bytes, opening: re.Pattern[str]) -> str:
    """The string whose quote ends `opening`, as far as it came, out of a body that breaks off."""
    text = answer.decode("utf-8", "ignore")
    opened = opening.search(text)
    return begun_string(text[opened.end() - 1 :]) if opened else ""


def begun_string(tail: str) -> str:
    """The JSON string that begins with this text's first quote, as far as it came."""
    for lost in range(_ESCAPES_MAX + 1):
        try:
            content, _ = _DECODER.raw_decode(tail if lost == 0 else tail[: len(tail) - lost + 1] + '"')
        except ValueError:
            continue
        return str(content)
    return ""


def tokens(counted: object) -> int:
    """A provider's token count, made safe: nothing negative, no fraction, no absurdity."""
    if isinstance(counted, bool) or not isinstance(counted, int):
        return 0
    return min(max(counted, 0), TOKENS_MAX)


def _asked(item: PromptItem) -> Mapping[str, object]:
    asked: dict[str, object] = {"id": item.id, "text": item.text}
    if item.note:
        asked["note"] = item.note
    if item.max_length:
        asked["max_length"] = item.max_length
    if item.glossary:
        asked["glossary"] = [list(pair) for pair in item.glossary]
    if item.avoid:
        asked["avoid"] = [list(pair) for pair in item.avoid]
    if item.similar:
        asked["similar"] = [list(pair) for pair in item.similar]
    if item.before:
        asked["before"] = item.before
    if item.after:
        asked["after"] = item.after
    if item.markers:
        asked["markers"] = {number: item.markers[number] for number in sorted(item.markers, key=_by_number)}
    if item.complaint:
        asked["complaint"] = item.complaint
    return asked


def _by_number(marker: str) -> tuple[int, str]:
    return (int(marker) if marker.isdecimal() else 0, marker)


def _first_object(text: str) -> dict[str, object] | None:
    try:
        value, _ = _DECODER.raw_decode(text, max(text.find("{"), 0))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _past(text: str, at: int, sign: str) -> int:
    at = _skip(text, at)
    if not text.startswith(sign, at):
        raise ValueError(f"no {sign} at {at}")
    return at + 1


def _storable(text: str) -> bool:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return "\0" not in text
