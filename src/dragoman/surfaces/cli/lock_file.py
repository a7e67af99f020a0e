"""`dragoman.lock` beside `dragoman.toml`: read before the work, written after it, held to by `--frozen`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.content import lockfile
from dragoman.content.lockfile import Pair
from dragoman.content.locks import Locks
from dragoman.flow.site import locking
from dragoman.kernel.errors import CallerError
from dragoman.surfaces.cli.report import FAILED
from dragoman.surfaces.cli.telling import terminal
from dragoman.wiring import catalogue
from dragoman.wiring.services import Services
from dragoman.wiring.settings import Settings
from dragoman.wiring.sourcing import source_of

_SHOWN = 25


class LockFile:
    """The file of one tree, for work under some frozen settings.

    It is kept where it stands or a setting asks for it, and the project lies in files.
    """

    def __init__(self, settings: Settings, frozen: Mapping[str, Any]) -> None:
        """Raises `CallerError` naming the line where the file cannot be read."""
        self._path = settings.root / lockfile.NAME
        self._workspace = settings.workspace
        self._frozen = frozen
        self.stands = self._path.is_file()
        self.is_kept = (self.stands or settings.lock) and _has_files(frozen)
        self.lines = lockfile.read(_text(self._path)) if self.stands else {}

    async def fill(self, services: Services, project: str, pairs: Sequence[Pair]) -> None:
        """Let the database take over what it knows nothing of and the files prove."""
        if self.is_kept and self.lines:
            await services.locking.fill(self._workspace, project, pairs, self._frozen, self.lines)

    async def write(self, services: Services, project: str, pairs: Sequence[Pair]) -> None:
        """Bring the lines of these pairs up to date, at once or not at all; equal lines are left alone."""
        if not self.is_kept:
            return
        made = await services.locking.export(self._workspace, project, pairs, self._frozen, self.lines)
        told = lockfile.printed(made)
        if self.stands and _text(self._path) == told:
            return
        beside = self._path.with_name(f".{lockfile.NAME}.part")
        beside.write_text(told, "utf-8", newline="\n")
        beside.replace(self._path)


def hold_to(
    settings: Settings, project: str, pairs: Sequence[Pair], frozen: Mapping[str, Any], as_json: bool
) -> int:
    """Compare lock and files, and name every pair that is stale: exit code 3 where one is. Writes nothing and
    opens no database.
    """
    lock = LockFile(settings, frozen)
    if not lock.stands:
        said = f"there is no {lockfile.NAME}: set `lock = true` in dragoman.toml and translate once"
        raise CallerError(said, "path_not_found", place=lockfile.NAME)
    if not _has_files(frozen):
        raise CallerError(f"project {project} does not lie in files: it has no {lockfile.NAME}")
    source = source_of({"out": "", **frozen})
    locks = Locks(frozen.get("locked", ()))
    found = locking.stale(source, catalogue.formats(), str(frozen["source_locale"]), pairs, lock.lines, locks)
    if as_json:
        told = {"checked": len(pairs), "stale": [one._asdict() for one in found]}
        print(json.dumps(told, ensure_ascii=False))
    else:
        for one in found[:_SHOWN]:
            terminal().print(f"stale: {one.document} {one.locale}: {one.why}", soft_wrap=True)
        more = f" ({len(found) - _SHOWN} more are not shown)" if len(found) > _SHOWN else ""
        terminal().print(f"{len(found)} stale of {len(pairs)}{more}", soft_wrap=True)
    return FAILED if found else 0


def _has_files(frozen: Mapping[str, Any]) -> bool:
    return (frozen.get("source") or {}).get("kind") != "http"


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CallerError(f"{path.name} cannot be read: {error}", place=path.name) from error
