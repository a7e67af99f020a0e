"""The scripted server as a process of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import aiohttp

from dragoman.model.completions import ProviderAnswer
from dragoman.providers.chat import ChatProvider
from tests.providers.calls import make_chat, send


def test_the_scripted_server_runs_as_a_process_of_its_own_and_logs_its_moments(tmp_path: Path) -> None:
    script, log = tmp_path / "script.json", tmp_path / "calls.jsonl"
    script.write_text(json.dumps({"acts": ["hang"], "dictionary": {"Cancel": "Abbrechen"}}))
    command = [sys.executable, "-m", "tests.doubles.chat_server", "--script", str(script), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            answer = asyncio.run(_released(make_chat(url), url))
        finally:
            process.kill()
    assert answer.outcome == "SUCCEEDED"
    moments = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(one["moment"], one["attempt_id"]) for one in moments] == [
        ("received", "attempt-1"),
        ("answered", "attempt-1"),
    ]


async def _released(provider: ChatProvider, url: str) -> ProviderAnswer:
    control = url.removesuffix("/v1")
    call = asyncio.create_task(send(provider))
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{control}/moments/received/1") as moment:
            assert (await moment.json())["answered"] == 0
        async with session.post(f"{control}/release"):
            answer = await call
        async with session.get(f"{control}/moments/answered/1"):
            return answer
