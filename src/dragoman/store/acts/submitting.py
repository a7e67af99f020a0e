"""Transactions of submission: prepared intents are frozen into requests, sent, and the engine's word is
recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel import canonical
from dragoman.kernel.clock import seconds
from dragoman.kernel.errors import CODES, LeaseLost
from dragoman.kernel.identity import sha256
from dragoman.kernel.limits import (
    CALL_TIMEOUT_SECONDS,
    RETRIES_PER_GENERATION,
    RETRY_FIRST_SECONDS,
    SUBMISSION_BYTES_SETTING,
)
from dragoman.machines.tables import INTENT
from dragoman.model.effects import Answer, AttemptPlan, EffectIdentity, Outgoing
from dragoman.model.intents import Link, Sender, SendTicket, ShardWork, SubmissionDraft, ref_of
from dragoman.model.scopes import System
from dragoman.store.acts import moving
from dragoman.store.rows import claims, effects, intents, manifests, receipts, shards, submissions
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_INTENTS = tables.intents
_NO_SECRET = "callback_secret_missing"  # noqa: S105 - a code
_TOLD = {name for name, code in CODES.items() if code.kind in ("intent", "job")}
"""Codes of the engine that its refusal gives to the intents."""
_OF_ITEMS = frozenset({"payload_too_large", "invalid_fields", "unsupported_locale", "source_is_target"})
"""Refusals that may be about one item alone."""
_Item = Mapping[str, Any]
"""One item of a body."""
_LINK = tuple(field.name for field in fields(Link))
_ITEM = re.compile(r"\$\.items\[(\d{1,6})\]")


class _Frozen(NamedTuple):
    """Of a submission what sending needs, by the names of its columns."""

    id: str
    workspace: str
    manifest_id: str
    fingerprint: str
    body: bytes
    secret_mark: str
    fence: int


def claim_prepared_intents(tx: Tx, owner: str, limit: int) -> ShardWork | None:
    """Lease one shard that has prepared intents in no submission, and hand them out in ordinal order."""
    claimed = claims.claim_shard(tx, "submit_due_at", owner)
    if claimed is None:
        return None
    manifest = manifests.find(tx, System(), claimed.manifest_id)
    if manifest is None:
        return None
    rows = intents.due(tx, claimed.manifest_id, claimed.shard, "prepared", limit)
    if not rows:
        shards.recount(tx, claimed.manifest_id, [claimed.shard])
        claims.release_shard(tx, claimed.manifest_id, claimed.shard, claimed.fence)
        return None
    return ShardWork(
        workspace=claimed.workspace,
        manifest_id=claimed.manifest_id,
        shard=claimed.shard,
        fence=claimed.fence,
        settings={**json.loads(manifest.settings), "push_id": manifest.push_id or ""},
        intents=tuple(intents.as_due(row, manifest.actor, "prepared") for row in rows),
    )


def persist_submissions(
    tx: Tx,
    work: ShardWork,
    moved: Sequence[str],
    drafts: Sequence[SubmissionDraft],
    owner: str,
    sender: Sender,
    spoilt: Sequence[str] = (),
) -> list[tuple[SendTicket, Outgoing]]:
    """Freeze drafts, link their intents, begin their sending, and give the shard back.

    `moved` are intents whose source changed since preparation: they go back to pending, and no attempt is
    spent. `spoilt` are those whose envelope is not what was written: they fail. Raises `LeaseLost` under a
    stale fence, or when one linked intent has moved on: then nothing is written.
    """
    claims.hold_shard(tx, work.manifest_id, work.shard, work.fence)
    if manifests.is_paused(tx, work.manifest_id):
        raise LeaseLost(f"manifest {work.manifest_id} is paused")
    gone = [intent for intent in work.intents if intent.id in set(moved)]
    moving.move(tx, gone, "source_moved", prepared=None, key_map=None, next_attempt_at=tx.now)
    for intent in work.intents:
        if intent.id in spoilt:
            moving.refuse(tx, intent, "internal_error", "what was prepared is not what stands in its place")
    linked: set[str] = set()
    for draft in drafts:  # a document in parts may lie in several: it is linked to the first
        fresh = {link.intent_id: link.generation for link in draft.links if link.intent_id not in linked}
        intents.link(tx, fresh, draft.id)
        linked |= fresh.keys()
    begun = [_persist(tx, work, draft, owner, sender) for draft in drafts]
    shards.recount(tx, work.manifest_id, [work.shard])
    claims.release_shard(tx, work.manifest_id, work.shard, work.fence)
    return begun


def _persist(
    tx: Tx, work: ShardWork, draft: SubmissionDraft, owner: str, sender: Sender
) -> tuple[SendTicket, Outgoing]:
    submissions.insert(tx, work.workspace, work.manifest_id, draft, owner, sender)
    frozen = _Frozen(
        draft.id, work.workspace, work.manifest_id, draft.fingerprint, draft.body, sender.mark, 1
    )
    return SendTicket(draft.id, 1), _begin(tx, frozen, owner, sender)


def _begin(tx: Tx, row: _Frozen, owner: str, sender: Sender) -> Outgoing:
    if sender.mark and not row.secret_mark:
        submissions.mark(tx, row.id, sender.mark)
    effect = effects.ensure(
        tx,
        EffectIdentity(
            workspace=row.workspace,
            family="submission",
            key=f"SUBMISSION:{row.workspace}:{row.id}",
            idempotency="PROVIDER_IDEMPOTENT",
            purpose="hand prepared intents to the engine",
            source_kind="submissions",
            source_id=row.id,
            payload_fingerprint=row.fingerprint,
            correlation_id=row.manifest_id,
        ),
    )
    effects.take_over(tx, effect.id)
    plan = AttemptPlan(
        account="engine",
        worker=owner,
        fence=row.fence,
        deadline_seconds=CALL_TIMEOUT_SECONDS,
        request_fingerprint=sha256(row.body),
    )
    facts: dict[str, str | int] = {
        "kind": "submit",
        "submission_id": row.id,
        "secret_mark": row.secret_mark or sender.mark,
    }
    outgoing = effects.start(tx, effect, plan, row.body, facts)
    if outgoing is None:
        raise LeaseLost(f"submission {row.id} needs no sending")
    return outgoing


def begin_due_sends(tx: Tx, owner: str, limit: int, sender: Sender) -> list[tuple[SendTicket, Outgoing]]:
    """Take submissions that wait for a retry or whose sender is gone, and begin sending their stored bytes
    again: to the engine that they were made for, under the secret that they were first sent under.
    """
    begun = []
    for row in submissions.claim(tx, owner, limit, sender.engine):
        if manifests.is_paused(tx, row.manifest_id):  # it is looked at again, and going on makes it due
            later = tx.now + seconds(RETRY_FIRST_SECONDS)
            submissions.finish_sending(tx, row.id, row.fence, "retry_wait", next_attempt_at=later)
            continue
        frozen = _Frozen(*(getattr(row, name) for name in _Frozen._fields))
        begun.append((SendTicket(row.id, row.fence), _begin(tx, frozen, owner, sender)))
    return begun


def marks_in_use(tx: Tx, engine: str) -> dict[str, int]:
    """Mark of a callback secret → how many open submissions of this account were sent under it."""
    return submissions.marks_in_use(tx, engine)


def of_other_engines(tx: Tx, engine: str) -> dict[str, int]:
    """Account → how many open submissions were made for it, and wait for a process that has it."""
    return submissions.of_other_engines(tx, engine)


def record_send(tx: Tx, outgoing: Outgoing, answer: Answer, ticket: SendTicket, jitter: float) -> bool:
    """Record the engine's word on a submission: accepted, to be sent again, or refused; True when it was
    accepted.

    The attempt is written down whatever became of the lease. Raises nothing for a lost lease: the ledger
    must stand.
    """
    settled = effects.settle(tx, outgoing.attempt_id, answer)
    if not settled.late:
        effects.move(tx, outgoing.effect_id, effects.event_of_repeatable(answer))
    row = submissions.find(tx, ticket.submission_id, lock=True)
    if row is None or row.fence != ticket.fence or row.state != "submitting":
        return False
    if answer.outcome in ("SUCCEEDED", "ACCEPTED"):
        return _record_acceptance(tx, row, str(json.loads(answer.body or b"{}")["job_id"]))
    retryable = answer.outcome != "REJECTED" or (answer.code in CODES and CODES[answer.code].retryable)
    has_tries = row.attempt_count + 1 < RETRIES_PER_GENERATION or _is_in_doubt(tx, row, outgoing.effect_id)
    if answer.code == _NO_SECRET or (retryable and has_tries):
        _send_again(tx, row, answer, jitter)
    else:
        _record_refusal(tx, row, answer)
    return False


def _is_in_doubt(tx: Tx, row: Row, effect_id: str) -> bool:
    """Whether the engine may have this submission: then only its own word ends it, for whoever gave it up
    would lose what is worked and paid for. What nobody wants any more is waited for no longer than the rest.
    """
    if not effects.may_have_arrived(tx, effect_id):
        return False
    manifest = manifests.find(tx, System(), row.manifest_id)
    return manifest is not None and not manifest.canceled


def _record_acceptance(tx: Tx, row: Row, remote_job_id: str) -> bool:
    submissions.accept(tx, row.id, row.fence, remote_job_id)
    generations = {link.intent_id: link.generation for link in submissions.links(tx, row.id)}
    touched = _lock_linked(tx, row, list(generations))
    moving.move(tx, _current(touched, generations), "accept", remote_job_id=remote_job_id, prepared=None)
    shards.recount(tx, row.manifest_id, {intent.shard for intent in touched})
    receipts.wake(tx, row.workspace, row.id)
    return True


def _lock_linked(tx: Tx, row: Row, intent_ids: list[str]) -> list[Row]:
    where = _INTENTS.c.id.in_(intent_ids)
    touched = {found.shard for found in tx.all(sa.select(_INTENTS.c.shard).where(where))}
    shards.lock(tx, row.manifest_id, touched)
    return tx.all(sa.select(_INTENTS).where(where))


def _current(touched: Sequence[Row], generations: Mapping[str, int]) -> list[Row]:
    """Of the linked intents those that still wait for the engine's word in the linked generation."""
    return [row for row in touched if row.state == "prepared" and row.generation == generations[row.id]]


def _send_again(tx: Tx, row: Row, answer: Answer, jitter: float) -> None:
    costs = answer.code != _NO_SECRET  # nothing was sent, and nothing is until a person puts it there
    attempt = row.attempt_count + costs
    delay_seconds = intents.retry_delay_seconds(max(1, attempt), jitter, answer.retry_after_seconds)
    if answer.outcome in effects.UNHEARD and attempt == 1:
        delay_seconds = (
            0  # a lost answer is repaired by the same bytes at once; only then does the rule set in
        )
    submissions.finish_sending(
        tx,
        row.id,
        row.fence,
        "retry_wait",
        attempt_count=attempt,
        next_attempt_at=tx.now + seconds(delay_seconds),
        error_code=answer.code or None,
        error_message=answer.message[:500] or None,
        parked_for="" if costs else "secret",
    )


def _record_refusal(tx: Tx, row: Row, answer: Answer) -> None:
    """Fail what the engine refuses. Where that is one item, or nobody knows which, the others go out anew."""
    code = answer.code if answer.code in _TOLD else "retry_exhausted"
    submissions.finish_sending(
        tx, row.id, row.fence, "failed", error_code=code, error_message=answer.message[:500] or None
    )
    links = submissions.links(tx, row.id)
    generations = {link.intent_id: link.generation for link in links}
    touched = _lock_linked(tx, row, list(generations))
    open_ = {one.id: one for one in touched if one.state not in INTENT.terminal}
    current = {id_: one for id_, one in open_.items() if one.generation == generations[id_]}
    body = json.loads(row.body)
    by_ref = {link.ref: Link(*(getattr(link, name) for name in _LINK)) for link in links}
    parts = [[(item, by_ref[item["ref"]]) for item in part] for part in _apart(body["items"], answer)]
    carried = {link.ref for part in parts for _, link in part}
    at_fault = _at_fault(body["items"], answer)
    if at_fault and (halves := _halves(at_fault, by_ref[at_fault["ref"]], answer, len(row.body))):
        parts += [[half] for half in halves]
        carried.add(at_fault["ref"])
    refused = {link.intent_id for link in links if link.ref not in carried}
    for intent in [one for id_, one in current.items() if id_ in refused]:
        _refuse(tx, intent, code, answer.message)
    for part in parts:
        _carry_on(tx, row, body, [one for one in part if one[1].intent_id in current.keys() - refused])
    submissions.settle_links(tx, row.id, [link.ref for link in links])
    shards.recount(tx, row.manifest_id, {intent.shard for intent in touched})


def _refuse(tx: Tx, intent: Row, code: str, message: str) -> None:
    """Fail an intent; another part of its document may be with the engine already."""
    if intent.state in INTENT.groups["LINKED"]:
        retryable = CODES[code].retryable
        moving.move(tx, [intent], "fail", error_code=code, error_message=message, retryable=retryable)
    else:
        moving.refuse(tx, intent, code, message)


def _at_fault(items: Sequence[_Item], answer: Answer) -> _Item | None:
    """The item that the engine refuses: the one that it names, or the only one; None where nobody knows."""
    if answer.code not in _OF_ITEMS:
        return None
    named = _ITEM.match(answer.place)
    index = int(named[1]) if named else 0
    return items[index] if index < len(items) and (named or len(items) == 1) else None


def _apart(items: Sequence[_Item], answer: Answer) -> list[Sequence[_Item]]:
    """What to send in place of refused items: all but the one at fault, or two halves where nobody knows
    which. Nothing where the refusal is about the whole.
    """
    at_fault = _at_fault(items, answer)
    if at_fault is not None:
        return [[item for item in items if item is not at_fault]]
    if answer.code not in _OF_ITEMS or (answer.place and answer.code != "payload_too_large"):
        return []
    middle = len(items) // 2
    return [items[:middle], items[middle:]]


def _halves(item: _Item, link: Link, answer: Answer, body_bytes: int) -> list[tuple[_Item, Link]]:
    """An item that is too large for an engine which takes less than it did, as two parts of its document.

    Nothing where one of its texts is what is refused, and where no engine of ours would call it too large.
    """
    has_too_many = answer.place.endswith(".fields")
    whole = not _ITEM.match(answer.place) and body_bytes > SUBMISSION_BYTES_SETTING[0]
    if answer.code != "payload_too_large" or len(item["fields"]) < 2 or not (has_too_many or whole):
        return []
    texts = list(item["fields"].items())
    middle = len(texts) // 2
    halves: list[tuple[_Item, Link]] = []
    for part, held in ((2 * link.part - 1, texts[:middle]), (2 * link.part, texts[middle:])):
        ref = ref_of(link.intent_id, link.generation, part, 2 * link.parts)
        digest = sha256(canonical.encode(dict(held)))
        half = replace(link, part=part, parts=2 * link.parts, ref=ref, fields_hash=digest)
        halves.append(({**item, "ref": ref, "fields": dict(held)}, half))
    return halves


def _carry_on(tx: Tx, row: Row, body: Mapping[str, object], part: Sequence[tuple[_Item, Link]]) -> None:
    """Freeze a part of what was refused into a submission of its own, due now."""
    if not part:
        return
    submission_id = tx.new_id()
    items = [item for item, _ in part]
    frozen = canonical.encode({**body, "submissionId": submission_id, "items": items})
    links = tuple(link for _, link in part)
    draft = SubmissionDraft(submission_id, frozen, sha256(frozen), links)
    submissions.insert(tx, row.workspace, row.manifest_id, draft, "", Sender(row.engine))
    intents.relink(tx, [link.intent_id for link in links], row.id, submission_id)
