"""What goes out to an engine: what it takes, from one account, under one secret, with what it needs."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.flow.site.reconciliation import Reconciliation
from dragoman.flow.site.submission import body_head, draft_submissions
from dragoman.kernel import canonical
from dragoman.kernel.identity import SystemChance
from dragoman.model.effects import Answer
from dragoman.model.intents import DueIntent, Sender
from dragoman.model.jobs import Capacity
from dragoman.model.memories import Library, Manner, Shelf, Term
from dragoman.model.scopes import Workspace
from dragoman.store.acts import remembering, submitting
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx
from tests.doubles.engines import event
from tests.flow.site.stage import CALLER, Stage, catalogue, stage

FAR, OTHER = "TOKEN@https://engine.example", "TOKEN@https://other.example"
ROOMY = Capacity(items_max=10, fields_per_item_max=4, body_bytes_max=4_000, field_chars_max=1_000)


def result_keys(tx: Tx) -> list[str]:
    return sorted(row.field_key for row in tx.all(sa.select(tables.results)))


def submission_rows(tx: Tx) -> list[Row]:
    return tx.all(sa.select(tables.submissions))


def make_due(tx: Tx) -> None:
    waiting = tables.submissions.c.state == "retry_wait"
    tx.touched(sa.update(tables.submissions).where(waiting).values(next_attempt_at=tx.now))


def make_askable(tx: Tx) -> None:
    tx.touched(sa.update(tables.submissions).values(reconcile_at=tx.now))


def intent(document: str, fields: dict[str, Any], locale: str = "de") -> DueIntent:
    prepared = json.dumps({"fields": fields})
    return DueIntent(
        SystemChance().new_id(),
        "default",
        "p",
        "m-1",
        0,
        0,
        document,
        locale,
        "prepared",
        1,
        0,
        0,
        "mia",
        None,
        prepared,
        "",
    )


def bodies(drafts: list[Any]) -> list[dict[str, Any]]:
    return [json.loads(draft.body) for draft in drafts]


@pytest.mark.parametrize(
    "capacity",
    [
        Capacity(items_max=3),
        Capacity(fields_per_item_max=2),
        Capacity(body_bytes_max=2_000),
        Capacity(items_max=1_000, fields_per_item_max=10_000),
    ],
)
def test_a_submission_holds_what_the_engine_takes_and_not_less(capacity: Capacity) -> None:
    """[M-066, M-097, M-098] Items, fields and bytes; no draft is opened while the one before has room."""
    many = [intent(f"{n}.json", {f"k{k}": {"text": "x" * 100} for k in range(5)}) for n in range(20)]
    head = body_head("m-1", {"source_locale": "en", "provider": "pseudo"}, "https://site.example/callbacks")
    drafts = draft_submissions(head, many, SystemChance(), capacity)
    told = bodies(drafts)
    for draft, body in zip(drafts, told, strict=True):
        assert len(draft.body) <= capacity.body_bytes_max
        assert len(body["items"]) <= capacity.items_max
        assert all(len(item["fields"]) <= capacity.fields_per_item_max for item in body["items"])
        assert draft.body == canonical.encode(body)
    sent = sum(len(item["fields"]) for body in told for item in body["items"])
    assert sent == 100, "every field goes out once"
    for before, after in pairwise(drafts):
        first = canonical.encode(json.loads(after.body)["items"][0])
        full = len(json.loads(before.body)["items"]) == capacity.items_max
        assert full or len(before.body) + len(first) > capacity.body_bytes_max - 400


def test_what_the_engine_says_that_it_takes_bounds_what_is_sent(database_url: str) -> None:
    """[M-066, M-228] A text that it would not take fails its document alone, before anything is sent."""

    async def play() -> None:
        documents = {
            "long.json": catalogue(a="x" * 1_001),
            "many.json": catalogue(**{f"k{number}": f"Text {number}" for number in range(9)}),
            "small.json": catalogue(a="Hello"),
        }
        async with stage(database_url, documents, capacity=ROOMY) as site:
            admitted = await site.admit([(name, "de") for name in documents])
            await site.step_all()
            for body in site.engine.submissions():
                assert all(len(item["fields"]) <= 4 for item in body["items"])
            assert await site.counts(admitted.manifest_id) == {"failed": 1, "queued": 2}
            page = await site.views.failures("default", admitted.manifest_id)
            [failed] = page["items"]
            assert (failed["document"], failed["code"]) == ("long.json", "payload_too_large")
            site.capacity = Capacity(items_max=1)
            await site.admit([("small.json", "fr"), ("many.json", "fr")], "r-2")
            await site.step_all()
            assert [len(body["items"]) for body in site.engine.submissions()[-2:]] == [1, 1]

    asyncio.run(play())


def _refuses(site: Stage, bad: set[str], place: bool, status: int) -> Answer | None:
    """What an engine says to its newest body that takes all texts but these."""
    body = json.loads(site.engine.bodies[-1])
    found = [n for n, item in enumerate(body["items"]) if {f["text"] for f in item["fields"].values()} & bad]
    if not found:
        return None
    code = "payload_too_large" if status == 413 else "invalid_fields"
    where = f'$.items[{found[0]}].fields["a"].text' if place else ""
    return Answer("REJECTED", status=status, code=code, message="no", place=where)


@pytest.mark.parametrize("status", [413, 422])
@pytest.mark.parametrize("place", [True, False])
def test_an_item_that_the_engine_refuses_fails_alone(database_url: str, place: bool, status: int) -> None:
    """[M-228] Whether the problem names it or not; a document in parts fails as one."""

    async def play() -> None:
        documents = {f"{n}.json": catalogue(a=f"Text {n}") for n in range(7)}
        documents["big.json"] = catalogue(a="fine", b="bad b")
        bad = {"Text 2", "Text 5", "bad b"}
        small = Capacity(fields_per_item_max=1)
        async with stage(database_url, documents, capacity=small) as site:
            site.engine.judge = lambda: _refuses(site, bad, place, status)
            manifest = (await site.admit([(name, "de") for name in documents])).manifest_id
            await site.step_all()
            assert await site.counts(manifest) == {"failed": 3, "queued": 5}
            page = await site.views.failures("default", manifest)
            assert {item["document"] for item in page["items"]} == {"2.json", "5.json", "big.json"}
            await _answer_all(site)
            assert await site.counts(manifest) == {"failed": 3, "completed": 5}
            rows = await site.database.read(submission_rows)
            assert all(row.settled_at for row in rows)
            assert len(site.engine.bodies) == len(rows) <= (4 if place else 17)

    asyncio.run(play())


@pytest.mark.parametrize("place", ["body", "$.items[0].fields"])
def test_a_document_that_an_engine_takes_no_more_at_once_goes_out_in_parts(
    database_url: str, place: str
) -> None:
    """The engine's bounds were lowered while the bytes stood: halves of it, and halves of those."""

    def judge(site: Stage) -> Answer | None:
        sent = site.engine.bodies[-1]
        most = max(len(item["fields"]) for item in json.loads(sent)["items"])
        if (len(sent) > 70_000) if place == "body" else most > 2:
            return Answer("REJECTED", status=413, code="payload_too_large", message="no", place=place)
        return None

    async def play() -> None:
        documents = {
            "big.json": catalogue(**{f"k{n}": f"{n} " + "x" * 30_000 for n in range(7)}),
            "small.json": catalogue(a="Hello"),
        }
        async with stage(database_url, documents) as site:
            site.engine.judge = lambda: judge(site)
            manifest = (await site.admit([(name, "de") for name in documents])).manifest_id
            await site.step_all()
            assert await site.counts(manifest) == {"queued": 2}
            await _answer_all(site)
            assert await site.counts(manifest) == {"completed": 2}
            assert await site.database.read(result_keys) == ["a", *(f"k{n}" for n in range(7))]
            rows = await site.database.read(submission_rows)
            assert all(row.settled_at for row in rows)

    asyncio.run(play())


def test_a_text_that_an_engine_takes_no_more_fails_its_document_alone(sqlite_url: str) -> None:
    """It cannot be divided; nor is an engine believed that calls everything too large."""

    async def play() -> None:
        documents = {
            "long.json": catalogue(a="x" * 90_000),
            "many.json": catalogue(**{f"k{n}": f"Text {n}" for n in range(9)}),
        }
        async with stage(sqlite_url, documents) as site:
            site.engine.judge = lambda: Answer("REJECTED", status=413, code="payload_too_large", message="no")
            manifest = (await site.admit([(name, "de") for name in documents])).manifest_id
            await site.step_all()
            assert await site.counts(manifest) == {"failed": 2}
            page = await site.views.failures("default", manifest)
            assert {item["code"] for item in page["items"]} == {"payload_too_large"}
            assert len(site.engine.bodies) == 3

    asyncio.run(play())


async def _answer_all(site: Stage) -> None:
    """The end of every job that the engine has taken."""
    taken = {body["submissionId"]: body for body in site.engine.submissions()}
    for row in await site.database.read(submission_rows):
        if row.state == "accepted":
            await site.deliver(event(taken[row.id], row.remote_job_id), row.id)


@pytest.mark.parametrize("code", ["invalid_fields", "provider_unknown"])
def test_a_refusal_of_the_whole_fails_the_whole_at_once(sqlite_url: str, code: str) -> None:
    """Under the engine's own code, so that nobody tries again what nothing but a setting can mend."""

    async def play() -> None:
        documents = {f"{n}.json": catalogue(a=f"Text {n}") for n in range(4)}
        async with stage(sqlite_url, documents) as site:
            site.engine.weather = [
                Answer("REJECTED", status=422, code=code, message="no", place="$.options.model")
            ]
            manifest = (await site.admit([(name, "de") for name in documents])).manifest_id
            await site.step_all()
            assert await site.counts(manifest) == {"failed": 4}
            assert len(site.engine.bodies) == 1
            told = (await site.views.failures("default", manifest))["items"]
            assert {(one["code"], one["retryable"]) for one in told} == {(code, False)}

    asyncio.run(play())


def _three_parts() -> dict[str, bytes]:
    documents = {f"{n}.json": catalogue(a=f"Text {n}") for n in range(3)}
    return {**documents, "big.json": catalogue(**{f"k{n}": f"Line {n}" for n in range(5)})}


PARTED = Capacity(items_max=2, fields_per_item_max=1)


def test_a_document_in_parts_may_lie_in_several_submissions(database_url: str) -> None:
    """[M-097] All parts go out together, whatever a step sends, and it settles once, when all have ended."""

    async def play() -> None:
        async with stage(database_url, _three_parts(), capacity=PARTED, submit_per_step=1) as site:
            manifest = (await site.admit([(name, "de") for name in _three_parts()])).manifest_id
            await site.step_all()
            assert [len(body["items"]) for body in site.engine.submissions()] == [2, 2, 2, 2]
            *before, last = await site.database.read(submission_rows)
            taken = {body["submissionId"]: body for body in site.engine.submissions()}
            for row in before:
                await site.deliver(event(taken[row.id], row.remote_job_id), row.id)
            assert (await site.counts(manifest)).get("queued", 0) >= 1, "a part is missing"
            await site.deliver(event(taken[last.id], last.remote_job_id), last.id)
            assert await site.counts(manifest) == {"completed": 4}
            results = await site.views.results("default", manifest)
            assert sorted(len(item["fields"]) for item in results["items"]) == [1, 1, 1, 5]

    asyncio.run(play())


def test_a_part_that_is_refused_later_fails_its_document(database_url: str) -> None:
    """[M-097] Though the engine has taken, and even worked, the parts before."""

    async def play() -> None:
        async with stage(database_url, _three_parts(), capacity=PARTED) as site:
            site.engine.judge = lambda: _refuses(site, {"Line 4"}, True, 422)
            manifest = (await site.admit([("big.json", "de")])).manifest_id
            await site.step_all()
            assert await site.counts(manifest) == {"failed": 1}
            await _answer_all(site)
            assert await site.counts(manifest) == {"failed": 1}

    asyncio.run(play())


def test_a_submission_is_sent_by_the_account_that_it_was_made_for(database_url: str) -> None:
    """[M-098] Another engine would do, and be paid for, the same work again."""

    async def play() -> None:
        async with stage(database_url, {"a.json": catalogue(a="Hello")}) as site:
            site.sender = Sender(FAR)
            site.engine.weather = [Answer("CONNECTION_UNKNOWN")]
            admitted = await site.admit([("a.json", "de")])
            await site.enumeration.step()
            await site.preparing.step()
            await site.submitting.step()
            await site.database.run(make_due)
            site.sender = Sender(OTHER)
            assert await site.submitting.resend_step() == 0
            assert await site.database.read(submitting.of_other_engines, OTHER) == {FAR: 1}
            assert len(site.engine.bodies) == 1
            site.sender = Sender(FAR)
            assert await site.submitting.resend_step() == 1
            assert site.engine.bodies[0] == site.engine.bodies[1]
            assert await site.counts(admitted.manifest_id) == {"queued": 1}

    asyncio.run(play())


async def _first_send(site: Stage, request_id: str, answer: Answer) -> None:
    site.engine.weather = [answer]
    await site.admit([("a.json", request_id)], request_id)
    await site.enumeration.step()
    await site.preparing.step()
    await site.submitting.step()


def test_what_was_sent_under_a_secret_is_sent_again_under_it(database_url: str) -> None:
    """[M-101, M-102] Another may come into force at any time; the old one is in use until all has ended."""

    async def play() -> None:
        async with stage(database_url, {"a.json": catalogue(a="Hello")}) as site:
            site.sender = Sender(FAR, "old")
            await _first_send(site, "de", Answer("CONNECTION_UNKNOWN"))
            site.sender = Sender(FAR, "new")
            await _first_send(site, "fr", Answer("CONNECTION_UNKNOWN"))
            in_use = await site.database.read(submitting.marks_in_use, FAR)
            assert in_use == {"old": 1, "new": 1}
            await site.database.run(make_due)
            await site.submitting.resend_step()
            assert site.engine.marks == ["old", "new", "old", "new"]
            assert await site.database.read(submitting.marks_in_use, FAR) == in_use, "accepted is not ended"
            assert await site.database.read(submitting.marks_in_use, OTHER) == {}

    asyncio.run(play())


def test_a_missing_secret_is_waited_for_at_no_cost(database_url: str) -> None:
    """[M-101] However often: nothing was sent, so no attempt is counted; then the one there is noted."""

    async def play() -> None:
        missing = Answer("NOT_STARTED", code="callback_secret_missing", message="there is none")
        async with stage(database_url, {"a.json": catalogue(a="Hello")}) as site:
            site.sender = Sender(FAR)
            await _first_send(site, "de", missing)
            for _ in range(6):
                site.engine.weather = [missing]
                await site.database.run(make_due)
                await site.submitting.resend_step()
            [row] = await site.database.read(submission_rows)
            assert (row.state, row.parked_for, row.attempt_count) == ("retry_wait", "secret", 0)
            site.sender = Sender(FAR, "new")
            await site.database.run(make_due)
            await site.submitting.resend_step()
            [row] = await site.database.read(submission_rows)
            assert (row.state, row.secret_mark) == ("accepted", "new")

    asyncio.run(play())


def test_what_a_far_engine_waits_for_is_shown_while_it_waits(database_url: str) -> None:
    async def play() -> None:
        async with stage(database_url, {"a.json": catalogue(a="Hello")}) as site:
            site.sender = Sender(FAR)
            manifest = (await site.admit([("a.json", "de")])).manifest_id
            await site.step_all()
            asking = Reconciliation(site.database, site.engine, site.clock, account=FAR)

            async def reasons() -> list[str]:
                await site.database.run(make_askable)
                assert await asking.step() == 1
                return [item["reason"] for item in (await site.views.waiting("default", manifest))["items"]]

            said = {"budget": "waiting_budget", "": "queued", "provider": "waiting_provider", "x": "queued"}
            for parked_for, shown in said.items():
                site.engine.views["job-1"] = {"status": "queued", "parked_for": parked_for}
                assert await reasons() == [shown], parked_for

    asyncio.run(play())


TERMS = (
    Term("cart", "Warenkorb", "de"),
    Term("Acme", "", "", "kept", case_sensitive=True),
    Term("unused", "unbenutzt", "de"),
    Term("cart", "panier", "fr"),
)


def put_library(tx: Tx) -> None:
    scope = Workspace("default")
    remembering.put_terms(tx, scope, Shelf("docs", "en"), TERMS)
    remembering.set_manner(tx, scope, "docs", Manner(style="Be brief."))


@pytest.mark.parametrize("far", [True, False])
def test_a_far_engine_is_told_style_and_the_terms_in_the_texts(database_url: str, far: bool) -> None:
    """An engine on the same database reads them there."""

    async def play() -> None:
        documents = {"a.json": catalogue(a="Your cart at Acme")}
        async with stage(database_url, documents, far=far) as site:
            await site.database.run(put_library)
            await site.admit([("a.json", "de")])
            await site.step_all()
            [body] = site.engine.submissions()
            assert body.get("style") == ("Be brief." if far else None)
            told = body.get("glossary", [])
            assert sorted(told, key=lambda term: term["source"]) == (
                [
                    {"source": "Acme", "target": "", "status": "kept", "caseSensitive": True},
                    {"source": "cart", "target": "Warenkorb", "status": "preferred", "targetLang": "de"},
                ]
                if far
                else []
            )

    asyncio.run(play())


def test_terms_never_push_a_body_over_what_the_engine_takes() -> None:
    words = [f"word{number}" for number in range(2_000)]
    terms = tuple(Term(word, "x" * 200, "de") for word in words)
    library = Library(Manner(), {"de": terms})
    fields = {f"k{number}": {"text": " ".join(words[number * 20 :][:20])} for number in range(100)}
    capacity = Capacity(body_bytes_max=64 * 1024)
    head = body_head("m-1", {"source_locale": "en"}, "")
    many = [intent(f"{number}.json", fields) for number in range(3)]
    drafts = draft_submissions(head, many, SystemChance(), capacity, library)
    assert max(len(draft.body) for draft in drafts) <= capacity.body_bytes_max
    assert all(body["glossary"] for body in bodies(drafts))


def test_the_push_travels_with_the_submission(database_url: str) -> None:
    """[J-009, J-105]"""

    async def play() -> None:
        async with stage(database_url, {"a.json": catalogue(a="Hello")}) as site:
            await site.admission.admit_pairs(
                CALLER, "docs", "r-1", [("a.json", "de")], {**site.defaults, "mode": "missing"},
                push_id="push-7",
            )  # fmt: skip
            await site.step_all()
            [body] = site.engine.submissions()
            assert body["options"]["push_id"] == "push-7"

    asyncio.run(play())
