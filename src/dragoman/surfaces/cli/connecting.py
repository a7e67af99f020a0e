"""`dragoman up` at a server: what changed here is sent, the project is brought up to date there, and the
results are put in place here.

What was last equal on both sides is kept in the state folder, so that a change here is told from a change
there. A file that changed here goes up, also over one that changed there: what a person did leads. One that
changed there alone comes down, and is written where nobody has touched it meanwhile. Every step may be cut
and done again; the run itself stands at the server, and is joined again by the push that began it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from dragoman.content import documents
from dragoman.kernel.errors import CODES, CallerError, DragomanError, OutsideError
from dragoman.kernel.identity import SystemChance, sha256
from dragoman.wiring import catalogue
from dragoman.wiring.services import find_sources, put_file
from dragoman.wiring.settings import Settings
from dragoman.wiring.sourcing import source_of

_STATE = "pulled.json"
_NO_FIELDS = {"done": 0, "via_memory": 0, "via_ai": 0}
_CALL_SECONDS = 60
_PATIENCE_SECONDS = 600
"""How long a server may be away before the command ends; the run goes on there."""
_PAUSES_SECONDS = (0.2, 0.5, 1, 2, 5, 10)
_LOOK_SECONDS = 0.5
_STILL_SECONDS = 120
"""How long a pass may stand still before it counts as waiting."""


class Connected:
    """One project at a server, as one command sees it."""

    def __init__(self, settings: Settings, server: str, project: str, locales: Sequence[str]) -> None:
        """Raises `CallerError` where no token is at hand."""
        self._settings = settings
        self._project = project
        self._locales = list(locales)
        workspace = quote(settings.workspace, safe="")
        self._base = f"{server.rstrip('/')}/v1/workspaces/{workspace}"
        self._place = f"/projects/{quote(project, safe='')}"
        variable = settings.server_token_variable
        self._token = os.environ.get(variable, "").strip()
        if not self._token:
            said = f"the environment variable {variable} holds no token for {server}"
            raise CallerError(said, "unauthorized", place="server")
        self._memo = settings.state_folder / _STATE
        self._origin = f"{self._base}{self._place}"
        self._known: dict[str, Any] = _remembered(self._memo, self._origin)
        self._seen: tuple[object, float] = (None, 0.0)
        self._session: aiohttp.ClientSession | None = None

    async def converge(self, push_id: str) -> dict[str, Any]:
        """Send, run, fetch; gives the run's report with `outputs` and `left` (written here meanwhile)."""
        headers = {"Authorization": f"Bearer {self._token}", "User-Agent": "dragoman"}
        timeout = aiohttp.ClientTimeout(total=_CALL_SECONDS)
        async with aiohttp.ClientSession(headers=headers, timeout=timeout) as self._session:
            targets = await self._send_files()
            report = await self._run(push_id)
            outputs, left = await self._fetch(targets)
        self._known.pop("push_id", None)
        self._remember()
        return {**report, "outputs": outputs, "left": left}

    async def _send_files(self) -> dict[str, str]:
        """Bring the server's tree to what is here; gives the paths of translations, with their locale."""
        there, source_locale = await self._listing()
        if source_locale != self._settings.source_locale:
            said = f"the source locale is {source_locale} there and {self._settings.source_locale} here"
            raise CallerError(said, place="source_locale")
        sources, targets = self._found(source_locale)
        base: dict[str, str] = self._known.setdefault("files", {})
        for path in [*sources, *(target for target in targets if target not in sources)]:
            here = _read(self._settings.root / path)
            mark, stands = _mark(here), there.get(path, "")
            comes_down = path in targets and mark == base.get(path, "")
            if mark != stands and not comes_down:
                await self._change(path, here, stands)
                stands = mark
            if mark == stands:
                _note(base, path, mark)
        for path in set(base) - set(sources) - set(targets):  # what was a document once
            if path in there:
                await self._change(path, None, there[path])
            base.pop(path)
        self._remember()
        return targets

    def _found(self, source_locale: str) -> tuple[list[str], dict[str, str]]:
        settings = self._settings
        paths = [settings.root / path for path in settings.sources] or [settings.root]
        found = find_sources(settings, paths, "", source_locale, self._locales)
        frozen = {
            "root": str(settings.root),
            "templates": dict(found.templates),
            "source_locale": source_locale,
        }
        source = source_of(frozen)
        outside = sorted(document for document in found.templates if document.startswith("../"))
        if outside:
            raise CallerError(
                f"{outside[0]} lies outside the working tree and cannot be sent", place="sources"
            )
        targets = {
            source.target_path(document, locale): locale
            for document in found.templates
            for locale in self._locales
        }
        return sorted(found.templates), targets

    async def _run(self, push_id: str) -> dict[str, Any]:
        """Begin or join the run, and wait for its end.

        One that somebody else began may not have seen what was sent, so ours follows it.
        """
        push_id = push_id or self._known.get("push_id") or SystemChance().new_id()
        self._known["push_id"] = push_id
        self._remember()
        while True:
            started = await self._call("POST", f"{self._place}/runs", told={
                "trigger": "up", "push_id": push_id, "locales": self._locales,
            })  # fmt: skip
            if started is None:
                return {"state": "complete", "passes": [], "fields": dict(_NO_FIELDS)}
            report = await self._ended(started["run_id"])
            if report["push_id"] == push_id:
                return report

    async def _ended(self, run_id: str) -> dict[str, Any]:
        while True:
            report: dict[str, Any] = await self._call("GET", f"{self._place}/runs/{run_id}")
            if report["ended_at"] is not None or await self._rests(report):
                return report
            await asyncio.sleep(_LOOK_SECONDS)

    async def _rests(self, report: Mapping[str, Any]) -> bool:
        """Whether the pass at work has not moved for long: for a person, money or a far time."""
        if report["state"] != "passing":
            return False
        status = await self._call("GET", f"/manifests/{report['passes'][-1]['manifest_id']}")
        now, seen = asyncio.get_running_loop().time(), (status["status"], status["counts"], status["cost"])
        if seen != self._seen[0]:
            self._seen = (seen, now)
        return bool(status["status"] == "paused") or now - self._seen[1] >= _STILL_SECONDS

    async def _fetch(self, targets: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Put in place what changed there; paths written, and paths that somebody wrote here meanwhile."""
        there, _ = await self._listing()
        base, outputs, left = self._known["files"], [], []
        for path in sorted(targets):
            mark = there.get(path, "")
            if mark in ("", base.get(path, "")):
                continue
            data = await self._bytes(path)
            if sha256(data) != mark:
                left.append(path)  # it is being written there at this moment; the next command fetches it
                continue
            self._refuse_unreadable(path, data, targets[path])
            answer = put_file(self._settings.root, path, data, base.get(path, ""))
            if answer.outcome != "SUCCEEDED":
                left.append(path)
                continue
            outputs.append(path)
            _note(base, path, mark)
            self._remember()
        return outputs, left

    def _refuse_unreadable(self, path: str, data: bytes, locale: str) -> None:
        """Raise `DragomanError` verify_failed for what would not read back here."""
        try:
            form = documents.choose_format(catalogue.formats(), path, data)
            documents.open_document(form, path, data, "target", locale)
        except CallerError as error:
            raise DragomanError(f"{path} came from the server and cannot be read: {error.message}",
                                "verify_failed", path) from error  # fmt: skip

    async def _listing(self) -> tuple[dict[str, str], str]:
        """Path → SHA-256 of what lies there, and the project's source locale."""
        found: dict[str, str] = {}
        after = ""
        while True:
            page = await self._call("GET", f"{self._place}/files", {"after": after})
            found |= {item["path"]: item["sha256"] for item in page["items"]}
            if page["next"] is None:
                return found, page["source_locale"]
            after = page["next"]

    async def _change(self, path: str, data: bytes | None, stands: str) -> None:
        """Put or remove a file there. The same call again is done where it was done."""
        condition = {"If-Match": f'"{stands}"'} if stands else {"If-None-Match": "*"}
        method = "DELETE" if data is None else "PUT"
        await self._call(method, f"{self._place}/file", {"path": path}, data=data, headers=condition)

    async def _bytes(self, path: str) -> bytes:
        data: bytes = await self._call("GET", f"{self._place}/file", {"path": path}, raw=True)
        return data

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        told: Mapping[str, Any] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        raw: bool = False,
    ) -> Any:
        """One call, again while the server is away or busy: each of ours may be made twice.

        Gives the answer's JSON, its bytes where `raw`, None where it has none. Raises the server's refusal.
        """
        loop = asyncio.get_running_loop()
        until, tried = loop.time() + _PATIENCE_SECONDS, 0
        while True:
            try:
                async with self._opened().request(
                    method, self._base + path, params=query, json=told, data=data, headers=headers,
                    allow_redirects=False,
                ) as response:  # fmt: skip
                    body, status = await response.read(), response.status
                    if status < 300:
                        return body if raw else json.loads(body) if body else None
                    if status < 500 and status not in (408, 429):
                        raise _refusal(status, body)
                    why = f"status {status}"
            except (aiohttp.ClientError, OSError) as error:  # a TimeoutError is one
                why = type(error).__name__
            if loop.time() >= until:
                raise OutsideError(f"the server was away for {_PATIENCE_SECONDS} seconds ({why}); "
                                   "run the same command again to go on", place="server")  # fmt: skip
            await asyncio.sleep(_PAUSES_SECONDS[min(tried, len(_PAUSES_SECONDS) - 1)])
            tried += 1

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise OutsideError("nothing can be asked before the session is open")
        return self._session

    def _remember(self) -> None:
        self._memo.parent.mkdir(parents=True, exist_ok=True)
        beside = self._memo.with_suffix(".part")
        beside.write_text(json.dumps({**self._known, "origin": self._origin}, indent=1, sort_keys=True))
        beside.replace(self._memo)


def _remembered(place: Path, origin: str) -> dict[str, Any]:
    """What was equal the last time; nothing for another server or project."""
    try:
        said = json.loads(place.read_text())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) and said.get("origin") == origin else {}


def _read(place: Path) -> bytes | None:
    try:
        return place.read_bytes()
    except FileNotFoundError:
        return None


def _mark(data: bytes | None) -> str:
    return "" if data is None else sha256(data)


def _note(base: dict[str, str], path: str, mark: str) -> None:
    if mark:
        base[path] = mark
    else:
        base.pop(path, None)


def _refusal(status: int, body: bytes) -> DragomanError:
    """What the server refuses, in its own words."""
    try:
        said = json.loads(body)
        code, message = str(said["code"]), f"the server says: {said['detail']}"
    except (ValueError, KeyError, TypeError):
        code, message = "", f"the server answers with status {status}"
    return CallerError(message, code if code in CODES else "invalid_request", place="server")
