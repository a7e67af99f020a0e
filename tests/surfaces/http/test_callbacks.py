"""The engine's events at the door: type, size, name, signature, and one receipt for one delivery."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from dragoman.kernel.errors import SettingsError
from dragoman.kernel.limits import CALLBACK_BYTES_MAX
from dragoman.kernel.signing import EVENT, sign
from dragoman.wiring.linking import callback_secret
from dragoman.wiring.settings import load
from tests.surfaces.http.house import House, served

CALLBACKS = "/v1/callbacks/submission"
SUBMISSION = "0199d3f0-4a1b-7c55-9c1e-3a7f6f2b8d10"
ENDED = {
    "event": "job.completed",
    "submission_id": SUBMISSION,
    "job_id": "0199d3f0-4a1b-7c55-9c1e-3a7f6f2b8d11",
    "clientJobId": "0199d3f0-4a1b-7c55-9c1e-3a7f6f2b8d12",
    "event_sequence": 1,
    "status": "completed",
    "results": "inline",
    "items": [],
}


def told(
    database_url: str, folder: Path, story: Callable[[House], Coroutine[Any, Any, None]], **settings: Any
) -> None:
    """Runs a story in a house without workers."""

    async def run() -> None:
        async with served(database_url, folder, **settings) as house:
            await story(house)

    asyncio.run(run())


def signed(house: House, body: bytes, delivery_id: str = "delivery-1", secret: str = "") -> dict[str, str]:
    """The headers of a genuine delivery, or of one that was signed with another secret."""
    services = house.services
    live = secret or callback_secret(services.settings)
    moment = services.database.now() // 1_000_000
    return {"Content-Type": "application/json", **sign(live, delivery_id, moment, body)}


def test_a_genuine_event_is_kept_once_and_its_repeats_change_nothing(
    database_url: str, tmp_path: Path
) -> None:
    """[M-255]"""

    async def story(house: House) -> None:
        body = json.dumps(ENDED).encode()
        for _ in range(3):
            answer = await house.client.post(CALLBACKS, content=body, headers=signed(house, body))
            assert (answer.status_code, answer.json()) == (200, {"receipt": "applied"})
        assert (await house.count("receipts"))["receipts"] == 1

    told(database_url, tmp_path, story)


def test_an_event_whose_texts_lie_behind_a_link_is_kept_for_a_worker(sqlite_url: str, tmp_path: Path) -> None:
    async def story(house: House) -> None:
        body = json.dumps({**ENDED, "results": "link"}).encode()
        answer = await house.client.post(CALLBACKS, content=body, headers=signed(house, body))
        assert (answer.status_code, answer.json()) == (202, {"receipt": "kept"})

    told(sqlite_url, tmp_path, story)


def test_one_delivery_id_with_two_bodies_is_a_contradiction(sqlite_url: str, tmp_path: Path) -> None:
    async def story(house: House) -> None:
        first, second = (json.dumps({**ENDED, "event_sequence": number}).encode() for number in (1, 2))
        await house.client.post(CALLBACKS, content=first, headers=signed(house, first))
        answer = await house.client.post(CALLBACKS, content=second, headers=signed(house, second))
        assert (answer.status_code, answer.json()["code"]) == (409, "callback_contradiction")

    told(sqlite_url, tmp_path, story)


def test_what_is_not_genuine_is_refused_and_leaves_no_row(sqlite_url: str, tmp_path: Path) -> None:
    """[M-251]"""

    async def story(house: House) -> None:
        body = json.dumps(ENDED).encode()
        genuine = signed(house, body)
        forged = signed(house, body, secret="x" * 32)
        cases: list[tuple[bytes, dict[str, str], int, str]] = [
            (body, {"Content-Type": "application/json"}, 401, "unauthorized"),
            (body, forged, 401, "unauthorized"),
            (body + b" ", genuine, 401, "unauthorized"),
            (body, {**genuine, "X-Dragoman-Timestamp": "1"}, 401, "unauthorized"),
            (body, {**genuine, "Content-Type": "text/plain"}, 415, "unsupported_media_type"),
            (body, {**genuine, EVENT: "job.started"}, 422, "invalid_request"),
            (b" " * (CALLBACK_BYTES_MAX + 1), genuine, 413, "request_too_large"),
        ]
        for content, headers, status, code in cases:
            answer = await house.client.post(CALLBACKS, content=content, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert (await house.count("receipts"))["receipts"] == 0

    told(sqlite_url, tmp_path, story)


def test_a_genuine_event_that_cannot_be_read_is_refused_by_place(sqlite_url: str, tmp_path: Path) -> None:
    """[M-251]"""

    async def story(house: House) -> None:
        incomplete = {name: value for name, value in ENDED.items() if name != "job_id"}
        for event in (
            {**ENDED, "event": "job.started"},
            {**ENDED, "event_sequence": "first"},
            incomplete,
        ):
            body = json.dumps(event).encode()
            answer = await house.client.post(CALLBACKS, content=body, headers=signed(house, body))
            assert (answer.status_code, answer.json()["place"]) == (422, "event")
        assert (await house.count("receipts"))["receipts"] == 0

    told(sqlite_url, tmp_path, story)


def test_no_answer_repeats_the_secret_or_a_signature(sqlite_url: str, tmp_path: Path) -> None:

    async def story(house: House) -> None:
        body = json.dumps(ENDED).encode()
        headers = signed(house, body)
        answer = await house.client.post(CALLBACKS, content=body + b" ", headers=headers)
        hidden = (callback_secret(house.services.settings), headers["X-Dragoman-Signature"][7:])
        assert not [secret for secret in hidden if secret in answer.text]

    told(sqlite_url, tmp_path, story)


@pytest.mark.parametrize(
    "networks, status", [(["127.0.0.0/8"], 200), (["10.0.0.0/8", "2001:db8::/32"], 403), ([], 200)]
)
def test_events_come_from_the_networks_that_are_named(
    sqlite_url: str, tmp_path: Path, networks: list[str], status: int
) -> None:
    """[M-251] a signature that is right does not help an address that is wrong; nothing is kept of it."""

    async def story(house: House) -> None:
        body = json.dumps(ENDED).encode()
        answer = await house.client.post(CALLBACKS, content=body, headers=signed(house, body))
        assert answer.status_code == status, answer.text
        assert (await house.count("receipts"))["receipts"] == (1 if status == 200 else 0)

    told(sqlite_url, tmp_path, story, callback_networks=networks)


def test_a_network_that_is_none_is_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="callback_networks"):
        load(tmp_path, callback_networks=["10.0.0.0/99"])


def test_while_a_secret_is_changed_both_are_honoured(sqlite_url: str, tmp_path: Path) -> None:
    """What was signed before the change still counts, until the former secret is taken away."""

    async def story(house: House) -> None:
        folder = house.services.settings.state_folder
        body = json.dumps(ENDED).encode()
        former = callback_secret(house.services.settings)
        early = signed(house, body, "early", former)
        (folder / "callback.key").rename(folder / "callback.key.before")
        assert callback_secret(house.services.settings) != former
        assert (await house.client.post(CALLBACKS, content=body, headers=early)).status_code == 200
        late = signed(house, body, "late")
        assert (await house.client.post(CALLBACKS, content=body, headers=late)).status_code == 200
        (folder / "callback.key.before").unlink()
        again = signed(house, body, "again", former)
        assert (await house.client.post(CALLBACKS, content=body, headers=again)).status_code == 401

    told(sqlite_url, tmp_path, story)
