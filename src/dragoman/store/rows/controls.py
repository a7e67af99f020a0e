"""Rows of `controls` and `pauses`: what the site decided for a client job, and accounts not to be called."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.model.jobs import Control
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Row, Tx

_CONTROLS, _PAUSES = tables.controls, tables.pauses

_HERE = sa.and_(
    _CONTROLS.c.workspace == sa.bindparam("ws"), _CONTROLS.c.client_job_id == sa.bindparam("client")
)
_FIND = sa.select(_CONTROLS).where(_HERE)
_LOCKED = _FIND.with_for_update()


def ensure(tx: Tx, workspace: str, client_job_id: str) -> Row:
    """The control of a client job; nothing is decided where the site has said nothing."""
    values = {"ws": workspace, "client": client_job_id}
    row = tx.first(_FIND, values)
    if row is None:
        fresh = {"workspace": workspace, "client_job_id": client_job_id, "updated_at": tx.now}
        tx.insert_new(_CONTROLS, [fresh], ("workspace", "client_job_id"))
        row = tx.first(_FIND, values)
    assert row is not None  # noqa: S101 - inserted above
    return row


def lock(tx: Tx, workspace: str, client_job_id: str) -> Row:
    """The control of a client job, locked: decisions about its money are taken one after the other."""
    row = tx.first(_LOCKED, {"ws": workspace, "client": client_job_id})
    if row is None:
        ensure(tx, workspace, client_job_id)
        row = tx.first(_LOCKED, {"ws": workspace, "client": client_job_id})
    assert row is not None  # noqa: S101 - ensured above
    return row


def put(tx: Tx, workspace: str, client_job_id: str, control: Control) -> bool:
    """Write what the site decided; False where it has decided something newer (or the same) already."""
    ensure(tx, workspace, client_job_id)
    newer = sa.update(_CONTROLS).where(_HERE, _CONTROLS.c.revision < control.revision)
    decided = newer.values(
        revision=control.revision,
        paused=control.paused,
        canceled=control.canceled,
        on_unknown=control.on_unknown,
        updated_at=tx.now,
    )
    return tx.touched(decided, {"ws": workspace, "client": client_job_id}) == 1


def pause(tx: Tx, account: str) -> Row | None:
    """What keeps everybody from an account now, None where nothing does."""
    here = sa.select(_PAUSES).where(_PAUSES.c.account == account, _PAUSES.c.until > tx.now)
    return tx.first(here)


def pause_account(tx: Tx, account: str, until: int, code: str) -> None:
    """Let nobody call an account until then; a later end that stands already stays."""
    row = {"account": account, "until": until, "code": code, "updated_at": tx.now}
    if tx.insert_new(_PAUSES, [row], ("account",)):
        return
    longer = sa.update(_PAUSES).where(_PAUSES.c.account == account, _PAUSES.c.until < until)
    tx.touched(longer.values(until=until, code=code, updated_at=tx.now))
