"""An SQS server for the test run: the one that `DRAGOMAN_TEST_SQS` names, else ministack, started here.

ministack pins its own botocore, so it lives in an environment of its own, `build/ministack`, which `make
test` makes.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path

from tests.doubles.servers import Missing

_PROGRAM = Path(__file__).resolve().parents[2] / "build" / "ministack" / "bin" / "ministack"
_READY_SECONDS = 20
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What a client of it needs: any credentials will do."""


class SqsServer:
    """A running server; `endpoint` is its address."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = ""
        self.endpoint = os.environ.get("DRAGOMAN_TEST_SQS", "")
        if self.endpoint:
            return
        if not _PROGRAM.exists():
            raise Missing("ministack is not installed: make build/ministack/.ready")
        self._port = _free_port()
        self.endpoint = f"http://127.0.0.1:{self._port}"
        self._folder = tempfile.mkdtemp(prefix="ministack-")
        self.start()

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        environment = {
            **os.environ,
            "GATEWAY_PORT": str(self._port),
            "BIND_HOST": "127.0.0.1",
            "SERVICES": "sqs",
            "HOME": self._folder,
            "TMPDIR": self._folder,
        }
        with (Path(self._folder) / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [_PROGRAM], cwd=self._folder, env=environment, stdout=log, stderr=log
            )
        pause = threading.Event()
        for _ in range(_READY_SECONDS * 50):
            if _answers(self.endpoint):
                return
            if self._process.poll() is not None:
                break
            pause.wait(0.02)
        raise Missing(f"ministack did not start: {(Path(self._folder) / 'log').read_text()[-500:]}")

    def kill(self) -> None:
        """End it at once; what it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End it and remove its files."""
        self.kill()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _answers(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(f"{endpoint}/_ministack/health", timeout=2):  # noqa: S310
            return True
    except (urllib.error.URLError, OSError):
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
