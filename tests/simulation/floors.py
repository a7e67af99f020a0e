"""What processes of a world stand on: one database, and who looks at every commit of it.

Where the engine is far there are two, and no transaction ever sees both.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Protocol

from dragoman.kernel.identity import SeededChance, sha256
from dragoman.model.identities import CAPABILITIES
from dragoman.store.acts import access
from dragoman.store.writer import Call, Tally, Transaction
from tests.simulation.ground import Database
from tests.simulation.performing import PLACE, FaultySession
from tests.simulation.processes import Process
from tests.simulation.watching import Watch

_OPEN = """
    SELECT (SELECT count(*) FROM manifests WHERE phase != 'ended')
    + (SELECT count(*) FROM submissions WHERE state NOT IN ('accepted', 'failed'))
    + (SELECT count(*) FROM jobs WHERE state IN ('queued', 'processing'))
    + (SELECT count(*) FROM outbox WHERE state IN ('pending', 'delivering') AND url != '')
    + (SELECT count(*) FROM receipts WHERE state IN ('RECEIVED', 'FAILED_RETRYABLE'))
    + (SELECT count(*) FROM publication_requests WHERE state = 'pending')
    + (SELECT count(*) FROM publication_commands WHERE state IN ('PENDING', 'PROCESSING'))
    + (SELECT count(*) FROM runs WHERE state IN ('looking', 'passing'))
    + (SELECT count(*) FROM attempts WHERE outcome = 'STARTED')
"""
_HELD = (
    "SELECT count(*) FROM jobs WHERE state = 'queued' AND parked_for = 'unknown' AND next_attempt_at IS NULL"
)
LOST = "SELECT count(*) FROM submissions WHERE settled_at IS NULL AND error_code = 'not_found'"
"""Jobs that a site has heard its engine know nothing of."""
_STATES = (("manifests", "phase"), ("intents", "state"), ("submissions", "state"), ("jobs", "state"),
           ("outbox", "state"), ("receipts", "state"), ("publication_requests", "state"),
           ("publication_commands", "state"), ("calls", "state"), ("attempts", "outcome"))  # fmt: skip


class House(Protocol):
    """The world around a floor."""

    in_transaction: str
    """The act whose transaction is open; '' where none is."""

    def problem(self, text: str) -> None:
        """Write down what must not be."""
        ...

    def tell(self, process: Process, text: str) -> None:
        """Write down that something became true."""
        ...

    def overtake(self, owners: set[str]) -> None:
        """Something was taken from these."""
        ...


class Floor:
    """One database of a world."""

    def __init__(self, house: House, groups: bool, is_dead: Callable[[str], bool]) -> None:
        self.database = Database()
        self.session: FaultySession = self.database.session
        self.groups = groups
        self._house = house
        self._is_dead = is_dead
        self._watch = Watch(self.database, is_dead)

    def tell(self, process: Process, text: str) -> None:
        """Add a line to the story."""
        self._house.tell(process, text)

    def carry_out(self, process: Process, calls: Sequence[Call], transaction: Callable[[], object]) -> bool:
        """Run one transaction at once, and look at what it left; whether it changed rows."""
        before = self.database.changes
        self._house.in_transaction = calls[0].act.__name__
        try:
            transaction()
        finally:
            self._house.in_transaction = ""
        if self.database.changes == before:
            return False
        for problem in self._watch.problems(process.owner, process.time.now()):
            self._house.problem(f"after {', '.join(call.act.__name__ for call in calls)}: {problem}")
        self._house.overtake(self._watch.overtaken)
        return True

    def admit(self, token: str, now: int) -> None:
        """Whoever bears this token may hand work to the engine that stands here."""
        call = Call(access.create_token, ("default", "site", sha256(token), CAPABILITIES), {})
        chance = SeededChance("the operator")
        Transaction(self.session, PLACE, lambda: now, chance, Tally()).carry_out(call, lambda: None)
        if call.error:
            raise call.error

    def put_back(self, copy: sqlite3.Connection) -> set[str]:
        """Stand on an older copy of the database; gives the attempts of which it knows nothing."""
        attempts = "SELECT id FROM attempts"
        known = {attempt for (attempt,) in self.database.all(attempts)}
        self.database.put_back(copy)
        copy.close()
        self._watch = Watch(self.database, self._is_dead)
        return known - {attempt for (attempt,) in self.database.all(attempts)}

    @property
    def is_open(self) -> bool:
        """Whether anything has not come to its end."""
        return bool(self.database.one(_OPEN))

    @property
    def holds_calls(self) -> bool:
        """Whether calls wait for a person's word."""
        return bool(self.database.one(_HELD))

    @property
    def what_is_open(self) -> str:
        """What has not come to its end, for the story."""
        return "; ".join(
            f"{table} {dict(self.database.all(f'SELECT {column}, count(*) FROM {table} GROUP BY 1'))}"
            for table, column in _STATES
        )
