"""Events of ended jobs: claimed, signed, sent, settled; the family is real, the other side is the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from dragoman.families.webhook import LOCAL_URL, LocalTransport, Webhook
from dragoman.flow.engine.delivery import Delivery
from dragoman.kernel import limits, signing
from dragoman.kernel.clock import MICROSECONDS, SystemClock
from dragoman.kernel.errors import CallerError, StoreError
from dragoman.ledger.acting import Ledger
from dragoman.model.effects import Answer
from dragoman.model.scopes import Workspace
from dragoman.store.acts import delivering
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper
from tests.doubles.databases import opened
from tests.flow.engine.outbox_rows import age, attempts, end_leases, event_row, make_due, put_event, put_off

SECRET = "a secret of the test suite"
OWNER, OTHER = "host/boot/1/1", "host/boot/2/2"
Posted = tuple[str, bytes, Mapping[str, str]]


@dataclass
class Net:
    """The other side: keeps what it is sent and answers by URL; 200 where nothing else is said."""

    posted: list[Posted] = field(default_factory=list)
    replies: dict[str, Callable[[], Awaitable[Answer]]] = field(default_factory=dict)
    later: int = 0
    """How far the clock that signs has moved on, in microseconds."""

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], deadline_seconds: float
    ) -> Answer:
        self.posted.append((url, body, headers))
        return await self.replies[url]() if url in self.replies else Answer("SUCCEEDED", status=200)

    async def close(self) -> None:
        """Nothing is held."""

    def says(self, url: str, answer: Answer) -> None:
        async def reply() -> Answer:
            return answer

        self.replies[url] = reply


@dataclass
class Post:
    """A delivery worker over a fresh database."""

    database: Database
    net: Net
    delivery: Delivery

    async def put(self, url: str, number: int = 1) -> str:
        return await self.database.run(put_event, url, number)

    async def again(self) -> int:
        """One more step, as if what waits had become due."""
        await self.database.run(make_due)
        return await self.delivery.step(10)


@asynccontextmanager
async def post_office(url: str) -> AsyncIterator[Post]:
    async with opened(url) as database:
        net = Net()
        webhook = Webhook({"https": net}, lambda kept, job_id: SECRET, lambda: database.now() + net.later)
        ledger = Ledger(database, {"webhook": webhook})
        yield Post(database, net, Delivery(ledger, SystemClock(), Keeper(database, SystemClock(), OWNER)))


def refusal(status: int, **values: object) -> Answer:
    return Answer("REJECTED", status=status, code="PROVIDER_REJECTED", message=f"HTTP {status}", **values)  # type: ignore[arg-type]


def test_a_due_event_is_signed_sent_and_settled(database_url: str) -> None:
    """[M-236, M-237, M-240, M-242] completion, failure and cancellation alike; what is not due stays."""

    async def play() -> None:
        async with post_office(database_url) as post:
            sent = [
                await post.database.run(put_event, "https://a.example/hook", number, "default", event)
                for number, event in enumerate(("job.completed", "job.failed", "job.canceled"), 1)
            ]
            silent = await post.database.run(put_event, "", 4)
            assert await post.delivery.step(10) == 3
            assert {headers[signing.DELIVERY_ID] for _, _, headers in post.net.posted} == set(sent)
            for _, body, headers in post.net.posted:
                signing.verify([SECRET], headers, body, post.database.now() // MICROSECONDS)
            for outbox_id in sent:
                row = await post.database.read(event_row, outbox_id)
                assert (row.state, row.response_status, row.attempt_count) == ("delivered", 200, 1)
                assert row.delivered_at is not None
                assert row.lease_owner is None
            assert (await post.database.read(event_row, silent)).state == "pending"
            assert await post.again() == 0

    asyncio.run(play())


def test_a_failed_delivery_comes_again_with_the_same_id_and_bytes_and_a_new_signature(
    database_url: str,
) -> None:
    """[M-243, M-245] and the failure is on record: count, error, status, next attempt."""

    async def play() -> None:
        async with post_office(database_url) as post:
            outbox_id = await post.put("https://a.example/hook")
            post.net.says("https://a.example/hook", refusal(500))
            await post.delivery.step(10)
            row = await post.database.read(event_row, outbox_id)
            assert (row.state, row.attempt_count, row.response_status) == ("pending", 1, 500)
            assert (row.error_code, row.error_message) == ("PROVIDER_REJECTED", "HTTP 500")
            assert row.next_attempt_at > post.database.now()
            post.net.later = 2 * MICROSECONDS
            assert await post.again() == 1
            (_, first, one), (_, second, two) = post.net.posted
            assert (first, one["webhook-id"]) == (second, two["webhook-id"])
            assert one["webhook-timestamp"] != two["webhook-timestamp"]
            assert one["webhook-signature"] != two["webhook-signature"]
            tried = await post.database.read(attempts)
            assert [(attempt.number, attempt.outcome) for attempt in tried] == [
                (1, "REJECTED"),
                (2, "REJECTED"),
            ]

    asyncio.run(play())


def test_delays_grow_are_capped_and_never_come_before_retry_after(database_url: str) -> None:
    """[M-244, M-351] The window is three days: then the event is dead, and nothing is sent any more."""

    async def play() -> None:
        async with post_office(database_url) as post:
            outbox_id = await post.put("https://a.example/hook")
            post.net.says("https://a.example/hook", refusal(503, retry_after_seconds=3600.0))
            await post.delivery.step(10)
            assert await waits_seconds(post, outbox_id) >= 3600
            post.net.says("https://a.example/hook", refusal(503))
            waited = []
            for _ in range(16):
                await post.again()
                waited.append(await waits_seconds(post, outbox_id))
            highest = limits.OUTBOX_MAX_SECONDS * (1 + limits.JITTER_SHARE)
            assert waited[:4] == sorted(waited[:4])
            assert waited[0] < 60 < limits.OUTBOX_MAX_SECONDS - 1 <= waited[-1] <= highest

    asyncio.run(play())


async def waits_seconds(post: Post, outbox_id: str) -> float:
    row = await post.database.read(event_row, outbox_id)
    return float(row.next_attempt_at - row.last_attempt_at) / MICROSECONDS


def test_after_its_window_an_event_is_dead_and_a_person_can_revive_it(database_url: str) -> None:
    """[M-238, M-246, M-248, M-249] with a new window, under the same id; its actor is on record."""

    async def play() -> None:
        async with post_office(database_url) as post:
            url = "https://a.example/hook"
            outbox_id = await post.put(url)
            post.net.says(url, refusal(500))
            await post.delivery.step(10)
            await post.database.run(age, limits.OUTBOX_WINDOW_SECONDS)
            await post.again()
            row = await post.database.read(event_row, outbox_id)
            assert (row.state, row.next_attempt_at) == ("dead", None)
            assert row.dead_at is not None
            assert await post.again() == 0
            post.net.says(url, Answer("SUCCEEDED", status=204))
            await redrive(post, outbox_id)
            row = await post.database.read(event_row, outbox_id)
            assert (row.state, row.first_attempt_at, row.dead_at) == ("pending", None, None)
            assert await post.delivery.step(10) == 1
            assert (await post.database.read(event_row, outbox_id)).state == "delivered"
            assert {headers["webhook-id"] for _, _, headers in post.net.posted} == {outbox_id}
            with pytest.raises(CallerError, match="has arrived") as refused:
                await redrive(post, outbox_id)
            assert refused.value.code == "EFFECT_ALREADY_COMPLETE"

    asyncio.run(play())


async def redrive(post: Post, outbox_id: str, workspace: str = "default") -> None:
    await post.database.run(delivering.redrive_delivery, Workspace(workspace), outbox_id, "ada")


def test_a_redrive_is_refused_beside_an_attempt_in_flight_and_across_the_wall(database_url: str) -> None:
    """[M-248] nobody sends twice at a time, and another workspace's event is not found."""

    async def play() -> None:
        async with post_office(database_url) as post:
            url, outbox_id = "https://a.example/hook", await post.put("https://a.example/hook")
            started, answered = asyncio.Event(), asyncio.Event()

            async def hang() -> Answer:
                started.set()
                await answered.wait()
                return refusal(410)

            post.net.replies[url] = hang
            step = asyncio.create_task(post.delivery.step(10))
            await started.wait()
            with pytest.raises(CallerError) as refused:
                await redrive(post, outbox_id)
            assert refused.value.code == "EFFECT_IN_FLIGHT"
            with pytest.raises(CallerError) as foreign:
                await redrive(post, outbox_id, "other")
            assert foreign.value.code == "not_found"
            answered.set()
            assert await step == 1
            assert (await post.database.read(event_row, outbox_id)).state == "dead"
            await redrive(post, outbox_id)

    asyncio.run(play())


def test_gone_ends_it_at_once_and_whatever_else_waits_for_that_endpoint(database_url: str) -> None:
    """A 410 is the receiver's word that nothing more is wanted: dead, with no second attempt."""

    async def play() -> None:
        async with post_office(database_url) as post:
            url = "https://a.example/hook"
            post.net.says(url, refusal(500))
            waiting = await post.put(url, 2)
            await post.delivery.step(10)
            outbox_id, other = await post.put(url), await post.database.run(put_event, url, 3, "other")
            post.net.says(url, refusal(410))
            await post.database.run(put_off, other)
            await post.delivery.step(10)
            row = await post.database.read(event_row, waiting)
            assert (row.state, row.attempt_count, row.next_attempt_at) == ("dead", 1, None)
            assert (await post.database.read(event_row, other)).state == "pending"
            row = await post.database.read(event_row, outbox_id)
            assert (row.state, row.response_status, row.attempt_count) == ("dead", 410, 1)
            later = await post.put(url, 4)
            assert (await post.database.read(event_row, later)).state == "dead", "the endpoint is disabled"
            await redrive(post, outbox_id)
            post.net.says(url, Answer("SUCCEEDED", status=200))
            assert await post.delivery.step(10) == 1
            assert (await post.database.read(event_row, await post.put(url, 5))).state == "pending"

    asyncio.run(play())


def test_a_sender_that_vanished_leaves_an_unknown_attempt_and_the_same_bytes_go_again(
    database_url: str,
) -> None:
    """[M-241] The next holder sends the same; a late answer of the first moves nothing."""

    async def play() -> None:
        async with post_office(database_url) as post:
            outbox_id = await post.put("https://a.example/hook")
            [lost] = await post.database.run(delivering.begin_deliveries, OTHER, 10)
            assert await post.delivery.step(10) == 0, "a live lease is nobody else's"
            await post.database.run(end_leases)
            assert await post.delivery.step(10) == 1
            assert post.net.posted[0][1] == lost.outgoing.body
            late = await post.database.run(
                delivering.settle_delivery, lost.outgoing, refusal(500), lost.outbox_id, lost.fence
            )
            assert late == "lease_lost"
            row = await post.database.read(event_row, outbox_id)
            assert (row.state, row.attempt_count) == ("delivered", 2)
            outcomes = [attempt.outcome for attempt in await post.database.read(attempts)]
            assert outcomes == ["CONNECTION_UNKNOWN", "SUCCEEDED"]

    asyncio.run(play())


def test_an_answer_that_never_came_is_unknown_and_is_sent_again(database_url: str) -> None:
    async def play() -> None:
        async with post_office(database_url) as post:
            outbox_id = await post.put("https://a.example/hook")
            post.net.says(
                "https://a.example/hook", Answer("TIMEOUT_UNKNOWN", code="PROVIDER_TIMEOUT_UNKNOWN")
            )
            await post.delivery.step(10)
            post.net.says("https://a.example/hook", Answer("SUCCEEDED", status=200))
            assert await post.again() == 1
            assert (await post.database.read(event_row, outbox_id)).state == "delivered"

    asyncio.run(play())


@pytest.mark.parametrize(
    ("slow", "quick"),
    [
        ("https://slow.example/", "https://quick.example/"),
        ("https://hooks.example:80/", "https://hooks.example:8080/"),  # one begins as the other does
        ("https://me:word@slow.example/", "https://slow.example.org/"),
        ("https://slow.example?", "https://slow.example.org?"),
    ],
)
def test_one_slow_endpoint_delays_no_other(database_url: str, slow: str, quick: str) -> None:
    """While one URL hangs with its share of sends, events of others go out, also such as come due later."""

    async def play() -> None:
        async with post_office(database_url) as post:
            answered, hung = asyncio.Event(), asyncio.Semaphore(0)

            async def hang() -> Answer:
                hung.release()
                await answered.wait()
                return Answer("SUCCEEDED", status=200)

            for number in range(20):
                await post.put(f"{slow}{number}", number)
                post.net.replies[f"{slow}{number}"] = hang
            step = asyncio.create_task(post.delivery.step(limits.OUTBOX_BATCH))
            for _ in range(limits.OUTBOX_PER_ENDPOINT):
                await hung.acquire()
            arrived = await post.put(quick, 100)
            async with asyncio.timeout(30):
                while (await post.database.read(event_row, arrived)).state != "delivered":
                    assert not step.done()
                    await asyncio.sleep(0.01)
            assert len(post.net.posted) == limits.OUTBOX_PER_ENDPOINT + 1
            answered.set()
            assert await step == 21

    asyncio.run(play())


@pytest.mark.parametrize(
    "url, origin",
    [
        ("https://u:p@a.example:8443/hook?key=hidden", "https://a.example:8443"),
        ("https://a.example?key=hidden", "https://a.example"),
        ("http://[not-an-address/hook", "http://[not-an-address"),
        ("local:callbacks", "local:"),
        ("nonsense", ""),
    ],
)
def test_of_a_url_only_scheme_and_host_are_ever_shown(url: str, origin: str) -> None:
    assert delivering.origin_of(url) == origin


def test_an_address_that_is_none_dies_without_stopping_the_others(database_url: str) -> None:
    async def play() -> None:
        async with post_office(database_url) as post:
            for number, url in enumerate(
                ("http://[not-an-address/hook", "nonsense", "https://a.example/"), 1
            ):
                await post.put(url, number)
            assert await post.delivery.step(10) == 3
            counts = await post.database.read(delivering.outbox_counts, Workspace("default"))
            assert (counts["pending"], counts["delivered"]) == (2, 1)

    asyncio.run(play())


def test_two_workers_never_send_the_same_event_at_once(database_url: str) -> None:
    async def play() -> None:
        async with post_office(database_url) as post:
            for number in range(30):
                await post.put("https://a.example/hook", number)
            ids: list[str] = []
            while len(ids) < 30:
                claimed = await asyncio.gather(
                    *(
                        post.database.run(delivering.begin_deliveries, f"host/boot/{n}/1", 10)
                        for n in range(4)
                    )
                )
                assert any(claimed), "what nobody claimed is found by the next who looks"
                ids += [one.outbox_id for batch in claimed for one in batch]
            assert len(ids) == len(set(ids)) == 30

    asyncio.run(play())


def test_the_administrators_page_shows_safe_references_only(database_url: str) -> None:
    """[M-247, M-249] neither payload nor secret nor the path of a URL, and only the workspace's own rows."""

    async def play() -> None:
        async with post_office(database_url) as post:
            await post.put("https://a.example/hook?key=hidden")
            await post.database.run(put_event, "https://b.example/", 2, "other", "job.completed", "sealed")
            await post.put("https://a.example/", 3)
            post.net.says("https://a.example/hook?key=hidden", refusal(410))
            await post.delivery.step(10)
            rows = await post.database.read(delivering.outbox_page, Workspace("default"))
            assert [row["state"] for row in rows] == ["delivered", "dead"]
            assert "hidden" not in repr(rows)
            assert "sealed" not in repr(rows)
            assert rows[1]["endpoint"] == "https://a.example"
            [older] = await post.database.read(
                delivering.outbox_page, Workspace("default"), "", str(rows[0]["id"]), 10
            )
            assert older == rows[1]
            counts = await post.database.read(delivering.outbox_counts, Workspace("default"))
            assert counts == {"pending": 0, "delivering": 0, "delivered": 1, "dead": 1}

    asyncio.run(play())


def test_the_site_in_this_process_gets_the_very_bytes_and_headers_that_http_would_carry(
    sqlite_url: str,
) -> None:
    """An error of the site's is the status that its door would answer, and is tried again."""

    async def play() -> None:
        received: list[tuple[bytes, Mapping[str, str]]] = []

        async def receive(body: bytes, headers: Mapping[str, str]) -> int:
            received.append((body, headers))
            if len(received) == 1:
                raise StoreError("the database is locked")
            return 200

        async with opened(sqlite_url) as database:
            webhook = Webhook({"local": LocalTransport(receive)}, lambda kept, job_id: SECRET, database.now)
            keeper = Keeper(database, SystemClock(), OWNER)
            delivery = Delivery(Ledger(database, {"webhook": webhook}), SystemClock(), keeper)
            outbox_id = await database.run(put_event, LOCAL_URL)
            await delivery.step(10)
            assert (await database.read(event_row, outbox_id)).response_status == 503
            await database.run(make_due)
            await delivery.step(10)
            assert (await database.read(event_row, outbox_id)).state == "delivered"
            for body, headers in received:
                signing.verify([SECRET], headers, body, database.now() // MICROSECONDS)
                assert headers["Content-Type"] == "application/json"

    asyncio.run(play())
