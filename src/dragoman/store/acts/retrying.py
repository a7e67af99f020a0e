"""Transactions by which failures are tried again: those that a person names in one, all others page by page.

Where all are meant, the first page stands when the answer is given, and with it a mark on the manifest: how
far it came, and when it was asked for. Whoever sweeps goes on from the mark; a manifest that has one does not
end. What fails after it was asked for is not tried again by it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import GENERATIONS_MAX, RETRY_PER_TRANSACTION
from dragoman.model.scopes import Scope, System
from dragoman.store.acts import moving, steering
from dragoman.store.columns import is_set
from dragoman.store.rows import manifests, shards
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx

_INTENTS, _MANIFESTS = tables.intents, tables.manifests

_MAY_BE_RETRIED = (
    _INTENTS.c.state == "failed",
    is_set(_INTENTS.c.retryable),
    _INTENTS.c.generation < GENERATIONS_MAX,
)


_OPEN: Mapping[str, Any] = {"phase": "open", "completed_at": None}


class Retryable(NamedTuple):
    """What a retry would take: the settings that name the source, who asked, and the distinct documents.

    Of a page also the ordinals that it lies between (after, through), and whether there may be more behind.
    """

    settings: dict[str, Any]
    actor: str
    documents: tuple[str, ...]
    after: int = -1
    through: int = -1
    more: bool = False


class Mark(NamedTuple):
    """A retry that is under way: behind which ordinal it goes on, and when it was asked for."""

    manifest_id: str
    after: int
    asked_at: int


def named(tx: Tx, scope: Scope, manifest_id: str, actor: str, intent_ids: Sequence[str]) -> Retryable:
    """The documents of these failures. Raises `CallerError` as the retry does."""
    manifest = steering.owned(tx, scope, manifest_id, actor)
    return _retryable(manifest, _of_ids(tx, manifest_id, intent_ids))


def page(tx: Tx, scope: Scope, manifest_id: str, actor: str, after: int) -> Retryable:
    """The next page of failures behind an ordinal. Raises `CallerError` as the retry does."""
    return _page(tx, steering.owned(tx, scope, manifest_id, actor), after, tx.now)


def marked_page(tx: Tx, scope: System, mark: Mark) -> Retryable | None:
    """The next page of a retry that is under way; None where it is over."""
    manifest = manifests.find(tx, scope, mark.manifest_id)
    if manifest is None or (manifest.retry_after, manifest.retry_asked_at) != mark[1:]:
        return None
    return _page(tx, manifest, mark.after, mark.asked_at)


def _page(tx: Tx, manifest: Row, after: int, asked_at: int) -> Retryable:
    rows = _behind(tx, manifest.id, after, asked_at, RETRY_PER_TRANSACTION)
    more = len(rows) == RETRY_PER_TRANSACTION
    return _retryable(manifest, rows)._replace(
        after=after, through=rows[-1].ordinal if rows else after, more=more
    )


def _retryable(manifest: Row, rows: Sequence[Row]) -> Retryable:
    documents = tuple(sorted({row.document for row in rows}))
    return Retryable(json.loads(manifest.settings), manifest.actor, documents)


def retry_named(tx: Tx, scope: Scope, manifest_id: str, actor: str, intent_ids: Sequence[str]) -> int:
    """Open a new generation of those of these that may be retried; how many.

    Raises `CallerError`: `not_found`, `not_owner`, `invalid_request` for a foreign intent,
    `nothing_to_retry`.
    """
    manifest = steering.owned(tx, scope, manifest_id, actor)
    chosen = _locked(tx, manifest_id, _of_ids(tx, manifest_id, intent_ids))
    if not chosen:
        raise _nothing(manifest_id)
    _reopen(tx, manifest_id, chosen, _OPEN)
    steering.audit(tx, manifest, actor, "retry")
    return len(chosen)


def begin_retry(
    tx: Tx, scope: Scope, manifest_id: str, actor: str, first: Retryable, but_not: Sequence[str]
) -> int:
    """Open a new generation of a first page of failures, `but_not` of these documents, and leave the mark for
    the others; how many it concerns. Collections that could not be listed are walked again.

    Raises `CallerError`: `not_found`, `not_owner`, `nothing_to_retry`.
    """
    manifest = steering.owned(tx, scope, manifest_id, actor)
    chosen = _locked(tx, manifest_id, _chosen(tx, manifest_id, first, tx.now, but_not))
    relisted = manifests.relisting(tx, manifest)
    if not (chosen or relisted):
        raise _nothing(manifest_id)
    _reopen(tx, manifest_id, chosen, {**_OPEN, **_mark(first, tx.now), **relisted})
    steering.audit(tx, manifest, actor, "retry")
    left = shards.totals(tx, manifest_id)["retryable_failed"] if first.more else 0
    return len(chosen) + left


def marked(tx: Tx, scope: System, limit: int) -> list[Mark]:
    """Retries that are under way, the oldest first."""
    rows = tx.all(
        sa.select(_MANIFESTS.c.id, _MANIFESTS.c.retry_after, _MANIFESTS.c.retry_asked_at)
        .where(_MANIFESTS.c.retry_asked_at >= 0)
        .order_by(_MANIFESTS.c.retry_asked_at)
        .limit(limit)
    )
    return [Mark(*row) for row in rows]


def go_on_retrying(tx: Tx, scope: System, mark: Mark, found: Retryable, but_not: Sequence[str]) -> int:
    """Open a new generation of the next page, and move the mark; how many. Nothing where another did it."""
    chosen = _locked(tx, mark.manifest_id, _chosen(tx, mark.manifest_id, found, mark.asked_at, but_not))
    manifest = tx.first(sa.select(_MANIFESTS).where(_MANIFESTS.c.id == mark.manifest_id).with_for_update())
    if manifest is None or (manifest.retry_after, manifest.retry_asked_at) != mark[1:]:
        return 0
    _reopen(tx, mark.manifest_id, chosen, _mark(found, mark.asked_at))
    if not found.more:
        shards.end_manifest(tx, mark.manifest_id)
    return len(chosen)


def _mark(found: Retryable, asked_at: int) -> dict[str, int | None]:
    if not found.more:
        return {"retry_after": None, "retry_asked_at": None}
    return {"retry_after": found.through, "retry_asked_at": asked_at}


def _locked(tx: Tx, manifest_id: str, seen: Sequence[Row]) -> list[Row]:
    """These intents as they stand once their shards are locked, without those that moved meanwhile."""
    shards.lock(tx, manifest_id, {row.shard for row in seen})
    still = sa.select(_INTENTS).where(_INTENTS.c.id.in_([row.id for row in seen]), *_MAY_BE_RETRIED)
    return tx.all(still.order_by(_INTENTS.c.ordinal))


def _reopen(tx: Tx, manifest_id: str, chosen: Sequence[Row], changes: Mapping[str, Any]) -> None:
    """Open these (locked) intents again, and change the manifest with them."""
    manifests.keep(tx, manifest_id)
    moving.reopen(tx, chosen)
    manifests.change(tx, manifest_id, **changes)
    shards.recount(tx, manifest_id, {row.shard for row in chosen})


def _chosen(tx: Tx, manifest_id: str, found: Retryable, asked_at: int, but_not: Sequence[str]) -> list[Row]:
    left_out = set(but_not)
    rows = _behind(tx, manifest_id, found.after, asked_at, RETRY_PER_TRANSACTION)
    return [row for row in rows if row.ordinal <= found.through and row.document not in left_out]


def _behind(tx: Tx, manifest_id: str, after: int, asked_at: int, limit: int) -> list[Row]:
    behind = (
        _INTENTS.c.manifest_id == manifest_id,
        _INTENTS.c.ordinal > after,
        _INTENTS.c.completed_at <= asked_at,
    )
    wanted = sa.select(_INTENTS).where(*behind, *_MAY_BE_RETRIED)
    return tx.all(wanted.order_by(_INTENTS.c.ordinal).limit(limit))


def _of_ids(tx: Tx, manifest_id: str, intent_ids: Sequence[str]) -> list[Row]:
    mine = (_INTENTS.c.manifest_id == manifest_id, _INTENTS.c.id.in_(list(intent_ids)))
    if tx.scalar(sa.select(sa.func.count()).where(*mine)) != len(set(intent_ids)):
        raise CallerError("an intent named is not of this manifest", "invalid_request", place="intent_ids")
    return tx.all(sa.select(_INTENTS).where(*mine, *_MAY_BE_RETRIED).order_by(_INTENTS.c.ordinal))


def _nothing(manifest_id: str) -> CallerError:
    return CallerError(f"nothing in manifest {manifest_id} can be retried", "nothing_to_retry")
