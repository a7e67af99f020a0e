"""A reply judged field by field: faults, and the warnings with which a good text goes to review."""

from __future__ import annotations

import pytest

from dragoman.content import prompting, verdicts
from dragoman.model.completions import Reply
from dragoman.model.documents import Text
from dragoman.model.jobs import Asked, Field


def field(value: Text, to: str = "de") -> Field:
    return Field(0, to, value, "icu", "", "", None, "s", "c", 0, ())


def judged(one: Field, answers: dict[str, str]) -> verdicts.Verdict:
    asked = [Asked(f"k{piece.category}", 0, piece.category) for piece in prompting.pieces(one)]
    reply = Reply(tuple((f"k{category}", text) for category, text in answers.items()), "complete")
    (verdict,) = verdicts.judge("en", asked, {0: one}, reply)
    return verdict


@pytest.mark.parametrize(
    ("answer", "review"), [("Sichern Sie die Datei.", ()), ("Sichern Sie die Datei", ("punctuation",))]
)
def test_a_text_with_warnings_is_good_and_goes_to_review(answer: str, review: tuple[str, ...]) -> None:
    verdict = judged(field("Save the file."), {"": answer})
    assert (verdict.value, verdict.faults, verdict.review) == (answer, (), review)
    assert verdicts.review("en", field("Save the file."), answer) == (review, True)


def test_the_warnings_of_all_forms_are_the_fields() -> None:
    value = {"one": "{n} file.", "other": "{n} files."}
    verdict = judged(field(value), {"one": "⟦1⟧ Datei.", "other": "⟦1⟧ Dateien"})
    assert verdict.value == {"one": "{n} Datei.", "other": "{n} Dateien"}
    assert verdict.review == ("punctuation",)
    assert verdict.value is not None
    assert verdicts.review("en", field(value), verdict.value) == (("punctuation",), True)


def test_a_fault_is_no_warning() -> None:
    verdict = judged(field("Save {name}"), {"": "Sichern"})
    assert verdict.value is None
    assert [fault.check for fault in verdict.faults] == ["placeholders"]
