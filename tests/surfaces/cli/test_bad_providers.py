"""Providers that refuse, hang, answer garbage or cut their answer: what is told, and how to go on."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.store.acts import calling
from dragoman.surfaces.cli import following
from tests.surfaces.cli.desk import Desk, answering, sent

REJECTED = {
    "act": "status",
    "status": 401,
    "body": {"error": {"message": "Incorrect API key", "type": "invalid_request_error", "code": "bad_key"}},
}
HIRED = ("--to", "fr", "--provider", "hired")


@pytest.fixture
def tree(desk: Desk) -> Desk:
    """Two catalogues of one text each."""
    desk.write("a.json", {"k": "Hello my friend"})
    desk.write("b.json", {"k": "Bye my friend"})
    return desk


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is lost is taken up again at once."""
    monkeypatch.setattr(calling, "RETRY_FIRST_SECONDS", 0.01)


def test_a_rejected_key_fails_every_document_with_the_providers_words_after_one_call(tree: Desk) -> None:
    """Exit code 3; with the right key the same command translates them: a rejection is no trial of a text."""
    with answering(REJECTED, REJECTED, REJECTED) as server:
        tree.hire(server.url)
        for calls in (1, 2, 3):
            told = tree.translate("a.json", "b.json", *HIRED)
            assert (told.code, len(server.calls)) == (3, calls)
            for failure in told.object["failures"]:
                assert failure["code"] == "provider_rejected"
                [field] = failure["fields"]
                assert field["message"] == "HTTP 401: Incorrect API key"
            assert "mend the key" in told.err
        told = tree.translate("a.json", "b.json", *HIRED)
        assert (told.code, told.object["outputs"]) == (0, ["a.fr.json", "b.fr.json"])


@pytest.mark.parametrize("act", ["content_filter", "refusal", "stop_filter"])
def test_a_refused_text_fails_alone_and_says_so(tree: Desk, act: str) -> None:
    """The others are stored and written; the reason is the provider's, not ours."""
    with answering(rules=[{"contains": "Bye", "act": act}]) as server:
        tree.hire(server.url)
        told = tree.translate("a.json", "b.json", *HIRED)
    assert (told.code, told.object["outputs"]) == (3, ["a.fr.json"])
    [failure] = told.object["failures"]
    assert (failure["document"], failure["code"]) == ("b.json", "content_refused")
    [field] = failure["fields"]
    assert (field["key"], field["code"]) == ("k", "content_refused")
    assert field["message"] == "The provider refuses this text."


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("garbage", "The provider's answer cannot be read."),
        ("length", "The provider's answer was cut short."),
        ("cut", "The provider's answer cannot be read."),
    ],
)
def test_an_answer_without_the_text_fails_with_what_was_wrong_and_may_be_retried(
    tree: Desk, act: str, said: str
) -> None:
    """Cut or garbled: halved down to each text alone, asked for three times at most, then `checks_failed`."""
    with answering(then=act) as server:
        tree.hire(server.url, priced=True)
        told = tree.translate("a.json", *HIRED)
        calls = len(server.calls)
        assert told.code == 3
        [failure] = told.object["failures"]
        assert failure["code"] == "checks_failed"
        assert [field["message"] for field in failure["fields"]] == [said]
        assert told.object["cost"]["wasted_tokens"] == told.object["cost"]["paid_tokens"] > 0
        assert f"dragoman retry {told.object['manifest_id']}" in told.err
        assert 1 < calls <= 3
        server.script.then = "translate"
        again = tree.run("retry", told.object["manifest_id"], "--json")
        assert (again.code, again.object["outputs"]) == (0, ["a.fr.json"])
        assert len(server.calls) == calls + 1


def test_no_cut_text_is_written_anywhere(tree: Desk) -> None:
    tree.write("a.json", {f"k{n}": f"Hello number {n} my friend" for n in range(4)})
    with answering(rules=[{"items_over": 1, "act": {"act": "length", "index": 2}}]) as server:
        tree.hire(server.url)
        assert tree.translate("a.json", *HIRED).code == 0
    assert tree.texts("a.fr.json") == {f"k{n}": f"fr Hello number {n} my friend" for n in range(4)}
    assert sorted(row.text for row in tree.rows("memory", "text")) == sorted(tree.texts("a.fr.json").values())


@pytest.mark.parametrize("act", ["silent", "close", {"act": "status", "status": 500, "body": "oops"}])
def test_a_lost_answer_of_a_free_provider_waits_and_the_run_ends_with_4(
    tree: Desk, monkeypatch: pytest.MonkeyPatch, act: Any
) -> None:
    """When the next try is not near: nothing failed, what waits is listed with its time and how to go on."""
    monkeypatch.setattr(following, "_NAMED_TIME_SECONDS", 5)
    with answering(act) as server:
        tree.hire(server.url, more="call_timeout_seconds = 0.3")
        told = tree.translate("a.json", "b.json", *HIRED)
        assert (told.code, told.object["failures"], told.object["outputs"]) == (4, [], [])
        for waiting, document in zip(told.object["waiting"], ("a.json", "b.json"), strict=True):
            assert set(waiting) == {"document", "locale", "reason", "due_at"}
            assert (waiting["document"], waiting["reason"]) == (document, "waiting_provider")
            assert waiting["due_at"].endswith("+00:00")
        assert "2 waiting: waiting_provider, until 2" in told.err
        assert "dragoman translate a.json b.json --to fr --provider hired" in told.err
        again = tree.translate("a.json", "b.json", *HIRED)
        assert (again.code, again.object["manifest_id"]) == (4, told.object["manifest_id"])
        assert len(server.calls) == 1


@pytest.mark.usefixtures("_soon")
def test_a_lost_answer_of_a_free_provider_is_asked_for_again(tree: Desk) -> None:
    with answering("silent", "close", "reset") as server:
        tree.hire(server.url, more="call_timeout_seconds = 0.3")
        told = tree.translate("a.json", *HIRED)
        assert (told.code, told.object["outputs"]) == (0, ["a.fr.json"])
        assert sent(server) == [["Hello my friend"]] * 4


@pytest.mark.usefixtures("_soon")
def test_what_may_have_been_paid_is_held_and_listed_until_somebody_pays_again(tree: Desk) -> None:
    """Exit code 4 with the amount at risk and the command that releases it; that command ends the work."""
    with answering("close", "close") as server:
        tree.hire(server.url, priced=True)
        told = tree.translate("a.json", *HIRED)
        assert (told.code, len(server.calls)) == (4, 2)  # each lost call is bought once more at most
        [waiting] = told.object["waiting"]
        assert (waiting["document"], waiting["reason"], waiting["due_at"]) == (
            "a.json",
            "waiting_unknown",
            None,
        )
        cost = told.object["cost"]
        assert (cost["at_risk_calls"], cost["paid_tokens"]) == (2, 0)
        assert cost["at_risk_tokens"] > 0
        command = "dragoman translate a.json --to fr --provider hired"
        assert f"To pay them again: {command}" in told.err
        assert "--on-unknown resend:unlimited" in told.err
        assert f"({cost['at_risk_tokens']} tokens, $" in told.err
        still = tree.translate("a.json", *HIRED)
        assert (still.code, len(server.calls)) == (4, 2)
        assert desk_doctor(tree) == ["1 calls are held: nobody knows whether they were paid"]
        paid = tree.translate("a.json", *HIRED, "--on-unknown", "resend:unlimited")
        assert (paid.code, paid.object["outputs"], len(server.calls)) == (0, ["a.fr.json"], 3)
        assert paid.object["manifest_id"] == told.object["manifest_id"]
        assert paid.object["cost"]["at_risk_calls"] == 2
        assert desk_doctor(tree) == []


@pytest.mark.usefixtures("_soon")
def test_with_hold_nothing_is_bought_twice(tree: Desk) -> None:
    with answering("close") as server:
        tree.hire(server.url, priced=True)
        told = tree.translate("a.json", *HIRED, "--on-unknown", "hold")
        assert (told.code, len(server.calls)) == (4, 1)
        assert [waiting["reason"] for waiting in told.object["waiting"]] == ["waiting_unknown"]


def test_nothing_is_asked_inside_the_time_for_which_a_provider_slows_down(tree: Desk) -> None:
    """Nor by a rerun. The time is the provider's, and it is told."""
    with answering({"act": "slow_down", "retry_after": 300}) as server:
        tree.hire(server.url)
        told = tree.translate("a.json", "b.json", *HIRED)
        assert (told.code, len(server.calls)) == (4, 1)
        assert {waiting["reason"] for waiting in told.object["waiting"]} == {"waiting_provider"}
        assert tree.translate("a.json", "b.json", *HIRED).code == 4
        assert tree.translate("a.json", "--to", "de", "--provider", "hired").code == 4
        assert len(server.calls) == 1


def test_a_short_wait_is_waited_for(tree: Desk) -> None:
    """A time less than a minute away is no reason to end."""
    with answering({"act": "slow_down", "retry_after": 1}) as server:
        tree.hire(server.url)
        assert tree.translate("a.json", *HIRED).code == 0
        assert len(server.calls) == 2


def test_an_account_without_money_waits(tree: Desk) -> None:
    with answering("spend_limit") as server:
        tree.hire(server.url, priced=True)
        told = tree.translate("a.json", *HIRED)
        assert (told.code, told.object["cost"]["at_risk_calls"]) == (4, 0)
        assert [waiting["reason"] for waiting in told.object["waiting"]] == ["waiting_provider"]


def test_a_locale_that_the_provider_does_not_know_fails_before_any_call(tree: Desk) -> None:
    with answering() as server:
        tree.configure(
            f'[providers.hired]\nprotocol = "chat"\nbase_url = "{server.url}"\nmodel = "m"\n'
            'locales = ["en", "fr", "zh"]\n'
        )
        told = tree.translate("a.json", "--to", "fr,zh-Hant", "--provider", "hired")
        assert (told.code, told.object["outputs"]) == (3, ["a.fr.json"])
        [failure] = told.object["failures"]
        assert (failure["locale"], failure["code"]) == ("zh-Hant", "unsupported_locale")
        assert len(server.calls) == 1


def desk_doctor(desk: Desk) -> list[str]:
    """What the doctor finds."""
    told = desk.run("doctor", "--json")
    found = [finding["problem"] for finding in told.object["findings"]]
    assert told.code == (3 if found else 0)
    return found
