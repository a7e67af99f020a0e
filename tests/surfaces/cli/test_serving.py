"""Processes that stay: `serve` and `worker` start, work what others admitted, and end in order."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

import pytest

from tests.surfaces.cli.desk import Desk, until

BODY = {"request_id": "r-1", "pairs": [{"document": "a.json", "locale": "fr"}]}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(url: str, token: str = "", body: object = None) -> dict[str, object]:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)  # noqa: S310 - our own server
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        told = json.loads(answer.read())
    assert isinstance(told, dict)
    return told


def fetch(url: str, token: str) -> str:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - our own server
        return str(answer.read().decode())


def serving(desk: Desk, *words: str) -> AbstractContextManager[tuple[str, subprocess.Popen[str]]]:
    """`dragoman serve` that answers, by its URL."""
    return listening(desk, "serve", *words)


@contextmanager
def listening(desk: Desk, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A process that answers, by its URL; ended afterwards, whatever befalls."""
    port = free_port()
    run = desk.start(*words, "--port", str(port))
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until and run.poll() is None:
            with suppress(OSError):
                ask(f"{url}/healthz")
                break
            time.sleep(0.05)
        yield url, run
    finally:
        run.kill()
        run.communicate()


def test_an_open_door_is_refused_where_others_can_reach_it(desk: Desk) -> None:
    """[J-085] refused at start, before anybody can ask."""
    desk.configure("allow_anonymous_sync = true\n")
    told = desk.run("serve", "--host", "0.0.0.0", "--port", str(free_port()))
    assert told.code == 1
    assert "allow_anonymous_sync" in told.err


def token_of(told: str) -> str:
    return told.partition("first token (shown once): ")[2].split("\n")[0].strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_tells_its_first_token_once_and_ends_in_order(desk: Desk, number: signal.Signals) -> None:
    with serving(desk) as (url, run):
        assert ask(f"{url}/readyz") == {"ready": True, "problems": [], "warnings": []}
        run.send_signal(number)
        first = desk.end(run)
    assert (first.code, first.out) == (0, "")
    assert len(token_of(first.err)) >= 40
    assert "Traceback" not in first.err
    with serving(desk) as (_, run):
        run.send_signal(number)
        assert token_of(desk.end(run).err) == ""


def test_what_is_asked_for_over_http_is_worked_by_the_same_process(desk: Desk) -> None:
    """And its result is read on the command line meanwhile."""
    desk.write("a.json", {"k": "Hello"})
    token = desk.run("tokens", "create", "ada").object["token"]
    with serving(desk) as (url, run):
        admitted = ask(f"{url}/v1/workspaces/default/manifests", token, BODY)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            status = desk.run("status", str(admitted["manifest_id"]), "--json")
            if status.object["status"] == "completed":
                break
        assert status.object["counts"]["completed"] == 1
        results = desk.run("results", str(admitted["manifest_id"]))
        assert json.loads(results.out)["fields"]["k"]["text"].startswith("[")
        run.send_signal(signal.SIGTERM)
        assert desk.end(run).code == 0


def test_a_worker_of_one_role_ends_in_order(desk: Desk) -> None:
    run = desk.start("worker", "--role", "site", "--role", "engine")
    until = time.monotonic() + 30
    while not desk.rows("workers", "role") and time.monotonic() < until:
        time.sleep(0.05)
    assert [row.role for row in desk.rows("workers", "role")] == ["site+engine"]
    run.send_signal(signal.SIGTERM)
    told = desk.end(run)
    assert (told.code, told.out, told.err) == (0, "", "")


def test_a_worker_answers_to_whoever_watches_where_a_port_is_named(desk: Desk) -> None:
    """Health and metrics, and nothing else: it takes no work over that door."""
    token = desk.run("tokens", "create", "prometheus", "--capability", "metrics:read").object["token"]
    with listening(desk, "worker", "--role", "engine") as (url, run):
        until(lambda: ask(f"{url}/readyz")["ready"] is True)
        assert 'dragoman_workers{role="engine"} 1.0' in fetch(f"{url}/metrics", token)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask(f"{url}/v1/workspaces/default/manifests", token, BODY)
        run.send_signal(signal.SIGTERM)
        assert desk.end(run).code == 0


def test_another_address_than_loopback_is_asked_for_by_name(desk: Desk) -> None:
    told = desk.run("serve", "--help", db=False)
    assert "127.0.0.1" in told.out


def test_an_address_that_is_taken_is_named(desk: Desk) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = desk.end(desk.start("serve", "--port", str(port)))
    assert (told.code, told.out) == (1, "")
    assert told.err.startswith(
        f"invalid_settings (--port): nobody can listen on 127.0.0.1 port {port}: Address"
    )
