"""Nouns of convergence: what a run was asked for, and what came of asking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Trigger = Literal["manual", "push", "up"]
TRIGGERS: tuple[Trigger, ...] = ("manual", "push", "up")


@dataclass(frozen=True, slots=True)
class RunDraft:
    """A run about to be persisted; `asked` holds executor, mode and locales."""

    workspace: str
    project: str
    actor: str
    trigger: Trigger
    push_id: str
    asked: Mapping[str, Any]


class Started(NamedTuple):
    """The run that answers a start, and whether it was begun by it or was there already."""

    run_id: str
    joined: bool


class Order(NamedTuple):
    """What a project comes to now: its pairs, and the settings that a manifest freezes."""

    pairs: tuple[tuple[str, str], ...]
    frozen: Mapping[str, Any]
