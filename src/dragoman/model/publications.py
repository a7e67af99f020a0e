"""Nouns of publishing: what is planned, what one step does, what it came to.

All hashes are SHA-256 as 64 hexadecimal characters; texts are hashed as they read (`content.selection`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from dragoman.kernel import limits
from dragoman.model.documents import Text
from dragoman.model.intents import Relabel

DirectionName = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One field of a planned step. `expected_hash` is of the text that stood there when it was planned."""

    key_hash: str
    source_hash: str
    write_hash: str
    expected_hash: str | None


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One write of one intent's results to one target.

    `expected_fingerprint` covers the units of this step's locale only; None where nothing stands there.
    """

    intent_id: str
    generation: int
    document: str
    locale: str
    target: str
    expected_fingerprint: str | None
    write_fingerprint: str
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One translated field of an intent; `text` is None where its translation failed."""

    key: str
    key_hash: str
    source_hash: str
    text: Text | None


@dataclass(frozen=True, slots=True)
class Record:
    """What is on record of one target text: a row of `entries`."""

    source_hash: str
    written_hash: str
    origin: str
    manifest_id: str | None


@dataclass(frozen=True, slots=True)
class Publishable:
    """One intent to be planned, with everything known of it but what stands in files."""

    intent_id: str
    generation: int
    state: str
    document: str
    locale: str
    results: tuple[Result, ...]
    records: Mapping[str, Record]
    selection: str = ""
    """What selected its fields when it was prepared."""


@dataclass(frozen=True, slots=True)
class PlanningWork:
    """Requests of one manifest that this process holds: (id, fence) each, and the intents that they name.

    `behind` is the ordinal behind which the one request for all goes on after these, None where it ends.
    """

    workspace: str
    manifest_id: str
    project_id: str
    settings: Mapping[str, Any]
    requests: tuple[tuple[str, int], ...]
    attempt: int
    intent_ids: tuple[str, ...]
    behind: int | None = None


@dataclass(frozen=True, slots=True)
class Postponed:
    """An intent that is in no plan: its files cannot be read now, or, `for_good`, it has no target at all."""

    intent_id: str
    code: str
    message: str
    for_good: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """One claimed command: an execution in one direction, and the fence under which it may be worked."""

    id: str
    fence: int
    workspace: str
    execution_id: str
    plan_id: str
    manifest_id: str
    project_id: str
    executor: str
    direction: DirectionName
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an execution, as it was planned."""

    ordinal: int
    key: str
    planned: PlannedStep


@dataclass(frozen=True, slots=True)
class WrittenUnit:
    """One field as it reads at the target after the write."""

    key_hash: str
    source_hash: str
    written_hash: str


@dataclass(frozen=True, slots=True)
class Written:
    """What a step writes. `whole`: the file is written complete, so that no other unit is left in it.

    `edits` turn the bytes of `base` (`source` or `target`) into those written; only where they are asked for.
    """

    units: tuple[WrittenUnit, ...]
    left: int
    whole: bool
    base: str = ""
    edits: tuple[Mapping[str, object], ...] = ()
    lost: tuple[str, ...] = ()
    """Keys of the target that its source has not any more, the first of them; they were left in place."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What stood at a target just before the first write of a step, and what was then written there."""

    body: bytes | None
    written_fingerprint: str
    written: Written


@dataclass(frozen=True, slots=True)
class Material:
    """What the store knows of a step. `begun`: an effect stands under the step's key already."""

    results: tuple[Result, ...]
    records: Mapping[str, Record]
    snapshot: Snapshot | None
    begun: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """What shall stand at the target: `body`, or nothing at all where it is None.

    `expected` is the SHA-256 of the bytes found there, empty for nothing. `snapshot` is kept before the
    write.
    """

    body: bytes | None
    expected: str
    written: Written
    snapshot: Snapshot | None = None

    @property
    def facts(self) -> dict[str, str | int]:
        """The order in words, for the executor."""
        return {"act": "remove" if self.body is None else "write", "expected": self.expected}


@dataclass(frozen=True, slots=True)
class Ending:
    """A step that ends without anything being asked of the target.

    `succeed`: there is nothing to write; `conflict`: it cannot be written, the others go on; `wait`: not now.
    """

    event: Literal["succeed", "conflict", "wait"]
    left: int = 0
    code: str = ""
    message: str = ""
    relabeled: tuple[Relabel, ...] = ()


class Direction(Protocol):
    """Reads what stands and says what a step shall do; blocking, and called away from the loop."""

    def order(self, command: Command, step: Step, material: Material) -> Order | Ending:
        """What to write where, or why nothing. Never raises for what stands in files."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How the publishing worker goes. Made by `clamped`, which keeps every number within its bounds."""

    polling_enabled: bool = True
    poll_interval_seconds: float = limits.PUBLISH_POLL_SECONDS
    batch_size: int = limits.PUBLISH_BATCH
    lease_seconds: float = limits.PUBLISH_LEASE_SECONDS
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def clamped(
        cls,
        polling_enabled: bool = True,
        poll_interval_seconds: float = limits.PUBLISH_POLL_SECONDS,
        batch_size: int = limits.PUBLISH_BATCH,
        lease_seconds: float = limits.PUBLISH_LEASE_SECONDS,
    ) -> Pace:
        """These settings, each number moved into its bounds; `warnings` name those that were moved."""
        asked = {
            "poll_interval_seconds": (poll_interval_seconds, limits.PUBLISH_POLL_SECONDS_BOUNDS),
            "batch_size": (batch_size, limits.PUBLISH_BATCH_BOUNDS),
            "lease_seconds": (lease_seconds, limits.PUBLISH_LEASE_SECONDS_BOUNDS),
        }
        kept = {name: min(max(value, low), high) for name, (value, (low, high)) in asked.items()}
        warnings = tuple(
            f"publishing.{name} = {value} lies outside {bounds[0]} to {bounds[1]}; {kept[name]} is used"
            for name, (value, bounds) in asked.items()
            if kept[name] != value
        )
        return cls(
            polling_enabled,
            kept["poll_interval_seconds"],
            int(kept["batch_size"]),
            kept["lease_seconds"],
            warnings,
        )
