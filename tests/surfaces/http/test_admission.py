"""`POST …/manifests`: durable, once, bounded, and nothing else happens before the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.kernel.clock import SystemClock
from dragoman.kernel.limits import REQUEST_BYTES_MAX
from dragoman.model.jobs import named
from dragoman.store.acts import leasing
from dragoman.wiring.rounds import ROLES
from tests.doubles.sources import MemorySource
from tests.surfaces.http.house import MANIFESTS, PAIRS, House, admitting, served
from tests.surfaces.http.test_manifests import until_ended

Story = Callable[[House, dict[str, str]], Coroutine[Any, Any, None]]


def told(database_url: str, folder: Path, story: Story, **settings: Any) -> MemorySource:
    """Runs a story in a house where a worker was seen and none runs; gives the source that was asked."""
    source = MemorySource({})

    async def run() -> None:
        async with admitting(database_url, folder, source, **settings) as house:
            await story(house, await house.token("manifests:write"))

    asyncio.run(run())
    return source


@pytest.mark.parametrize("pairs", [1_000, 100_000])
def test_a_great_request_is_durable_within_three_seconds_and_nothing_else_has_happened(
    database_url: str, tmp_path: Path, pairs: int
) -> None:
    """[M-109, M-110, M-111, M-114, M-116, M-334, M-335, M-336]"""
    asked = [
        {"document": f"docs/page-{number:06}.md", "locale": locale}
        for number in range(pairs // 4)
        for locale in ("fr", "de", "es", "it")
    ]
    bodies = [json.dumps({"request_id": f"try-{n}", "pairs": asked}).encode() for n in range(3)]

    posted = []

    async def story(house: House, token: dict[str, str]) -> None:
        headers = {**token, "Content-Type": "application/json"}

        async def post(body: bytes) -> tuple[httpx2.Response, float]:
            posted.append(body)
            clock = SystemClock()
            began = clock.monotonic()
            answer = await house.client.post(MANIFESTS, content=body, headers=headers)
            return answer, clock.monotonic() - began

        answer, took_seconds = await post(bodies[0])
        assert answer.status_code == 202, answer.text
        told = answer.json()
        assert told["status"] == "preparing"
        assert told["total"] == pairs
        assert answer.headers["location"] == told["status_url"] == f"{MANIFESTS}/{told['manifest_id']}"
        counted = await house.count("manifests", "intents", "submissions", "jobs", "effects", "attempts")
        assert counted == {
            "manifests": 1, "intents": 0, "submissions": 0, "jobs": 0, "effects": 0, "attempts": 0,
        }  # fmt: skip
        for body in bodies[1:]:  # a machine that does other things meanwhile may have slowed the first
            if took_seconds >= 3:
                _, took_seconds = await post(body)
        assert took_seconds < 3

    source = told(database_url, tmp_path, story)
    assert source.asked["can_edit"] == len(posted)
    assert not source.asked.keys() - {"can_edit", "exists"}


def test_fifty_equal_posts_at_once_make_one_manifest_and_get_fifty_equal_answers(
    database_url: str, tmp_path: Path
) -> None:
    """[M-118]"""

    async def story(house: House, token: dict[str, str]) -> None:
        body = {"request_id": "the-same", "pairs": PAIRS}
        answers = await asyncio.gather(
            *(house.client.post(MANIFESTS, json=body, headers=token) for _ in range(50))
        )
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.text for answer in answers}) == 1
        assert (await house.count("manifests"))["manifests"] == 1

    told(database_url, tmp_path, story)


def test_one_request_id_stands_for_one_request(sqlite_url: str, tmp_path: Path) -> None:
    """[M-119]"""

    async def story(house: House, token: dict[str, str]) -> None:
        first = {"request_id": "one", "pairs": PAIRS}
        await house.client.post(MANIFESTS, json=first, headers=token)
        other = await house.client.post(MANIFESTS, json={**first, "pairs": PAIRS[:1]}, headers=token)
        assert (other.status_code, other.json()["code"]) == (409, "request_id_conflict")
        elsewhere = await house.token("manifests:write", actor="grace")
        hers = await house.client.post(MANIFESTS, json=first, headers=elsewhere)
        assert hers.status_code == 202
        assert (await house.count("manifests"))["manifests"] == 2

    told(sqlite_url, tmp_path, story)


def test_idempotency_key_is_another_spelling_of_request_id(sqlite_url: str, tmp_path: Path) -> None:
    """[M-117]"""

    async def story(house: House, token: dict[str, str]) -> None:
        async def post(body: dict[str, Any], key: str | None) -> tuple[int, str]:
            named = {} if key is None else {"Idempotency-Key": key}
            answer = await house.client.post(
                MANIFESTS, json={"pairs": PAIRS, **body}, headers={**token, **named}
            )
            said = answer.json()
            return answer.status_code, said.get("manifest_id") or said["place"]

        first = await post({"request_id": "k1"}, None)
        assert await post({}, "k1") == await post({"request_id": "k1"}, "k1") == first
        assert await post({"request_id": "k1"}, "k2") == (422, "request_id")
        assert await post({}, None) == (422, "request_id")
        assert (await house.count("manifests"))["manifests"] == 1

    told(sqlite_url, tmp_path, story)


def test_a_body_over_the_limit_is_refused_before_it_is_read_and_leaves_nothing(
    sqlite_url: str, tmp_path: Path
) -> None:
    """[M-121]"""

    async def story(house: House, token: dict[str, str]) -> None:
        read = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal read
            while True:
                read += 1
                yield b" " * 1_000_000

        headers = {**token, "Content-Type": "application/json"}
        streamed = await house.client.post(MANIFESTS, content=endless(), headers=headers)
        assert (streamed.status_code, streamed.json()["code"]) == (413, "request_too_large")
        assert read == REQUEST_BYTES_MAX // 1_000_000 + 1
        announced = {**headers, "Content-Length": str(REQUEST_BYTES_MAX + 1)}
        refused = await house.client.post(MANIFESTS, content=b"{}", headers=announced)
        assert (refused.status_code, refused.json()["code"]) == (413, "request_too_large")
        assert await house.count("manifests", "manifest_pages") == {"manifests": 0, "manifest_pages": 0}

    told(sqlite_url, tmp_path, story)


def test_both_limits_of_a_request_are_settings(sqlite_url: str, tmp_path: Path) -> None:
    """[M-112, M-120, M-121] At their least, 2,000 pairs in a mebibyte are taken, and no more of either."""

    async def story() -> None:
        async with served(sqlite_url, tmp_path, pairs_max=2_000, request_bytes_max=1024 * 1024) as house:
            await house.see_worker()
            token = await house.token()
            for number in range(2_001):
                (tmp_path / f"{number}.json").write_text('{"a": "b"}', "utf-8")
            pairs = [{"document": f"{number}.json", "locale": "fr"} for number in range(2_001)]
            headers = {**token, "Content-Type": "application/json"}

            async def post(request_id: str, count: int, size: int = 0) -> tuple[int, str]:
                said = json.dumps({"request_id": request_id, "pairs": pairs[:count]}).encode()
                answer = await house.client.post(MANIFESTS, content=said.ljust(size), headers=headers)
                return answer.status_code, answer.json().get("place", "")

            assert await post("r-1", 2_000, 1024 * 1024) == (202, "")
            assert await post("r-2", 2_001) == (413, "pairs")
            assert await post("r-3", 1, 1024 * 1024 + 1) == (413, "body")
            assert (await house.count("manifests"))["manifests"] == 1

    asyncio.run(story())


def test_more_pairs_than_the_setting_allows_are_refused_and_leave_nothing(
    sqlite_url: str, tmp_path: Path
) -> None:
    """[M-121]"""

    async def story(house: House, token: dict[str, str]) -> None:
        many = [{"document": f"{number}.md", "locale": "fr"} for number in range(100_001)]
        answer = await house.client.post(MANIFESTS, json={"request_id": "r", "pairs": many}, headers=token)
        assert (answer.status_code, answer.json()["code"]) == (413, "request_too_large")
        assert (await house.count("manifests"))["manifests"] == 0

    told(sqlite_url, tmp_path, story)


@pytest.mark.parametrize(
    ("body", "status", "code", "place"),
    [
        (b'{"request_id": "r", "pairs": [], "pairs": []}', 422, "invalid_json", "$"),
        (b'{"request_id": "r"', 422, "invalid_json", "line 1, column 19"),
        (b"\xff", 422, "invalid_json", "byte 0"),
        (b"[]", 422, "invalid_json", "$"),
        (b'{"request_id": "r", "pairs": []}', 422, "empty_request", "pairs"),
        (
            b'{"request_id": "r", "pairs": [{"document": "a", "locale": "FR"},'
            b'{"document": "a", "locale": "fr"}]}',
            422, "duplicate_pair", "pairs",
        ),
        (b'{"request_id": "r", "pears": []}', 422, "invalid_request", "pears"),
        (b'{"request_id": "r", "pairs": [{"document": "a"}]}', 422, "invalid_request", "pairs[0]"),
        (
            b'{"request_id": "r", "pairs": [{"document": "a", "locale": "xx-nope"}]}',
            422, "unsupported_locale", "pairs[0]",
        ),
        (
            b'{"request_id": "r", "pairs": [{"document": "a", "locale": "en"}]}',
            422, "source_is_target", "pairs[0]",
        ),
        (
            b'{"request_id": "r", "mode": "some", "pairs": [{"document": "a", "locale": "fr"}]}',
            422, "invalid_request", "mode",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_request_is_named_by_place(
    sqlite_url: str, tmp_path: Path, body: bytes, status: int, code: str, place: str
) -> None:
    """[M-107]"""

    async def story(house: House, token: dict[str, str]) -> None:
        headers = {**token, "Content-Type": "application/json"}
        answer = await house.client.post(MANIFESTS, content=body, headers=headers)
        said = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.status_code, said["code"], said["place"]) == (status, code, place)
        assert said["remedy"]
        assert said["request_id"] == answer.headers["x-request-id"]
        assert (await house.count("manifests"))["manifests"] == 0

    told(sqlite_url, tmp_path, story)


def test_a_body_that_is_not_announced_as_json_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    async def story(house: House, token: dict[str, str]) -> None:
        for kind in (
            {},
            {"Content-Type": "text/plain"},
            {"Content-Type": "application/json; charset=latin-1"},
        ):
            answer = await house.client.post(MANIFESTS, content=b"{}", headers={**token, **kind})
            assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")

    told(sqlite_url, tmp_path, story)


def test_without_a_worker_or_with_admission_closed_nothing_is_taken(sqlite_url: str, tmp_path: Path) -> None:
    async def story(**settings: Any) -> tuple[int, str, str, int]:
        async with served(sqlite_url, tmp_path, **settings) as house:
            body = {"request_id": "r", "pairs": PAIRS}
            answer = await house.client.post(
                MANIFESTS, json=body, headers=await house.token("manifests:write")
            )
            rows = (await house.count("manifests"))["manifests"]
            return answer.status_code, answer.json()["code"], answer.headers["retry-after"], rows

    assert asyncio.run(story()) == (503, "worker_unavailable", "30", 0)
    assert asyncio.run(story(admission="closed")) == (503, "admission_closed", "30", 0)


def test_mode_force_needs_its_own_capability(sqlite_url: str, tmp_path: Path) -> None:
    async def story(house: House, token: dict[str, str]) -> None:
        body = {"request_id": "r", "pairs": PAIRS, "mode": "force"}
        refused = await house.client.post(MANIFESTS, json=body, headers=token)
        assert (refused.status_code, refused.json()["place"]) == (403, "manifests:force")
        able = await house.token("manifests:write", "manifests:force")
        assert (await house.client.post(MANIFESTS, json=body, headers=able)).status_code == 202

    told(sqlite_url, tmp_path, story)


@pytest.mark.parametrize("place", ["settings", "request"])
def test_a_provider_is_named_with_its_model(sqlite_url: str, tmp_path: Path, place: str) -> None:
    """As on a command line, whether the settings say it or the request; what nobody configured is refused."""
    (tmp_path / "a.json").write_text('{"hello": "Hello"}')
    asked = {"provider": "pseudo:wide"}

    async def story() -> None:
        settings = asked if place == "settings" else {}
        async with served(sqlite_url, tmp_path, ROLES, **settings) as house:
            await house.see_worker()
            token = await house.token()
            manifest_id = await house.admit(token, **(asked if place == "request" else {}))
            status = await until_ended(house, f"{MANIFESTS}/{manifest_id}", token)
            assert (status["status"], status["counts"]["completed"]) == ("completed", 2)
            [frozen] = [json.loads(row.settings) for row in await house.rows("manifests")]
            assert (frozen["provider"], frozen["model"]) == ("pseudo", "wide")
            body = {"request_id": "r", "pairs": PAIRS, "provider": "nobody:any"}
            refused = await house.client.post(MANIFESTS, json=body, headers=token)
            assert (refused.status_code, refused.json()["code"]) == (422, "provider_unknown")
            assert refused.json()["place"] == "provider"
            row = {"id": "h/b/1/1", "role": "engine", "host": "h", "release": "0"}
            holds = json.dumps([named("nobody")])
            await house.services.database.run(leasing.see_worker, {**row, "credentials": holds})
            taken = await house.client.post(MANIFESTS, json=body, headers=token)
            assert taken.status_code == 202, "a living worker has it"

    asyncio.run(story())


def test_a_document_that_the_actor_may_not_edit_refuses_the_whole(sqlite_url: str, tmp_path: Path) -> None:
    source = MemorySource({})
    source.foreign = {"a.json"}

    async def story() -> None:
        async with admitting(sqlite_url, tmp_path, source) as house:
            body = {"request_id": "r", "pairs": PAIRS}
            token = await house.token("manifests:write")
            answer = await house.client.post(MANIFESTS, json=body, headers=token)
            assert (answer.status_code, answer.json()["place"]) == (403, "a.json")
            assert (await house.count("manifests"))["manifests"] == 0

    asyncio.run(story())


@pytest.mark.parametrize("place", ["project", "tone", "provider", "pairs[0]"])
def test_a_text_that_no_database_keeps_is_refused_by_place(
    database_url: str, tmp_path: Path, place: str
) -> None:
    async def story(house: House, token: dict[str, str]) -> None:
        body = {"request_id": "r", "pairs": PAIRS}
        changes = (
            {"pairs": [{"document": "a\0b", "locale": "fr"}]} if place == "pairs[0]" else {place: "a\0b"}
        )
        answer = await house.client.post(MANIFESTS, json={**body, **changes}, headers=token)
        assert (answer.status_code, answer.json()["place"]) == (422, place)

    told(database_url, tmp_path, story)
