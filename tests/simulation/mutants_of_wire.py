"""Planted faults where a site and its engine are far from each other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from dragoman.families import submission
from dragoman.flow.site.callbacks import Callbacks
from dragoman.flow.site.reconciliation import Reconciliation
from dragoman.kernel import canonical
from dragoman.machines.tables import JOB
from dragoman.model.effects import Answer, Outgoing
from dragoman.model.events import Delivery
from dragoman.store.acts import settling
from dragoman.store.rows import effects, receipts, submissions
from dragoman.store.transaction import Row, Tx
from dragoman.wiring import linking


def ill_taken_for_refusing() -> AbstractContextManager[object]:
    """A 5xx is the engine's refusal, whoever says it."""
    verdict = submission._verdict

    def refused(status: int, own_word: str) -> tuple[str, str]:
        return ("REJECTED", "invalid_fields") if status >= 500 else verdict(status, own_word)

    return mock.patch.object(submission, "_verdict", refused)


def ill_taken_for_accepting() -> AbstractContextManager[object]:
    """A 5xx is taken for an acceptance, of a job that the site names itself."""
    judged = submission._judged

    def accepted(sent: Any, *needed: str) -> Answer:
        if sent.status is not None and sent.status >= 500:
            return Answer("SUCCEEDED", body=b'{"job_id": "job-of-nobody"}', status=200)
        return judged(sent, *needed)

    return mock.patch.object(submission, "_judged", accepted)


def sent_under_a_fresh_id() -> AbstractContextManager[object]:
    """Whoever has heard nothing sends the same under another id."""
    deliver = submission.Submission.deliver

    async def anew(self: submission.Submission, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        if outgoing.number > 1 and "submission_id" in outgoing.facts:
            said = json.loads(outgoing.body)
            fresh = f"{said['submissionId'][:-4]}{outgoing.number:04x}"
            outgoing = replace(outgoing, body=canonical.encode({**said, "submissionId": fresh}))
        return await deliver(self, outgoing, deadline_seconds)

    return mock.patch.object(submission.Submission, "deliver", anew)


def given_up_in_doubt() -> AbstractContextManager[object]:
    """Five tries are enough, whatever may have become of them."""
    return mock.patch.object(effects, "may_have_arrived", return_value=False)


def answered_before_it_is_kept() -> AbstractContextManager[object]:
    """An event is answered first, and kept afterwards."""
    receive, tasks = Callbacks.receive, set[asyncio.Task[int]]()

    async def later(self: Callbacks, body: bytes, headers: Mapping[str, str]) -> int:
        tasks.add(asyncio.create_task(receive(self, body, headers)))
        return 200

    return mock.patch.object(Callbacks, "receive", later)


@contextmanager
def applied_as_often_as_it_comes() -> Iterator[None]:
    """An event that comes again moves what it has moved before."""
    keep, links = settling.keep_receipt, submissions.links

    def anew(tx: Tx, delivery: Delivery) -> settling.Kept:
        return keep(tx, delivery)._replace(fresh=True)

    def all_of_them(tx: Tx, submission_id: str, open_only: bool = False) -> list[Row]:
        return links(tx, submission_id)

    with (
        mock.patch.object(settling, "keep_receipt", anew),
        mock.patch.object(submissions, "links", all_of_them),
        mock.patch.object(settling, "_is_current", return_value=True),
        mock.patch.object(receipts, "close", return_value=None),
    ):
        yield


def ended_jobs_ignored() -> AbstractContextManager[object]:
    """Reconciliation looks at what is at work alone."""
    use = Reconciliation._use

    async def at_work(self: Reconciliation, inquiry: Any, view: Mapping[str, Any]) -> None:
        if view["status"] not in JOB.terminal:
            await use(self, inquiry, view)

    return mock.patch.object(Reconciliation, "_use", at_work)


def former_secret_forgotten() -> AbstractContextManager[object]:
    """Whoever has a secret in force needs no other."""
    held = linking.callback_secrets
    return mock.patch.object(linking, "callback_secrets", lambda settings: held(settings)[:1])
