"""Apertium's own service, APY with eng-spa, where it is installed."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.content.locales import choose_code
from dragoman.model.completions import CompletionRequest, PromptItem, Reply
from dragoman.providers import apertium_http
from dragoman.providers.apertium_http import ApertiumHttpProvider


def make(url: str) -> ApertiumHttpProvider:
    return ApertiumHttpProvider("apertium-http", url, choose_code, {("eng", "spa"), ("spa", "eng")})


@pytest.fixture(scope="module")
def apy_url() -> Iterator[str]:
    """Apertium's own service, where it is installed."""
    program = shutil.which("apertium-apy")
    if program is None or not Path("/usr/share/apertium/modes/eng-spa.mode").exists():
        pytest.skip("apertium-apy with eng-spa is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, "-p", str(port), "-j1", "/usr/share/apertium"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await_listening(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _await_listening(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise TimeoutError("apertium-apy does not listen")


def test_the_real_service_keeps_markers_and_numbers(apy_url: str) -> None:
    """Apertium's own APY with eng-spa: every text back, translated, its markers kept."""
    marked = PromptItem("k2", "The ⟦1⟧house⟦/1⟧ has ⟦2⟧ doors.")
    others = (PromptItem("a7", "Hello"), PromptItem("q9", "A literal ⟦⟦ bracket"))
    houses = (PromptItem(f"n{n}", f"The red house {n}.") for n in range(20))
    many = CompletionRequest("en", "es", (marked, *others, *houses))

    async def run() -> Reply:
        provider = make(apy_url)
        answer = await provider.send(provider.render(many), "attempt-1", 30)
        assert answer.outcome == "SUCCEEDED", answer
        await provider.close()
        return provider.read(answer.body or b"")

    reply = asyncio.run(run())
    texts = dict(reply.items)
    assert (reply.finish, list(texts)) == ("complete", [item.id for item in many.items])
    assert texts["k2"] == "La ⟦1⟧casa⟦/1⟧ tiene ⟦2⟧ puertas."
    assert texts["n7"] == "La casa roja 7."


def test_what_the_real_service_cuts_off_is_asked_for_again(apy_url: str) -> None:
    """It takes ten pieces of a long request and drops the rest silently: that is `length`, no lost text."""
    long = CompletionRequest(
        "en", "es", tuple(PromptItem(f"n{n}", "The red house has a large garden. " * 60) for n in range(30))
    )

    async def run() -> Reply:
        provider = make(apy_url)
        answer = await provider.send(provider.render(long), "attempt-1", 60)
        await provider.close()
        return provider.read(answer.body or b"")

    reply = asyncio.run(run())
    assert reply.finish == "length"
    assert 0 < len(reply.items) < 30


def test_the_real_service_lists_its_pairs(apy_url: str) -> None:
    with urllib.request.urlopen(f"{apy_url}/listPairs", timeout=10) as answer:  # noqa: S310 - loopback
        assert ("eng", "spa") in apertium_http.read_pairs(answer.read())
