"""The owner's side, from a request to settled intents, against an engine that captures what it is sent."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.kernel.errors import CallerError, LeaseLost
from dragoman.model.effects import Answer, Outgoing
from dragoman.model.jobs import Capacity
from dragoman.model.scopes import Workspace
from dragoman.store.acts import expanding, leasing, steering
from tests.doubles.engines import event
from tests.flow.site.rows import (
    attempts_of,
    intent_count,
    intents_of,
    make_inquiries_due,
    make_telling_due,
    publications_asked,
)
from tests.flow.site.stage import CALLER, catalogue, stage

PAIRS = [("a.json", "de"), ("a.json", "fr"), ("b.json", "de")]
DOCUMENTS = {"a.json": catalogue(hello="Hello", bye="Good bye"), "b.json": catalogue(one="One")}


def test_a_manifest_runs_from_request_to_settled_intents(database_url: str) -> None:
    """[M-002, M-047, M-051, M-054, M-059, M-178, M-182, M-186, M-260]"""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            admitted = await site.admit(PAIRS)
            assert await site.counts(admitted.manifest_id) == {"preparing": 3}
            await site.step_all()
            assert await site.counts(admitted.manifest_id) == {"queued": 3}
            [body] = site.engine.submissions()
            assert {item["targetLang"] for item in body["items"]} == {"de", "fr"}
            assert await site.deliver(event(body, "job-1")) == 200
            status = await site.views.status("default", admitted.manifest_id)
            assert (status["status"], status["counts"]["completed"]) == ("completed", 3)
            results = await site.views.results("default", admitted.manifest_id)
            texts = {(item["document"], item["locale"]): item["fields"] for item in results["items"]}
            assert {field["text"] for field in texts["a.json", "fr"].values()} == {
                "«fr» Hello",
                "«fr» Good bye",
            }

    asyncio.run(play())


def test_admission_prepares_nothing_and_calls_nobody(database_url: str) -> None:
    """[M-003, M-109, M-111, M-335, M-336]"""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            await site.admit(PAIRS)
            assert site.source.asked == {"can_edit": 1}
            assert site.engine.bodies == []
            assert site.wakes == 1

    asyncio.run(play())


def test_the_same_request_is_the_same_manifest_and_another_one_a_conflict(database_url: str) -> None:
    """[M-118, M-119, M-337, M-338] before, during and after the work; fifty at once make one."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            answers = await asyncio.gather(*(site.admit(PAIRS) for _ in range(50)))
            assert len({answer.manifest_id for answer in answers}) == 1
            await site.step_all()
            assert (await site.admit(list(reversed(PAIRS)))).manifest_id == answers[0].manifest_id
            with pytest.raises(CallerError) as conflict:
                await site.admit(PAIRS[:1])
            assert conflict.value.code == "request_id_conflict"

    asyncio.run(play())


def test_a_changed_setting_of_the_server_makes_no_replay_a_conflict(sqlite_url: str) -> None:
    """[M-113] the request is what its caller said, defaults written out."""

    async def play() -> None:
        async with stage(sqlite_url, DOCUMENTS) as site:
            first = await site.admit(PAIRS)
            site.defaults["provider"] = "another"
            again = await site.admit(PAIRS, mode="missing")
            assert (again.manifest_id, again.how) == (first.manifest_id, "replayed")

    asyncio.run(play())


def test_expansion_is_exact_and_resumes_after_any_death(database_url: str) -> None:
    """[M-339, M-047, M-180] the expander dies between transactions; the next one goes on from the rows."""

    async def play() -> None:
        documents = {f"d{number:03}.json": catalogue(text=f"Text {number}") for number in range(250)}
        async with stage(database_url, documents) as site:
            admitted = await site.admit([(document, "de") for document in documents])
            manifest = await site.database.run(expanding.claim_enumerating_manifest, "host/boot/9/9")
            assert manifest is not None
            await site.database.run(expanding.expand_next_pairs, manifest.id, manifest.fence, 100)
            await site.database.run(leasing.free_gone_owners, ["host/boot/9/9"])
            while await site.enumeration.step():
                pass
            with pytest.raises(LeaseLost):
                await site.database.run(expanding.expand_next_pairs, manifest.id, manifest.fence, 100)
            assert await site.counts(admitted.manifest_id) == {"preparing": 250}
            assert await site.database.read(intent_count, admitted.manifest_id) == 250

    asyncio.run(play())


def test_one_bad_document_fails_alone_with_its_line(database_url: str) -> None:
    """[M-200, M-127, M-128]"""

    async def play() -> None:
        async with stage(database_url, {**DOCUMENTS, "b.json": b'{\n  "one": oops\n}'}) as site:
            admitted = await site.admit([*PAIRS, ("gone.json", "de")])
            await site.step_all()
            [body] = site.engine.submissions()
            await site.deliver(event(body, "job-1"))
            status = await site.views.status("default", admitted.manifest_id)
            assert (status["status"], status["counts"]["failed"], status["counts"]["completed"]) == (
                "failed",
                2,
                2,
            )
            page = await site.views.failures("default", admitted.manifest_id)
            codes = {item["document"]: (item["code"], item["message"]) for item in page["items"]}
            assert codes["b.json"][0] == "invalid_fields"
            assert "line 2" in codes["b.json"][1]
            assert codes["gone.json"][0] == "document_not_found"

    asyncio.run(play())


def test_a_lost_answer_is_repaired_by_the_same_bytes(database_url: str) -> None:
    """[M-058, M-070, M-071, M-345] the engine took the submission; its answer never came."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            site.engine.weather = [Answer("TIMEOUT_UNKNOWN", code="PROVIDER_TIMEOUT_UNKNOWN")]
            admitted = await site.admit(PAIRS)
            await site.step_all()
            assert len(site.engine.bodies) == 2
            assert site.engine.bodies[0] == site.engine.bodies[1]
            assert len(site.engine.jobs) == 1
            assert await site.counts(admitted.manifest_id) == {"queued": 3}

    asyncio.run(play())


def test_duplicate_reordered_old_and_contradictory_events_move_no_counter(database_url: str) -> None:
    """[M-255, M-257, M-259, M-261, M-262, M-263, M-352]"""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            admitted = await site.admit(PAIRS)
            await site.step_all()
            [body] = site.engine.submissions()
            bad = body["items"][0]["ref"]
            told = event(body, "job-1", sequence=2, fail={bad: "checks_failed"})
            assert await site.deliver(told) == 200
            settled = await site.counts(admitted.manifest_id)
            assert settled == {"completed": 2, "failed": 1}
            assert await site.deliver(told) == 200
            assert await site.deliver(event(body, "job-1", sequence=1), "d-2") == 200
            with pytest.raises(CallerError) as other_body:
                await site.deliver(event(body, "job-1", sequence=3), "d-1")
            with pytest.raises(CallerError) as other_job:
                await site.deliver(event(body, "job-77", sequence=4), "d-3")
            stranger = {**event(body, "job-1", sequence=4), "clientJobId": "another manifest's"}
            with pytest.raises(CallerError) as other_manifest:
                await site.deliver(stranger, "d-5")
            refused = {one.value.code for one in (other_body, other_job, other_manifest)}
            assert refused == {"callback_contradiction"}
            assert await site.counts(admitted.manifest_id) == settled
            assert await site.steering.retry("default", admitted.manifest_id, "mia") == 1
            await site.step_all()
            assert await site.deliver(event(body, "job-1", sequence=5), "d-4") == 200
            assert await site.counts(admitted.manifest_id) == {"completed": 2, "queued": 1}

    asyncio.run(play())


def test_a_retry_is_a_new_generation_with_a_new_submission(database_url: str) -> None:
    """[M-072, M-075, M-132, M-136, M-167, M-196, M-138, M-133]"""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            admitted = await site.admit(PAIRS)
            await site.step_all()
            [first] = site.engine.submissions()
            bad = first["items"][0]["ref"]
            await site.deliver(event(first, "job-1", fail={bad: "checks_failed"}))
            with pytest.raises(CallerError) as stranger:
                await site.steering.retry("default", admitted.manifest_id, "somebody else")
            assert stranger.value.code == "not_owner"
            assert await site.steering.retry("default", admitted.manifest_id, "mia") == 1
            await site.step_all()
            second = site.engine.submissions()[1]
            assert [item["ref"] for item in second["items"]] == [bad.replace(":g1", ":g2")]
            await site.deliver(event(second, "job-2"), "d-2")
            status = await site.views.status("default", admitted.manifest_id)
            assert status["status"] == "completed"
            with pytest.raises(CallerError) as nothing:
                await site.steering.retry("default", admitted.manifest_id, "mia")
            assert nothing.value.code == "nothing_to_retry"

    asyncio.run(play())


def test_a_dead_callback_strands_nothing(database_url: str) -> None:
    """[M-250, M-264, M-269, M-353] the engine's event never comes; asking it settles the same."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            admitted = await site.admit(PAIRS)
            await site.step_all()
            [body] = site.engine.submissions()
            site.engine.views["job-1"] = event(body, "job-1")
            assert await site.reconciliation.step() == 0, "a young submission is left alone"
            await site.database.run(make_inquiries_due)
            assert await site.reconciliation.step() == 1
            status = await site.views.status("default", admitted.manifest_id)
            assert (status["status"], status["counts"]["completed"]) == ("completed", 3)

    asyncio.run(play())


def test_an_event_before_its_acceptance_is_kept_and_applied_later(database_url: str) -> None:
    """[M-252, M-265]"""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            site.engine.weather = [Answer("TIMEOUT_UNKNOWN", code="PROVIDER_TIMEOUT_UNKNOWN")]
            admitted = await site.admit(PAIRS)
            for step in (site.enumeration.step, site.preparing.step, site.submitting.step):
                await step()
            [body] = site.engine.submissions()
            assert await site.deliver(event(body, "job-1")) == 202
            assert await site.counts(admitted.manifest_id) == {"preparing": 3}
            await site.step_all()
            assert await site.callbacks.step() == 1
            assert await site.counts(admitted.manifest_id) == {"completed": 3}

    asyncio.run(play())


def test_cancel_starts_nothing_afterwards_and_tells_the_engine(database_url: str) -> None:
    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            waiting = await site.admit(PAIRS)
            assert (await site.steering.cancel("default", waiting.manifest_id, "mia")).changed
            await site.step_all()
            assert site.engine.bodies == []
            assert (await site.views.status("default", waiting.manifest_id))["status"] == "canceled"
            sent = await site.admit(PAIRS, "r-2")
            await site.step_all()
            assert (await site.steering.cancel("default", sent.manifest_id, "mia")).changed
            assert site.engine.controls[-1][0] == sent.manifest_id
            assert site.engine.controls[-1][1]["canceled"] is True
            [body] = site.engine.submissions()
            await site.deliver({**event(body, "job-1"), "status": "canceled", "items": []})
            status = await site.views.status("default", sent.manifest_id)
            assert (status["status"], status["counts"]["skipped"]) == ("canceled", 3)

    asyncio.run(play())


def test_a_cancel_whose_process_died_while_it_told_the_engine_is_told_by_the_next_one(
    database_url: str,
) -> None:
    """Also where nothing is open any more: no attempt stays under way for ever."""

    class Killed(BaseException):
        pass

    async def die(*_: object) -> Answer:
        raise Killed

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.enumeration.step()
            tell = site.engine.control
            site.engine.control = die  # type: ignore[method-assign,assignment]
            with pytest.raises(Killed):
                await site.steering.cancel("default", manifest, "mia")
            assert await site.counts(manifest) == {"skipped": 3}
            site.engine.control = tell  # type: ignore[method-assign]
            assert await site.steering.telling_step() == 0
            await site.database.run(make_telling_due)
            assert await site.steering.telling_step() == 1
            assert [told for told, _ in site.engine.controls] == [manifest]
            await site.database.run(make_telling_due)
            assert await site.steering.telling_step() == 0
            outcomes = await site.database.read(attempts_of, manifest)
            assert outcomes == ["CONNECTION_UNKNOWN", "SUCCEEDED"]

    asyncio.run(play())


def test_a_late_answer_to_a_cancel_leaves_the_attempt_that_followed_to_somebody(database_url: str) -> None:
    """Its sender was overtaken; whoever overtook it may die."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id

            async def begin() -> Outgoing | bool:
                told = (manifest, steering.FINAL, b"{}", "host/boot/1/1")
                return await site.database.run(steering.begin_control, "default", *told)

            assert await site.database.run(steering.cancel_manifest, Workspace("default"), manifest, "mia")
            first, second = await begin(), await begin()
            assert isinstance(first, Outgoing)
            assert isinstance(second, Outgoing)
            answer = Answer("SUCCEEDED", b"{}", 200)
            await site.database.run(steering.record_control, first, answer, manifest, steering.FINAL)
            assert await site.database.read(attempts_of, manifest) == ["ACCEPTED_LATE", "STARTED"]
            await site.database.run(make_telling_due)
            assert len(await site.database.run(steering.due_decisions, 10)) == 1

    asyncio.run(play())


def test_a_canceled_manifest_publishes_nothing_by_itself_any_more(database_url: str) -> None:
    """What waited to be published is left, what the engine finishes later too; a person may ask for it."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.step_all()
            [body] = site.engine.submissions()
            first, *others = event(body, "job-1")["items"]
            await site.deliver({**event(body, "job-1"), "items": [first]})
            asked = await site.database.read(publications_asked, manifest)
            assert asked == [("pending", "")]
            assert (await site.steering.cancel("default", manifest, "mia")).changed
            await site.deliver({**event(body, "job-1", sequence=2), "items": others}, "d-2")
            assert await site.counts(manifest) == {"completed": 3}
            asked = await site.database.read(publications_asked, manifest)
            assert asked == [("failed", "canceled")]
            scope = Workspace("default")
            assert await site.database.run(steering.request_publication, scope, manifest, None) == 3
            asked = await site.database.read(publications_asked, manifest)
            assert asked == [("failed", "canceled"), ("pending", "")]

    asyncio.run(play())


@pytest.mark.parametrize(("publish", "by_itself"), [("auto", 1), ("manual", 0), ("none", 0)])
def test_what_is_settled_is_published_by_itself_where_that_was_chosen(
    sqlite_url: str, publish: str, by_itself: int
) -> None:
    """Else it stays here until somebody asks for it."""

    async def play() -> None:
        async with stage(sqlite_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS, publish=publish)).manifest_id
            await site.step_all()
            [body] = site.engine.submissions()
            await site.deliver(event(body, "job-1"))
            assert await site.counts(manifest) == {"completed": 3}
            assert len(await site.database.read(publications_asked, manifest)) == by_itself

    asyncio.run(play())


def test_a_pair_that_another_manifest_works_on_waits_for_it(database_url: str) -> None:
    """[M-068, M-069, M-074]"""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            await site.admit(PAIRS)
            second = await site.admit(PAIRS[:2], "r-2")
            await site.step_all()
            [body] = site.engine.submissions()
            assert await site.counts(second.manifest_id) == {"preparing": 2}
            waiting = await site.views.waiting("default", second.manifest_id)
            assert {item["reason"] for item in waiting["items"]} == {"waiting_pair"}
            await site.deliver(event(body, "job-1"))
            await site.step_all()
            assert await site.counts(second.manifest_id) == {"queued": 2}

    asyncio.run(play())


def test_a_source_that_moved_is_prepared_again_without_an_attempt(database_url: str) -> None:
    """[M-096]"""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit([("b.json", "de")])).manifest_id
            await site.enumeration.step()
            await site.preparing.step()
            site.source.documents["b.json"] = catalogue(one="Another one")
            assert await site.submitting.step() == 1
            [row] = await site.database.read(intents_of, manifest)
            assert (row.state, row.prepared, row.key_map) == ("pending", None, None)
            assert (row.generation, row.generation_attempt_count, row.attempt_count) == (1, 0, 0)
            await site.step_all()
            [body] = site.engine.submissions()
            [item] = body["items"]
            assert [field["text"] for field in item["fields"].values()] == ["Another one"]

    asyncio.run(play())


def test_a_document_over_the_limits_travels_in_parts_and_settles_once(database_url: str) -> None:
    async def play() -> None:
        texts = {f"k{number}": f"Text {number}" for number in range(25)}
        async with stage(
            database_url, {"big.json": catalogue(**texts)}, capacity=Capacity(fields_per_item_max=10)
        ) as site:
            admitted = await site.admit([("big.json", "de")])
            await site.step_all()
            [body] = site.engine.submissions()
            assert [item["ref"].rsplit(":", 1)[1] for item in body["items"]] == ["p1/3", "p2/3", "p3/3"]
            whole = event(body, "job-1")
            await site.deliver({**whole, "items": whole["items"][:2]})
            assert await site.counts(admitted.manifest_id) == {"queued": 1}
            await site.deliver({**whole, "items": whole["items"][2:], "event_sequence": 2}, "d-2")
            assert await site.counts(admitted.manifest_id) == {"completed": 1}
            results = await site.views.results("default", admitted.manifest_id)
            assert len(results["items"][0]["fields"]) == 25

    asyncio.run(play())


@pytest.mark.parametrize(
    ("change", "code", "place"),
    [
        ({"pairs": []}, "empty_request", "pairs"),
        ({"pairs": [{"document": "a.json", "locale": "xx-nope-1"}]}, "unsupported_locale", "pairs[0]"),
        ({"pairs": [{"document": "a.json", "locale": "en"}]}, "source_is_target", "pairs[0]"),
        ({"pairs": [{"document": "a.json", "locale": "de"}] * 2}, "duplicate_pair", "pairs"),
        ({"pairs": [{"document": "a.json"}]}, "invalid_request", "pairs[0]"),
        ({"surprise": 1}, "invalid_request", "surprise"),
        ({"request_id": ""}, "invalid_request", "request_id"),
        ({"mode": "everything"}, "invalid_request", "mode"),
    ],
)
def test_a_wrong_request_is_refused_with_its_place(
    sqlite_url: str, change: dict[str, object], code: str, place: str
) -> None:
    """[M-107, M-110, M-113, M-117, M-121]"""

    async def play() -> None:
        async with stage(sqlite_url, DOCUMENTS) as site:
            right = {"request_id": "r", "project": "docs", "pairs": [{"document": "a.json", "locale": "de"}]}
            with pytest.raises(CallerError) as refused:
                await site.admission.admit(CALLER, {**right, **change})
            assert (refused.value.code, refused.value.place) == (code, place)

    asyncio.run(play())


def test_an_item_answers_exactly_the_fields_that_it_was_asked_for(database_url: str) -> None:
    """[M-226] one field more, or one less, and it has failed; its neighbours are none the worse."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.step_all()
            [body] = site.engine.submissions()
            told = event(body, "job-1")
            two = [item for item in told["items"] if len(item["fields"]) == 2]
            two[0]["fields"].popitem()
            two[1]["fields"]["never.asked"] = {"text": "x", "via": "ai"}
            assert await site.deliver(told) == 200
            assert await site.counts(manifest) == {"completed": 1, "failed": 2}
            failures = (await site.views.failures("default", manifest))["items"]
            assert {failure["code"] for failure in failures} == {"internal_error"}
            assert {failure["message"] for failure in failures} >= {"the engine left out 1 fields"}

    asyncio.run(play())


def test_looking_at_the_status_writes_nothing(sqlite_url: str) -> None:
    """[M-130] whatever is due meanwhile."""

    async def play() -> None:
        async with stage(sqlite_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.enumeration.step()
            commits = site.database.commits
            status = await site.views.status("default", manifest)
            assert status["health"]["next_due_at"] is not None
            assert site.database.commits == commits

    asyncio.run(play())
