"""Planted faults of the system itself, each to be caught: a checker that never finds anything proves nothing.

A mutant changes the product's functions for the time of one world, from the outside.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import sqlalchemy as sa

from dragoman.families.publication.files import Files
from dragoman.flow.publishing import compensation
from dragoman.flow.publishing.compensation import Restoring
from dragoman.flow.site.enumeration import Enumeration, Page
from dragoman.kernel.identity import sha256
from dragoman.ledger.acting import Ledger
from dragoman.machines.tables import ATTEMPT
from dragoman.model.contracts import Family
from dragoman.model.effects import Answer, Outgoing
from dragoman.model.intents import JobEvent
from dragoman.model.publications import Order, PlannedStep, Snapshot
from dragoman.model.scopes import System
from dragoman.model.walks import Place, Walk
from dragoman.store import leases, publication_sums
from dragoman.store.acts import calling, settling
from dragoman.store.rows import approvals, budgets, effects, entries, executions, intents, jobs, shards
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx
from tests.simulation import mutants_of_care as of_care
from tests.simulation import mutants_of_money as of_money
from tests.simulation import mutants_of_wire as of_wire
from tests.simulation.faults import Plan, one
from tests.simulation.settings import BATCHES, CALM, CANARY, FAR, ONE_FILE, SCOPE, Setting, of_seed

_SHARDS = tables.shards


class Mutant(NamedTuple):
    """A fault of the product. One that only shows where a process is overtaken says before which act.

    `world` is where it is looked for first.
    """

    plant: Callable[[], AbstractContextManager[object]]
    overtaken_before: str = ""
    world: Setting = CALM


def held_without_fence() -> AbstractContextManager[object]:
    """Whoever once held a lease may go on writing."""

    def held(table: sa.Table, key: leases.Key, fence: int) -> sa.ColumnElement[bool]:
        parts = key if isinstance(key, tuple) else (key,)
        return sa.and_(*[column == part for column, part in zip(table.primary_key, parts, strict=True)])

    return mock.patch.object(leases, "held", held)


def job_held_without_fence() -> AbstractContextManager[object]:
    """Whoever once held a job may go on writing."""

    def hold(tx: Tx, job_id: str, fence: int) -> Row:
        row = jobs.find(tx, System(), job_id, lock=True)
        assert row is not None
        return row

    return mock.patch.object(jobs, "hold", hold)


def reserved_without_room() -> AbstractContextManager[object]:
    """Whatever a call may cost, it fits."""
    return mock.patch.object(budgets, "_fits", return_value=True)


def claimed_without_fence() -> AbstractContextManager[object]:
    """A claim that leaves the fence as it was."""
    claim = leases.claim

    def claimed(tx: Tx, table: sa.Table, **asked: Any) -> list[Row]:
        rows = claim(tx, table, **asked)
        for row in rows:
            key = [column == getattr(row, column.name) for column in table.primary_key]
            tx.touched(sa.update(table).where(*key).values(fence=table.c.fence - 1))
        keys = [tuple(getattr(row, column.name) for column in table.primary_key) for row in rows]
        where = sa.tuple_(*table.primary_key).in_(keys)
        return tx.all(sa.select(table).where(where)) if rows else []

    return mock.patch.object(leases, "claim", claimed)


@contextmanager
def sent_inside_a_transaction() -> Iterator[None]:
    """The provider is called by the very act that begins the attempt."""
    start_call = calling.start_call
    families: list[Mapping[str, Family]] = []
    create = Ledger.__init__

    def learn(self: Ledger, database: Any, known: Mapping[str, Family]) -> None:
        families.append(known)
        create(self, database, known)

    def start(tx: Tx, *asked: Any) -> Any:
        begun = start_call(tx, *asked)
        if isinstance(begun, Outgoing):
            sending = families[-1]["completion"].deliver(begun, 60.0)
            with contextlib.suppress(StopIteration):
                sending.send(None)
            sending.close()
        return begun

    with mock.patch.object(Ledger, "__init__", learn), mock.patch.object(calling, "start_call", start):
        yield


def counted_blindly() -> AbstractContextManager[object]:
    """A counter to which every event adds what it says, also one that comes again."""
    settle = settling.settle_event

    def add(tx: Tx, event: JobEvent) -> settling.Settlement:
        known = {(row.manifest_id, row.shard): row.completed for row in tx.all(sa.select(_SHARDS))}
        settlement = settle(tx, event)
        if settlement.verdict in ("applied", "stale") and len(known) == 1:
            said = sum(item.status == "completed" for item in event.items)
            for row in tx.all(sa.select(_SHARDS)):
                completed = known[row.manifest_id, row.shard] + said
                here = sa.and_(_SHARDS.c.manifest_id == row.manifest_id, _SHARDS.c.shard == row.shard)
                queued = row.queued + row.completed - completed
                tx.touched(sa.update(_SHARDS).where(here).values(completed=completed, queued=queued))
        return settlement

    return mock.patch.object(settling, "settle_event", add)


@contextmanager
def recounted_before_the_move() -> Iterator[None]:
    """Counts are taken when the shard is locked, and written once the intents have moved."""
    counted: dict[tuple[str, int], Mapping[str, Any]] = {}
    lock, count = shards.lock, shards._count

    def early(tx: Tx, manifest_id: str, numbers: Iterable[int]) -> None:
        wanted = sorted(set(numbers))
        lock(tx, manifest_id, wanted)
        counted.update({(manifest_id, number): count(tx, manifest_id, number) for number in wanted})

    def kept(tx: Tx, manifest_id: str, number: int) -> Any:
        return counted.pop((manifest_id, number), None) or count(tx, manifest_id, number)

    with mock.patch.object(shards, "lock", early), mock.patch.object(shards, "_count", kept):
        yield


def resent_without_a_word() -> AbstractContextManager[object]:
    """What is unknown is bought again, and nobody writes down that this was allowed."""
    return mock.patch.object(approvals, "add", return_value=None)


@contextmanager
def taken_over_as_unsent() -> Iterator[None]:
    """Whoever takes over believes that what was begun was never sent."""
    take_over = effects.take_over

    def believe(tx: Tx, effect_id: str) -> Row | None:
        last = effects.last_attempt(tx, effect_id)
        if last is not None and last.outcome == ATTEMPT.initial:
            effects.settle(tx, last.id, Answer("NOT_STARTED"))
            effects.move(tx, effect_id, "fail")
        return take_over(tx, effect_id)

    with mock.patch.object(effects, "take_over", believe):
        yield


@contextmanager
def repeated_in_secret() -> Iterator[None]:
    """A sender that tries again by itself when no answer comes."""
    send = Ledger._send

    async def twice(self: Ledger, family: Family, outgoing: Outgoing) -> Answer:
        answer = await send(self, family, outgoing)
        if answer.outcome in ATTEMPT.groups["UNKNOWN"]:
            answer = await send(self, family, outgoing)
        return answer

    with mock.patch.object(Ledger, "_send", twice):
        yield


@contextmanager
def late_answers_dropped() -> Iterator[None]:
    """An answer to an attempt that was given up is thrown away, and its money forgotten."""
    settled = effects._settled

    def dropped(row: Any, answer: Answer) -> effects.Settled:
        if row is not None and row.outcome != ATTEMPT.initial:
            return effects.Settled(str(row.outcome), late=True, known=False, attempt=row)
        return settled(row, answer)

    with mock.patch.object(effects, "_settled", dropped):
        yield


def written_from_an_old_look() -> AbstractContextManager[object]:
    """A file is replaced by what was made of an earlier state of it, whatever stands there now."""
    put = Files._put

    def blindly(self: Files, outgoing: Outgoing) -> Answer:
        file = Path(str(outgoing.facts["root"])) / str(outgoing.facts["target"])
        stands = sha256(file.read_bytes()) if file.exists() else ""
        return put(self, replace(outgoing, facts={**outgoing.facts, "expected": stands}))

    return mock.patch.object(Files, "_put", blindly)


def taken_back_whole() -> AbstractContextManager[object]:
    """What stood before is put back whole, although somebody wrote another locale's texts since."""

    def whole(self: Restoring, planned: PlannedStep, snapshot: Snapshot, stands: bytes) -> Order:
        return Order(snapshot.body, sha256(stands), snapshot.written)

    return mock.patch.object(Restoring, "_text_by_text", whole)


def taken_back_with_theirs() -> AbstractContextManager[object]:
    """A text that a person put in place of ours goes, too."""
    return mock.patch.object(compensation, "text_hash", return_value=mock.ANY)


def cursor_before_its_pairs() -> AbstractContextManager[object]:
    """A walk that writes down where it goes on before it has made the intents of its page."""
    record = Enumeration._record

    async def early(
        self: Enumeration, manifest: Row, lease: Any, walk: Walk, page: Page, place: Place
    ) -> Any:
        if page.documents and page.after.phase == "collections":
            await record(self, manifest, lease, walk, page._replace(documents=()), place)
        return await record(self, manifest, lease, walk, page, place)

    return mock.patch.object(Enumeration, "_record", early)


def started_before_the_sample() -> AbstractContextManager[object]:
    """A canary whose intents are due as soon as they are made."""
    fresh = intents._fresh

    def due(tx: Tx, manifest: Row, *pair: Any) -> dict[str, Any]:
        return {**fresh(tx, manifest, *pair), "parked_for": "", "next_attempt_at": tx.now}

    return mock.patch.object(intents, "_fresh", due)


def booked_past_the_sum() -> AbstractContextManager[object]:
    """A booking that the sums of its client job never hear of."""
    return mock.patch.object(budgets, "_add_used", return_value=None)


def older_steps_kept_as_newest() -> AbstractContextManager[object]:
    """What an intent's earlier steps came to counts on, beside its newest."""
    return mock.patch.object(executions, "_supersede", return_value=None)


def persons_called_ours() -> AbstractContextManager[object]:
    """What a person made of a text of ours is seen, and not said."""
    return mock.patch.object(entries, "relabel", return_value=None)


def ended_beside_its_slot() -> AbstractContextManager[object]:
    """An execution that runs no more, and that the sums of its manifest never hear of."""
    return mock.patch.object(publication_sums, "recount", return_value=None)


def counted_before_its_step_moved() -> AbstractContextManager[object]:
    """An execution ends with the counts that it had when it began."""
    begun: dict[str, Mapping[str, int]] = {}
    count = executions.counted

    def early(tx: Tx, execution_id: str) -> Mapping[str, int]:
        return begun.setdefault(execution_id, count(tx, execution_id))

    return mock.patch.object(executions, "counted", early)


_SHUFFLED = replace(CALM, seed=1, is_shuffled=True)
_REDRIVEN = replace(_SHUFFLED, people=("redrive",), askable=True)
_RETAINED = replace(CALM, people=("retain", "redrive"))
_RUN = replace(CALM, people=("run",))
_FAR = replace(FAR, patience_seconds=7_200.0)
_UNHEARD = Plan({("wire", number): "answer lost" for number in range(2, 16)})
"""The network answers nothing for so long that a site might give up."""

ALL: Mapping[str, Mutant] = {
    "a cursor before its pairs": Mutant(
        cursor_before_its_pairs, "record_walk", world=replace(SCOPE, is_small=True)
    ),
    "a canary that waits for no sample": Mutant(started_before_the_sample, world=CANARY),
    "a fence that nobody looks at": Mutant(held_without_fence, "record_preparations"),
    "a job's fence that nobody looks at": Mutant(job_held_without_fence, "close_call"),
    "a claim that raises no fence": Mutant(claimed_without_fence),
    "a send inside a transaction": Mutant(sent_inside_a_transaction),
    "a blind counter": Mutant(counted_blindly, "settle_receipt", world=of_seed(27)),
    "a recount before the move": Mutant(recounted_before_the_move),
    "a resend of an unknown without a word": Mutant(
        resent_without_a_word, world=replace(CALM, weather={"lost": 0.4})
    ),
    "a take-over that believes nothing was sent": Mutant(taken_over_as_unsent, world=of_seed(20)),
    "a hidden repeat": Mutant(repeated_in_secret),
    "a reserve without room": Mutant(reserved_without_room),
    "a late answer thrown away": Mutant(late_answers_dropped, "settle_call"),
    "a write from an old look": Mutant(written_from_an_old_look, world=ONE_FILE),
    "a batch that runs on for nobody": Mutant(
        of_money.left_running, world=replace(BATCHES, people=("cancel",))
    ),
    "a look that failed taken for an end": Mutant(of_money.failed_look_taken_for_an_end, world=BATCHES),
    "a batch made again where its id was lost": Mutant(
        of_money.made_again_where_its_id_was_lost,
        world=replace(BATCHES, on_unknown="resend", weather={"lost": 0.5}),
    ),
    "a reserve that is kept": Mutant(of_money.reserve_kept, world=replace(BATCHES, weather={"lost": 0.1})),
    "a hand-over in doubt": Mutant(
        of_money.handed_over_in_doubt,
        world=replace(
            _SHUFFLED, heirs=True, on_unknown="hold", is_small=True, weather={"lost": 0.4, "spend_limit": 0.2}
        ),
    ),
    "an heir's own list": Mutant(
        of_money.heirs_of_heirs, world=replace(CALM, heirs=True, weather={"spend_limit": 0.6})
    ),
    "a call that no pause stops": Mutant(
        of_money.deaf_to_people,
        world=replace(_SHUFFLED, seed=2, people=("rest",), weather={"broken": 0.4, "missing": 0.4}),
    ),
    "a call inside a provider's window": Mutant(
        of_money.deaf_to_providers, world=replace(CALM, is_small=True, weather={"slow_down": 0.4})
    ),
    "a whole snapshot put back": Mutant(taken_back_whole, world=ONE_FILE),
    "a booking past the sum": Mutant(booked_past_the_sum),
    "an older step that counts on": Mutant(
        older_steps_kept_as_newest, world=replace(CALM, people=("revert",))
    ),
    "counts from before the steps": Mutant(counted_before_its_step_moved),
    "a person's text still called ours": Mutant(
        persons_called_ours, world=replace(ONE_FILE, people=("correct",))
    ),
    "an execution beside its slot": Mutant(ended_beside_its_slot),
    "a redrive beside a send": Mutant(
        of_care.redriven_beside_a_send,
        world=replace(CALM, seed=6, processes=2, people=("redrive",), plan=one("call", 8, "late")),
    ),
    "a receiver that stays given up": Mutant(of_care.endpoint_left_closed, world=_REDRIVEN),
    "a redriven job without its fields": Mutant(
        of_care.job_redriven_without_its_fields,
        world=replace(CALM, people=("redrive",), plan=one("point", 87, "kill")),
    ),
    "a quarantine that lets go of calls": Mutant(
        of_care.quarantine_that_closes_calls,
        world=replace(CALM, people=("redrive",), plan=one("point", 92, "kill")),
    ),
    "texts gone before their event": Mutant(of_care.texts_gone_before_their_event, world=_RETAINED),
    "failures removed": Mutant(
        of_care.failures_removed, world=replace(_RETAINED, weather={"broken": 0.9}, people=("retain",))
    ),
    "a manifest removed at once": Mutant(of_care.removed_at_once, world=_RETAINED),
    "jobs removed before their time": Mutant(of_care.removed_before_their_time, world=_RETAINED),
    "a pass admitted anew": Mutant(of_care.passes_admitted_anew, "begin_pass", world=_RUN),
    "a pass counted while it is at work": Mutant(of_care.passes_counted_while_at_work, world=_RUN),
    "a run beside another": Mutant(of_care.runs_that_join_nobody, world=_RUN),
    "a gateway's word taken for a refusal": Mutant(
        of_wire.ill_taken_for_refusing, world=replace(_FAR, seed=1, plan=one("wire", 2, "gateway"))
    ),
    "a gateway's word taken for an acceptance": Mutant(
        of_wire.ill_taken_for_accepting, world=_FAR.struck(one("wire", 2, "gateway"))
    ),
    "a submission under a fresh id": Mutant(
        of_wire.sent_under_a_fresh_id, world=_FAR.struck(one("wire", 2, "answer lost"))
    ),
    "a submission given up in doubt": Mutant(of_wire.given_up_in_doubt, world=_FAR.struck(_UNHEARD)),
    "an event answered before it is kept": Mutant(
        of_wire.answered_before_it_is_kept, world=_FAR.struck(one("point", 150, "kill"))
    ),
    "an event applied as often as it comes": Mutant(
        of_wire.applied_as_often_as_it_comes, world=_FAR.struck(one("wire", 3, "answer lost"))
    ),
    "a secret forgotten while it is changed": Mutant(
        of_wire.former_secret_forgotten, world=replace(_FAR, is_shuffled=True, people=("rotate",))
    ),
    "an ended job that reconciliation ignores": Mutant(
        of_wire.ended_jobs_ignored, world=replace(_FAR, asks_only=True)
    ),
    "a person's text taken back": Mutant(
        taken_back_with_theirs, world=replace(ONE_FILE, people=("apart", "word", "revert"))
    ),
}
