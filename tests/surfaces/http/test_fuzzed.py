"""Schemathesis over the whole contract: nothing breaks, and nothing secret or undocumented is answered."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.kernel import limits
from dragoman.wiring.linking import callback_secret
from tests.surfaces.http.house import House, listening, served

BUDGET_SECONDS = 20
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "ignored_auth",
)


class Scanned:
    """The app, each of whose answers is searched for what must not be in it; `shown` lists the findings."""

    def __init__(self, app: ASGIApp, hidden: Sequence[str]) -> None:
        self._app = app
        self._hidden = [text.encode() for text in hidden]
        self.shown: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def searched(message: Message) -> None:
            body = message.get("body", b"")
            self.shown += [f"{scope['path']}: {text!r}" for text in self._hidden if text in body]
            await send(message)

        await self._app(scope, receive, searched)


async def known_ids(house: House) -> str:
    """Settings for the fuzzer: things that are there, so that it comes further than `not_found`."""
    token = await house.token()
    manifest_id = await house.admit(token)
    asked = {"sourceLang": "en", "targetLang": "fr", "fields": {"title": "Hello"}}
    job = await house.client.post(
        "/v1/workspaces/default/jobs/translate", json=asked, headers=await house.token()
    )
    return f"""[parameters]
"path.workspace" = "default"
"path.manifest_id" = "{manifest_id}"
"path.job_id" = "{job.json()["job_id"]}"
"""


def test_nothing_that_fits_or_breaks_the_contract_breaks_us(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-122] the routes of manifests, streams among them, and all others."""
    monkeypatch.setattr(limits, "STREAM_SECONDS_MAX", 0.05)
    monkeypatch.setattr(limits, "STREAM_LOOK_SECONDS", 0.02)

    async def story() -> tuple[int | None, str, list[str]]:
        async with served(database_url, tmp_path) as house:
            await house.see_worker()
            token = await house.exact_token(["admin"])
            scanned = Scanned(
                house.app, [str(tmp_path), "Traceback", callback_secret(house.services.settings)]
            )
            async with listening(scanned) as address:
                (tmp_path / "schemathesis.toml").write_text(await known_ids(house), "utf-8")
                fuzzer = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json"),
                    *("--header", f"Authorization: {token['Authorization']}"),
                    *("--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing"),
                    *("--max-time", str(BUDGET_SECONDS), "--seed", "7", "--no-shrink", "--warnings", "off"),
                    cwd=tmp_path,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                )
                told, _ = await fuzzer.communicate()
                return fuzzer.returncode, told.decode(), scanned.shown

    status, told, shown = asyncio.run(story())
    assert status == 0, told[-6_000:]
    assert shown == []
