"""What is told to whoever watches: who may read it, what it counts, and that it names nobody."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dragoman.kernel import metrics
from dragoman.kernel.errors import StoreError
from dragoman.kernel.limits import METRICS_SEEN_SECONDS
from dragoman.machines.tables import ALL, ATTEMPT, MANIFEST
from dragoman.store.acts import examining, readiness
from dragoman.store.schema import metadata
from dragoman.store.transaction import Tx
from dragoman.wiring.rounds import ROLES, loops
from tests.surfaces.http.house import MANIFESTS, PAIRS, House, served

PHASES = ("decode", "load", "authorization", "transaction", "enqueue")
OUTBOX = {"due": 2, "waiting": 1, "delivering": 1, "delivered": 3, "dead": 1}


Series = tuple[str, frozenset[tuple[str, str]]]


async def scrape(house: House) -> dict[Series, float]:
    """Series → what it stands at."""
    answer = await house.client.get("/metrics", headers=await house.exact_token(["metrics:read"]))
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == metrics.CONTENT_TYPE
    return {
        series(sample.name, **sample.labels): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def series(name: str, **labels: str) -> Series:
    """What one number is known by."""
    return name, frozenset(labels.items())


def test_only_who_may_see_the_whole_installation_reads_its_numbers(sqlite_url: str, tmp_path: Path) -> None:
    """They are of all workspaces together, and the admin of one of them has no right to that."""

    async def story() -> list[int]:
        async with served(sqlite_url, tmp_path) as house:
            admin, watcher = [await house.exact_token([one]) for one in ("admin", "metrics:read")]
            asked = [("/metrics", {}), ("/metrics", admin), ("/metrics", watcher)]
            asked.append((f"{MANIFESTS}/0199d3f0-4a1b-7c55-9c1e-3a7f6f2b8d10", watcher))
            return [(await house.client.get(path, headers=headers)).status_code for path, headers in asked]

    assert asyncio.run(story()) == [401, 403, 200, 404]


def test_each_phase_of_an_admission_is_timed_by_itself(sqlite_url: str, tmp_path: Path) -> None:
    """[M-115]"""

    def counted() -> list[float]:
        return [metrics.number("dragoman_admission_seconds_count", phase=phase) for phase in PHASES]

    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            await house.see_worker()
            token, before = await house.token(), counted()
            await house.admit(token)
            after = counted()
            assert [now - then for now, then in zip(after, before, strict=True)] == [1] * 5
            bad = await house.client.post(MANIFESTS, json={"request_id": "r", "pairs": []}, headers=token)
            assert bad.status_code == 422
            gone_on = [now - then for now, then in zip(counted(), after, strict=True)]
            assert gone_on == [1, 1, 0, 0, 0], "a refusal is timed as far as it came"

    asyncio.run(story())


def fill_outbox(tx: Tx) -> None:
    """Events in every state, some of them due."""
    later = tx.now + 3_600_000_000
    for told, number in OUTBOX.items():
        state, due_at = {"due": ("pending", tx.now), "waiting": ("pending", later)}.get(told, (told, None))
        for _ in range(number):
            row = {
                "id": tx.new_id(), "workspace": f"of-{told}", "job_id": tx.new_id(), "delivery_sequence": 1,
                "event": "job.completed", "payload": b"{}", "state": state, "next_attempt_at": due_at,
                "created_at": tx.now, "updated_at": tx.now,
            }  # fmt: skip
            tx.insert(metadata.tables["outbox"], [row])


def test_the_outbox_is_told_by_state_in_metrics_and_in_the_log(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """[M-305] the log tells it once, and again only where it has changed."""

    async def story() -> None:
        async with served(database_url, tmp_path, log_style="json", log_level="INFO") as house:
            await house.services.database.run(fill_outbox)
            told = await scrape(house)
            for state, number in OUTBOX.items():
                assert told[series("dragoman_outbox", state=state)] == number
            for _ in range(2):
                await house.services.meter.note_outbox()

    asyncio.run(story())
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if "outbox.counted" in line]
    assert [{name: line[name] for name in OUTBOX} for line in lines] == [OUTBOX]


async def ended(house: House, token: dict[str, str], manifest_id: str) -> None:
    """Wait until a manifest has ended."""
    while True:
        status = (await house.client.get(f"{MANIFESTS}/{manifest_id}", headers=token)).json()
        if status["counts"]["completed"] == status["counts"]["total"]:
            return
        await asyncio.sleep(0.02)


def test_loops_are_told_by_name_and_nothing_is_told_by_what_it_is_about(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """[C-001] `enumerate` stands in metrics and log; every label has few values, which the program names."""
    (tmp_path / "a.json").write_text('{"hello": "Hello there"}')

    async def story() -> tuple[dict[Series, float], set[str]]:
        async with served(database_url, tmp_path, ROLES, log_style="json", log_level="DEBUG") as house:
            await house.see_worker()
            token = await house.token()
            await ended(house, token, await house.admit(token))
            return await scrape(house), {loop.name for loop in loops(house.services, ROLES)}

    steps = series("dragoman_loop_steps_total", loop="enumerate", result="worked")
    begun = metrics.number("dragoman_loop_steps_total", loop="enumerate", result="worked")
    others = set(re.findall(r'family="([^"]*)"', metrics.exposition().decode()))  # of tests before this one
    told, names = asyncio.run(story())
    assert told[steps] == begun + 1
    assert told[series("dragoman_attempts_total", family="completion", outcome="SUCCEEDED")] > 0
    assert told[series("dragoman_attempts_total", family="webhook", outcome="SUCCEEDED")] > 0
    assert told[series("dragoman_commits_total", kind="changes")] > 0
    assert told[series("dragoman_workers", role="engine")] >= 1
    assert told[series("dragoman_gate_wait_seconds_count")] > 0
    assert told[series("dragoman_calls_under_way")] == 0
    states = {state for machine in ALL for state in machine.states}
    allowed = {
        "loop": names,
        "result": {"worked", "idle", "gave_way", "failed"},
        "phase": {*PHASES, *MANIFEST.open},
        "family": others | {"completion", "submission", "webhook", "publication_step"},
        "outcome": ATTEMPT.states,
        "table": set(metadata.tables),
        "state": states | {"due", "waiting", "ready", "resting"},
        "kind": {"changes", "renewals", "empty", "acts", "undone", "spent", "reserved", *readiness.KINDS},
        "parked_for": {"", "budget", "provider", "unknown", "secret", "pair"},
        "role": {*ROLES, "all"},
    }
    strange = {
        label
        for _, labels in told
        for label, value in labels
        if label not in ("le", "release") and value not in allowed[label]
    }
    assert strange == set()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    assert [line for line in lines if line.get("step") == "enumerate" and line["result"] == "worked"]


def test_a_scrape_is_answered_while_the_database_is_away_and_asks_it_seldom(
    sqlite_url: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            services = house.services
            meter, database = services.meter, services.database
            asked = 0
            read = database.read

            async def counted(*given: object, **named: object) -> object:
                nonlocal asked
                asked += 1
                return await read(*given, **named)  # type: ignore[arg-type]

            async def gone(*_: object) -> None:
                raise StoreError("the database is away")

            database.read = counted  # type: ignore[method-assign,assignment]
            assert b"dragoman_database_up 1.0" in await meter.exposition()
            once = asked
            assert b"dragoman_queue_depth 0.0" in await meter.exposition()
            assert asked == once > 0
            meter._asked_at = services.clock.monotonic() - METRICS_SEEN_SECONDS
            database.read = gone  # type: ignore[method-assign,assignment]
            told = await meter.exposition()
            assert b"dragoman_database_up 0.0" in told
            assert b"dragoman_queue_depth" not in told
            assert b"process_cpu_seconds_total" in told

    asyncio.run(story())


def test_what_waits_is_told_by_state_and_age(database_url: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with served(database_url, tmp_path) as house:
            await house.see_worker()
            await house.admit(await house.token(), pairs=PAIRS)
            told = await scrape(house)
            assert told[series("dragoman_manifests", phase="enumerating")] == 1
            assert told[series("dragoman_oldest_due_seconds", kind="manifests")] >= 0
            assert told[series("dragoman_month_microusd", kind="spent")] == 0
            assert told[series("dragoman_lanes", state="ready")] == 0
            assert told[series("dragoman_queue_depth")] == 0
            assert await house.services.database.read(examining.findings) == [], (
                "and nothing is wrong with it"
            )

    asyncio.run(story())
