"""What is told of a world: its story line by line, what its processes say, and what became of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.simulation.faults import Place
from tests.simulation.processes import HERE, Process
from tests.simulation.settings import Setting


class Listener(Protocol):
    """Who writes down what is heard."""

    def tell(self, process: Process, text: str) -> None:
        """Add a line to the story."""
        ...

    def problem(self, text: str) -> None:
        """Write down what must not be."""
        ...


@dataclass(slots=True)
class Line:
    """One line of a world's story."""

    at_seconds: float
    process: str
    text: str

    def __str__(self) -> str:
        return f"{self.at_seconds:10.3f}  {self.process:<8} {self.text}"


@dataclass(slots=True)
class Outcome:
    """What became of a world."""

    setting: Setting
    places: Mapping[Place, int]
    """How many points, commits and calls there were."""
    points: Sequence[str] = ()
    """What stands before or after each."""
    commits: Sequence[str] = ()
    """The first act of each."""
    problems: list[str] = field(default_factory=list)
    story: list[Line] = field(default_factory=list)
    targets: Mapping[str, bytes] = field(default_factory=dict)
    states: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Document and locale → the states in which its intents ended."""
    before: Mapping[str, bytes] = field(default_factory=dict)
    """What stood at the targets when the world began, and what people wrote there."""


class Ears(logging.Handler):
    """Hears what the system writes to its journal: a step that failed is a problem."""

    def __init__(self, world: Listener) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        said: Mapping[str, Any] = record.msg if isinstance(record.msg, dict) else {"event": record.msg}
        process = HERE.get(None)
        if process is not None:
            self._world.tell(
                process, f"says: {said.get('event')} {said.get('step', '')} {said.get('code', '')}"
            )
        if record.levelno >= logging.ERROR:
            self._world.problem(f"{said.get('event')} {said.get('step', '')}\n{said.get('exception', '')}")
