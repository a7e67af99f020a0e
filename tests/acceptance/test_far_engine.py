"""A site and an engine as two processes on two databases, and a network between them that loses answers."""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.doubles.proxy import Deed, Proxy
from tests.surfaces.cli.desk import Desk
from tests.surfaces.cli.test_serving import ask, free_port, serving

_SECONDS = 90
_DOCUMENTS = 3


@contextmanager
def proxied(url: str) -> Iterator[Proxy]:
    """A proxy before a server."""
    place = urlsplit(url)
    assert place.hostname
    assert place.port
    with closing(Proxy(place.hostname, place.port)) as proxy:
        yield proxy


def until(found: Callable[[], object]) -> None:
    end = time.monotonic() + _SECONDS
    while not found():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.1)


@pytest.fixture
def engine_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The engine's own folder and database; its environment seals callback secrets."""
    folder = tmp_path / "engine"
    folder.mkdir()
    monkeypatch.setenv("DRAGOMAN_SEALING_KEY", secrets.token_urlsafe(32))
    return Desk(folder, f"sqlite:///{folder / 'far.db'}")


@pytest.mark.parametrize("has_callbacks", [True, False])
def test_a_far_engine_and_a_network_that_loses_answers_both_ways(
    desk: Desk, engine_desk: Desk, monkeypatch: pytest.MonkeyPatch, has_callbacks: bool
) -> None:
    """Submissions whose answer is lost, or that never arrive; events likewise: everything ends, and once.

    Without a callback address the site asks, and the same ends come. [M-211, M-219, M-251]
    """
    monkeypatch.setenv("DRAGOMAN_CALLBACK_SECRET", secrets.token_urlsafe(32))
    engine_desk.configure("private_callbacks = true\n")
    monkeypatch.chdir(engine_desk.folder)
    token = engine_desk.run("tokens", "create", "site", "--capability", "jobs:write").object["token"]
    monkeypatch.chdir(desk.folder)
    monkeypatch.setenv("DRAGOMAN_ENGINE_TOKEN", token)
    port = free_port()
    with ExitStack() as stack:
        far, _ = stack.enter_context(serving(engine_desk))
        to_engine = stack.enter_context(proxied(far))
        to_site = stack.enter_context(proxied(f"http://127.0.0.1:{port}"))
        callbacks = f"http://127.0.0.1:{to_site.port}/v1/callbacks/submission"
        desk.configure(
            f'[engine]\nurl = "http://127.0.0.1:{to_engine.port}"\n'
            + (f'callback_url = "{callbacks}"\n' if has_callbacks else "")
        )
        for number in range(_DOCUMENTS):
            desk.write(f"{number}.json", {f"k{number}": f"Sentence {'abc'[number]}"})
        ours = desk.run("tokens", "create", "ada").object["token"]
        ways = (to_engine, to_site) if has_callbacks else (to_engine,)
        deeds: dict[bytes, Deed] = {
            b'"k0"': "cut_answer",
            b'"k1"': "cut_before",
        }  # of a document each: its request, its event
        lost = [way.on(key, deed) for way in ways for key, deed in deeds.items()]
        monkeypatch.setattr("tests.surfaces.cli.test_serving.free_port", lambda: port)
        site, _ = stack.enter_context(serving(desk))
        manifests = [
            ask(
                f"{site}/v1/workspaces/default/manifests",
                ours,
                {"request_id": f"r-{number}", "pairs": [{"document": f"{number}.json", "locale": "fr"}]},
            )["manifest_id"]
            for number in range(_DOCUMENTS)
        ]
        costs: list[Any] = []
        for manifest in manifests:
            status = f"{site}/v1/workspaces/default/manifests/{manifest}"
            until(lambda status=status: ask(status, ours)["status"] == "completed")  # type: ignore[misc]
            costs.append(ask(status, ours)["cost"])
        until(lambda: all(rule.happened.is_set() for rule in lost))
        if has_callbacks:
            until(lambda: {row.state for row in engine_desk.rows("outbox", "state")} == {"delivered"})
    _assert_once(desk, engine_desk, has_callbacks)
    used = [row.total_tokens for row in engine_desk.rows("ai_usage", "total_tokens")]
    assert sum(cost["paid_tokens"] for cost in costs) == sum(used) > 0, "the site tells what the engine paid"


def _assert_once(desk: Desk, engine_desk: Desk, has_callbacks: bool) -> None:
    jobs = engine_desk.rows("jobs", "submission_id", "state")
    assert [job.state for job in jobs] == ["completed"] * _DOCUMENTS
    assert {job.submission_id for job in jobs} == {row.id for row in desk.rows("submissions", "id")}
    assert Counter(row.job_id for row in engine_desk.rows("ai_usage", "job_id")).most_common(1)[0][1] == 1
    intents = desk.rows("intents", "state", "generation")
    assert [(row.state, row.generation) for row in intents] == [("completed", 1)] * _DOCUMENTS
    outcomes = Counter(row.outcome for row in desk.rows("attempts", "outcome"))
    assert outcomes["CONNECTION_UNKNOWN"] == 2, "the lost and the unsent submission, each sent again"
    receipts = [row.object_ref for row in desk.rows("receipts", "object_ref")]
    assert len(receipts) == len(set(receipts)) == (_DOCUMENTS if has_callbacks else 0)
    kept = Path(engine_desk.database_url.removeprefix("sqlite:///")).read_bytes()
    secret = os.environ["DRAGOMAN_CALLBACK_SECRET"]
    assert secret.encode() not in kept, "the secret is kept sealed"
