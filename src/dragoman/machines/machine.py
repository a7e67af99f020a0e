"""What a state machine is: a literal table, refused at import when malformed.

Everything that must agree with it is printed from it: the SQL CHECK, the named groups that queries bind, the
diagram in the docs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


class MalformedMachine(ValueError):
    """A table that contradicts itself; raised at import."""


@dataclass(frozen=True, slots=True)
class Machine:
    """States and the events between them.

    `table` holds (state, event, next state). Nothing leaves a terminal state but the rows of `reopens`, which
    only a person's explicit act may take. `groups` names sets of states for queries. `movers` says, for every
    state that is not terminal, who moves it on and what happens if that mover dies.
    """

    name: str
    initial: str
    terminal: frozenset[str]
    table: tuple[tuple[str, str, str], ...]
    movers: Mapping[str, str]
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    reopens: tuple[tuple[str, str, str], ...] = ()

    def __post_init__(self) -> None:
        self._refuse_double_answers()
        self._refuse_ways_out_of_terminal_states()
        self._refuse_unreachable_states()
        self._refuse_dead_ends()
        self._refuse_wrong_names()
        object.__setattr__(self, "groups", MappingProxyType(dict(self.groups)))

    @property
    def states(self) -> frozenset[str]:
        """All states, terminal ones included."""
        return frozenset({self.initial}) | self.terminal | {s for a, _, b in self._rows for s in (a, b)}

    @property
    def open(self) -> frozenset[str]:
        """All states that are not terminal."""
        return self.states - self.terminal

    @property
    def _rows(self) -> tuple[tuple[str, str, str], ...]:
        return self.table + self.reopens

    def next(self, state: str, event: str) -> str | None:
        """The state that `event` leads to, or None where the table has no answer."""
        return next((b for a, e, b in self._rows if a == state and e == event), None)

    def sources(self, target: str) -> frozenset[str]:
        """The states from which one event leads to `target`: what a guarded update names in its WHERE."""
        return frozenset(a for a, _, b in self._rows if b == target)

    def check_sql(self, column: str) -> str:
        """The condition of a SQL CHECK on `column`."""
        return f"{column} IN ({', '.join(repr(state) for state in sorted(self.states))})"

    def mermaid(self) -> str:
        """The diagram for the docs."""
        lines = ["stateDiagram-v2", f"  [*] --> {self.initial}"]
        lines += [f"  {a} --> {b}: {event}" for a, event, b in self._rows]
        lines += [f"  {state} --> [*]" for state in sorted(self.terminal)]
        return "\n".join(lines)

    def _refuse_double_answers(self) -> None:
        pairs = [(state, event) for state, event, _ in self._rows]
        doubled = sorted({pair for pair in pairs if pairs.count(pair) > 1})
        self._refuse(doubled, "two answers to one event")

    def _refuse_ways_out_of_terminal_states(self) -> None:
        self._refuse({a for a, _, _ in self.table} & self.terminal, "a way out of a terminal state")
        self._refuse({a for a, _, _ in self.reopens} - self.terminal, "a reopening of a state that is open")

    def _refuse_unreachable_states(self) -> None:
        reached, frontier = {self.initial}, [self.initial]
        while frontier:
            here = frontier.pop()
            fresh = {b for a, _, b in self._rows if a == here} - reached
            reached |= fresh
            frontier.extend(fresh)
        self._refuse(self.states - reached, "states that nothing leads to")

    def _refuse_dead_ends(self) -> None:
        self._refuse(self.open - {a for a, _, _ in self.table}, "dead ends")

    def _refuse_wrong_names(self) -> None:
        self._refuse(self.open ^ set(self.movers), "states without a mover, or movers without a state")
        for group, members in self.groups.items():
            self._refuse(members - self.states, f"unknown states in group {group}")

    def _refuse(self, found: Iterable[object], reason: str) -> None:
        named = sorted(str(item) for item in found)
        if named:
            raise MalformedMachine(f"machine {self.name}: {reason}: {', '.join(named)}")
