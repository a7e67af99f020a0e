"""How the owner's side and the translating side of this process are linked: in one process, or across the
network; and the secrets that sign what goes between them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dragoman.families.submission import HttpEngine, LocalEngine
from dragoman.families.webhook import LOCAL_URL
from dragoman.flow.engine.acceptance import LOCAL_SECRET, Acceptance
from dragoman.flow.engine.controls import Controls
from dragoman.flow.engine.jobs import Jobs
from dragoman.flow.site.submission import Way
from dragoman.kernel import canonical, limits, signing
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import OutsideError, SettingsError
from dragoman.kernel.identity import secret
from dragoman.kernel.sealing import Sealer
from dragoman.model.contracts import EngineClient
from dragoman.model.intents import Sender
from dragoman.model.jobs import Capacity
from dragoman.model.scopes import Workspace
from dragoman.store.acts import submitting
from dragoman.store.database import Database
from dragoman.wiring.settings import Settings

_SECRET_FILE = "callback.key"  # noqa: S105 - the name of a file
_FORMER_SECRET_FILE = "callback.key.before"  # noqa: S105 - the name of a file


def engine_of(settings: Settings, acceptance: Acceptance, controls: Controls, jobs: Jobs) -> EngineClient:
    """The engine that this process's site hands its work to: a far one where the settings name it."""
    return _far_engine(settings) if settings.engine.url else _local_engine(acceptance, controls, jobs)


def way_to(settings: Settings, engine: EngineClient, clock: Clock) -> Way:
    """How the site of this process reaches its engine, and what that takes in one submission."""
    if isinstance(engine, HttpEngine):
        capacity = _FarCapacity(engine, settings, clock)
        return Way(settings.engine.callback_url, lambda: sender(settings), capacity, far=True)
    own = local_capacity(settings)

    async def of_this_process() -> Capacity:
        return own

    return Way(LOCAL_URL, lambda: sender(settings), of_this_process)


def sender(settings: Settings) -> Sender:
    """The account that this process's submissions are made for, and the callback secret in force."""
    far = settings.engine
    if not far.url:
        return Sender()
    held = callback_secrets(settings) if far.callback_url else []
    return Sender(f"{far.token_variable}@{far.url.rstrip('/')}"[:600], signing.mark(held[0]) if held else "")


def capacity_of(settings: Settings) -> Capacity:
    """What the engine of this process takes from its callers in one submission."""
    bounds = settings.submissions
    return Capacity(
        bounds.items,
        bounds.bytes,
        limits.FIELDS_PER_ITEM if bounds.fields_per_item is None else bounds.fields_per_item,
        bounds.field_characters,
    )


def local_capacity(settings: Settings) -> Capacity:
    """The same for the site in this process, which need not split a catalogue."""
    own = capacity_of(settings)
    if settings.submissions.fields_per_item is None:
        return replace(own, fields_per_item_max=limits.FIELDS_PER_ITEM_SETTING_MAX)
    return own


class _FarCapacity:
    """What a far engine says that it takes, asked for from time to time; until it has said so, the usual."""

    def __init__(self, engine: HttpEngine, settings: Settings, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._known = capacity_of(settings)
        self._asked_at: float | None = None

    async def __call__(self) -> Capacity:
        now = self._clock.monotonic()
        if self._asked_at is None or now - self._asked_at >= limits.ENGINE_CAPACITY_SECONDS:
            self._asked_at = now
            with contextlib.suppress(OutsideError):
                self._known = _told(await self._engine.capacity(limits.CONTROL_SECONDS), self._known)
        return self._known


def _told(said: Mapping[str, object], known: Capacity) -> Capacity:
    """Another engine may know fewer bounds, or others; what is no number says nothing."""
    numbers = {name: said.get(name) for name in asdict(known)}
    good = {name: value for name, value in numbers.items() if type(value) is int and value > 0}
    return replace(known, **good)


async def refuse_lost_secret(settings: Settings, database: Database) -> None:
    """Raise `SettingsError` where open work was sent under a callback secret that is not here any more."""
    if settings.engine.forget_secrets:
        return
    lost = await lost_secrets(settings, database)
    if lost:
        raise SettingsError(told_lost(settings, lost), "callback_secret_missing")


async def lost_secrets(settings: Settings, database: Database) -> int:
    """How many open submissions were sent under a callback secret that is not here any more."""
    me, held = sender(settings), {signing.mark(secret) for secret in callback_secrets_at_hand(settings)}
    in_use = await database.read(submitting.marks_in_use, me.engine)
    return sum(number for mark, number in in_use.items() if mark not in held)


def told_lost(settings: Settings, number: int) -> str:
    """What is wrong then, and what to do."""
    far = settings.engine
    return (
        f"{number} open submissions were sent under a callback secret that is gone: put it into "
        f"{far.former_secret_variable} until they have ended, or set engine.forget_secrets"
    )


def callback_secrets_at_hand(settings: Settings) -> list[str]:
    """Those of a far engine; none where the engine is here, whose jobs keep a reference."""
    return callback_secrets(settings) if settings.engine.url else []


def callback_secrets(settings: Settings) -> list[str]:
    """Every secret that may have signed an event: the one in force and, for an overlap, the one before it."""
    far = settings.engine
    if far.url:
        found = (os.environ.get(name, "") for name in (far.secret_variable, far.former_secret_variable))
        return [one for one in found if one]
    former = settings.state_folder / _FORMER_SECRET_FILE
    return [callback_secret(settings), *([former.read_text("ascii").strip()] if former.is_file() else [])]


def _far_engine(settings: Settings) -> HttpEngine:
    far = settings.engine
    return HttpEngine(
        far.url,
        token=lambda: os.environ.get(far.token_variable, ""),
        callback_secrets=(lambda: callback_secrets(settings)) if far.callback_url else None,
        forgets=far.forget_secrets,
    )


def _local_engine(acceptance: Acceptance, controls: Controls, jobs: Jobs) -> LocalEngine:
    """The engine in this process, behind the face that a far one has."""

    async def accept(workspace: str, body: bytes) -> Mapping[str, Any]:
        accepted = await acceptance.accept("site", workspace, "", body, local=True)
        return {
            "job_id": accepted.job_id,
            "status": accepted.status,
            "submissionId": accepted.submission_id,
            "created": accepted.created,
        }

    async def control(workspace: str, client_job_id: str, body: bytes) -> Mapping[str, Any]:
        return await controls.put(Workspace(workspace), client_job_id, canonical.parse(body))

    async def job(workspace: str, job_id: str) -> Mapping[str, object] | None:
        return await jobs.get(Workspace(workspace), job_id)

    async def items(workspace: str, job_id: str, cursor: str) -> Mapping[str, object]:
        return await jobs.items(Workspace(workspace), job_id, cursor)

    return LocalEngine(accept=accept, control=control, job=job, items=items)


def sealer_of_environment() -> Sealer | None:
    """What seals the callback secrets of remote sites; None where DRAGOMAN_SEALING_KEY is not set."""
    key = os.environ.get("DRAGOMAN_SEALING_KEY", "")
    return Sealer(key) if key else None


def secret_reader(settings: Settings, sealer: Sealer | None) -> Callable[[str, str], str]:
    """Gives the secret behind what a job keeps of it: a reference, or a sealed text."""

    def secret_of(kept: str, job_id: str) -> str:
        if kept == LOCAL_SECRET:
            return callback_secret(settings)
        if sealer is None:
            raise SettingsError(
                f"the callback secret of job {job_id} is sealed, and DRAGOMAN_SEALING_KEY is not set",
                "sealing_key_missing",
            )
        return sealer.open(kept, job_id)

    return secret_of


def callback_secret(settings: Settings) -> str:
    """The secret of a site and an engine on one database: a file of the state folder, made once (0600)."""
    path = settings.state_folder / _SECRET_FILE
    if not path.is_file():
        _make_secret(path)
    return path.read_text("ascii").strip()


def _make_secret(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secret())
    with contextlib.suppress(FileExistsError):  # another process was first: its secret is the one
        os.link(fresh, path)
    fresh.unlink()
