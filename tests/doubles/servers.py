"""A database server of the run's own, started from installed binaries in a temporary folder, on a free port.

What it committed survives its own death but no power cut, which makes it fast: it never waits for a disk, and
its folder is in memory where there is room. As root it runs as another user. What a killed test run left is
removed by the next.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dragoman.kernel.errors import DragomanError
from dragoman.store.engines import engine_of

_READY_SECONDS = 30
_ROOM = 4 * 2**30
_PREFIX = "dragoman-server-of-"


class Missing(Exception):
    """No server of this kind can be reached or started."""


class OwnServer:
    """One running server; `url` is that of its first database."""

    def __init__(self, kind: str) -> None:
        self._port = _free_port()
        _sweep()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=in_memory()))
        user = {"postgresql": "postgres", "mariadb": "mysql"}[kind]
        self._as_user = _as(user)
        if self._as_user:
            os.chown(self._folder, self._as_user["user"], self._as_user["group"])
        self.url = {
            "postgresql": f"postgresql://postgres@127.0.0.1:{self._port}/postgres",
            "mariadb": f"mariadb://root@127.0.0.1:{self._port}/mysql",
        }[kind]
        self._command = self._postgres() if kind == "postgresql" else self._mariadb()
        self.start()

    def start(self) -> None:
        """Start the server on its data, and wait until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, stdout=log, stderr=log, **self._as_user
            )
        pause = threading.Event()
        for _ in range(_READY_SECONDS * 50):
            if answers(self.url):
                return
            if self._process.poll() is not None:
                break
            pause.wait(0.02)
        raise Missing(f"{self._command[0]} did not start: {(self._folder / 'log').read_text()[-500:]}")

    def kill(self) -> None:
        """End it at once, without a word to its clients."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Stop it and remove its data."""
        self._process.send_signal(signal.SIGINT if "postgres" in self._command[0] else signal.SIGTERM)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _postgres(self) -> Sequence[str]:
        places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        initdb = _found("initdb", places)
        data = str(self._folder / "data")
        self._prepare(
            [initdb, "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-locale", "-N"]
        )
        options = ["fsync=off", "full_page_writes=off", "shared_buffers=64MB", "max_wal_size=256MB"]
        return [
            _found("postgres", places),
            *("-D", data, "-p", str(self._port), "-h", "127.0.0.1", "-k", str(self._folder)),
            *[word for option in options for word in ("-c", option)],
        ]

    def _mariadb(self) -> Sequence[str]:
        data = f"--datadir={self._folder / 'data'}"
        install = _found("mariadb-install-db", [Path("/usr/bin")])
        self._prepare(
            [install, "--no-defaults", data, "--skip-test-db", "--auth-root-authentication-method=normal"]
        )
        return [
            _found("mariadbd", [Path("/usr/sbin")]),
            *("--no-defaults", data, f"--port={self._port}", "--bind-address=127.0.0.1"),
            *(f"--socket={self._folder / 's'}", f"--pid-file={self._folder / 'pid'}"),
            *(f"--tmpdir={self._folder}", "--skip-log-bin", "--innodb-buffer-pool-size=64M"),
            *("--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=0", "--innodb-flush-method=nosync"),
            "--character-set-server=utf8mb4",
        ]

    def _prepare(self, command: Sequence[str]) -> None:
        made = subprocess.run(
            command, cwd=self._folder, capture_output=True, check=False, text=True, **self._as_user
        )
        if made.returncode:
            raise Missing(f"{command[0]} failed: {made.stderr[-500:]}")


def in_memory() -> Path | None:
    """The folder whose files reach no disk, where this machine has one with room to spare."""
    folder = Path("/dev/shm")
    if not os.access(folder, os.W_OK) or shutil.disk_usage(folder).free < _ROOM:
        return None
    return folder


def _sweep() -> None:
    for folder in Path(in_memory() or tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        maker = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if Path("/proc/self").exists() and not Path("/proc", maker).exists():
            for process in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if (process / "cwd").resolve().is_relative_to(folder):
                        os.kill(int(process.name), signal.SIGKILL)
            shutil.rmtree(folder, ignore_errors=True)


def _found(name: str, places: Sequence[Path]) -> str:
    path = shutil.which(name, path=os.pathsep.join([*map(str, places), os.environ.get("PATH", "")]))
    if path is None:
        raise Missing(f"{name} is not installed")
    return path


def _as(user: str) -> dict[str, Any]:
    """Servers refuse to run as root."""
    if os.getuid() != 0:
        return {}
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        raise Missing(f"there is no user {user} to run a server as") from None
    return {"user": known.pw_uid, "group": known.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def answers(url: str) -> bool:
    """Whether a database can be reached."""
    try:
        engine = engine_of(url)
        with engine.connect() as connection:
            connection.execute(sa.text("SELECT 1"))
        engine.dispose()
    except (sa.exc.DBAPIError, DragomanError):
        return False
    return True
