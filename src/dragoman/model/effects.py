"""One act on the outside world: what goes out, and what came back.

`Outgoing` is made by the act that freezes and commits an attempt; nobody sends anything without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dragoman.model.completions import ProviderAnswer

Answer = ProviderAnswer
"""Every family answers in the provider's shape: outcome, kept bytes, code, message."""

Idempotency = Literal[
    "PROVIDER_IDEMPOTENT", "PROVIDER_QUERY_RECONCILABLE", "LOCAL_IDEMPOTENT_ONLY", "NON_IDEMPOTENT", "UNKNOWN"
]


@dataclass(frozen=True, slots=True)
class EffectIdentity:
    """Who asks for an act and what for. `payload_fingerprint` covers the payload without attempt metadata."""

    workspace: str
    family: str
    key: str
    idempotency: Idempotency
    purpose: str
    source_kind: str
    source_id: str
    payload_fingerprint: str
    correlation_id: str = ""
    actor: str = ""
    request_token: str = ""
    credential_ref: str = ""
    payload_version: int = 1


@dataclass(frozen=True, slots=True)
class AttemptPlan:
    """One try, as the owner wants it: where to, under which fence, until when, at which worst-case price."""

    account: str
    worker: str
    fence: int
    deadline_seconds: float
    request_fingerprint: str
    reserved_tokens: int = 0
    reserved_microusd: int = 0
    resend: bool = False


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A committed attempt: the exact bytes, where they go, and the instant (database time) after which they
    may not.

    `facts` is the family's own address data: never a secret, never text for a log.
    """

    attempt_id: str
    effect_id: str
    workspace: str
    number: int
    account: str
    deadline_at: int
    body: bytes
    facts: Mapping[str, str | int] = field(default_factory=dict)
