"""Transactions of callbacks and reconciliation: receipts are kept, and one function settles what the engine
says.

Settlement goes by submission, ref and generation only. An event moves nothing backwards, and moves nothing
twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.clock import seconds
from dragoman.kernel.errors import CODES
from dragoman.kernel.identity import key_hash
from dragoman.kernel.limits import RETRY_FIRST_SECONDS
from dragoman.machines.tables import INTENT, RECEIPT
from dragoman.model.events import Delivery
from dragoman.model.intents import JOB_LOST, FieldResult, ItemResult, JobEvent
from dragoman.model.scopes import System
from dragoman.store.acts import moving
from dragoman.store.rows import (
    field_sums,
    manifests,
    receipts,
    requests,
    shards,
    submissions,
    texts,
)
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx, repeatable

_INTENTS = tables.intents
_REVIEW_CHARS_MAX = 255


class Kept(NamedTuple):
    """A kept receipt. `fresh` is False once it was applied or set aside; `contradicts`: another body."""

    id: str
    fresh: bool
    contradicts: bool


class Settlement(NamedTuple):
    """What an event came to. `early`: the acceptance is not on record yet; `contradiction`: other
    identities.
    """

    verdict: Literal["applied", "stale", "early", "contradiction", "unrelated"]
    intents: int = 0
    manifest_ended: bool = False


@repeatable
def keep_receipt(tx: Tx, delivery: Delivery) -> Kept:
    """One durable receipt for one delivery id, before anyone uses it."""
    row = receipts.keep(tx, delivery)
    return Kept(row.id, row.state in RECEIPT.groups["APPLICABLE"], row.fingerprint != delivery.fingerprint)


def due_receipts(tx: Tx, limit: int) -> list[tuple[str, str]]:
    """Kept receipts that wait to be applied: (id, body); each gets its next turn half a minute from now."""
    rows = receipts.due(tx, limit)
    for row in rows:
        receipts.postpone(tx, row.id, tx.now + seconds(RETRY_FIRST_SECONDS))
    return [(row.id, row.body) for row in rows]


def is_settled(tx: Tx, submission_id: str) -> bool:
    """Whether nothing waits for the texts of this submission's job any more: its engine need not be asked for
    them, and may have lost them.
    """
    row = submissions.find(tx, submission_id)
    return row is not None and row.settled_at is not None


def settle_receipt(tx: Tx, receipt_id: str, event: JobEvent) -> Settlement:
    """Apply a kept receipt's event, and close the receipt with what came of it."""
    settlement = settle_event(tx, event)
    closing = {"applied": "apply", "stale": "stale", "unrelated": "unrelated", "contradiction": "contradict"}
    if settlement.verdict in closing:
        receipts.close(tx, receipt_id, closing[settlement.verdict])
    return settlement


def set_receipt_aside(tx: Tx, receipt_id: str, code: str, message: str) -> None:
    """Close a receipt that cannot be read."""
    receipts.close(tx, receipt_id, "contradict", error_code=code, error_message=message[:500])


def settle_event(tx: Tx, event: JobEvent) -> Settlement:
    """Store results and end the intents of an event; callbacks and reconciliation both come here."""
    submission = submissions.find(tx, event.submission_id, lock=True)
    if submission is None:
        return Settlement("unrelated")
    if submission.remote_job_id is None:
        return Settlement("early" if submission.state != "failed" else "stale")
    if submission.remote_job_id != event.job_id or submission.manifest_id != event.client_job_id:
        return Settlement("contradiction")
    if event.usage:
        submissions.note_usage(tx, submission.id, event.usage)
        if submission.error_code == JOB_LOST:  # it was given up, and tells now what it has cost
            submissions.note_error(tx, submission.id, "", "")
    manifest = manifests.find(tx, System(), submission.manifest_id)
    links = {link.ref: link for link in submissions.links(tx, submission.id, open_only=True)}
    items = _items_of(event, links)
    if manifest is None or not items:
        return Settlement("stale")
    found = {row.id: row.shard for row in _rows(tx, {links[item.ref].intent_id for item in items})}
    shards.lock(tx, manifest.id, found.values())
    current = {row.id: row for row in _rows(tx, found)}
    live = [
        item for item in items if _is_current(current.get(links[item.ref].intent_id), links[item.ref], event)
    ]
    live = [_fitting(item, links[item.ref], current) for item in live]
    texts.replace_results(tx, [row for item in live for row in _result_rows(item, links[item.ref], current)])
    submissions.settle_links(tx, submission.id, [item.ref for item in items])
    ended = _end_intents(tx, event, live, links, current)
    requests.write(tx, manifest, [row.id for row in ended])
    field_sums.recount(tx, manifest.id, [row.ordinal for row in ended])
    over = shards.recount(tx, manifest.id, set(found.values()))
    return Settlement("applied" if live else "stale", len(ended), over)


def _rows(tx: Tx, ids: object) -> list[Row]:
    return tx.all(sa.select(_INTENTS).where(_INTENTS.c.id.in_(sorted(ids))))  # type: ignore[call-overload]


def _items_of(event: JobEvent, links: dict[str, Row]) -> list[ItemResult]:
    """The event's items that are still open here; a job that failed as a whole speaks for all open items."""
    if event.items:
        return [item for item in event.items if item.ref in links]
    code = "canceled" if event.status == "canceled" else event.code
    return [ItemResult(ref, "failed", code, ()) for ref in links]


def _is_current(row: Row | None, link: Row, event: JobEvent) -> bool:
    return (
        row is not None
        and row.generation == link.generation
        and (row.submission_id == event.submission_id or link.parts > 1)  # parts may lie in several
        and row.state in INTENT.groups["LINKED"]
        and event.event_sequence > row.last_event_sequence
    )


def _fitting(item: ItemResult, link: Row, current: dict[str, Row]) -> ItemResult:
    """The item, failed where it answers a field that nobody asked for: nothing of it can be believed."""
    asked: dict[str, object] = json.loads(current[link.intent_id].key_map or "{}")
    if all(field.wire_key in asked for field in item.fields):
        return item
    return ItemResult(item.ref, "failed", "internal_error", ())


def _result_rows(item: ItemResult, link: Row, current: dict[str, Row]) -> list[dict[str, object]]:
    intent = current[link.intent_id]
    known: dict[str, tuple[str, str, str]] = json.loads(intent.key_map or "{}")
    rows = []
    for field in item.fields:
        rows.append(_result_row(intent, *known[field.wire_key], field))
    return rows


def _result_row(
    intent: Row, block_key: str, source_hash: str, basis: str, field: FieldResult
) -> dict[str, object]:
    return {
        "intent_id": intent.id,
        "key_hash": key_hash(block_key),
        "field_key": block_key,
        "source_hash": source_hash,
        "basis": basis,
        "text": None if field.code else field.text,
        "plural": field.plural,
        "via": field.via,
        "generation": intent.generation,
        "code": field.code,
        "check_name": field.check,
        "message": field.message[:500],
        "review": " ".join(field.review)[:_REVIEW_CHARS_MAX],
    }


def _end_intents(
    tx: Tx, event: JobEvent, live: list[ItemResult], links: dict[str, Row], current: dict[str, Row]
) -> list[Row]:
    """End the intents whose parts are all settled; one with a failed field is failed, with that field's
    code.
    """
    failed = {links[item.ref].intent_id: item for item in live if item.status == "failed"}
    touched = {links[item.ref].intent_id: current[links[item.ref].intent_id] for item in live}
    waiting = submissions.open_parts(tx, [(row.id, row.generation) for row in touched.values()])
    ended = [row for row in touched.values() if row.id not in waiting]
    alike: dict[tuple[str, str, tuple[tuple[str, int], ...]], list[Row]] = {}
    for row, code, message, tally in _ends(tx, event, ended, failed):
        alike.setdefault((code, message, tuple(tally.items())), []).append(row)
    for (code, message, counts), rows in alike.items():
        moved = "cancel" if code == "canceled" else "fail" if code else "complete"
        moving.move(
            tx,
            rows,
            moved,
            error_code=code or None,
            error_message=message if code else None,
            retryable=bool(code) and code in CODES and CODES[code].retryable,
            last_event_sequence=event.event_sequence,
            **dict(counts),
        )
    return ended


def _ends(
    tx: Tx, event: JobEvent, ended: list[Row], failed: dict[str, ItemResult]
) -> Iterator[tuple[Row, str, str, dict[str, int]]]:
    """Each intent that ends, with code (empty where all is well), message and the counts of its fields."""
    ids = [row.id for row in ended]
    tallies = texts.tallies(tx, ids)
    bad = {row.intent_id: row.code for row in reversed(texts.failed_keys(tx, ids))}
    for row in ended:
        tally, item = tallies[row.id], failed.get(row.id)
        code = (item.code if item else "") or bad.get(row.id, "")
        number, missing = tally["fields_failed"], len(json.loads(row.key_map or "{}")) - tally["fields_total"]
        message = f"{number} of {tally['fields_total']} fields failed" if number else event.message
        if not code and missing > 0:
            code, message = "internal_error", f"the engine left out {missing} fields"
        yield row, code, message, tally
