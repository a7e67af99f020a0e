"""A short slice of the simulation, for every run of the suite; `make simulate` runs all of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation import mutants
from tests.simulation.__main__ import main
from tests.simulation.faults import WIRE, Kind, one
from tests.simulation.hunt import calm, caught, judged, play
from tests.simulation.settings import (
    CALM,
    CANARY,
    FAR,
    FAR_ASKED,
    ONE_FILE,
    SCOPE,
    Setting,
    far_of_seed,
    of_seed,
)
from tests.simulation.shelves import LOCALES, SHARED, SHELVES


def test_a_calm_world_translates_everything_and_puts_it_in_place() -> None:
    outcome = calm()
    assert outcome.problems == []
    assert list(outcome.states.values()) == [["completed"]] * 6
    assert set(outcome.targets) == {f"{locale}/{name}" for locale in LOCALES for name in SHELVES["usual"]}
    assert b"fr Your cart is empty" in outcome.targets["fr/shop.json"]
    assert outcome.places["commit"] > 20


def test_a_file_of_all_locales_holds_each_and_loses_only_what_is_taken_back() -> None:
    outcome = judged(ONE_FILE)
    assert outcome.problems == []
    _, said = SHARED["Shop.xcstrings"].read(outcome.targets["Shop.xcstrings"])
    assert said == {"de": {}, "fr": {"empty": "fr Your cart is empty", "pay": "fr Pay %@ now"}}


@pytest.mark.parametrize("share", [0.05, 0.25, 0.35, 0.45, 0.55, 0.65, 0.8, 0.95])
def test_a_process_killed_on_the_way_changes_nothing_of_the_end(share: float) -> None:
    outcome = judged(CALM.struck(one("point", round(calm().places["point"] * share), "kill")))
    assert outcome.problems == [], str(outcome.setting)
    assert any("***" in line.text for line in outcome.story), "the fault has struck"


@pytest.mark.parametrize("setting", [SCOPE, CANARY], ids=["scope", "canary"])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.15, 0.2, 0.7])
def test_a_walk_and_a_canary_end_the_same_wherever_their_process_dies(setting: Setting, share: float) -> None:
    """[C-035, C-083]"""
    points = play(setting).places["point"] if share else 0
    outcome = judged(setting.struck(one("point", round(points * share), "kill")) if share else setting)
    assert outcome.problems == [], str(outcome.setting)
    assert all("completed" in states for states in outcome.states.values())


@pytest.mark.parametrize("share", [0.0, 0.8, 0.85, 0.9, 0.95])
def test_all_that_was_taken_back_is_published_again_wherever_a_process_dies(share: float) -> None:
    """By pages of plans, and by pages of what had settled."""
    setting = replace(CALM, is_small=True, people=("reprint",))
    struck = one("point", round(play(setting).places["point"] * share), "kill")
    outcome = judged(setting.struck(struck) if share else setting)
    assert outcome.problems == [], str(outcome.setting)
    assert all("de/" in target or "fr/" in target for target in outcome.targets)
    assert len(outcome.targets) == 6


@pytest.mark.parametrize("seed", range(12))
def test_worlds_of_seeds_settle_and_every_count_is_true(seed: int) -> None:
    outcome = judged(of_seed(seed))
    assert outcome.problems == [], str(outcome.setting)


def test_a_far_engine_translates_the_same_on_a_database_of_its_own() -> None:
    outcome = judged(FAR)
    assert outcome.problems == []
    assert outcome.targets == calm().targets
    assert outcome.places["wire"] >= 3, "capacity, a submission, an event"


@pytest.mark.parametrize("number", [2, 3], ids=["submission", "event"])
@pytest.mark.parametrize("kind", WIRE)
def test_a_network_that_fails_once_changes_nothing_of_the_end(number: int, kind: Kind) -> None:
    """[M-156, M-158] whatever becomes of a submission or an event on its way."""
    outcome = judged(FAR.struck(one("wire", number, kind)))
    assert outcome.problems == [], str(outcome.setting)
    assert any("***" in line.text and "POST" in line.text for line in outcome.story), "the fault has struck"


@pytest.mark.parametrize("kind", ["refused", "cut short", "answer lost", "gateway"])
def test_what_nobody_calls_back_about_is_asked_for(kind: Kind) -> None:
    outcome = judged(FAR_ASKED.struck(one("wire", 3, kind)))
    assert outcome.problems == [], str(outcome.setting)
    assert not any("POST /v1/callbacks" in line.text for line in outcome.story)


@pytest.mark.parametrize("seed", range(6))
def test_far_worlds_of_seeds_settle_and_both_sides_agree(seed: int) -> None:
    outcome = judged(far_of_seed(seed))
    assert outcome.problems == [], str(outcome.setting)


@pytest.mark.parametrize("seed", [3, 7, 10, 12])
def test_what_a_far_engine_has_lost_is_given_up_and_translated_by_its_next_job(seed: int) -> None:
    """Its database is put back as it was some time ago; what it had answered since, it knows no more."""
    outcome = judged(replace(FAR, seed=seed, is_shuffled=True, people=("restore",)))
    assert outcome.problems == [], str(outcome.setting)
    assert all(states[-1] == "completed" for states in outcome.states.values())


@pytest.mark.parametrize("kind", [None, "answer lost", "refused"])
def test_events_of_both_secrets_arrive_while_one_is_changed(kind: Kind | None) -> None:
    """[M-102] under whichever of them a submission was first sent."""
    setting = replace(FAR, is_shuffled=True, people=("rotate",))
    outcome = judged(setting.struck(one("wire", 2, kind)) if kind else setting)
    assert outcome.problems == [], str(outcome.setting)


@pytest.mark.parametrize("setting", [of_seed(5), far_of_seed(5)], ids=["near", "far"])
def test_the_same_seed_tells_the_same_story(setting: Setting) -> None:
    first, again = play(setting), play(setting)
    assert [str(line) for line in first.story] == [str(line) for line in again.story]
    assert first.targets == again.targets
    assert first.places == again.places


@pytest.mark.parametrize("mutant", sorted(mutants.ALL))
def test_a_planted_mutant_is_caught(mutant: str) -> None:
    found = caught(mutant)
    assert found is not None, f"no world has caught {mutant}"


def test_a_wrong_world_is_told_once_more_at_the_very_end(capsys: pytest.CaptureFixture[str]) -> None:
    """What comes after it would push its cause out of a journal that keeps last lines alone."""
    calm()
    with mutants.ALL["a recount before the move"].plant():
        assert main(["--exhaustive"]) == 1
    *_, setting, problem, again = capsys.readouterr().out.splitlines()
    assert setting.startswith("wrong: seed 0: usual documents")
    assert "a recount says" in problem
    assert again == "  again: python -m tests.simulation --strike 'point:1:kill'"
