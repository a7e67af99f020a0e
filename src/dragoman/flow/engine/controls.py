"""How the site and people steer jobs: pause, go on, cancel, money, and held calls let go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.content.submissions import ON_UNKNOWN
from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import CANCEL_PER_TRANSACTION
from dragoman.model import budgets
from dragoman.model.jobs import Control
from dragoman.model.scopes import Workspace
from dragoman.store.acts import controlling, finishing, job_views
from dragoman.store.database import Database

_KNOWN = frozenset({"revision", "paused", "canceled", "budget", "on_unknown"})


class Controls:
    """Decisions about jobs, written down first and carried out afterwards."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, scope: Workspace, client_job_id: str, said: Mapping[str, Any]) -> Mapping[str, Any]:
        """Decide for all present and future jobs of a client job; a lower revision is ignored.

        A budget that is null takes the bound away; one that is not said leaves it as it is.
        When this returns no attempt starts against the decision. Raises `CallerError` invalid_request.
        """
        control = _control(said)
        applied = await self._database.run(controlling.put_control, scope, client_job_id, control)
        if applied:
            await self._carry_out(scope, client_job_id, control)
        return {"revision": control.revision, "applied": applied}

    async def cancel(self, scope: Workspace, job_id: str, actor: str) -> Mapping[str, Any]:
        """Cancel one job; gives it as it then stands, an ended one unchanged. Raises `CallerError`."""
        await self._database.run(finishing.cancel_job, scope, job_id, actor)
        return await self._database.read(job_views.job_view, scope, job_id)

    async def release(self, scope: Workspace, client_job_id: str, actor: str, reason: str) -> int:
        """Let held calls be sent once more, on a person's word; how many."""
        return await self._release(scope, client_job_id, actor, reason)

    async def _carry_out(self, scope: Workspace, client_job_id: str, control: Control) -> None:
        if control.canceled:
            await self._cancel_all(scope, client_job_id)
        elif control.on_unknown == "resend:unlimited":
            await self._release(scope, client_job_id, "", control.on_unknown)
        await self._database.run(controlling.apply_control, scope, client_job_id)

    async def _cancel_all(self, scope: Workspace, client_job_id: str) -> None:
        after = ""
        while True:
            after = await self._database.run(
                finishing.cancel_jobs, scope.id, client_job_id, CANCEL_PER_TRANSACTION, after
            )
            if not after:
                return

    async def _release(self, scope: Workspace, client_job_id: str, actor: str, reason: str) -> int:
        released = 0
        while True:
            some = await self._database.run(
                controlling.release_held, scope, client_job_id, actor, reason, CANCEL_PER_TRANSACTION
            )
            released += some
            if some < CANCEL_PER_TRANSACTION:
                return released


def _control(said: Mapping[str, Any]) -> Control:
    unknown = sorted(set(said) - _KNOWN)
    if unknown:
        raise CallerError(f"$: {unknown[0][:64]!r} is not known here", place="$")
    revision = _whole(said.get("revision"), "$.revision")
    policy = said.get("on_unknown") or ""
    if not isinstance(policy, str) or policy not in ON_UNKNOWN:
        raise CallerError(
            "$.on_unknown: `resend`, `resend:unlimited` or `hold` is wanted here", place="$.on_unknown"
        )
    tokens, microusd = budgets.read(said.get("budget"), "$.budget")
    return Control(
        revision=revision,
        paused=_flag(said.get("paused", False), "$.paused"),
        canceled=_flag(said.get("canceled", False), "$.canceled"),
        on_unknown=policy,
        budget_tokens=tokens,
        budget_microusd=microusd,
        sets_budget="budget" in said,
    )


def _whole(said: Any, place: str) -> int:
    if isinstance(said, bool) or not isinstance(said, int) or not 0 < said < 2**53:
        raise CallerError(f"{place}: a whole number above 0 is wanted here", place=place)
    return said


def _flag(said: Any, place: str) -> bool:
    if not isinstance(said, bool):
        raise CallerError(f"{place}: true or false is wanted here", place=place)
    return said
