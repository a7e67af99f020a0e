"""A project on disk, a provider in a process of its own, and `dragoman` in another: what a kill -9 meets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dragoman.store.engines import engine_of
from dragoman.store.schema import effects

ROOT = Path(__file__).resolve().parents[2]
TEXTS = 3


@dataclass
class Provider:
    """The scripted chat server as a process; `calls` reads its log."""

    url: str
    log: Path

    def calls(self) -> list[dict[str, Any]]:
        """Every request that it took in, in order."""
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text("utf-8").splitlines() if line.endswith("}")]
        return [line for line in lines if line.get("moment") == "received"]


@contextmanager
def provider(folder: Path, script: dict[str, Any]) -> Iterator[Provider]:
    """A running provider that answers by script."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "script.json").write_text(json.dumps(script), "utf-8")
    log = folder / "calls.jsonl"
    command = [sys.executable, "-m", "tests.doubles.chat_server", "--port", "0"]
    command += ["--script", str(folder / "script.json"), "--log", str(log)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield Provider(server.stdout.readline().strip(), log)
        finally:
            server.kill()


@dataclass
class Project:
    """A working tree with JSON documents, and the database that its runs share."""

    folder: Path
    database_url: str
    base_url: str
    documents: int
    priced: bool = False
    locales: Sequence[str] = ("de", "fr")

    def make(self) -> None:
        """Write the documents and the settings."""
        docs = self.folder / "docs"
        docs.mkdir(parents=True)
        for number in range(self.documents):
            texts = {f"k{index}": f"Text {index} of document {number}" for index in range(TEXTS)}
            (docs / f"d{number:03}.json").write_text(json.dumps(texts, indent=2), "utf-8")
        settings = f'[providers.hired]\nprotocol = "chat"\nmodel = "test"\nbase_url = "{self.base_url}"\n'
        settings += f'key_variable = "HIRED_KEY"\npriced = {str(self.priced).lower()}\n'
        (self.folder / "dragoman.toml").write_text(settings, "utf-8")

    def start(self, *more: str) -> subprocess.Popen[str]:
        """Start `dragoman translate` on everything."""
        command = [sys.executable, "-m", "dragoman", "translate", "docs", "--to", ",".join(self.locales)]
        command += [
            "--provider",
            "hired",
            "--out",
            "out/{path}.{locale}{ext}",
            "--json",
            "--db",
            self.database_url,
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HIRED_KEY": "a key of this test"}
        return subprocess.Popen(
            [*command, *more],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, *more: str, seconds: float = 240) -> tuple[int, dict[str, Any]]:
        """Run it to its end: exit code and the object that it printed."""
        run = self.start(*more)
        told, said = run.communicate(timeout=seconds)
        assert told.strip(), f"exit {run.returncode}: {said[-2000:]}"
        return run.returncode, json.loads(told)

    def outputs(self) -> dict[str, str]:
        """Every file written, by name."""
        out = self.folder / "out"
        return {str(path.relative_to(out)): path.read_text("utf-8") for path in sorted(out.rglob("*.json"))}

    def attempts(self, outcome: str | None = None) -> list[str]:
        """The ids of all attempts at a provider, or of those with one outcome."""
        tables = sa.join(
            effects.attempts, effects.effects, effects.attempts.c.effect_id == effects.effects.c.id
        )
        query = (
            sa.select(effects.attempts.c.id)
            .select_from(tables)
            .where(effects.effects.c.family == "completion")
        )
        if outcome is not None:
            query = query.where(effects.attempts.c.outcome == outcome)
        engine = engine_of(self.database_url)
        try:
            with engine.connect() as connection:
                return [row[0] for row in connection.execute(query)]
        finally:
            engine.dispose()


def kill(run: subprocess.Popen[str]) -> None:
    """As the machine would: at once, and nothing runs afterwards."""
    if run.poll() is None:
        run.send_signal(signal.SIGKILL)
    run.communicate()


def wait_for_calls(run: subprocess.Popen[str], hired: Provider, count: int) -> None:
    """Until the provider has taken in so many requests, or the run is over."""
    until = time.monotonic() + 60
    while len(hired.calls()) < count and run.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
