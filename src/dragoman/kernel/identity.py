"""Ids, hashes and chance: the one reader of randomness (law 9).

Ids are UUIDv7, lowercase, 36 characters; they sort by time and none is a secret. Secrets come from `secret`.
"""

from __future__ import annotations

import hashlib
import random
import secrets
from typing import Protocol

import uuid_utils


class Chance(Protocol):
    """Where ids, jitter and prompt ids come from; seeded in the simulation."""

    def new_id(self) -> str:
        """A fresh UUIDv7."""
        ...

    def token(self, characters: int) -> str:
        """A short random word of `a-z2-7`, not a secret."""
        ...

    def fraction(self) -> float:
        """Uniform in [0, 1)."""
        ...


NONCE_BYTES = 12

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_LETTERS = _ALPHABET.encode() * 8
"""Byte → letter; each letter has as many bytes."""


class SystemChance:
    """The machine's randomness."""

    def new_id(self) -> str:
        """A fresh UUIDv7."""
        return str(uuid_utils.uuid7())

    def token(self, characters: int) -> str:
        """A short random word of `a-z2-7`."""
        return random.randbytes(characters).translate(_LETTERS).decode("ascii")  # noqa: S311 - guards nothing

    def fraction(self) -> float:
        """Uniform in [0, 1)."""
        return random.random()  # noqa: S311 - jitter


def made_seconds(identifier: str) -> float | None:
    """When an id was made, in Unix time, by the clock of its maker; None where it is no UUIDv7."""
    try:
        told = uuid_utils.UUID(identifier)
    except ValueError:
        return None
    return told.timestamp / 1000 if told.version == 7 else None


class SeededChance:
    """Chance that repeats exactly from its seed; `now` gives the time part of its ids (microseconds)."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self._count = 0

    def new_id(self) -> str:
        """A UUIDv7-shaped id that sorts by order of making."""
        self._count += 1
        tail = self._random.getrandbits(62)
        head = self._count
        high = f"{head >> 16 & 0xFFFFFFFF:08x}-{head & 0xFFFF:04x}-7000"
        return f"{high}-{0x8000 | tail >> 48:04x}-{tail & (1 << 48) - 1:012x}"

    def token(self, characters: int) -> str:
        """A short word of `a-z2-7`."""
        return "".join(self._random.choices(_ALPHABET, k=characters))

    def fraction(self) -> float:
        """Uniform in [0, 1)."""
        return self._random.random()


def secret(size_bytes: int = 32) -> str:
    """A URL-safe secret of at least 128 bits, from the system's random source."""
    return secrets.token_urlsafe(max(16, size_bytes))


def nonce() -> bytes:
    """Twelve fresh random bytes for one sealing (AES-GCM's own nonce size)."""
    return secrets.token_bytes(NONCE_BYTES)


def sha256(data: bytes | str) -> str:
    """SHA-256 as 64 lowercase hexadecimal characters; text is taken as UTF-8."""
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()


def key_hash(*parts: str) -> str:
    """SHA-256 over length-prefixed parts, so that no two different tuples collide by joining."""
    return sha256("".join([f"{len(part)}:{part}" for part in parts]))
