"""Fields and what a translator is shown of them, there and back; replies and what is made of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.content import locales, prompting
from dragoman.content.verdicts import judge
from dragoman.kernel.limits import GROUP_TOKENS_MAX
from dragoman.model.completions import Reply
from dragoman.model.documents import Text
from dragoman.model.jobs import Asked, Field


def field(value: Text, ordinal: int = 0, **more: Any) -> Field:
    return Field(
        ordinal=ordinal,
        target_locale=more.pop("target_locale", "fr"),
        value=value,
        syntax=more.pop("syntax", "none"),
        note=more.pop("note", ""),
        context=more.pop("context", ""),
        max_length=more.pop("max_length", None),
        source_hash="",
        context_hash="",
        **more,
    )


WORDS = st.text(st.characters(categories=("Ll", "Lu", "Zs")), min_size=1, max_size=30)


@given(WORDS, st.sampled_from(["fr", "pl", "ja", "ar"]))
def test_shown_texts_put_back_unchanged_are_the_source(text: str, locale: str) -> None:
    """A translator that changes nothing changes nothing."""
    asked = field(text, target_locale=locale)
    back = {piece.category: piece.source for piece in prompting.pieces(asked)}
    assert prompting.assembled(asked, back) == text


@given(
    st.dictionaries(st.sampled_from(["one", "few", "=0", "=1"]), WORDS),
    WORDS,
    st.sampled_from(["fr", "pl", "ja", "ar", "de"]),
)
def test_a_plural_has_the_forms_of_its_target_and_the_exact_ones_of_its_source(
    forms: dict[str, str], other: str, locale: str
) -> None:
    wanted = prompting.plural_sources({**forms, "other": other}, locale)
    exact = {category for category in forms if category.startswith("=")}
    assert set(wanted) == set(locales.plural_categories(locale)) | exact
    for category, text in wanted.items():
        assert text == forms.get(category, other)


def test_a_form_says_what_it_is_for() -> None:
    """The model sees the category and some of its numbers, the note and the context."""
    asked = field({"one": "file", "other": "files"}, target_locale="pl", note="a count", context="menu")
    notes = {piece.category: piece.note for piece in prompting.pieces(asked)}
    assert notes["few"] == "a count; context: menu; plural form `few`, for numbers like 2, 3, 4"


def test_sentences_of_an_icu_message_go_out_one_by_one() -> None:
    """A branch that holds nothing to translate is not shown, and stands as in the source."""
    asked = field("{n, plural, =0 {#} one {One file} other {# files}}", syntax="icu", target_locale="fr")
    shown = {piece.category: piece.protected.text for piece in prompting.pieces(asked)}
    assert "=0" not in shown
    assert shown["one"] == "One file"
    built = prompting.assembled(asked, dict.fromkeys(shown, "X"))
    assert isinstance(built, str)
    assert "=0 {#}" in built
    assert "one {X}" in built


@given(st.lists(st.tuples(WORDS, st.sampled_from(["fr", "de"])), min_size=1, max_size=60), st.integers(1, 9))
def test_groups_hold_every_field_once_in_order_and_one_locale_each(
    texts: list[tuple[str, str]], size_max: int
) -> None:
    """J-041: neighbours stay together, no group is too large."""
    fields = [field(text, n, target_locale=locale) for n, (text, locale) in enumerate(texts)]
    groups = list(prompting.groups(fields, size_max))
    assert sorted(one.ordinal for group in groups for one in group) == list(range(len(fields)))
    for group in groups:
        assert 1 <= len(group) <= size_max
        assert len({one.target_locale for one in group}) == 1
        ordinals = [one.ordinal for one in group]
        assert ordinals == sorted(ordinals)


def test_long_texts_make_small_groups() -> None:
    """Bounded by tokens as well as by count; a single text that is too long goes alone."""
    fields = [field("word " * GROUP_TOKENS_MAX, n) for n in range(3)]
    assert [len(group) for group in prompting.groups(fields, 20)] == [1, 1, 1]


ASKED = (Asked("a", 0, ""), Asked("b", 1, ""))
FIELDS = {0: field("Save the file", 0), 1: field("Open %s", 1, syntax="printf")}


def verdicts_of(*items: tuple[str, str]) -> dict[int, Any]:
    return {
        verdict.field.ordinal: verdict for verdict in judge("en", ASKED, FIELDS, Reply(items, "complete"))
    }


def test_answers_are_matched_by_id_and_each_stands_alone() -> None:
    """The order of the reply says nothing; one bad text spoils no other."""
    found = verdicts_of(("b", "Ouvrir"), ("a", "Enregistrer le fichier"))
    assert found[0].value == "Enregistrer le fichier"
    [fault] = found[1].faults
    assert (fault.check, fault.missing) == ("placeholders", ("%s",))
    assert found[1].answered


def test_what_nobody_asked_for_is_passed_over() -> None:
    found = verdicts_of(("zz", "Rien"), ("a", "Enregistrer le fichier"), ("b", "Ouvrir ⟦1⟧"))
    assert [found[n].value for n in (0, 1)] == ["Enregistrer le fichier", "Ouvrir %s"]


def test_a_doubled_id_is_rejected_and_a_missing_one_is_not_answered() -> None:
    found = verdicts_of(("a", "Enregistrer le fichier"), ("a", "Sauver le fichier"))
    assert (found[0].value, found[0].faults[0].check, found[0].answered) == (None, "doubled", True)
    assert (found[1].value, found[1].faults[0].check, found[1].answered) == (None, "missing", False)


def test_an_empty_answer_is_no_translation() -> None:
    found = verdicts_of(("a", "  "), ("b", "Ouvrir ⟦1⟧"))
    assert found[0].faults[0].check == "empty"


def test_a_text_over_its_limit_is_no_translation() -> None:
    fields = {0: field("Save", 0, max_length=5)}
    [verdict] = judge("en", (Asked("a", 0, ""),), fields, Reply((("a", "Enregistrer"),), "complete"))
    assert verdict.value is None


def test_a_plural_fails_as_one() -> None:
    """One bad form, and the whole field is asked for again."""
    fields = {0: field({"one": "%d file", "other": "%d files"}, 0, syntax="printf")}
    asked = (Asked("a", 0, "one"), Asked("b", 0, "other"), Asked("c", 0, "many"))
    reply = Reply((("a", "⟦1⟧ fichier"), ("b", "fichiers"), ("c", "⟦1⟧ fichiers")), "complete")
    [verdict] = judge("en", asked, fields, reply)
    assert verdict.value is None
    assert [fault.category for fault in verdict.faults] == ["other"]
