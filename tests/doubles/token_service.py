"""The endpoint that App Service gives to a process for its managed identity, as documented: 2019-08-01."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from dragoman.kernel.clock import MICROSECONDS, SystemClock


class TokenService(HTTPServer):
    """Gives `token-of-the-machine`, then `token-of-the-machine-2` …; `asked` is what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.lives_seconds = 86_400
        self.broken = False

    @property
    def token(self) -> str:
        """What it gives to who asks now for the last time."""
        return "token-of-the-machine" + (f"-{len(self.asked)}" if len(self.asked) > 1 else "")


class _Handler(BaseHTTPRequestHandler):
    server: TokenService

    def do_GET(self) -> None:
        service = self.server
        query = {name: value[0] for name, value in parse_qs(urlsplit(self.path).query).items()}
        service.asked.append({**query, "secret": self.headers.get("X-IDENTITY-HEADER")})
        said = {
            "access_token": service.token,
            "expires_on": str(SystemClock().now() // MICROSECONDS + service.lives_seconds),
            "resource": query.get("resource"),
            "token_type": "Bearer",
        }
        body = json.dumps({"statusCode": 400, "message": "no identity"} if service.broken else said).encode()
        self.send_response(400 if service.broken else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextlib.contextmanager
def serving_tokens(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenService]:
    """A service that this process's managed identity asks; skips where the extra is not installed."""
    pytest.importorskip("azure.identity", reason="the extra azure is not installed")
    with TokenService() as service:
        thread = threading.Thread(target=service.serve_forever)
        thread.start()
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://127.0.0.1:{service.server_port}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "the-header")
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()
