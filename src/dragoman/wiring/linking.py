"""How the owner's side and the translating side of this process are linked: in one process, or across the
network; and the secrets that sign what goes between them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dragoman.families.submission import HttpEngine, LocalEngine
from dragoman.families.webhook import LOCAL_URL
from dragoman.flow.engine.acceptance import LOCAL_SECRET, Acceptance
from dragoman.flow.engine.controls import Controls
from dragoman.flow.engine.jobs import Jobs
from dragoman.kernel import canonical
from dragoman.kernel.errors import SettingsError
from dragoman.kernel.identity import secret
from dragoman.kernel.sealing import Sealer
from dragoman.model.contracts import EngineClient
from dragoman.model.scopes import Workspace
from dragoman.wiring.settings import Settings

_SECRET_FILE = "callback.key"  # noqa: S105 - the name of a file
_FORMER_SECRET_FILE = "callback.key.before"  # noqa: S105 - the name of a file


def engine_of(settings: Settings, acceptance: Acceptance, controls: Controls, jobs: Jobs) -> EngineClient:
    """The engine that this process's site hands its work to: a far one where the settings name it."""
    return _far_engine(settings) if settings.engine.url else _local_engine(acceptance, controls, jobs)


def callback_url(settings: Settings) -> str:
    """Where the engine is to send events; empty where the site asks instead."""
    return settings.engine.callback_url if settings.engine.url else LOCAL_URL


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
        callback_secret=(lambda: os.environ.get(far.secret_variable, "")) if far.callback_url else None,
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
