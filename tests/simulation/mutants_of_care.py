"""Planted faults where somebody looks after an installation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

import sqlalchemy as sa

from dragoman.flow.site.convergence import Convergence
from dragoman.model.runs import RunDraft, Started
from dragoman.model.scopes import Scope, System
from dragoman.store.acts import converging, delivering, finishing, purging, retiring
from dragoman.store.rows import job_fields, manifests, outbox
from dragoman.store.schema import convergence, engine
from dragoman.store.transaction import Tx


def redriven_beside_a_send() -> AbstractContextManager[object]:
    """An event is made due by a person's word, whatever its state."""

    redrive = delivering.redrive_delivery

    def anyhow(tx: Tx, scope: Scope, outbox_id: str, actor: str) -> None:
        row = outbox.find(tx, scope, outbox_id)
        if row is None or row.state != "delivering":
            return redrive(tx, scope, outbox_id, actor)
        due = sa.update(engine.outbox).where(engine.outbox.c.id == outbox_id)
        tx.touched(due.values(state="pending", next_attempt_at=tx.now))
        return None

    return mock.patch.object(delivering, "redrive_delivery", anyhow)


def endpoint_left_closed() -> AbstractContextManager[object]:
    """A redriven event goes, and whatever comes after it to the same receiver is dead at once."""
    return mock.patch.object(outbox, "open_endpoint", return_value=False)


def job_redriven_without_its_fields() -> AbstractContextManager[object]:
    """A job is queued again, and what ended with its quarantine stays failed."""
    return mock.patch.object(job_fields, "reopen", return_value=0)


def texts_gone_before_their_event() -> AbstractContextManager[object]:
    """A job that has ended is taken for one whose event has arrived."""
    return mock.patch.object(purging, "_is_owed", return_value=False)


def failures_removed() -> AbstractContextManager[object]:
    """Whatever has ended goes, also what somebody may try again."""
    return mock.patch.object(retiring, "unfinished", return_value="")


def removed_at_once() -> AbstractContextManager[object]:
    """A manifest goes in one transaction, however large it is."""
    return mock.patch.object(retiring, "RETENTION_PART", 10**6)


def removed_before_their_time() -> AbstractContextManager[object]:
    """A job goes with its results: the site that sends its submission again pays anew."""
    return mock.patch.object(purging, "_KEPT_TIMES", 1)


@contextmanager
def passes_admitted_anew() -> Iterator[None]:
    """Whoever takes a run up admits its pass under a request id of its own."""
    create, counter = Convergence.__init__, itertools.count()

    def forget(self: Convergence, *parts: Any) -> None:
        create(self, *parts)
        admit = self._admit

        async def anew(workspace: str, actor: str, project: str, request_id: str, *more: Any) -> str:
            return await admit(workspace, actor, project, f"{request_id}:{next(counter)}", *more)

        self._admit = anew

    with mock.patch.object(Convergence, "__init__", forget):
        yield


def passes_counted_while_at_work() -> AbstractContextManager[object]:
    """A pass is over as soon as somebody looks."""

    def numbers(tx: Tx, manifest_id: str) -> dict[str, int]:
        manifest = manifests.find(tx, System(), manifest_id)
        assert manifest is not None
        return converging._numbers(tx, manifest)

    return mock.patch.object(converging, "pass_numbers", numbers)


def runs_that_join_nobody() -> AbstractContextManager[object]:
    """A run that is at work is no reason not to begin another, once its key is free."""

    def start(tx: Tx, draft: RunDraft) -> Started:
        tx.touched(sa.update(convergence.runs).values(open_key=None))
        return start_run(tx, draft)

    start_run = converging.start_run
    return mock.patch.object(converging, "start_run", start)


def quarantine_that_closes_calls() -> AbstractContextManager[object]:
    """A job that goes to quarantine lets go of its calls, as any other that ends."""
    return mock.patch.object(finishing, "QUARANTINED", "")
