"""Which queue the settings name, and what is told about it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.kernel.clock import Clock, SystemClock
from dragoman.kernel.errors import QueueError, SettingsError
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.limits import QUEUE_SEEN_SECONDS
from dragoman.queues.memory import MemoryQueue
from dragoman.queues.sqs import SqsQueue
from dragoman.store.acts import leasing
from dragoman.wiring import queueing
from dragoman.wiring.settings import Settings, load
from tests.doubles.databases import opened


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SQS_ENDPOINT", "DRAGOMAN_SQS_ENDPOINT", "DRAGOMAN_QUEUE", "DRAGOMAN_QUEUE_BACKEND"):
        monkeypatch.delenv(name, raising=False)


def told(folder: Path, toml: str = "") -> Settings:
    (folder / "dragoman.toml").write_text(toml, "utf-8")
    return load(folder)


def queue_of(settings: Settings) -> object:
    database: Any = None  # nothing is asked at the start
    return queueing.waking(settings, database, SystemClock(), SystemChance()).queue


def test_without_a_word_the_queue_is_memory(tmp_path: Path) -> None:
    """[J-032]"""
    assert isinstance(queue_of(told(tmp_path)), MemoryQueue)


@pytest.mark.parametrize("toml", ['queue = "sqs"', 'queue = "sqs://127.0.0.1:9324"', 'queue_backend = "sqs"'])
def test_sqs_is_chosen_under_either_name(tmp_path: Path, toml: str) -> None:
    """[J-030, J-094]"""
    assert isinstance(queue_of(told(tmp_path, toml)), SqsQueue)


def test_the_environment_chooses_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[J-094] `DRAGOMAN_QUEUE_BACKEND=sqs`"""
    monkeypatch.setenv("DRAGOMAN_QUEUE_BACKEND", "sqs")
    assert isinstance(queue_of(told(tmp_path)), SqsQueue)


@pytest.mark.parametrize(
    ("toml", "reason"),
    [
        ('queue = "memory"\nqueue_backend = "sqs"', "queue and queue_backend disagree"),
        ('queue = "sqs://a:1"\nqueue_backend = "memory"', "queue and queue_backend disagree"),
        ('queue = "sqs://a:1"\nsqs_endpoint = "http://b:1"', "name different servers"),
        ('queue = "redis"', "none of memory, sqs and sqs://host:port"),
        ('queue_backend = "redis"', "queue_backend"),
        ("sqs_poll_seconds = 21", "sqs_poll_seconds"),
    ],
)
def test_what_contradicts_itself_is_refused_at_start(tmp_path: Path, toml: str, reason: str) -> None:
    """[J-094, GJ-10]"""
    with pytest.raises(SettingsError, match=reason):
        told(tmp_path, toml)


def test_the_servers_address_is_ours_before_the_usual_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[J-095]"""
    assert queueing.sqs_endpoint(told(tmp_path, 'queue = "sqs"')) == ""
    monkeypatch.setenv("SQS_ENDPOINT", "http://usual:1")
    assert queueing.sqs_endpoint(told(tmp_path, 'queue = "sqs"')) == "http://usual:1"
    assert queueing.sqs_endpoint(told(tmp_path, 'queue = "sqs://named:2"')) == "http://named:2"
    monkeypatch.setenv("DRAGOMAN_SQS_ENDPOINT", "https://ours:3")
    assert queueing.sqs_endpoint(told(tmp_path, 'queue = "sqs"')) == "https://ours:3"


def test_the_prefix_stands_before_the_queues_name(tmp_path: Path) -> None:
    """[J-096] Empty by default; what no queue can be called is refused before anything is sent."""
    assert queueing.queue_name(told(tmp_path)) == "dragoman-jobs"
    assert queueing.queue_name(told(tmp_path, 'sqs_queue_prefix = "eu-"')) == "eu-dragoman-jobs"
    for prefix in ("a b", "x" * 80, "ä"):
        with pytest.raises(SettingsError, match="sqs_queue_prefix"):
            queue_of(told(tmp_path, f'queue = "sqs"\nsqs_queue_prefix = "{prefix}"'))


def test_a_missing_package_is_named_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "dragoman.queues.sqs")
    monkeypatch.delitem(sys.modules, "dragoman.queues.sqs_calls")
    monkeypatch.setitem(sys.modules, "aiobotocore.config", None)
    with pytest.raises(SettingsError, match=r"pip install 'dragoman\[sqs\]'"):
        queue_of(told(tmp_path, 'queue = "sqs"'))


def test_the_server_is_asked_every_few_seconds_at_most() -> None:
    """`/readyz` asks as often as somebody likes; the server is spared."""

    class Stopped(Clock):
        def __init__(self) -> None:
            self.seconds = 0.0

        def now(self) -> int:
            return 0

        def monotonic(self) -> float:
            return self.seconds

    clock, answers = Stopped(), [QueueError("down"), None]

    async def depth() -> int:
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        return 0

    async def story() -> None:
        database: Any = None
        waking = queueing.Waking(MemoryQueue(), database, clock, depth)
        for _ in range(3):
            trouble = await waking.trouble()
            assert trouble is not None
            assert trouble.message == "down"
        clock.seconds += QUEUE_SEEN_SECONDS
        assert await waking.trouble() is None
        assert await waking.warnings() == {}

    asyncio.run(story())


def test_a_second_engine_beside_a_queue_in_memory_is_warned_about(database_url: str) -> None:
    """[J-032] Two hosts would wait for each other's polls; sites and processes that are gone do not count."""

    async def story() -> None:
        async with opened(database_url) as database:
            waking = queueing.waking(Settings(), database, SystemClock(), SystemChance())
            seen = {"release": "0", "host": "a", "credentials": "[]"}
            for name, role in (("a/boot/1/1", "engine"), ("b/boot/1/1", "site")):
                await database.run(leasing.see_worker, {**seen, "id": name, "role": role})
            assert await waking.warnings() == {}
            await database.run(leasing.see_worker, {**seen, "id": "b/boot/2/1", "role": "site+engine"})
            told = await waking.warnings()
            assert told == {
                "queue_not_shared": "2 engine processes live, and the queue reaches one process only"
            }
            assert "sqs" in queueing.remedy("queue_not_shared")

    asyncio.run(story())
