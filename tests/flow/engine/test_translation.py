"""What becomes of a job's texts: translated, repaired, split, refused, remembered, passed through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.content.locales import choose_code
from dragoman.providers.chat import ChatProvider
from tests.doubles.chat_server import ChatServer, Script
from tests.flow.engine.world import Process, accepted_calls, numbered, rehearsal, world

pytestmark = pytest.mark.anyio


def chat(server: ChatServer, **how: Any) -> ChatProvider:
    """The OpenAI-compatible provider, against the scripted server; at a loopback address it is free."""
    return ChatProvider("chat", "test-model", server.url, lambda: "sk-test", choose_code, **how)


def into(locale: str, fields: Mapping[str, Any], ref: str = "a") -> list[Mapping[str, Any]]:
    return [{"ref": ref, "targetLang": locale, "fields": fields}]


async def test_a_job_is_translated_and_ends_with_one_event(database_url: str) -> None:
    """[J-038, J-046..J-048, M-219, M-220]: one event freezes what the view of the ended job gives."""
    async with world(database_url) as here:
        items = {"a": {"title": "Hello", "body": "Good morning"}, "b": {"t": "Good night"}}
        accepted = await here.accept(items)
        assert await Process(here).drain() == ["completed"]
        view = await here.view(accepted.job_id)
        assert (view["status"], view["submissionId"], view["event_sequence"]) == (
            "completed",
            accepted.submission_id,
            1,
        )
        assert [item["ref"] for item in view["items"]] == ["a", "b"]
        assert await here.texts(accepted.job_id) == {
            "title": "fr Hello",
            "body": "fr Good morning",
            "t": "fr Good night",
        }
        [event] = await here.rows("outbox")
        assert (event.event, event.delivery_sequence, event.state) == ("job.completed", 1, "pending")
        assert view["progress"] == 100


async def test_a_broken_placeholder_is_repaired_once_and_both_calls_are_charged(database_url: str) -> None:
    """T1 A: the repair call holds the exact complaint; two calls, both on the item's account."""
    acts = [{"act": "translate", "replace": {"⟦3⟧": "{{jazyky/}}"}}]
    async with ChatServer(Script(acts=acts)) as server, world(database_url, chat(server)) as here:
        field = {"text": "{{strong}}%s strings in {{languages/}}", "syntax": "printf"}
        accepted = await here.accept(into("cs", {"k": field, "plain": "Hello"}))
        await Process(here).drain()
        assert await here.texts(accepted.job_id) == {
            "k": "cs {{strong}}%s strings in {{languages/}}",
            "plain": "cs Hello",
        }
        assert [len(call.texts) for call in server.calls] == [2, 1]
        assert "languages" in server.calls[1].question["items"][0]["complaint"]
        usage = (await here.view(accepted.job_id))["usage"]
        assert usage["paid"]["tokens"] == sum(row.total_tokens for row in await here.rows("ai_usage"))
        assert len(await here.rows("ai_usage")) == 2


async def test_a_placeholder_that_stays_broken_fails_its_field_alone(database_url: str) -> None:
    """T1 B: `checks_failed`, the check and the missing token named; the other items are stored."""
    then = {"act": "translate", "replace": {"⟦3⟧": "{{jazyky/}}"}}
    async with ChatServer(Script(then=then)) as server, world(database_url, chat(server)) as here:
        field = {"text": "{{strong}}%s strings in {{languages/}}", "syntax": "printf"}
        accepted = await here.accept(into("cs", {"k": field, "plain": "Hello"}))
        await Process(here).drain()
        failed = (await here.failures(accepted.job_id))["k"]
        assert (failed["code"], failed["check"]) == ("checks_failed", "placeholders")
        assert failed["missing"] == ["{{languages/}}"]
        assert await here.texts(accepted.job_id) == {"plain": "cs Hello"}
        view = await here.view(accepted.job_id)
        assert (view["status"], view["items_failed"]) == ("completed", 1)
        assert len(server.calls) == 2
        assert len(await here.rows("memory")) == 1


async def test_an_item_left_out_is_asked_for_alone(database_url: str) -> None:
    """T2: nine of ten are stored under their own keys; exactly one more call, with one item."""
    texts = numbered(10) | {"k2": "Message list"}
    async with (
        ChatServer([{"act": "omit", "index": 2}]) as server,
        world(database_url, chat(server)) as here,
    ):
        accepted = await here.accept(into("fr", texts))
        await Process(here).drain()
        assert await here.texts(accepted.job_id) == {key: f"fr {text}" for key, text in texts.items()}
        assert [len(call.texts) for call in server.calls] == [10, 1]
        assert server.calls[1].texts == ["Message list"]


async def test_blank_texts_are_never_sent_and_come_back_byte_for_byte(database_url: str) -> None:
    """T3: two items are sent, six positions are kept, four passed through."""
    texts = {"a": "Hello", "b": "", "c": "  ", "d": "\n", "e": None, "f": "Bye"}
    async with ChatServer() as server, world(database_url, chat(server)) as here:
        accepted = await here.accept(into("fr", texts))
        await Process(here).drain()
        [call] = server.calls
        assert call.texts == ["Hello", "Bye"]
        assert await here.texts(accepted.job_id) == {**texts, "a": "fr Hello", "f": "fr Bye"}
        view = await here.view(accepted.job_id)
        assert view["usage"]["passed_through"] == 4
        assert (view["total_fields"], view["usage"]["via_ai"]) == (2, 2)


async def test_a_cut_reply_is_halved_and_its_call_is_told_as_wasted(database_url: str) -> None:
    """T4: whole items of a cut reply are kept, no cut text is; the wasted call shows in the report."""
    texts = {f"k{n}": f"{letter * 3} " + "word and " * 60 for n, letter in enumerate("abcdefgh")}
    rule = {"items_over": 7, "act": {"act": "length", "index": 5}}
    async with ChatServer(Script(rules=[rule])) as server, world(database_url, chat(server)) as here:
        accepted = await here.accept(into("fr", texts))
        await Process(here).drain()
        assert await here.texts(accepted.job_id) == {key: f"fr {text}" for key, text in texts.items()}
        assert sorted(len(call.texts) for call in server.calls) == [1, 2, 8]
        usage = (await here.view(accepted.job_id))["usage"]
        [wasted] = [row for row in await here.rows("ai_usage") if row.wasted]
        assert usage["wasted"]["tokens"] == wasted.total_tokens > 0
        remembered = [row.text for row in await here.rows("memory")]
        assert sorted(remembered) == sorted(f"fr {text}" for text in texts.values())


@pytest.mark.parametrize("act", ["content_filter", "refusal", "stop_filter"])
async def test_a_refusal_is_narrowed_down_to_the_refused_text(database_url: str, act: str) -> None:
    """T11: one text of five is refused; four are stored, it alone fails `content_refused`."""
    texts = numbered(5) | {"k2": "Forbidden words"}
    rule = {"contains": "Forbidden", "act": act}
    async with ChatServer(Script(rules=[rule])) as server, world(database_url, chat(server)) as here:
        accepted = await here.accept(into("fr", texts))
        await Process(here).drain()
        failures = await here.failures(accepted.job_id)
        assert {key: failed["code"] for key, failed in failures.items()} == {"k2": "content_refused"}
        assert len(await here.texts(accepted.job_id)) == 4
        view = await here.view(accepted.job_id)
        assert view["items"][0]["counts"] == {"total": 5, "done": 4, "failed": 1, "passed_through": 0}
        again = await here.accept(into("fr", {"k2": "Forbidden words"}))
        before = len(server.calls)
        await Process(here).drain()
        assert len(server.calls) == before + 1
        assert (await here.failures(again.job_id))["k2"]["code"] == "content_refused"


async def test_a_field_is_tried_in_two_jobs_and_then_given_up_without_a_call(database_url: str) -> None:
    """The third job makes no call; with `force` it is asked again."""
    then = {"act": "translate", "replace": {"⟦1⟧": "gone"}}
    field = {"t": {"text": "Hello %s", "syntax": "printf"}}
    async with ChatServer(Script(then=then)) as server, world(database_url, chat(server)) as here:
        for _ in range(2):
            await here.accept(into("fr", field))
            await Process(here).drain()
        assert len(server.calls) == 4
        third = await here.accept(into("fr", field))
        await Process(here).drain()
        assert (await here.failures(third.job_id))["t"]["code"] == "gave_up"
        assert len(server.calls) == 4
        await here.accept(into("fr", field), options={"force": True})
        await Process(here).drain()
        assert len(server.calls) == 6


async def test_an_id_that_came_twice_is_rejected_twice(database_url: str) -> None:
    """Neither of two answers under one id is taken; the text is asked for again."""
    async with ChatServer(["duplicate"]) as server, world(database_url, chat(server)) as here:
        accepted = await here.accept(into("fr", {"a": "One thing", "b": "Other thing"}))
        await Process(here).drain()
        assert await here.texts(accepted.job_id) == {"a": "fr One thing", "b": "fr Other thing"}
        assert [call.texts for call in server.calls] == [["One thing", "Other thing"], ["One thing"]]


async def test_a_field_is_asked_for_three_times_at_most(database_url: str) -> None:
    """In its group, in one repair call, and alone, because the repair held more than one."""
    then = {"act": "translate", "replace": {"⟦1⟧": ""}}
    fields = {key: {"text": f"{text} %s", "syntax": "printf"} for key, text in numbered(3).items()}
    async with ChatServer(Script(then=then)) as server, world(database_url, chat(server)) as here:
        accepted = await here.accept(into("fr", fields))
        await Process(here).drain()
        assert [len(call.texts) for call in server.calls] == [3, 3, 1, 1, 1]
        assert {failed["code"] for failed in (await here.failures(accepted.job_id)).values()} == {
            "checks_failed"
        }


async def test_garbage_from_the_provider_ends_and_costs_a_bounded_number_of_calls(database_url: str) -> None:
    """Every text fails by itself in the end, and the job is completed with failed items."""
    async with ChatServer(Script(then="garbage")) as server, world(database_url, chat(server)) as here:
        accepted = await here.accept(into("fr", numbered(4)))
        await Process(here).drain()
        assert len(await here.failures(accepted.job_id)) == 4
        assert len(server.calls) == 1 + 2 + 4 + 4
        assert all(row.state == "SUCCEEDED" for row in await here.rows("effects"))


async def test_memory_comes_first_and_a_job_wholly_in_it_makes_no_call(database_url: str) -> None:
    """J-040, J-051, J-055: exact hits fill fields; memory and AI together are what is done."""
    provider = rehearsal()
    async with world(database_url, provider) as here:
        await here.accept({"a": {"x": "Hello", "y": "World of words"}})
        await Process(here).drain()
        calls = accepted_calls(provider)
        second = await here.accept({"a": {"x": "Hello", "y": "World of words", "z": "Hello"}})
        await Process(here).drain()
        assert accepted_calls(provider) == calls
        usage = (await here.view(second.job_id))["usage"]
        assert (usage["via_memory"], usage["via_ai"]) == (3, 0)
        third = await here.accept({"a": {"x": "Hello", "w": "A new text"}})
        await Process(here).drain()
        usage = (await here.view(third.job_id))["usage"]
        assert (usage["via_memory"], usage["via_ai"]) == (1, 1)


async def test_memory_asks_for_the_same_context_and_the_same_project(sqlite_url: str) -> None:
    """J-051: another context, and another project, is another text."""
    provider = rehearsal()
    async with world(sqlite_url, provider) as here:
        await here.accept({"a": {"x": {"text": "Open", "context": "verb"}}})
        await Process(here).drain()
        await here.accept({"a": {"x": {"text": "Open", "context": "adjective"}}})
        await Process(here).drain()
        await here.accept({"a": {"x": {"text": "Open", "context": "verb"}}}, project="other")
        await Process(here).drain()
        assert accepted_calls(provider) == 3


async def test_equal_texts_of_a_job_are_translated_once(database_url: str) -> None:
    """J-055: a repeat takes its original's text and its side."""
    provider = rehearsal()
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": {"x": "Hello", "y": "Hello"}, "b": {"z": "Hello"}})
        await Process(here).drain()
        [call] = provider.calls
        assert call.body.count(b"Hello") == 1
        assert await here.texts(accepted.job_id) == {"x": "fr Hello", "y": "fr Hello", "z": "fr Hello"}
        assert (await here.view(accepted.job_id))["usage"]["via_ai"] == 3


async def test_a_plural_gets_the_forms_of_its_target(database_url: str) -> None:
    """The source's categories in, the target's out; each form is an item of its own, and all count as one."""
    provider = rehearsal()
    async with world(database_url, provider) as here:
        field = {"plural": {"one": "%d file", "other": "%d files"}, "syntax": "printf"}
        accepted = await here.accept(into("pl", {"n": field}))
        await Process(here).drain()
        assert await here.texts(accepted.job_id) == {
            "n": {"one": "pl %d file", "few": "pl %d files", "many": "pl %d files", "other": "pl %d files"}
        }
        assert (await here.view(accepted.job_id))["usage"]["via_ai"] == 1


async def test_an_icu_message_is_rebuilt_with_the_forms_of_its_target(sqlite_url: str) -> None:
    """Sentences are translated, the skeleton is code's: exact branches stay, categories are the target's."""
    async with world(sqlite_url) as here:
        text = "{count, plural, =1 {One product.} other {You have # products.}}"
        accepted = await here.accept(into("pl", {"n": {"text": text, "syntax": "icu"}}))
        await Process(here).drain()
        said = str((await here.texts(accepted.job_id))["n"])
        for branch in ("=1 {pl One product.}", "few {pl You have # products.}", "other {", "many {", "one {"):
            assert branch in said


async def test_ends_of_a_text_stay_as_they_are(sqlite_url: str) -> None:
    """Leading and trailing whitespace is kept outside of what is sent."""
    provider = rehearsal()
    async with world(sqlite_url, provider) as here:
        accepted = await here.accept({"a": {"x": "  Hello\n"}})
        await Process(here).drain()
        assert await here.texts(accepted.job_id) == {"x": "  fr Hello\n"}


async def test_groups_keep_locales_apart_and_neighbours_together(sqlite_url: str) -> None:
    """J-041: at most `batch_size` fields a call, one target locale each."""
    provider = rehearsal()
    async with world(sqlite_url, provider) as here:
        texts = numbered(7)
        items = [{"ref": code, "targetLang": code, "fields": texts} for code in ("de", "fr")]
        accepted = await here.accept(items, options={"batch_size": 3})
        await Process(here).drain()
        calls = await here.rows("calls")
        assert sorted((row.target_locale, row.asked.count("[") - 1) for row in calls) == [
            ("de", 1), ("de", 3), ("de", 3), ("fr", 1), ("fr", 3), ("fr", 3),
        ]  # fmt: skip
        assert (await here.view(accepted.job_id))["usage"]["via_ai"] == 14


async def test_a_locale_that_the_provider_does_not_know_fails_its_items_before_any_spend(
    database_url: str,
) -> None:
    """The other items are worked; where no item is left the job itself has failed."""
    async with ChatServer() as server, world(database_url, chat(server, locales=["en", "fr"])) as here:
        items = into("zh-Hant", {"t": "Hello"}, "a") + into("fr", {"t": "Hello"}, "b")
        accepted = await here.accept(items)
        await Process(here).drain()
        view = await here.view(accepted.job_id)
        assert view["status"] == "completed"
        assert [(item["ref"], item["status"], item["code"]) for item in view["items"]] == [
            ("a", "failed", "unsupported_locale"),
            ("b", "completed", ""),
        ]
        assert len(server.calls) == 1
        alone = await here.accept(into("zh-Hant", {"t": "Hello there"}))
        await Process(here).drain()
        view = await here.view(alone.job_id)
        assert (view["status"], view["code"]) == ("failed", "unsupported_locale")
        assert len(server.calls) == 1


async def test_a_wrong_key_ends_the_job_after_one_call(database_url: str) -> None:
    """J-065: a permanent refusal fails the job with its reason, and nothing more is asked."""
    refused = {"act": "status", "status": 401, "body": '{"error": {"message": "bad key"}}'}
    async with ChatServer(Script(then=refused)) as server, world(database_url, chat(server)) as here:
        options = {"batch_size": 1, "concurrency": 1}
        accepted = await here.accept(into("fr", numbered(5)), options=options)
        assert await Process(here).drain() == ["failed"]
        view = await here.view(accepted.job_id)
        assert (view["status"], view["code"]) == ("failed", "provider_rejected")
        assert {failed["code"] for failed in (await here.failures(accepted.job_id)).values()} == {
            "provider_rejected"
        }
        assert len(server.calls) == 1
        assert [row.event for row in await here.rows("outbox")] == ["job.failed"]


async def test_a_model_whose_context_is_too_short_is_asked_in_halves(sqlite_url: str) -> None:
    said = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    rule = {"items_over": 2, "act": {"act": "status", "status": 400, "body": said}}
    async with ChatServer(Script(rules=[rule])) as server, world(sqlite_url, chat(server)) as here:
        accepted = await here.accept(into("fr", numbered(4)))
        assert await Process(here).drain() == ["completed"]
        assert len(await here.texts(accepted.job_id)) == 4
        assert [len(call.texts) for call in server.calls] == [4, 2, 2]


async def test_a_request_that_is_refused_fails_its_own_texts_only(sqlite_url: str) -> None:
    """A 400 without a reason that we know says nothing about the other calls."""
    refused = {"act": "status", "status": 400, "body": '{"error": {"message": "too long"}}'}
    async with ChatServer([refused]) as server, world(sqlite_url, chat(server)) as here:
        options = {"batch_size": 1, "concurrency": 1}
        accepted = await here.accept(into("fr", numbered(3)), options=options)
        await Process(here).drain()
        assert {failed["code"] for failed in (await here.failures(accepted.job_id)).values()} == {
            "provider_rejected"
        }
        assert len(await here.texts(accepted.job_id)) == 2


async def test_results_too_large_for_an_event_lie_behind_a_link(sqlite_url: str) -> None:
    """Over 256 KiB the event carries counts and hashes, and the pages carry the texts."""
    async with world(sqlite_url) as here:
        texts = {f"k{n}": f"{letter} " * 20_000 for n, letter in enumerate("abcdefgh")}
        accepted = await here.accept(
            [{"ref": f"r{key}", "targetLang": "fr", "fields": {key: text}} for key, text in texts.items()]
        )
        await Process(here).drain()
        view = await here.view(accepted.job_id)
        assert view["results"] == "link"
        assert all("fields" not in item and len(item["sha256"]) == 64 for item in view["items"])
        first = await here.page(accepted.job_id, "", 5)
        second = await here.page(accepted.job_id, str(first["next_cursor"]), 5)
        assert (len(first["items"]), len(second["items"]), second["next_cursor"]) == (5, 3, "")
        found = {
            key: field["text"]
            for item in [*first["items"], *second["items"]]
            for key, field in item["fields"].items()
        }
        assert found == {key: f"fr {text.strip()} " for key, text in texts.items()}
        shown = {item["ref"]: item["sha256"] for item in view["items"]}
        assert {item["ref"]: item["sha256"] for item in [*first["items"], *second["items"]]} == shown
