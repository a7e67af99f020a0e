"""Many processes of ours on one database and one queue, and what the database holds when they are done."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.identity import SystemChance
from dragoman.machines.tables import INTENT
from dragoman.store.engines import engine_of
from dragoman.store.schema import effects, engine, site
from dragoman.wiring.rounds import opened
from dragoman.wiring.settings import load
from tests.chaos.project import ROOT, kill

LOCALES = ("de", "fr")
TEXTS = 2


@dataclass
class Fleet:
    """Worker processes of one settings file."""

    folder: Path
    database_url: str
    endpoint: str
    base_url: str
    runs: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    _started: int = 0

    def make(self, documents: int) -> None:
        """Write documents and settings."""
        (self.folder / "docs").mkdir(parents=True)
        for number in range(documents):
            texts = {f"k{index}": f"Text {index} of document {number}" for index in range(TEXTS)}
            (self.folder / "docs" / f"d{number:04}.json").write_text(json.dumps(texts), "utf-8")
        settings = {
            "database_url": self.database_url,
            "provider": "hired",
            "queue": "sqs",
            "sqs_endpoint": self.endpoint,
            "sqs_queue_prefix": f"fleet-{SystemChance().token(8)}-",
            "sqs_poll_seconds": 2,
        }
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        lines += ["[providers.hired]", 'protocol = "chat"', 'model = "test"', "priced = false"]
        lines += [f'base_url = "{self.base_url}"', ""]
        (self.folder / "dragoman.toml").write_text("\n".join(lines), "utf-8")

    async def admit(self, manifests: int, documents: int, batch_size: int) -> None:
        """Admit all pairs, in so many manifests, and work none of them here."""
        per_manifest = documents // manifests
        async with opened(load(self.folder), roles=()) as services:
            for first in range(0, documents, per_manifest):
                names = [f"docs/d{number:04}.json" for number in range(first, first + per_manifest)]
                pairs = sorted((name, locale) for name in names for locale in LOCALES)
                frozen = _frozen(self.folder, names, batch_size)
                await services.admission.admit_pairs(
                    services.caller("ada"), f"part-{first}", services.chance.new_id(), pairs, frozen
                )

    def start(self, *roles: str) -> str:
        """Start a worker process; gives its name."""
        self._started += 1
        name = f"{'-'.join(roles)}-{self._started}"
        words = [word for role in roles for word in ("--role", role)]
        with (self.folder / f"{name}.log").open("w", encoding="utf-8") as log:
            self.runs[name] = subprocess.Popen(
                [sys.executable, "-m", "dragoman", "worker", *words],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
                stdout=log,
                stderr=log,
                text=True,
            )
        return name

    def kill(self, name: str) -> None:
        """`kill -9`."""
        kill(self.runs.pop(name))

    def stop(self, seconds: float = 40) -> dict[str, int]:
        """SIGTERM to all, once each has shown that it lives; their exit codes."""
        until = time.monotonic() + seconds
        pids = {str(run.pid) for run in self.runs.values()}
        while not pids <= {row.id.split("/")[2] for row in self.rows(sa.select(effects.workers.c.id))}:
            assert time.monotonic() < until, self.told()
            time.sleep(0.05)
        for run in self.runs.values():
            run.send_signal(signal.SIGTERM)
        return {name: run.wait(seconds) for name, run in self.runs.items()}

    def told(self) -> str:
        """What the processes have written, for whoever looks into a failure."""
        return "\n".join(
            f"{path.name}: {path.read_text('utf-8')[-2000:]}" for path in self.folder.glob("*.log")
        )

    def wait_until_settled(self, seconds: float) -> None:
        """Until no intent is open."""
        is_open = site.intents.c.state.in_(sorted(INTENT.open))
        until = time.monotonic() + seconds
        while self.scalar(sa.select(sa.func.count()).select_from(site.intents).where(is_open)):
            assert time.monotonic() < until, self.told()
            time.sleep(0.2)

    def rows(self, query: sa.Select[Any]) -> Sequence[Any]:
        """What the database says."""
        with _connected(self.database_url) as connection:
            return connection.execute(query).all()

    def scalar(self, query: sa.Select[Any]) -> Any:
        """One value of it."""
        with _connected(self.database_url) as connection:
            return connection.execute(query).scalar()

    def attempts(self) -> dict[str, str]:
        """Every attempt at the provider, and its outcome."""
        of_completion = effects.effects.c.family == "completion"
        both = sa.join(
            effects.attempts, effects.effects, effects.attempts.c.effect_id == effects.effects.c.id
        )
        query = sa.select(effects.attempts.c.id, effects.attempts.c.outcome).select_from(both)
        return {row.id: row.outcome for row in self.rows(query.where(of_completion))}

    def prompt_tokens(self) -> dict[str, int]:
        """What the ledger says that each attempt has used."""
        usage = engine.ai_usage
        return {
            row.attempt_id: row.prompt_tokens
            for row in self.rows(sa.select(usage.c.attempt_id, usage.c.prompt_tokens))
        }

    def intents(self) -> dict[str, int]:
        """How many intents stand in which state."""
        state = site.intents.c.state
        return dict(self.rows(sa.select(state, sa.func.count()).group_by(state)))

    def job_fields(self) -> dict[str, int]:
        """How many fields of all jobs stand in which state."""
        state = engine.job_fields.c.state
        return dict(self.rows(sa.select(state, sa.func.count()).group_by(state)))


@contextlib.contextmanager
def fleet(folder: Path, database_url: str, endpoint: str, base_url: str) -> Iterator[Fleet]:
    """A fleet of which nothing runs on when the test has ended."""
    made = Fleet(folder, database_url, endpoint, base_url)
    try:
        yield made
    finally:
        for name in list(made.runs):
            made.kill(name)


def _frozen(folder: Path, names: Sequence[str], batch_size: int) -> Mapping[str, Any]:
    return {
        "source_locale": "en",
        "mode": "missing",
        "provider": "hired",
        "root": str(folder),
        "templates": {name: f"out/{name[:-5]}.{{locale}}.json" for name in names},
        "executor": "dry-run:v1",
        "partial": "auto",
        "publish": "none",
        "batch_size": batch_size,
    }


@contextlib.contextmanager
def _connected(url: str) -> Iterator[sa.Connection]:
    made = engine_of(url)
    try:
        with made.connect() as connection:
            yield connection
    finally:
        made.dispose()
