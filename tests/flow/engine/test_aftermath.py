"""What follows from a reply: every field ends, or is asked for again, and never for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.verdicts import Fault, Verdict
from dragoman.flow.engine.translation.aftermath import aftermath
from dragoman.kernel.limits import CALLS_PER_FIELD_MAX
from dragoman.model.completions import Finish
from dragoman.model.jobs import Field, Purpose

FAULT = Fault("", "placeholders", "The markers are not those of the source.", ("%s",))


def field(ordinal: int, calls: int = 0) -> Field:
    return Field(ordinal, "fr", f"text {ordinal}", "none", "", "", None, "", "", calls)


def good(ordinal: int) -> Verdict:
    return Verdict(field(ordinal), "texte", (), answered=True)


def faulty(ordinal: int, calls: int = 0) -> Verdict:
    return Verdict(field(ordinal, calls), None, (FAULT,), answered=True)


def silent(ordinal: int, calls: int = 0) -> Verdict:
    return Verdict(field(ordinal, calls), None, (FAULT,), answered=False)


def test_faults_of_a_group_go_into_one_repair_call() -> None:
    after = aftermath("first", [good(0), faulty(1), faulty(2)], "complete")
    assert [verdict.field.ordinal for verdict in after.good] == [0]
    [again] = after.again
    assert (again.purpose, [verdict.field.ordinal for verdict in again.verdicts]) == ("repair", [1, 2])
    assert again.counted
    assert not after.failed


def test_faults_of_a_repair_are_asked_for_alone() -> None:
    after = aftermath("repair", [faulty(1, 1), faulty(2, 1)], "complete")
    assert [(again.purpose, len(again.verdicts)) for again in after.again] == [("alone", 1), ("alone", 1)]


def test_a_repair_of_one_field_was_its_last_call() -> None:
    after = aftermath("repair", [faulty(1, 1)], "complete")
    assert [code for _, code in after.failed] == ["checks_failed"]
    assert not after.again


def test_the_rest_of_a_cut_reply_is_halved_and_not_counted() -> None:
    after = aftermath("first", [good(0), *(silent(n) for n in range(1, 6))], "length")
    assert [(again.purpose, len(again.verdicts), again.counted) for again in after.again] == [
        ("split", 3, False),
        ("split", 2, False),
    ]


def test_a_cut_reply_with_a_fault_in_it_asks_for_both_kinds() -> None:
    after = aftermath("first", [faulty(0), silent(1)], "length")
    assert [(again.purpose, len(again.verdicts)) for again in after.again] == [("repair", 1), ("split", 1)]


def test_a_refused_text_alone_fails_by_itself() -> None:
    after = aftermath("bisect", [silent(3)], "refused")
    assert [(verdict.field.ordinal, code) for verdict, code in after.failed] == [(3, "content_refused")]


def test_a_refused_group_is_halved() -> None:
    after = aftermath("first", [silent(n) for n in range(5)], "refused")
    assert [(again.purpose, len(again.verdicts)) for again in after.again] == [("bisect", 3), ("bisect", 2)]


@given(
    st.sampled_from(["first", "repair", "alone", "split", "bisect"]),
    st.lists(st.tuples(st.sampled_from([good, faulty, silent]), st.integers(0, 2)), min_size=1, max_size=8),
    st.sampled_from(["complete", "length", "unreadable", "refused"]),
)
def test_every_field_has_exactly_one_fate(
    purpose: Purpose, drawn: list[tuple[object, int]], finish: Finish
) -> None:
    verdicts = []
    for ordinal, (make, calls) in enumerate(drawn):
        made = make(ordinal)  # type: ignore[operator]
        verdicts.append(made._replace(field=made.field._replace(calls=calls)))
    after = aftermath(purpose, verdicts, finish)
    fates = [verdict.field.ordinal for verdict in after.good]
    fates += [verdict.field.ordinal for verdict, _ in after.failed]
    fates += [verdict.field.ordinal for again in after.again for verdict in again.verdicts]
    assert sorted(fates) == list(range(len(verdicts)))


@given(st.integers(1, 12), st.randoms(use_true_random=False))
def test_whatever_a_provider_answers_the_asking_ends(count: int, random: object) -> None:
    """No script of faults, cuts and refusals keeps a job for ever, and none asks a field too often."""
    waiting: list[tuple[Purpose, list[Field]]] = [("first", [field(n) for n in range(count)])]
    counted = dict.fromkeys(range(count), 0)
    calls = 0
    while waiting:
        purpose, fields = waiting.pop()
        calls += 1
        assert calls <= 8 * count + 8
        finish: Finish = random.choice(["complete", "length", "unreadable", "refused"])  # type: ignore[attr-defined]
        verdicts = [
            random.choice([faulty, silent])(one.ordinal, one.calls)  # type: ignore[attr-defined]
            for one in fields
        ]
        for again in aftermath(purpose, verdicts, finish).again:
            following = []
            for verdict in again.verdicts:
                ordinal = verdict.field.ordinal
                counted[ordinal] += again.counted
                following.append(verdict.field._replace(calls=counted[ordinal]))
            waiting.append((again.purpose, following))
    assert all(count <= CALLS_PER_FIELD_MAX - 1 for count in counted.values())
