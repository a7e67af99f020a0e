"""A person at a terminal: a working tree of their own, the command line in this process, and what it told."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from dragoman.__main__ import build_server
from dragoman.store.engines import engine_of
from dragoman.store.schema import metadata
from dragoman.surfaces.cli.commands import build_cli
from tests.doubles.chat_server import ChatServer, Script, Seen

ROOT = Path(__file__).resolve().parents[3]
KEY = "sk-marker-0123456789abcdef0123456789"
"""What stands in HIRED_KEY: it may turn up in a request's head and nowhere else."""


@dataclass(frozen=True, slots=True)
class Told:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any]:
        """Standard output, which must be exactly one JSON object on one line."""
        assert self.out.endswith("\n"), (self.code, self.out, self.err)
        assert self.out.count("\n") == 1, self.out
        told = json.loads(self.out)
        assert isinstance(told, dict)
        return told

    @property
    def error(self) -> dict[str, str]:
        """The one error that a refused command told."""
        assert set(self.object) == {"error"}, self.object
        return dict(self.object["error"])


@dataclass(slots=True)
class Desk:
    """A working tree, and the database that all commands typed here use."""

    folder: Path
    database_url: str

    def write(self, name: str, content: str | bytes | Mapping[str, Any]) -> Path:
        """Put a file into the tree; a mapping is written as JSON."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Mapping):
            content = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, name: str) -> str:
        """A file of the tree, as it stands."""
        return (self.folder / name).read_bytes().decode()

    def names(self) -> list[str]:
        """All files of the tree, but for those of the state folder."""
        found = (path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file())
        return sorted(str(path) for path in found if path.parts[0] != ".dragoman")

    def texts(self, name: str) -> dict[str, Any]:
        """A JSON file of the tree."""
        found = json.loads(self.read(name))
        assert isinstance(found, dict)
        return found

    def configure(self, text: str) -> None:
        """Write `dragoman.toml`."""
        self.write("dragoman.toml", text)

    def hire(self, base_url: str, *, priced: bool = False, more: str = "") -> None:
        """Configure the provider `hired`; `more` stands above it, as settings of the whole."""
        self.configure(
            f'{more}\n[providers.hired]\nprotocol = "chat"\nmodel = "test"\nbase_url = "{base_url}"\n'
            f'key_variable = "HIRED_KEY"\npriced = {str(priced).lower()}\n'
        )

    def run(self, *words: str, db: bool = True) -> Told:
        """Type a command, here and now."""
        chosen = [*words, "--db", self.database_url] if db and self.database_url else list(words)
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        ended = CliRunner().invoke(build_cli(build_server), chosen)
        root.handlers[:] = handlers  # what the command logged to is closed by now
        root.setLevel(level)
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return Told(ended.exit_code, ended.stdout, ended.stderr)

    def translate(self, *words: str) -> Told:
        """`dragoman translate … --json`."""
        return self.run("translate", *words, "--json")

    def start(self, *words: str, module: str = "dragoman", **environment: str) -> subprocess.Popen[str]:
        """Type a command into a process of its own, or give it to another `module` that starts it."""
        chosen = [*words, "--db", self.database_url] if self.database_url else list(words)
        return subprocess.Popen(
            [sys.executable, "-m", module, *chosen],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, run: subprocess.Popen[str], seconds: float = 60) -> Told:
        """What a started command came to; one that does not end is ended, and fails the test."""
        try:
            out, err = run.communicate(timeout=seconds)
        finally:
            run.kill()
        return Told(run.returncode, out, err)

    def python(self, code: str) -> str:
        """What a fresh interpreter prints that runs this code."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        command = [sys.executable, "-c", code]
        ran = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def execute(self, sql: str) -> None:
        """Change the database behind everybody's back."""
        engine = engine_of(self.database_url)
        with engine.begin() as connection:
            connection.execute(sa.text(sql))
        engine.dispose()

    def rows(self, table: str, *columns: str) -> list[sa.Row[Any]]:
        """What a table of the database holds, in these columns or in all."""
        named = metadata.tables[table]
        engine = engine_of(self.database_url)
        try:
            with engine.connect() as connection:
                chosen = [named.c[column] for column in columns or named.c.keys()]
                return list(connection.execute(sa.select(*chosen)).all())
        finally:
            engine.dispose()


def sit_down(folder: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk in an empty folder, with an environment that names no provider but the key of `hired`."""
    for name in list(os.environ):
        if name.startswith(("DRAGOMAN_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HIRED_KEY", KEY)
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    desk = Desk(folder, database_url)
    desk.configure("")
    return desk


class ThreadedServer(ChatServer):
    """The scripted server in a loop that belongs to another thread, and the tokens that it charged."""

    def __init__(self, script: Script, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(script)
        self._loop = loop
        self.charged: list[int] = []

    def completion(self, act: Mapping[str, Any], seen: Seen, said: Mapping[str, Any]) -> dict[str, Any]:
        completion = super().completion(act, seen, said)
        self.charged.append(completion["usage"]["total_tokens"])
        return completion

    def release(self) -> None:
        self._loop.call_soon_threadsafe(super().release)


@contextmanager
def answering(*acts: Any, **script: Any) -> Iterator[ThreadedServer]:
    """The scripted server, in a thread with a loop of its own."""
    loop = asyncio.new_event_loop()
    server = ThreadedServer(Script(acts=acts, **script), loop)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def sent(server: ChatServer) -> list[list[str]]:
    """The texts of each call, in order."""
    return [call.texts for call in server.calls]


def until(happened: Callable[[], object]) -> None:
    """Look until it has happened; half a minute is a failure."""
    end = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)
