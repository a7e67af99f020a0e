"""Everything that one process needs, put together once: database, ledger, steps, doors' callables."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.content.sources.folder import FolderSource
from dragoman.families.completion import Completion
from dragoman.flow.engine.acceptance import Acceptance
from dragoman.flow.engine.controls import Controls
from dragoman.flow.engine.jobs import Jobs
from dragoman.flow.site.admission import Admission
from dragoman.flow.site.callbacks import Callbacks
from dragoman.flow.site.steering import Steering
from dragoman.flow.site.views import Views
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.identity import SystemChance, secret
from dragoman.kernel.offload import Offload
from dragoman.model.scopes import System
from dragoman.store.database import Database
from dragoman.wiring.settings import Settings
from dragoman.workers import Keeper, Workers

_SECRET_FILE = "callback.key"
_WORKSPACE_FLAG = "local"


@dataclass(frozen=True, slots=True)
class Services:
    """One process's parts. Doors call these; `workers` runs the loops of the roles asked for."""

    settings: Settings
    database: Database
    clock: SystemClock
    chance: SystemChance
    keeper: Keeper
    workers: Workers
    admission: Admission
    steering: Steering
    views: Views
    callbacks: Callbacks
    acceptance: Acceptance
    controls: Controls
    jobs: Jobs
    offload: Offload
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list)

    async def close(self) -> None:
        """Stop the loops, then let go of connections and threads."""
        await self.workers.stop()
        for close in self.closers:
            await close()
        await self.database.close()


@dataclass(slots=True)
class Parts:
    """What is shared while the process is being put together."""

    settings: Settings
    database: Database
    clock: Any
    chance: Any
    offload: Offload
    keeper: Keeper
    completion: Completion
    queue: Any
    system: System = field(default_factory=System)


def source_of(frozen: Mapping[str, Any]) -> FolderSource:
    """The source that a manifest's frozen settings name."""
    return FolderSource(Path(str(frozen["root"])), str(frozen["out"]), dict(frozen.get("paths") or {}))


def callback_secret(settings: Settings) -> str:
    """The secret between a site and an engine that share a database: a file of the state folder, made once
    (0600).
    """
    path = settings.state_folder / _SECRET_FILE
    if not path.is_file():
        settings.state_folder.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secret())
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass  # another process was first: its secret is the one
        finally:
            fresh.unlink()
    return path.read_text("ascii").strip()
