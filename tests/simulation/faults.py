"""What can go wrong in a world, and the plan that says where it does."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "kill",  # the process is gone, as after kill -9
    "pause",  # all of it stands still, perhaps past its leases, and then goes on
    "stop",  # the process is told to end, and ends in good order
    "jump",  # somebody sets the wall clock
    "commit lost",  # the commit has happened, and its answer is lost
    "commit unmade",  # the commit has not happened, and nobody can tell
    "rolled back",  # the database undoes the transaction and says so
    "answer lost",  # the outside has done it, and its answer is lost
    "twice",  # the network carries one send two times
    "late",  # the sender gives up, and what it sent arrives afterwards
    "refused",  # nobody listens there, this once
    "away",  # nobody listens there for a while
    "sent in vain",  # the connection stood, and broke before anybody read
    "slow",  # it arrives, and others may arrive before it
    "gateway",  # somebody between answers that the other side is ill, which may have done it or not
    "busy",  # somebody between asks to come back later
    "cut short",  # the answer breaks off in the middle
]
Place = Literal["point", "commit", "call", "wire"]
"""Points are all counted; those before a commit, a call, or a request to another host, also among
themselves.
"""

ANYWHERE: tuple[Kind, ...] = ("kill", "kill", "pause", "pause", "stop", "jump")
COMMIT: tuple[Kind, ...] = ("commit lost", "commit unmade", "rolled back")
CALL: tuple[Kind, ...] = ("answer lost", "late", "twice")
WIRE: tuple[Kind, ...] = (
    "answer lost", "late", "twice", "refused", "away", "sent in vain", "slow", "gateway", "busy", "cut short",
)  # fmt: skip

PAUSES_SECONDS = (1.0, 200.0)
JUMPS_SECONDS = (-240.0, -20.0, 50.0, 400.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """Which fault strikes where: the place and its number. `any` draws one of those that fit the place."""

    faults: Mapping[tuple[Place, int], Kind | Literal["any"]] = field(default_factory=dict)

    def at(self, places: Mapping[Place, int], can: tuple[Kind, ...], dice: random.Random) -> Kind | None:
        """The fault that strikes here, of those that fit anywhere or that this place `can` have."""
        for place, number in places.items():
            kind = self.faults.get((place, number))
            if kind == "any":
                return dice.choice(can or ANYWHERE) if place != "point" else dice.choice(ANYWHERE)
            if kind is not None and kind in ANYWHERE + can:
                return kind
        return None

    def __str__(self) -> str:
        told = [f"{kind} at {place} {number}" for (place, number), kind in sorted(self.faults.items())]
        return ", ".join(told) or "calm"


def one(place: Place, number: int, kind: Kind) -> Plan:
    """A single fault."""
    return Plan({(place, number): kind})


def drawn(
    dice: random.Random,
    most: Mapping[Place, int],
    faults: int,
    among: Sequence[Place] = ("point", "point", "commit", "call"),
) -> Plan:
    """So many faults, each somewhere among the first `most` of its place."""
    return Plan(dict(_draws(dice, most, faults, among)))


def _draws(
    dice: random.Random, most: Mapping[Place, int], faults: int, among: Sequence[Place]
) -> Iterator[tuple[tuple[Place, int], Literal["any"]]]:
    for _ in range(faults):
        place: Place = dice.choice(among)
        yield (place, dice.randint(1, most[place])), "any"
