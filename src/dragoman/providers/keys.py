"""Keys on their way: what a header can carry, what no answer may repeat. Shared ground, no member."""

from __future__ import annotations

from dataclasses import replace

from dragoman.model.completions import ProviderAnswer

_CHARS_OF_A_SECRET = 16


def is_usable(key: str) -> bool:
    """Whether a header can carry it; an empty one is carried by leaving the header out."""
    return key.isascii() and key.isprintable()


def without(key: str, answer: ProviderAnswer) -> ProviderAnswer:
    """An answer that echoes our key loses it before anybody can keep it.

    Bytes are touched only for a key that no text can hold by chance: local servers take any word as key.
    """
    if not key:
        return answer
    body = answer.body
    if body is not None and len(key) >= _CHARS_OF_A_SECRET:
        body = body.replace(key.encode(), b"[key]")
    return replace(answer, message=answer.message.replace(key, "[key]"), body=body)
