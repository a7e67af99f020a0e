"""Processes and upkeep: serve, worker, tokens, migrate, doctor."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uvicorn
from rich.console import Console

from dragoman.kernel.errors import CODES, CallerError, SettingsError, StoreError
from dragoman.kernel.identity import secret, sha256
from dragoman.model.scopes import Workspace
from dragoman.store import migrate as migrations
from dragoman.store.acts import access, examining, submitting
from dragoman.surfaces.cli.report import FAILED
from dragoman.wiring import linking, queueing
from dragoman.wiring.draining import retention_due
from dragoman.wiring.rounds import ROLES, opened
from dragoman.wiring.services import Services
from dragoman.wiring.settings import Settings
from dragoman.wiring.signing_in import options_of

_BACKLOG = 2048
_NO_SECRET = "callback_secret_missing"  # noqa: S105 - a code
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def serve(
    settings: Settings, build: Callable[..., Any], host: str, port: int, roles: Sequence[str] = ROLES
) -> int:
    """The HTTP API and the workers of these roles, until stopped; prints the first token once."""
    if settings.allow_anonymous_sync and not _is_loopback(host):
        raise SettingsError(
            f"setting allow_anonymous_sync: {host} is no loopback address, and that door spends money",
            place="--host",
        )
    with _listen(host, port) as listening:
        async with opened(settings, roles=roles) as services:
            await linking.refuse_lost_secret(settings, services.database)
            token = await _first_token(services)
            if token:
                told = Console(stderr=True)
                told.print(f"first token (shown once): {token}", markup=False, highlight=False)
            await _serve(services, build(services), listening)
    return 0


async def _serve(services: Services, app: Any, listening: socket.socket) -> None:
    """Answer on a socket until a signal comes."""
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    await _Server(config, services.stopping).serve([listening])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise SettingsError(
            f"nobody can listen on {host} port {port}: {error.strerror}", place="--port"
        ) from None


class _Server(uvicorn.Server):
    """uvicorn's own raises a signal anew when it has ended, and so ends the process before its workers have.

    Here the first signal ends the server in order, a second one its open connections too.
    """

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGINT and SIGTERM."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
        self._stopping.set()


async def _first_token(services: Services) -> str:
    """A token with every capability, on the first start only; empty afterwards."""
    scope = Workspace(services.settings.workspace)
    if await services.database.read(access.list_tokens, scope):
        return ""
    token = secret()
    await services.database.run(access.create_token, scope.id, "owner", sha256(token), access.CAPABILITIES)
    return token


async def work(
    settings: Settings, roles: Sequence[str], build: Callable[..., Any], host: str, port: int
) -> int:
    """Worker loops of some roles until a signal comes; then nothing more is claimed and running steps end.

    With a `port` they answer to whoever watches: health and metrics.
    """
    unknown = sorted(set(roles) - set(ROLES))
    if unknown:
        raise CallerError(f"no role {unknown[0]!r}; roles are {', '.join(ROLES)}", place="--role")
    chosen = tuple(roles) or ROLES
    if port:
        with _listen(host, port) as listening:
            async with opened(settings, roles=chosen) as services:
                await _serve(services, build(services, probes_only=True), listening)
        return 0
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    async with opened(settings, roles=chosen):
        await stopped.wait()
    return 0


async def create_token(settings: Settings, actor: str, capabilities: Sequence[str]) -> int:
    """Make a token; it is printed once, and only its hash is kept."""
    async with opened(settings, roles=()) as services:
        token = secret()
        token_id = await services.database.run(
            access.create_token,
            settings.workspace,
            actor,
            sha256(token),
            tuple(capabilities) or access.CAPABILITIES,
        )
        print(json.dumps({"id": token_id, "token": token, "workspace": settings.workspace}))
    return 0


async def revoke_token(settings: Settings, token_id: str) -> int:
    """Revoke a token."""
    async with opened(settings, roles=()) as services:
        if not await services.database.run(access.revoke_token, settings.workspace, token_id):
            raise CallerError(f"no token {token_id} is in force", "not_found")
    return 0


async def migrate(settings: Settings) -> int:
    """Bring the schema up to date; says what it is now."""
    options = options_of(settings)
    changed = await asyncio.to_thread(migrations.migrate, settings.database, options)
    standing = await asyncio.to_thread(migrations.current, settings.database, options)
    print(f"schema {standing}{' (was brought up to date)' if changed else ', nothing to do'}")
    return 0


async def _queue_findings(services: Services) -> list[dict[str, str]]:
    """What is wrong with the queue: it cannot be reached, or does not reach everybody."""
    named = dict(await services.waking.warnings())
    trouble = await services.waking.trouble()
    if trouble is not None:
        named[trouble.code] = trouble.message
    return [{"problem": told, "remedy": queueing.remedy(name)} for name, told in named.items()]


async def _engine_findings(services: Services) -> list[dict[str, str]]:
    """Submissions that nobody can send or hear of: their engine or their callback secret is gone here."""
    settings, database = services.settings, services.database
    account = linking.sender(settings).engine
    others = await database.read(submitting.of_other_engines, account)
    found = [
        {
            "problem": f"{number} open submissions were made for the engine {engine}, and this is {account}",
            "remedy": "Run a site with that engine in its settings until they have ended, or cancel them.",
        }
        for engine, number in sorted(others.items())
    ]
    lost = await linking.lost_secrets(settings, database)
    if lost:
        found.append({"problem": linking.told_lost(settings, lost), "remedy": CODES[_NO_SECRET].remedy})
    return found


async def doctor(settings: Settings, as_json: bool) -> int:
    """What is wrong, each with what to do, and how things stand; exit code 3 when something is wrong."""
    stands: dict[str, Any] = {}
    try:
        async with opened(settings, roles=()) as services:
            findings = await services.database.read(examining.findings)
            findings += await _queue_findings(services) + await _engine_findings(services)
            due, stands = await retention_due(services), await services.meter.look()
    except StoreError as error:
        findings, due = [{"problem": error.message, "remedy": error.remedy}], {}
    if as_json:
        told = {"findings": findings, "retention": due, "stands": stands}
        print(json.dumps(told, ensure_ascii=False))
        return FAILED if findings else 0
    for name in ("workers", "manifests", "jobs", "outbox", "oldest_due_seconds"):
        counted = {key: number for key, number in stands.get(name, {}).items() if number}
        if counted:
            shown = ", ".join(f"{number} {key}" for key, number in counted.items())
            print(f"{name.replace('_', ' ')}: {shown}")
    if due.get("manifests"):
        print(f"retention: {due['manifests']} manifests are past their time and will be removed")
    for finding in findings:
        print(f"{finding['problem']}\n  {finding['remedy']}")
    print("nothing is wrong" if not findings else f"{len(findings)} findings")
    return FAILED if findings else 0
