"""Checks: what a translation must keep, and what it may change."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.content.checks import CHECKS, Finding, check
from dragoman.content.figures import changed_figures, written_figures
from dragoman.content.passing import passes_through
from dragoman.content.protection import protect, restore
from dragoman.model.documents import Syntax
from dragoman.providers.pseudo import pseudo
from tests.content.corpus import strings, translations


def found(
    source: str,
    target: str,
    *,
    syntax: Syntax = "none",
    to: str = "es",
    source_locale: str = "en",
    max_length: int | None = None,
    glossary: Sequence[tuple[str, str]] = (),
) -> dict[str, Finding]:
    findings = check(
        source, target, syntax=syntax, source_locale=source_locale, target_locale=to,
        max_length=max_length, glossary=glossary,
    )  # fmt: skip
    return {finding.check: finding for finding in reversed(findings)}


def severities(findings: dict[str, Finding]) -> dict[str, str]:
    return {name: finding.severity for name, finding in findings.items()}


def test_a_good_translation_has_no_findings() -> None:
    assert not found("Delete %1$s (3 files)?", "¿Eliminar %1$s (3 archivos)?", syntax="printf")
    assert not found("See [the docs](https://a.example) *now*.", "*Ahora* vea [la guía](https://a.example).",
                     syntax="markdown")  # fmt: skip


def test_an_empty_translation_is_an_error_and_a_blank_source_stays_blank() -> None:
    assert severities(found("Hello", " ")) == {"empty": "error"}
    assert severities(found("  ", "x")) == {"empty": "error"}
    assert not found("  ", "  ")


def test_t1_variant_b_names_the_missing_placeholder() -> None:
    wrong = found("{{strong}}%s strings in {{languages/}}", "{{strong}}%s řetězců v {{jazyky/}}",
                  syntax="i18next", to="cs")  # fmt: skip
    assert wrong["placeholders"].severity == "error"
    assert wrong["placeholders"].missing == ("{{languages/}}",)
    assert "too many: {{jazyky/}}" in wrong["placeholders"].message


@pytest.mark.parametrize(
    ("source", "target", "syntax", "right"),
    [
        ("%1$s of %2$s", "%2$s de %1$s", "printf", True),
        ("%s of %d", "%d de %s", "printf", False),
        ("%s of %s", "%s de %s", "printf", True),
        ("%s files", "archivos", "printf", False),
        ("files", "%s archivos", "printf", False),
        ("{a} to {b}", "{b} a {a}", "icu", True),
        ("{a} to {b}", "{a} a {c}", "icu", False),
        ("{} of {}", "{} de {}", "python", True),
        ("Save 50% now", "Ahorra un 50 % ahora", "printf", True),
        ("%{count} days", "%{cuenta} días", "ruby", False),
    ],
)
def test_placeholders_are_the_sources(source: str, target: str, syntax: Syntax, right: bool) -> None:
    assert ("placeholders" not in found(source, target, syntax=syntax)) is right


T6 = "{productCount, plural, =1 {You have one product.} other {You have # products.}}"
POLISH = (
    "{productCount, plural, =1 {Masz jeden produkt.} one {Masz # produkt.} few {Masz # produkty.} "
    "many {Masz # produktów.} other {Masz # produktu.}}"
)


def test_t6_a_plural_that_lost_a_branch_fails() -> None:
    assert not found(T6, POLISH, syntax="icu", to="pl")
    without_exact = POLISH.replace("=1 {Masz jeden produkt.} ", "")
    assert found(T6, without_exact, syntax="icu", to="pl")["placeholders"].missing == (
        "{productCount, plural: =1}",
    )
    without_other = POLISH.replace(" other {Masz # produktu.}", "")
    assert found(T6, without_other, syntax="icu", to="pl")["placeholders"].severity == "error"
    without_number = POLISH.replace("many {Masz # ", "many {Masz ")
    assert found(T6, without_number, syntax="icu", to="pl")["placeholders"].missing == ("#",)
    said_in_words = POLISH.replace("one {Masz # produkt.}", "one {Masz jeden produkt.}")
    assert not found(T6, said_in_words, syntax="icu", to="pl")
    spelled = T6.replace("#", "{productCount}")
    assert not found(spelled, POLISH, syntax="icu", to="pl")
    without_name = POLISH.replace("other {Masz # ", "other {Masz {count} ")
    assert found(T6, without_name, syntax="icu", to="pl")["placeholders"].missing == ("#",)


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("API", None), ("OK 2024", None), ("GitHub", None), ("v2.1", None), ("%s", None), ("utf_8", None),
        ("https://a.example", None), ("README.md", None), ("iOS", None),
        ("Cancel", "warning"), ("Visual Studio Code", "warning"),
        ("The Rolling Stones Greatest Hits", "warning"),
        ("Please sign in to continue", "error"), ("Sign in with your %s account today", "error"),
    ],
)  # fmt: skip
def test_an_echo_is_told_from_a_legal_identity(text: str, severity: str | None) -> None:
    assert severities(found(text, text, syntax="printf")) == ({"untranslated": severity} if severity else {})


def test_an_echo_in_letters_without_case_is_found_by_length() -> None:
    text = "请先登录您的账户然后再继续操作"
    assert found(text, text, source_locale="zh", to="en")["untranslated"].severity == "error"
    assert found("登录", "登录", source_locale="zh", to="ja")["untranslated"].severity == "warning"


def test_the_same_language_may_keep_its_words() -> None:
    text = "Please sign in to continue"
    assert not found(text, text, to="en-GB")
    assert found("Молимо вас да се пријавите сада", "Молимо вас да се пријавите сада",
                 source_locale="sr", to="sr-Latn")["untranslated"].severity == "error"  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "syntax", "severity"),
    [
        ('<a href="/x">Go</a>', '<a href="/x">Ir</a>', "html", None),
        ('<a href="/x">Go</a>', '<a href="/y">Ir</a>', "html", "error"),
        ('<img src="a.png" alt="Cat">now', '<img src="a.png" alt="Gato">ya', "html", None),
        ("<b>Go</b> on", "Ir <i>ya</i>", "html", "error"),
        ("Write &lt;script&gt; here", "Escriba <script> aquí", "html", "error"),
        ("Write &lt;script&gt; here", "Escriba &lt;script&gt; aquí", "html", None),
        ("A [link](u) there", "Un [enlace](u) ahí", "markdown", None),
        ("A [link](u) there", "Un [enlace](v) ahí", "markdown", "error"),
        ("A [link](u) there", "Un enlace ahí", "markdown", "error"),
        ("A [link][] there", "Un [enlace][link] ahí", "markdown", None),
        ("A [link][x] there", "Un [enlace][link] ahí", "markdown", "error"),
        ("Run `go` now", "Ejecute `ir` ya", "markdown", "error"),
        ("Run\n```\ngo\n```", "Ejecute\n```\ngo", "markdown", "error"),
        ("{{< x >}} now", "ya", "markdown", "error"),
        ("It is **so** good", "Es tan bueno", "markdown", "warning"),
    ],
)
def test_markup_keeps_its_shape(source: str, target: str, syntax: Syntax, severity: str | None) -> None:
    finding = found(source, target, syntax=syntax).get("markup")
    assert (finding.severity if finding else None) == severity


def test_addresses_stay_letter_by_letter() -> None:
    source = "See https://a.example/?WT.mc_id=x or mail a@b.example"
    assert not found(source, "Vea https://a.example/?WT.mc_id=x o escriba a a@b.example")
    wrong = found(source, "Vea https://a.example/?WT_mc_id=x o escriba a a@b.example")
    assert wrong["addresses"].missing == ("https://a.example/?WT.mc_id=x",)


@pytest.mark.parametrize(
    ("source", "target", "to", "severity"),
    [
        ("1,000.5 km", "1.000,5 km", "de", None),
        ("1,000.5 km", "1\u202f000,5 km", "fr", None),
        ("1,234 files", "1 234 файла", "ru", None),
        ("1,000.5 km", "1,000.5 km", "de", None),
        ("1,000.5 km", "1.005 km", "de", "error"),
        ("In 2024", "En 2025", "es", "error"),
        ("42 files", "archivos", "es", "error"),
        ("3 files", "tres archivos", "es", "warning"),
        ("two files", "2 archivos", "es", "warning"),
        ("12/31/2024", "31.12.2024", "de", None),
        ("Version 2.0.1", "Versión 2.0.1", "es", None),
        ("at 3:30 PM", "um 15:30", "de", None),
        ("at 3:30 PM", "um 16:30", "de", "error"),
        ("1.5 million", "150万", "ja", "warning"),
        ("1,500", "١٬٥٠٠", "ar", None),
        ("0.50", "٠٫٥", "ar", None),
        ("Chapter 3", "第３章", "ja", None),
        ("12,34,567", "1.234.567", "de", None),
    ],
)
def test_numbers_are_equal_by_their_locales(source: str, target: str, to: str, severity: str | None) -> None:
    finding = found(source, target, to=to).get("numbers")
    assert (finding.severity if finding else None) == severity


@given(st.integers(0, 10**12), st.sampled_from(["de", "fr", "es", "de-CH", "pt-BR", "ru", "ar", "ja", "sv"]))
def test_any_whole_number_is_recognised_in_any_locale(number: int, locale: str) -> None:
    group = {"de": ".", "fr": "\u202f", "es": ".", "de-CH": "’", "pt-BR": ".", "ru": "\u00a0", "sv": " "}
    grouped = f"{number:,}".replace(",", group.get(locale, ","))
    assert changed_figures(written_figures(f"{number:,}"), grouped, "en", locale) == ((), (), False)


def test_length_is_limited_and_its_ratio_watched() -> None:
    assert found("Save", "Guardar", max_length=7) == {}
    assert severities(found("Save", "Guardar", max_length=6)) == {"length": "error"}
    prose = "A long sentence about something that a model cut off in its middle because it had to stop."
    assert severities(found(prose, "Una frase.")) == {"length": "warning"}
    assert not found(prose, "关于模型因必须停止而在中途截断的某事的一个长句子。", to="zh")


@pytest.mark.parametrize(
    ("source", "target", "to", "right"),
    [
        ("Ready.", "准备好了。", "zh", True),
        ("Ready?", "Έτοιμο;", "el", True),
        ("Ready?", "جاهز؟", "ar", True),
        ("Ready.", "พร้อม", "th", True),
        ("Ready...", "Listo…", "es", True),
        ("(Ready.)", "(Listo.)", "es", True),
        ("Ready.", "Listo", "es", False),
        ("Ready", "Listo.", "es", False),
        ("Ready:", "準備：", "ja", True),
    ],
)
def test_the_last_sign_is_the_languages_own(source: str, target: str, to: str, right: bool) -> None:
    assert severities(found(source, target, to=to)) == ({} if right else {"punctuation": "warning"})


def test_brackets_pair_up() -> None:
    assert severities(found("Save (all)", "Guardar (todo")) == {"brackets": "warning"}
    assert not found("Save (all)", "保存（全部）", to="zh")
    assert not found("Save", "[Guardar]")


def test_whitespace_and_line_breaks_are_kept() -> None:
    assert severities(found("Save ", "Guardar")) == {"whitespace": "warning"}
    assert severities(found("One\ntwo", "Uno dos")) == {"whitespace": "warning"}
    assert not found("One\ntwo", "Uno dos", syntax="markdown")


@pytest.mark.parametrize("character", ["\u202e", "\u200f", "\x07", "\ufffd", "\u200b", "\x85"])
def test_no_control_or_direction_character_is_added(character: str) -> None:
    wrong = found("Save it", f"Guárdalo{character} ya")
    assert severities(wrong) == {"controls": "error"}
    assert f"U+{ord(character):04X}" in wrong["controls"].message
    assert not found(f"Save{character} it", f"Guárdalo{character} ya")


def test_a_direction_mark_is_usual_in_a_right_to_left_text_only() -> None:
    assert severities(found("Price: $5", "السعر: \u200f$5", to="ar")) == {"controls": "warning"}
    assert severities(found("Price: $5", "السعر: \u202e$5", to="ar")) == {"controls": "error"}
    assert severities(found("Save\u200f it", "احفظه", to="ar")) == {"controls": "warning"}


def test_joiners_that_a_script_needs_are_no_controls() -> None:
    assert not found("Books", "کتاب\u200cها", to="fa")


@pytest.mark.parametrize(
    "target",
    ["Guardar ⟦1⟧", "Guardar ⟧", 'Guardar {"id": "k2"}', "I'm sorry, but I can't translate this",
     "As an AI model, no", "Here is the translation: Guardar"],
)  # fmt: skip
def test_nothing_of_the_conversation_leaks(target: str) -> None:
    assert found("Save", target)["leaks"].severity == "error"


def test_a_sign_of_the_source_is_no_leak() -> None:
    assert not found("Press ⟦1⟧ now", "Pulse ⟦1⟧ ya")


def test_a_glossary_term_is_used_and_may_be_inflected() -> None:
    glossary = (("string", "řetězec"), ("server", "server"))
    assert not found("This string is here", "Tento řetězec je zde", to="cs", glossary=glossary)
    assert not found("These string values", "Hodnoty řetězce", to="cs", glossary=glossary)
    wrong = found("This string is here", "Tento text je zde", to="cs", glossary=glossary)
    assert wrong["glossary"].missing == ("řetězec",)
    assert not found("Substrings", "Podřetězce", to="cs", glossary=(("string", "x"),))


def test_errors_come_first() -> None:
    findings = check("Save %s.", "Guardar", syntax="printf", source_locale="en", target_locale="es")
    assert [finding.severity for finding in findings] == ["error", "warning"]
    assert {finding.check for finding in findings} <= set(CHECKS)


def test_pseudo_localized_texts_of_the_whole_corpus_pass() -> None:
    wrong = []
    for text, syntax in strings():
        if passes_through(text, syntax) or "⟦" in text:
            continue
        protected = protect(text, syntax)
        target = restore(protected, pseudo(protected.text))
        findings = check(text, target, syntax=syntax, source_locale="en", target_locale="de")
        wrong += [(text, target, finding) for finding in findings if finding.severity == "error"]
    assert not wrong[:3]


def test_translations_by_people_pass() -> None:
    findings = [
        (source, finding)
        for source, target, locale, syntax in translations()
        for finding in check(source, target, syntax=syntax, source_locale="en", target_locale=locale)
    ]
    assert [pair for pair in findings if pair[1].severity == "error"] == []
    assert len(findings) < 200, "warnings that are given for every other text are read by nobody"


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=80),
    st.text(max_size=80),
    st.sampled_from(["printf", "icu", "markdown", "html", "python"]),
)
def test_any_two_texts_can_be_checked(source: str, target: str, syntax: Syntax) -> None:
    for finding in check(source, target, syntax=syntax, source_locale="en", target_locale="ar"):
        assert finding.severity in ("error", "warning")
    same = check(source, source, syntax=syntax, source_locale="en", target_locale="en-GB")
    assert [finding.check for finding in same if finding.severity == "error"] == []
