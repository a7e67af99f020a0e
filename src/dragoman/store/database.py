"""The two doors to the database: `run` for whole transactions, `read` for snapshots.

One transaction is one function: `await database.run(act, …)` runs the plain function `act(tx, …)` in a
transaction and answers once it is committed. Only what the server says was rolled back runs again, three
times at most. A connection lost after COMMIT was sent is `CommitUnknown`, and its caller behaves as if the
process had died there; acts marked `@repeatable` run again instead. An act may therefore run more than once:
it changes nothing but rows.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from dragoman.kernel import limits
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import CommitUnknown, StoreError
from dragoman.kernel.identity import Chance
from dragoman.store.failures import RolledBack, Verdict, stated
from dragoman.store.joining import Joined, Joint
from dragoman.store.revisions import FLOOR_NAME, VERSION_TABLE, refuse_other, standing
from dragoman.store.servers import Options, Server, server_of
from dragoman.store.sessions import Session
from dragoman.store.timekeeping import DatabaseTime, HostTime
from dragoman.store.transaction import Tx, is_repeatable, is_urgent
from dragoman.store.writer import Call, Crew, Tally

P = ParamSpec("P")
T = TypeVar("T")


class Performer(Protocol):
    """Who carries out calls: the threads of `writer.Crew`, or the simulation's single thread."""

    async def perform(self, call: Call) -> Any:
        """Carry out one call and give its result, or raise its error."""
        ...

    async def close(self) -> None:
        """Finish what waits and let go."""
        ...


class Database:
    """One open database. Made by `open`; the simulation gives its own performers."""

    def __init__(
        self, writer: Performer, reader: Performer, now: Callable[[], int], chance: Chance, tally: Tally
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._chance = chance
        self._joint = Joint(self._run)
        self.now = now
        self.tally = tally

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        clock: Clock,
        chance: Chance,
        options: Options | None = None,
        any_schema: bool = False,
    ) -> Database:
        """Reach the database behind `url`, see that its schema is this program's, and learn its time.

        Raises `StoreError`: `database_unavailable`, `schema_unavailable` or `database_newer`.
        """
        server = server_of(url, options)
        time = (DatabaseTime if server.has_clock else HostTime)(clock)
        await asyncio.to_thread(_try, server, time, any_schema)
        tally = Tally()
        writer = Crew(server, time, clock, chance, tally, reading=False)
        reader = Crew(server, time, clock, chance, tally, reading=True)
        return cls(writer, reader, time.now, chance, tally)

    async def run(self, act: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Carry out `act(tx, *args, **kwargs)` as one transaction and give its result once it is committed.

        An act that serves many `together` shares it with those who ask at the same moment. Raises what the
        act raises (nothing of it stays), `CommitUnknown`, or `StoreError`.
        """
        if isinstance(act, Joined):
            joined: T = await self._joint.run(act.act, act.ask(*args, **kwargs))
            return joined
        return await self._run(act, *args, **kwargs)

    async def _run(self, act: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        for attempt in itertools.count(1):
            call = Call(act, args, kwargs, urgent=is_urgent(act), alone=attempt > 1)
            try:
                result: T = await self._writer.perform(call)
            except RolledBack as undone:
                if attempt > limits.TRANSACTION_RETRIES:
                    raise StoreError(f"{undone} (undone {attempt} times)") from undone
            except CommitUnknown:
                if attempt > limits.TRANSACTION_RETRIES or not is_repeatable(act):
                    raise
            else:
                return result
            await asyncio.sleep(self._chance.fraction() * limits.TRANSACTION_JITTER_SECONDS * attempt)
        raise AssertionError("unreachable")

    async def read(self, look: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `look(tx, *args, **kwargs)` in a read-only snapshot, on a connection that never writes."""
        for attempt in itertools.count(1):
            try:
                result: T = await self._reader.perform(Call(look, args, kwargs))
            except RolledBack as undone:
                if attempt > limits.TRANSACTION_RETRIES:
                    raise StoreError(f"{undone} (failed {attempt} times)") from undone
            else:
                return result
            await asyncio.sleep(self._chance.fraction() * limits.TRANSACTION_JITTER_SECONDS * attempt)
        raise AssertionError("unreachable")

    @property
    def commits(self) -> int:
        """Physical commits that changed rows; polls that found nothing and renewals are counted apart."""
        return self.tally.commits

    @property
    def acts(self) -> int:
        """Acts carried out, also those that failed."""
        return self.tally.acts

    async def close(self) -> None:
        """Answer what waits, then let the connections go."""
        await self._writer.close()
        await self._reader.close()


def _try(server: Server, time: DatabaseTime, any_schema: bool) -> None:
    """Connect once, so that a wrong URL or schema is told now, and measure the clock."""
    try:
        session = server.connect(reading=False)
    except Exception as error:
        verdict = server.judge(error)
        if verdict is None:
            raise
        raise stated(Verdict.UNAVAILABLE, error, server.place) from None
    with contextlib.closing(session):
        if server.has_clock:
            time.measure(session.clock)
        if not any_schema:
            refuse_other(*_version(session), server.place)


def _version(session: Session) -> tuple[str | None, str]:
    """The schema's version, None where there is no table of ours; and down to which programs it reaches."""
    try:
        rows = session.query(f"SELECT max(version_num) FROM {VERSION_TABLE}", ())  # noqa: S608 - a constant
    except Exception as error:
        if session.judge(error) is Verdict.FOREIGN:
            return None, ""
        raise
    version = None if rows[0][0] is None else str(rows[0][0])
    if standing(version) != "newer":
        return version, ""
    floors = session.query(f"SELECT value FROM cursors WHERE name = '{FLOOR_NAME}'", ())  # noqa: S608
    return version, str(floors[0][0]) if floors else ""
