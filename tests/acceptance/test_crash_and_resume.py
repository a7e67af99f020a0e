"""Case T12: four chunks of five texts, kill -9 after the second is answered, before and after its commit."""

from __future__ import annotations

import pytest

from tests.surfaces.cli.desk import Desk, ThreadedServer, Told, answering, sent

TEXTS = {f"k{number:02}": f"Hello number {number}" for number in range(20)}
WORDS = ("translate", "a.json", "--to", "fr", "--provider", "hired", "--json")
PRICES = pytest.mark.parametrize("priced", [False, True], ids=["unpriced", "priced"])


def hire(desk: Desk, server: ThreadedServer, priced: bool) -> None:
    desk.write("a.json", TEXTS)
    desk.hire(server.url, priced=priced, more="batch_size = 5\nconcurrency = 1")


def killed(desk: Desk, moment: str, call: int, *more: str) -> None:
    """Run until the process dies at this moment of this call."""
    told = desk.end(desk.start(moment, str(call), *WORDS, *more, module="tests.acceptance.dying"))
    assert (told.code, told.out) == (-9, ""), told.err


def assert_all_is_there_and_charged_once(desk: Desk, told: Told, server: ThreadedServer, lost: int) -> None:
    """20 of 20; each text was paid for once on the books, however often it was sent."""
    assert (told.code, told.object["status"]) == (0, "completed"), told
    assert desk.texts("a.fr.json") == {key: f"fr {text}" for key, text in TEXTS.items()}
    assert told.object["cost"]["provider_fields"] == 20
    usage = desk.rows("ai_usage", "attempt_id", "total_tokens", "wasted")
    assert len(usage) == 4
    assert not any(row.wasted for row in usage)
    assert sum(row.total_tokens for row in usage) == told.object["cost"]["paid_tokens"]
    assert told.object["cost"]["at_risk_calls"] == lost
    assert sum(server.charged) - told.object["cost"]["paid_tokens"] == (server.charged[1] if lost else 0)
    assert desk.run("doctor").code == 0


@PRICES
def test_b_after_the_commit_nothing_is_asked_twice(any_desk: Desk, priced: bool) -> None:
    """Exactly four calls in all; the rerun resumes unaided, and at once."""
    with answering() as server:
        hire(any_desk, server, priced)
        killed(any_desk, "after-commit", 2)
        assert len(server.calls) == 2
        told = any_desk.run(*WORDS)
        assert [len(texts) for texts in sent(server)] == [5, 5, 5, 5]
        assert sorted(text for texts in sent(server) for text in texts) == sorted(TEXTS.values())
        assert_all_is_there_and_charged_once(any_desk, told, server, lost=0)


@PRICES
def test_a_before_the_commit_one_call_is_repeated_and_declared(any_desk: Desk, priced: bool) -> None:
    """The very same bytes but for the attempt's id, on record as lost and, where it has a price, at risk."""
    with answering() as server:
        hire(any_desk, server, priced)
        killed(any_desk, "before-commit", 2)
        assert len(server.calls) == 2
        told = any_desk.run(*WORDS)
        assert [len(texts) for texts in sent(server)] == [5, 5, 5, 5, 5]
        assert server.calls[2].body == server.calls[1].body
        assert server.calls[2].attempt_id != server.calls[1].attempt_id
        assert_all_is_there_and_charged_once(any_desk, told, server, lost=1)
        attempts = any_desk.rows("attempts", "id", "outcome", "provider", "reserved_tokens")
        [lost] = [row for row in attempts if row.outcome == "CONNECTION_UNKNOWN" and row.provider != "engine"]
        assert lost.id == server.calls[1].attempt_id
        assert (lost.reserved_tokens > 0) is priced
        assert (told.object["cost"]["at_risk_tokens"] > 0) is priced
        approvals = any_desk.rows("approvals", "kind")
        assert [row.kind for row in approvals] == (["policy:resend"] if priced else [])


def test_a_with_hold_the_lost_call_waits_for_a_person_and_the_others_are_done(desk: Desk) -> None:
    """Nobody pays twice by himself: exit code 4, then 20 of 20 once somebody says so."""
    with answering() as server:
        hire(desk, server, priced=True)
        killed(desk, "before-commit", 2, "--on-unknown", "hold")
        told = desk.run(*WORDS)
        assert told.code == 4
        assert [waiting["reason"] for waiting in told.object["waiting"]] == ["waiting_unknown"]
        assert [len(texts) for texts in sent(server)] == [5, 5, 5, 5]
        told = desk.run(*WORDS, "--on-unknown", "resend:unlimited")
        assert len(server.calls) == 5
        assert_all_is_there_and_charged_once(desk, told, server, lost=1)


def test_killed_again_and_again_it_ends_the_same(desk: Desk) -> None:
    """Four deaths in a row: each costs one more call at most."""
    with answering() as server:
        hire(desk, server, priced=False)
        for _ in range(2):
            killed(desk, "before-commit", 1)
            killed(desk, "after-commit", 1)
        told = desk.run(*WORDS)
        assert told.code == 0
        assert desk.texts("a.fr.json") == {key: f"fr {text}" for key, text in TEXTS.items()}
        assert len(server.calls) == 6
        assert told.object["cost"]["at_risk_calls"] == 2
