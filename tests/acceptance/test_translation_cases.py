"""The public cases T1 to T4, T10 and T11, from the command line to the file: each call, each token.

T5 to T9 stand in `test_format_cases`, T12 in `test_crash_and_resume`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.kernel.errors import CallerError
from dragoman.model.scopes import Workspace
from dragoman.wiring.rounds import opened
from dragoman.wiring.services import Services
from dragoman.wiring.settings import load
from tests.acceptance.books import HIRED, assert_the_ledger_is_exact
from tests.surfaces.cli.desk import Desk, answering, sent

MARKED = "{{strong}}%s strings in {{languages/}}"
SPOILED = {"act": "translate", "replace": {"⟦3⟧": "{{jazyky/}}"}}
FORBIDDEN = {"contains": "Forbidden", "act": "content_filter"}


def test_t1a_a_broken_placeholder_is_repaired_and_both_calls_are_charged(desk: Desk) -> None:
    desk.write("a.json", {"k": MARKED})
    with answering(SPOILED) as server:
        desk.hire(server.url, priced=True)
        told = desk.translate("a.json", "--to", "cs", *HIRED)
        assert (told.code, told.object["outputs"]) == (0, ["a.cs.json"])
        assert desk.texts("a.cs.json") == {"k": f"cs {MARKED}"}
        assert [len(texts) for texts in sent(server)] == [1, 1]
        assert "{{languages/}}" in server.calls[1].question["items"][0]["complaint"]
        assert_the_ledger_is_exact(desk, told, server)


def test_t1b_what_stays_broken_fails_alone_and_names_the_missing_token(desk: Desk) -> None:
    """The target keeps what stood there; the other text is stored and written."""
    desk.write("a.json", {"k": MARKED, "plain": "Hello"})
    desk.write("a.cs.json", {"old": "zůstane"})
    with answering(then=SPOILED) as server:
        desk.hire(server.url, priced=True)
        told = desk.translate("a.json", "--to", "cs", *HIRED)
        assert (told.code, told.object["status"]) == (3, "failed")
        [failure] = told.object["failures"]
        assert (failure["document"], failure["locale"], failure["code"]) == ("a.json", "cs", "checks_failed")
        [field] = failure["fields"]
        assert (field["key"], field["code"], field["check"]) == ("k", "checks_failed", "placeholders")
        assert "{{languages/}}" in field["message"]
        assert desk.texts("a.cs.json") == {"old": "zůstane", "plain": "cs Hello"}
        assert [len(texts) for texts in sent(server)] == [2, 1]
        assert [row.text for row in desk.rows("memory", "text")] == ["cs Hello"]
        assert_the_ledger_is_exact(desk, told, server)


def test_t2_a_text_that_is_left_out_is_asked_for_alone_and_no_value_moves(desk: Desk) -> None:
    words = ("Home", "Inbox", "Message list", "Sent", "Drafts", "Trash", "Search", "Reply", "Forward", "Undo")
    texts = {f"k{number}": word for number, word in enumerate(words)}
    desk.write("a.json", texts)
    with answering({"act": "omit", "index": 2}) as server:
        desk.hire(server.url, priced=True)
        told = desk.translate("a.json", "--to", "fr", *HIRED)
        assert told.code == 0
        assert desk.texts("a.fr.json") == {key: f"fr {text}" for key, text in texts.items()}
        assert [len(texts) for texts in sent(server)] == [10, 1]
        assert sent(server)[1] == ["Message list"]
        assert told.object["cost"]["provider_fields"] == 10
        assert_the_ledger_is_exact(desk, told, server)


def test_t3_blanks_are_never_sent_and_keep_their_bytes(desk: Desk) -> None:
    """Six positions are kept; in a job of the engine's contract, where null is a text, four pass through."""
    source = '["Hello","", "  ","\\n",null,"Bye"]'
    desk.write("a.json", source)
    with answering(dictionary={"Hello": "Bonjour", "Bye": "Adieu"}) as server:
        desk.hire(server.url)
        told = desk.translate("a.json", "--to", "fr", *HIRED)
        assert told.code == 0
        assert desk.read("a.fr.json") == source.replace("Hello", "Bonjour").replace("Bye", "Adieu")
        assert sent(server) == [["Hello", "Bye"]]

        async def contract() -> Mapping[str, Any]:
            async with services(desk) as here:
                fields = {f"k{number}": text for number, text in enumerate(json.loads(source))}
                return await worked(here, submission(fields, locale="de"))

        usage = asyncio.run(contract())["usage"]
        assert (usage["passed_through"], usage["via_ai"]) == (4, 2)
        assert sent(server)[1:] == [["Hello", "Bye"]]


def test_t4_a_cut_answer_is_halved_and_the_wasted_call_is_told(desk: Desk) -> None:
    texts = {
        f"k{n}": f"{letter}{letter} {'word and ' * 60}"[:500].strip() for n, letter in enumerate("abcdefgh")
    }
    desk.write("a.json", texts)
    with answering(rules=[{"items_over": 7, "act": {"act": "length", "index": 5}}]) as server:
        desk.hire(server.url, priced=True)
        told = desk.translate("a.json", "--to", "fr", *HIRED)
        right = {key: f"fr {text}" for key, text in texts.items()}
        assert (told.code, desk.texts("a.fr.json")) == (0, right)
        assert sorted(row.text for row in desk.rows("memory", "text")) == sorted(right.values())
        assert [len(texts) for texts in sent(server)] == [8, 2, 1]  # five came whole; the rest in two halves
        assert_the_ledger_is_exact(desk, told, server, wasted=server.charged[0])
        assert f"wasted {server.charged[0]} tokens" in desk.run("status", told.object["manifest_id"]).out


def test_t11_one_refused_text_of_five_leaves_four_and_a_retry_sends_it_alone(desk: Desk) -> None:
    """Exit code 3, `failed` with 4 + 1 of 5 visible, the code shown."""
    for number in range(5):
        desk.write(
            f"docs/{number}.json", {"k": "Forbidden words" if number == 2 else f"Hello number {number}"}
        )
    with answering(rules=[FORBIDDEN]) as server:
        desk.hire(server.url, priced=True)
        told = desk.translate("docs", "--to", "fr", *HIRED)
        assert (told.code, told.object["status"]) == (3, "failed")
        counts = told.object["counts"]
        assert (counts["completed"], counts["failed"], counts["total"]) == (4, 1, 5)
        assert len(told.object["outputs"]) == 4
        [failure] = told.object["failures"]
        assert (failure["document"], failure["code"]) == ("docs/2.json", "content_refused")
        assert [field["code"] for field in failure["fields"]] == ["content_refused"]
        assert len(sent(server)[0]) == 5
        assert_the_ledger_is_exact(desk, told, server)
        before = len(server.calls)
        server.script.rules = ()
        again = desk.run("retry", told.object["manifest_id"], "--json")
        assert (again.code, sent(server)[before:]) == (0, [["Forbidden words"]])
        counts = again.object["counts"]
        assert (counts["completed"], counts["failed"], counts["total"]) == (5, 0, 5)
        assert desk.texts("docs/2.fr.json") == {"k": "fr Forbidden words"}


def test_t11_within_one_document_the_four_are_written(desk: Desk) -> None:
    desk.write("a.json", {f"k{n}": "Forbidden words" if n == 2 else f"Hello number {n}" for n in range(5)})
    with answering(rules=[FORBIDDEN]) as server:
        desk.hire(server.url)
        told = desk.translate("a.json", "--to", "fr", *HIRED)
        assert (told.code, told.object["outputs"]) == (3, ["a.fr.json"])
        assert told.object["cost"]["provider_fields"] == 4
        [failure] = told.object["failures"]
        assert [(field["key"], field["code"]) for field in failure["fields"]] == [("k2", "content_refused")]
        assert sorted(desk.texts("a.fr.json")) == ["k0", "k1", "k3", "k4"]
        before = len(server.calls)
        server.script.rules = ()
        again = desk.translate("a.json", "--to", "fr", *HIRED)  # the same command is a retry, too
        assert (again.code, sent(server)[before:]) == (0, [["Forbidden words"]])
        assert len(desk.texts("a.fr.json")) == 5


def test_t10_a_submission_is_one_job_however_often_it_is_sent(desk: Desk) -> None:
    """Twenty at once, again later and after a restart: one job, one call, one charge; another body: 409."""
    body = submission({"k": "Hello"})
    with answering() as server:
        desk.hire(server.url, priced=True)

        async def at_once() -> set[tuple[str, bool]]:
            async with services(desk) as here:
                accepted = await asyncio.gather(*(accept(here, body) for _ in range(20)))
                await worked(here, body)
                return set(accepted)

        async def after_a_restart() -> tuple[str, bool]:
            async with services(desk) as here:
                answer = await accept(here, body)
                with pytest.raises(CallerError) as conflict:
                    await accept(here, {**body, "sourceLang": "de"})
                assert conflict.value.code == "submission_id_conflict"
                return answer

        answers = asyncio.run(at_once())
        assert len({job for job, _ in answers}) == 1
        assert sorted(created for _, created in answers) == [False, True]
        assert asyncio.run(after_a_restart()) in answers
        assert sent(server) == [["Hello"]]
        assert len(desk.rows("jobs")) == len(desk.rows("ai_usage")) == 1
        assert [row.total_tokens for row in desk.rows("ai_usage")] == server.charged


def submission(fields: Mapping[str, Any], locale: str = "fr") -> dict[str, Any]:
    """The body of a submission of one item."""
    return {
        "submissionId": f"01a2292c-0000-7000-8000-00000000{locale.encode().hex()}",
        "clientJobId": "01a2292c-0000-7000-8000-000000000001",
        "sourceLang": "en",
        "options": {"provider_config": "hired"},
        "items": [{"ref": "a", "targetLang": locale, "fields": dict(fields)}],
    }


@asynccontextmanager
async def services(desk: Desk) -> AsyncIterator[Services]:
    """A process of ours, with all its workers, in this loop."""
    async with opened(load(Path.cwd(), database_url=desk.database_url)) as here:
        yield here


async def accept(here: Services, body: Mapping[str, Any]) -> tuple[str, bool]:
    """Send a submission, as a site elsewhere would."""
    accepted = await here.acceptance.accept("ada", "default", "", json.dumps(body).encode())
    here.workers.wake()
    return accepted.job_id, accepted.created


async def worked(here: Services, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The view of a submission's job once it has ended."""
    job_id, _ = await accept(here, body)
    async with asyncio.timeout(30):
        while True:
            view = await here.jobs.get(Workspace("default"), job_id)
            if view["status"] == "completed":
                return view
            await asyncio.sleep(0.02)
