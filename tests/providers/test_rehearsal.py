"""The rehearsal plays each move as the real world would, and keeps account of what it accepted."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.locales import choose_code
from dragoman.model.completions import CompletionRequest, PromptItem, ProviderAnswer
from dragoman.providers.rehearsal import MOVES, Move, RehearsalProvider
from tests.providers.calls import QUESTION

PLAYED: dict[Move, tuple[str, bool]] = {
    "answer": ("SUCCEEDED", True),
    "late": ("SUCCEEDED", True),
    "twice": ("SUCCEEDED", True),
    "missing": ("SUCCEEDED", True),
    "duplicate": ("SUCCEEDED", True),
    "broken": ("SUCCEEDED", True),
    "empty": ("SUCCEEDED", True),
    "length": ("SUCCEEDED", True),
    "cut": ("INVALID_RESPONSE_UNKNOWN", True),
    "garbage": ("INVALID_RESPONSE_UNKNOWN", True),
    "refuse": ("SUCCEEDED", True),
    "filter": ("REJECTED", False),
    "reject": ("REJECTED", False),
    "slow_down": ("REJECTED", False),
    "spend_limit": ("REJECTED", False),
    "lost": ("CONNECTION_UNKNOWN", True),
    "never": ("TIMEOUT_UNKNOWN", True),
    "unreachable": ("NOT_STARTED", False),
}
READ: dict[Move, tuple[str, list[str]]] = {
    "answer": ("complete", ["k2", "a7", "q9"]),
    "twice": ("complete", ["k2", "a7", "q9"]),
    "missing": ("complete", ["a7", "q9"]),
    "duplicate": ("complete", ["k2", "k2", "a7", "q9"]),
    "length": ("length", ["k2"]),
    "refuse": ("refused", []),
    "garbage": ("unreadable", []),
}


def rehearse(provider: RehearsalProvider, attempt_id: str = "attempt-1") -> ProviderAnswer:
    return asyncio.run(provider.send(provider.render(QUESTION), attempt_id, 0.05))


@pytest.mark.parametrize("move", MOVES)
def test_each_move_has_its_outcome_and_is_on_record_if_it_was_accepted(move: Move) -> None:
    provider = RehearsalProvider("r", choose_code, script=[move], late_seconds=0.01)
    outcome, accepted = PLAYED[move]
    assert rehearse(provider).outcome == outcome
    assert [call.attempt_id for call in provider.accepted] == (["attempt-1"] if accepted else [])
    assert [call.move for call in provider.calls] == ([] if move == "unreachable" else [move])


@pytest.mark.parametrize("move", READ)
def test_each_spoiled_answer_reads_as_what_it_is(move: Move) -> None:
    provider = RehearsalProvider("r", choose_code, script=[move])
    reply = provider.read(rehearse(provider).body or b"")
    assert (reply.finish, [name for name, _ in reply.items]) == READ[move]


def test_broken_markers_are_lost_or_one_too_many() -> None:
    provider = RehearsalProvider("r", choose_code, script=["broken", "broken"])
    assert provider.read(rehearse(provider).body or b"").items[0] == ("k2", "de Save ")
    plain = CompletionRequest("en", "de", (PromptItem("a7", "Cancel"),))
    answer = asyncio.run(provider.send(provider.render(plain), "attempt-2", 1))
    assert provider.read(answer.body or b"").items == (("a7", "de Cancel ⟦99⟧"),)


def test_an_answer_later_than_the_deadline_is_unknown_and_was_accepted() -> None:
    provider = RehearsalProvider("r", choose_code, script=["late"], late_seconds=10, askable=True)
    assert rehearse(provider).outcome == "TIMEOUT_UNKNOWN"
    found = asyncio.run(provider.ask("attempt-1", 1))
    assert found is not None
    assert provider.read(found.body or b"").finish == "complete"


def test_a_text_that_is_refused_is_refused_whatever_the_script_says() -> None:
    provider = RehearsalProvider("r", choose_code, script=["answer"], refuses=["Cancel"])
    assert provider.read(rehearse(provider).body or b"").finish == "refused"


def test_only_the_pause_and_the_empty_account_tell_what_they_are() -> None:
    provider = RehearsalProvider("r", choose_code, script=["slow_down", "spend_limit"], retry_after_seconds=7)
    slow, empty = rehearse(provider), rehearse(provider)
    assert (slow.code, slow.retry_after_seconds, slow.spend_limit) == ("PROVIDER_RATE_LIMITED", 7, False)
    assert (empty.code, empty.retry_after_seconds, empty.spend_limit) == ("PROVIDER_SPEND_LIMIT", None, True)


@given(st.integers(), st.lists(st.uuids().map(str), min_size=1, max_size=8, unique=True))
def test_the_weather_is_the_same_for_the_same_seed_in_any_order(seed: int, attempts: list[str]) -> None:
    weather: dict[Move, float] = {"missing": 0.3, "lost": 0.3, "slow_down": 0.2}
    forth, back = (RehearsalProvider("r", choose_code, seed=seed, weather=weather) for _ in range(2))
    for provider, order in ((forth, attempts), (back, attempts[::-1])):
        for attempt in order:
            rehearse(provider, attempt)
    assert {(call.attempt_id, call.move) for call in forth.calls} == {
        (call.attempt_id, call.move) for call in back.calls
    }


def test_the_weather_takes_about_its_share() -> None:
    provider = RehearsalProvider("r", choose_code, weather={"missing": 0.25})
    for number in range(400):
        rehearse(provider, f"attempt-{number}")
    assert 60 < sum(call.move == "missing" for call in provider.calls) < 140
