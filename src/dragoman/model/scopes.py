"""Who asks the store: one workspace, or the system itself (law 11)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Workspace:
    """Everything that answers a caller is scoped to one workspace."""

    id: str


@dataclass(frozen=True, slots=True)
class System:
    """Claim, sweep, retention, migration and doctor; made by `workers` and `wiring` only."""


Scope = Workspace | System
