"""ICU messages: sentences are translated, their code is rebuilt for the target."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.plurals import icu_gaps, join_icu, split_icu, target_sentences
from dragoman.content.protection import protect, restore
from tests.content.corpus import strings

T6 = "{productCount, plural, =1 {You have one product.} other {You have # products.}}"
POLISH = {
    "You have one product.": "Masz jeden produkt.",
    "You have # products.": "Masz # produktów.",
}


def translated(text: str, locale: str, words: dict[str, str]) -> str:
    cut = split_icu(text)
    assert cut is not None
    skeleton, sentences = cut
    return join_icu(
        skeleton,
        {key: words[said] for key, said in target_sentences(skeleton, sentences, locale).items()},
        locale,
    )


def test_t6_icu_plural_gets_the_targets_categories_and_keeps_the_exact_branch() -> None:
    polish = translated(T6, "pl", POLISH)
    assert polish == (
        "{productCount, plural, =1 {Masz jeden produkt.} one {Masz # produktów.} few {Masz # produktów.} "
        "many {Masz # produktów.} other {Masz # produktów.}}"
    )
    assert icu_gaps(T6, polish, "pl") == ()
    assert icu_gaps(T6, polish.replace("=1 {Masz jeden produkt.} ", ""), "pl") == (
        "{productCount, plural: =1}",
    )
    assert icu_gaps(T6, polish.replace(" other {Masz # produktów.}", ""), "pl") == (
        "a well-formed plural or select",
    )
    assert icu_gaps(T6, polish.replace("productCount", "liczba"), "pl") == (
        "{productCount, plural}",
        "no further choice {liczba, plural}",
    )


def test_an_exact_branch_speaks_for_a_category_of_that_one_number() -> None:
    source = "{n, plural, =0 {none} =1 {1 stop} other {# stops}}"
    assert icu_gaps(source, "{n,plural,=0{keiner}=1{1 Halt}other{# Halte}}", "de") == ()
    assert icu_gaps(source, "{n,plural,=0{нет}=1{1 место}few{# места}many{# мест}other{# места}}", "ru") == (
        "{n, plural: one}",
    )
    assert icu_gaps(source, "{n,plural,=0{0}=1{1}few{f}many{m}other{#}}", "ar") == ("{n, plural: two}",)


@pytest.mark.parametrize(
    ("message", "sentences"),
    [
        ("Found {n, plural, one {# file} other {# files}} in {dir}.",
         {"one": "Found # file in {dir}.", "other": "Found # files in {dir}."}),
        ("{n, plural, offset:1 =0 {Nobody} one {{who} and # other} other {# more}}",
         {"=0": "Nobody", "one": "{who} and # other", "other": "# more"}),
        ("{g, select, female {her} other {their}} #1", {"female": "her #1", "other": "their #1"}),
        ("{n, plural, one {a} other {b}} is #1", {"one": "a is '#'1", "other": "b is '#'1"}),
        ("{g, select, f {{n, plural, one {her #} other {her #s}}} other {they}}",
         {"f/one": "her #", "f/other": "her #s", "other/one": "they", "other/other": "they"}),
        ("{a, plural, one {# a} other {# as}}, {b, plural, one {# b} other {# bs}}",
         {"one/one": "{a, number} a, # b", "one/other": "{a, number} a, # bs",
          "other/one": "{a, number} as, # b", "other/other": "{a, number} as, # bs"}),
        ("{n, plural, other {it''s '{'literal'}'}}", {"other": "it''s '{'literal'}'"}),
        ("{n, selectordinal, one {#st} other {#th}}", {"one": "#st", "other": "#th"}),
    ],
)  # fmt: skip
def test_each_sentence_is_whole(message: str, sentences: dict[str, str]) -> None:
    cut = split_icu(message)
    assert cut is not None
    assert cut[1] == sentences
    skeleton, said = cut
    built = join_icu(skeleton, target_sentences(skeleton, said, "de"), "de")
    assert icu_gaps(message, built, "de") == ()


@pytest.mark.parametrize(
    "message",
    [
        "Hello {name}", "{n, number} files", "'{n, plural, other {x}}'", "", "}", "{",
        "{n, plural, one {x}}", "{n, plural, one {x} other {y}", "{n, plural, one {x} one {y} other {z}}",
        "{n, plural, one {x} other {y}}}",
        "{n, plural, one {x} other {y}} {n, plural, one {p} few {q} other {r}}",
        "{a, plural, offset:1 other {# {b, plural, other {#}}}}",
        "{a, select, " + " ".join(f"k{i} {{x}}" for i in range(60)) + " other {y}}",
        "{a, select, other {" * 3000,
    ],
)  # fmt: skip
def test_what_is_no_choice_or_cannot_be_cut_is_left_whole(message: str) -> None:
    assert split_icu(message) is None


def test_offset_and_ordinals_are_kept() -> None:
    message = "{n, plural, offset:2 =0 {none} one {# one} other {# all}}"
    cut = split_icu(message)
    assert cut is not None
    assert join_icu(*cut, "en") == message
    ordinal = split_icu("{n, selectordinal, one {#st} two {#nd} few {#rd} other {#th}}")
    assert ordinal is not None
    swedish = target_sentences(*ordinal, "sv")
    assert list(swedish) == ["one", "other"]


def test_an_apostrophe_at_a_sentences_end_does_not_swallow_the_brace() -> None:
    cut = split_icu("{n, plural, one {until} other {until}}")
    assert cut is not None
    message = join_icu(cut[0], {"one": "jusqu'", "many": "'{'", "other": "jusqu''"}, "fr")
    assert message == "{n, plural, one {jusqu''} many {'{'} other {jusqu''}}"
    assert icu_gaps("{n, plural, one {until} other {until}}", message, "fr") == ()


def test_a_missing_sentence_is_an_error() -> None:
    cut = split_icu(T6)
    assert cut is not None
    with pytest.raises(KeyError):
        join_icu(cut[0], {"=1": "a", "other": "b"}, "pl")


def test_every_choice_of_the_corpus_is_cut_and_built_again() -> None:
    cuts = [(text, cut) for text, syntax in strings() if syntax == "icu" and (cut := split_icu(text))]
    assert len(cuts) > 10
    for text, (skeleton, sentences) in cuts:
        built = join_icu(skeleton, target_sentences(skeleton, sentences, "en"), "en")
        assert icu_gaps(text, built, "en") == ()
        protected = [protect(sentence, "icu") for sentence in sentences.values()]
        assert [restore(one, one.text) for one in protected] == list(sentences.values())


@given(st.text(alphabet="{}'#, abplurseothnx=1:0", max_size=60))
def test_any_text_is_cut_or_left_whole(text: str) -> None:
    cut = split_icu(text)
    if cut is not None:
        assert split_icu(join_icu(*cut, "ja")) is not None


@given(st.lists(st.sampled_from(["# ", "a", "'", "''", "{x}", "'{'", "'#'", " "]), max_size=8).map("".join))
def test_a_sentence_survives_being_built_in(sentence: str) -> None:
    cut = split_icu(f"{{n, plural, other {{{sentence}}}}}")
    if cut is not None:
        assert split_icu(join_icu(*cut, "ja")) == cut
