"""Whole files: what is missing, lost, unfinished, said in two ways; plural forms; lines."""

from __future__ import annotations

import pytest

from dragoman.content.declared import declared_locales
from dragoman.content.inspection import FILE_CHECKS, Remark, inspect
from dragoman.content.layouts import standing
from dragoman.model.documents import Block, Document, Role, Span

GETTEXT, ICU = "gettext", "json"


def document(role: Role, locale: str, blocks: list[Block], form: str = ICU) -> Document:
    """A file in which each block has a line of its own, the first in line 1."""
    placed = tuple(block._replace(spans=(Span(at * 2, at * 2 + 1),)) for at, block in enumerate(blocks))
    return Document(form, "x\n" * len(blocks), placed, role, locale)


def text(key: str, words: str, **more: object) -> Block:
    return Block(key, words, (), **more)  # type: ignore[arg-type]


def plural(key: str, **forms: str) -> Block:
    shown = {name.replace("exactly_", "="): form for name, form in forms.items()}
    return Block(key, next(iter(forms.values())), (), shown, "icu")


def remarks(
    source: list[Block], target: list[Block], to: str = "de", form: str = ICU
) -> list[tuple[str, ...]]:
    found = inspect(document("source", "en", source, form), document("target", to, target, form))
    return [_shown(remark) for remark in found]


def _shown(remark: Remark) -> tuple[str, ...]:
    return f"{remark.line}:{remark.key}", remark.finding.check, remark.finding.severity


def test_a_good_translation_has_no_remarks() -> None:
    assert not remarks(
        [text("a", "Save"), text("b", "%s", syntax="printf")], [text("a", "Sichern"), text("b", "%s")]
    )


def test_what_is_missing_lost_empty_or_unfinished_is_told_with_its_line() -> None:
    source = [text("a", "Save"), text("b", "Open"), text("c", "Close"), text("d", "2024")]
    target = [
        text("b", ""),
        text("gone", "Weg"),
        text("c", "Zu", state="fuzzy"),
        text("old", "Alt", state="obsolete"),
    ]
    assert remarks(source, target) == [
        ("1:b", "missing", "warning"),
        ("1:a", "missing", "warning"),
        ("2:gone", "lost", "warning"),
        ("3:c", "unfinished", "warning"),
    ]


def test_an_unfinished_text_that_is_still_the_source_is_only_unfinished() -> None:
    source = [text("a", "Please save the file now")]
    assert remarks(source, [text("a", "Please save the file now", state="untranslated")]) == [
        ("1:a", "unfinished", "warning")
    ]


def test_errors_stand_at_their_text() -> None:
    source = [text("a", "Save"), text("b", "Hello {name}", syntax="icu")]
    assert ("2:b", "placeholders", "error") in remarks(source, [text("a", "Sichern"), text("b", "Hallo")])


def test_one_source_is_translated_in_one_way() -> None:
    source = [text("a", "Open"), text("b", "Open"), text("c", "Open", context="adjective")]
    target = [text("a", "Öffnen"), text("b", "Aufmachen"), text("c", "Offen")]
    assert remarks(source, target) == [("2:b", "inconsistent", "warning")]


@pytest.mark.parametrize(
    ("to", "forms", "missing"),
    [
        ("de", {"one": "# Datei", "other": "# Dateien"}, {}),
        ("ru", {"one": "# файл", "few": "# файла", "many": "# файлов", "other": "# файла"}, {}),
        ("ru", {"one": "# файл", "other": "# файла"}, {"few": "error", "many": "error"}),
        ("ja", {"other": "# 件"}, {}),
        ("fr", {"one": "# fichier", "other": "# fichiers"}, {"many": "warning"}),
        ("de", {"exactly_1": "Eine Datei", "other": "# Dateien"}, {}),
        ("de", {"one": "# Datei"}, {"other": "error"}),
        ("ar", {"zero": "", "one": "ملف", "two": "ملفان", "few": "# ملفات",
          "many": "# ملفا", "other": "# ملف"},
         {"zero": "error"}),
    ],
)  # fmt: skip
def test_a_plural_has_the_forms_of_its_locale(
    to: str, forms: dict[str, str], missing: dict[str, str]
) -> None:
    source = [plural("n", one="# file", other="# files")]
    found = inspect(document("source", "en", source), document("target", to, [plural("n", **forms)]))
    gaps = [remark.finding for remark in found if remark.finding.check == "plurals"]
    assert {finding.missing[0]: finding.severity for finding in gaps} == missing


def test_the_sources_exact_forms_are_kept() -> None:
    source = [plural("n", exactly_0="None", one="# file", other="# files")]
    target = [plural("n", one="# Datei", other="# Dateien")]
    assert ("1:n", "plurals", "error") in remarks(source, target)


def test_gettext_has_no_form_for_fractions() -> None:
    source = [plural("n", one="# file", other="# files")]
    target = [plural("n", one="# файл", few="# файла", many="# файлов")]
    assert not remarks(source, target, "ru", GETTEXT)
    assert ("1:n", "plurals", "error") in remarks(source, target, "ru")
    assert remarks(source, [plural("n", one="# файл", few="", many="# файлов")], "ru", GETTEXT) == [
        ("1:n", "plurals", "error")
    ]


def test_each_form_is_held_against_its_own_source() -> None:
    source = [plural("n", one="One file", other="# files")]
    assert not remarks(source, [plural("n", one="Eine Datei", other="# Dateien")])
    assert remarks(source, [plural("n", one="Eine Datei", other="Dateien")]) == [
        ("1:n", "placeholders", "error")
    ]


def test_a_source_that_was_lost_to_an_objects_id_judges_nothing() -> None:
    assert not remarks([text("a", "46P-cB-AYj.title")], [text("a", "Straffen")])


def test_every_check_of_a_file_says_what_it_asks() -> None:
    assert all(about.endswith(".") for about in FILE_CHECKS.values())


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("x.po", 'msgid ""\nmsgstr ""\n"Language: pt_BR\\n"\n', ("pt-BR",)),
        ("x.po", 'msgid ""\nmsgstr ""\n"Language: sr@latin\\n"\n', ("sr-Latn",)),
        ("x.po", 'msgid ""\nmsgstr ""\n"Language: \\n"\n', ()),
        ("x.xlf", '<xliff><file source-language="en" target-language="de-CH">', ("de-CH",)),
        ("x.xliff", '<xliff version="2.0" srcLang="en" trgLang="fr">', ("fr",)),
        ("x.ts", '<!DOCTYPE TS><TS version="2.1" language="nl_NL">', ("nl-NL",)),
        ("x.ts", "export const language = 'de';", ()),
        ("x.xcstrings", '{"sourceLanguage":"en","strings":{"a":{"localizations":{"en":{},"de":{},"fr":{}}}}}',
         ("de", "fr")),
        ("x.xcstrings", "{", ()),
        ("x.json", '{"target-language": "de"}', ()),
    ],
)  # fmt: skip
def test_a_bilingual_file_declares_its_languages(path: str, content: str, expected: tuple[str, ...]) -> None:
    assert declared_locales(path, content) == expected


@pytest.mark.parametrize(
    ("template", "folder", "names", "expected"),
    [
        (
            "locales/{spelled}.json",
            "locales",
            ["en.json", "de.json", "pt_BR.json", "x.txt"],
            ("de", "en", "pt-BR"),
        ),
        ("values-{android}/strings.xml", "", ["values", "values-de", "values-pt-rBR"], ("de", "pt-BR")),
        ("{apple}.lproj/a.strings", "", ["de.lproj", "zh-Hans.lproj", "de"], ("de", "zh-Hans")),
        ("docs/a.{locale}.md", "docs", ["a.md", "a.fr.md", "b.fr.md"], ("fr",)),
        ("out/fixed.json", "out", ["fixed.json"], ()),
    ],
)
def test_a_template_tells_the_locales_that_stand(
    template: str, folder: str, names: list[str], expected: tuple[str, ...]
) -> None:
    assert standing(template, lambda asked: names if asked == folder else ()) == expected
