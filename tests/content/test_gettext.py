from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import cast

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.documents import open_document, render
from dragoman.content.formats.gettext import GettextCatalogue
from dragoman.content.lexers.po_entries import escape, messages, unescape
from dragoman.content.lexers.po_header import declared_rule, means, usual_rule
from dragoman.content.lexers.po_rereading import reread
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Document, Role, Text
from tests.content.real_files import case, corpus

FORMAT = GettextCatalogue()
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")) | st.sampled_from('\n\t"\\ ')
)
HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: {0}\\n"\n{1}\n'
GERMAN = HEADER.format("de", '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n')

T7 = """\
# Example catalogue.
# Jane Example, 2026.
msgid ""
msgstr ""
"Project-Id-Version: shop\\n"
"Language: en\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

#. Shown on the button
#: src/cart.py:12
msgctxt "button"
msgid "Order"
msgstr ""

#: src/cart.py:40
#, python-format
msgid "%d item"
msgid_plural "%d items"
msgstr[0] ""
msgstr[1] ""

# kept by hand
#, fuzzy, python-format
#| msgid "Hello %s"
msgid "Good day, %s"
msgstr "Hello %s"

msgid ""
"Two lines:\\n"
"  the second is indented"
msgstr ""

msgid " leading space"
msgstr ""

#, fuzzy
#~ msgid "Gone"
#~ msgstr "Away"
"""


def opened(data: bytes | str, role: Role, locale: str) -> Document:
    return open_document(FORMAT, "a.po", data.encode() if isinstance(data, str) else data, role, locale)


def written(
    source: bytes | str, translations: dict[str, Text], locale: str, base: bytes | str | None = None
) -> str:
    standing = None if base is None else opened(base, "target", locale)
    return render(FORMAT, standing, opened(source, "source", "en"), translations, locale).data.decode()


def everything(document: Document, mark: str = "«{}»") -> dict[str, Text]:
    return {
        block.key: mark.format(block.text)
        if block.plural is None
        else {name: mark.format(f"{name} {form}") for name, form in block.plural.items()}
        for block in document.blocks
    }


def as_polib_reads(data: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in polib.pofile(data):
        context = cast(str | None, entry.msgctxt)
        key = entry.msgid if context is None else f"{context}\4{entry.msgid}"
        forms = entry.msgstr_plural
        if not entry.obsolete:
            found[key] = [forms[index] for index in sorted(forms)] if entry.msgid_plural else [entry.msgstr]
    return found


@pytest.mark.parametrize("file", corpus("po"))
def test_real_catalogues_are_read_as_polib_reads_them(file: Path) -> None:
    text = file.read_text("utf-8")
    found = reread(text)
    found.pop("")
    assert found == as_polib_reads(text)
    language = polib.pofile(text).metadata.get("Language") or "de"
    counts = "Language" in polib.pofile(text).metadata
    for block in opened(text, "target", language.replace("_", "-")).blocks:
        forms = list(block.plural.values()) if block.plural is not None else [block.text]
        assert forms == (found[block.key] if counts else [""] * len(forms))


@pytest.mark.parametrize("file", corpus("po"))
def test_real_catalogues_written_with_their_own_texts_are_themselves(file: Path) -> None:
    data = file.read_bytes()
    declared = polib.pofile(data.decode()).metadata.get("Language", "").replace("_", "-")
    if not declared:
        return  # a template: there is no language in which it says anything
    source, target = opened(data, "source", "en"), opened(data, "target", declared)
    standing = {block.key: block.value for block in target.blocks if block.state == ""}
    assert render(FORMAT, target, source, {}, declared).data == data
    rendered = render(FORMAT, target, source, standing, declared)
    assert rendered.data == data
    assert rendered.edits == ()


@pytest.mark.parametrize("locale", ["de", "ru", "ja", "ar", "zh-Hant"])
@pytest.mark.parametrize("file", corpus("po"))
def test_real_catalogues_take_a_translation_into_any_language(file: Path, locale: str) -> None:
    source = opened(file.read_bytes(), "source", "en")
    rendered = render(FORMAT, None, source, everything(source), locale)
    read = polib.pofile(rendered.data.decode())
    assert all(entry.translated() for entry in read if not entry.obsolete)
    assert means(read.metadata["Language"], locale)
    blank = render(FORMAT, None, source, {}, locale)
    again = render(FORMAT, opened(blank.data, "target", locale), source, everything(source), locale)
    assert again.data == rendered.data


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="GNU gettext is not installed")
@pytest.mark.parametrize("file", corpus("po"))
def test_gnu_gettext_accepts_what_is_written(file: Path, tmp_path: Path) -> None:
    source = opened(file.read_bytes(), "source", "en")
    translations = {
        key: value if isinstance(value, str) else value["other"]
        for key, value in everything(source, "{}").items()
    }
    outcome = tmp_path / "out.po"
    for locale in ("ru", "ar", "ja"):
        outcome.write_bytes(render(FORMAT, None, source, {}, locale).data)
        subprocess.run(["msgfmt", "-c", "-o", tmp_path / "out.mo", outcome], check=True, capture_output=True)
        outcome.write_bytes(render(FORMAT, None, source, translations, locale).data)
        subprocess.run(
            ["msgfmt", "--check-header", "-o", tmp_path / "out.mo", outcome], check=True, capture_output=True
        )


@given(
    st.dictionaries(
        st.tuples(st.none() | TEXTS, TEXTS.filter(bool), st.none() | TEXTS.filter(bool)), TEXTS, max_size=6
    ),
    st.sampled_from([0, 40, 78]),
)
def test_any_catalogue_of_polibs_round_trips(
    messages: dict[tuple[str | None, str, str | None], str], width: int
) -> None:
    """polib writes a catalogue, we read and translate it, and polib reads back exactly what was meant."""
    catalogue = polib.POFile(wrapwidth=width)
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Language": "fr"}
    unique = {(context, msgid): (plural, text) for (context, msgid, plural), text in messages.items()}
    for (context, msgid), (plural, text) in unique.items():
        forms = {"msgstr_plural": {0: text, 1: text}, "msgid_plural": plural} if plural else {"msgstr": text}
        catalogue.append(polib.POEntry(msgctxt=context, msgid=msgid, **forms))
    source = opened(str(catalogue), "source", "en")
    translations = everything(source, '*{}\n\\"é')
    result = written(str(catalogue), translations, "de")
    meant = {
        key: [value] if isinstance(value, str) else [value["one"], value["other"]]
        for key, value in translations.items()
    }
    assert as_polib_reads(result) == meant


@given(TEXTS)
def test_escapes_read_back(text: str) -> None:
    assert unescape(escape(text)) == text


def test_numbered_escapes_are_bytes_of_utf8() -> None:
    assert unescape(r"\303\251\x41\033\a") == "éA\033\a"


def test_case_t7_fidelity_into_a_language_with_three_forms() -> None:
    translations: dict[str, Text] = {
        "button\4Order": "Заказать",
        "%d item": {"one": "%d товар", "few": "%d товара", "many": "%d товаров", "other": "%d товара"},
        "Good day, %s": "Добрый день, %s",
        "Two lines:\n  the second is indented": "Две строки:\n  вторая с отступом",
        " leading space": " пробел",
    }
    expected = (
        T7.replace("Language: en", "Language: ru")
        .replace("nplurals=2; plural=(n != 1);", usual_rule("ru").header)
        .replace('msgid "Order"\nmsgstr ""', 'msgid "Order"\nmsgstr "Заказать"')
        .replace(
            'msgstr[0] ""\nmsgstr[1] ""',
            'msgstr[0] "%d товар"\nmsgstr[1] "%d товара"\nmsgstr[2] "%d товаров"',
        )
        .replace('#, fuzzy, python-format\n#| msgid "Hello %s"\n', "#, python-format\n")
        .replace('msgstr "Hello %s"', 'msgstr "Добрый день, %s"')
        .replace(
            'is indented"\nmsgstr ""',
            'is indented"\nmsgstr ""\n"Две строки:\\n"\n"  вторая с отступом"',
        )
        .replace('msgid " leading space"\nmsgstr ""', 'msgid " leading space"\nmsgstr " пробел"')
    )
    assert written(T7, translations, "ru") == expected
    windows = written(T7.replace("\n", "\r\n"), translations, "ru")
    assert windows == expected.replace("\n", "\r\n")


def test_case_o10_only_the_message_translated_changes() -> None:
    given_file, expected = case("O10", "po")
    assert written(given_file, {"Save": "Sichern"}, "de") == expected.decode()
    assert written(given_file, {"Save": "Sichern"}, "de", base=given_file) == expected.decode()


def test_blocks_carry_what_the_file_says_about_them() -> None:
    order, items, greeting, *_ = opened(T7, "source", "en").blocks
    assert (order.key, order.context, order.note, order.syntax) == (
        "button\4Order",
        "button",
        "Shown on the button",
        "none",
    )
    assert (items.text, items.plural, items.syntax) == (
        "%d item",
        {"one": "%d item", "other": "%d items"},
        "python",
    )
    assert greeting.state == ""
    states = [block.state for block in opened(T7, "target", "en").blocks]
    assert states == ["untranslated", "untranslated", "fuzzy", "untranslated", "untranslated"]


@pytest.mark.parametrize(
    "flag, syntax",
    [
        ("c-format", "printf"),
        ("php-format", "printf"),
        ("python-brace-format", "python"),
        ("ruby-format", "ruby"),
        ("java-format", "icu"),
        ("no-c-format", "none"),
        ("no-wrap", "none"),
    ],
)
def test_a_flag_declares_the_syntax(flag: str, syntax: str) -> None:
    [block] = opened(f'#, fuzzy, {flag}\nmsgid "a"\nmsgstr ""\n', "source", "en").blocks
    assert block.syntax == syntax


def test_translations_of_another_language_do_not_count_and_are_blanked() -> None:
    base = HEADER.format("fr", "") + '#, fuzzy\nmsgid "a"\nmsgstr "un"\n\nmsgid "b"\nmsgstr "deux"\n'
    assert [(block.text, block.state) for block in opened(base, "target", "de").blocks] == [
        ("", "untranslated")
    ] * 2
    assert written(base, {"b": "zwei"}, "de", base=base) == (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: de\\n"\n'
        '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
        'msgid "a"\nmsgstr ""\n\nmsgid "b"\nmsgstr "zwei"\n'
    )


def test_the_targets_own_plural_rule_is_obeyed() -> None:
    """A file with four forms for Polish keeps four; the fourth, for no whole number, gets `other`."""
    rule = "nplurals=4; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : n!=1 ? 2 : 3);"
    base = HEADER.format("pl", f'"Plural-Forms: {rule}\\n"\n') + 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n'
    result = written(base, {"a": {"one": "1", "few": "2", "many": "5", "other": "1,5"}}, "pl", base=base)
    assert result.removeprefix(base.partition("msgid_plural")[0]) == (
        'msgid_plural "b"\nmsgstr[0] "1"\nmsgstr[1] "2"\nmsgstr[2] "5"\nmsgstr[3] "1,5"\n'
    )


def test_surplus_forms_go_and_missing_categories_fall_back_to_other() -> None:
    source = (
        HEADER.format("ru", "") + 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "1"\nmsgstr[1] "2"\nmsgstr[2] "5"'
    )
    assert written(source, {"a": {"other": "個"}}, "ja").endswith('msgid_plural "b"\nmsgstr[0] "個"\n')
    assert written(source, {"a": "x"}, "ru").endswith('msgstr[0] "x"\nmsgstr[1] "x"\nmsgstr[2] "x"')


def test_two_forms_of_one_category_are_told_apart_by_number() -> None:
    rule = declared_rule("nplurals=3; plural=(n==0 ? 0 : n==1 ? 1 : 2);", "de")
    assert rule
    assert rule.names == ("=0", "one", "other")
    assert rule.forms({"one": "1", "other": "n"}) == ["n", "1", "n"]
    assert rule.forms({"=0": "0", "one": "1", "other": "n"}) == ["0", "1", "n"]
    assert rule.plural(["0", "1"]) == {"=0": "0", "one": "1", "other": ""}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "nplurals=INTEGER; plural=EXPRESSION;",
        "nplurals=2; plural=n/0;",
        "nplurals=2; plural=__import__('os');",
        "nplurals=99; plural=n;",
        "nplurals=0; plural=0;",
    ],
)
def test_a_rule_that_is_none_is_replaced_by_the_usual_one(value: str) -> None:
    assert declared_rule(value, "de") is None
    base = (
        HEADER.format("de", f'"Plural-Forms: {value}\\n"\n') + 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n'
    )
    result = written(base, {"a": {"one": "1", "other": "2"}}, "de", base=base)
    assert '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"' in result
    assert result.endswith('msgstr[0] "1"\nmsgstr[1] "2"\n')


@pytest.mark.parametrize(
    "declared, locale, same",
    [
        ("de", "de", True),
        ("de_DE.UTF-8", "de", True),
        ("pt_BR", "pt-BR", True),
        ("pt_BR", "pt-PT", False),
        ("sr@latin", "sr-Latn", True),
        ("sr", "sr-Latn", False),
        ("zh_TW", "zh-Hant", True),
        ("zh_CN", "zh-Hant", False),
        ("", "de", False),
        ("LANGUAGE", "de", False),
    ],
)
def test_a_declared_language_is_compared_by_meaning(declared: str, locale: str, same: bool) -> None:
    assert means(declared, locale) is same


def test_a_template_becomes_a_catalogue() -> None:
    template = (
        '# TITLE\n#, fuzzy\nmsgid ""\nmsgstr ""\n"Language: \\n"\n'
        '"Content-Type: text/plain; charset=CHARSET\\n"\n\n#: a.c:1\n'
        '#, possible-c-format\nmsgid "Save"\nmsgstr ""\n'
    )
    assert FORMAT.charset(template.encode()) is None
    assert written(template, {"Save": "Sačuvaj"}, "sr-Latn") == (
        '# TITLE\nmsgid ""\nmsgstr ""\n"Language: sr@latin\\n"\n'
        '"Content-Type: text/plain; charset=UTF-8\\n"\n'
        f'"Plural-Forms: {usual_rule("sr-Latn").header}\\n"\n'
        '\n#: a.c:1\n#, possible-c-format\nmsgid "Save"\nmsgstr "Sačuvaj"\n'
    )
    assert FORMAT.renames == {".pot": ".po"}


def test_new_messages_stand_behind_their_neighbours_and_lost_ones_stay() -> None:
    source = (
        HEADER.format("en", "") + '#: a:1\nmsgid "first"\nmsgstr ""\n\nmsgid "known"\nmsgstr ""\n\n'
        '#, fuzzy, c-format\n#| msgid "sceond"\n#: a:3\nmsgctxt "x"\nmsgid "second"\nmsgid_plural "seconds"\n'
        'msgstr[0] "?"\nmsgstr[1] ""\n\nmsgid "third"\nmsgstr ""\n'
    )
    base = GERMAN + 'msgid "old"\nmsgstr "alt"\n\nmsgid "known"\nmsgstr "bekannt"'
    translations: dict[str, Text] = {
        "first": "erste",
        "x\4second": {"one": "zweite", "other": "zweiten"},
        "third": "dritte",
    }
    rendered = render(
        FORMAT, opened(base, "target", "de"), opened(source, "source", "en"), translations, "de"
    )
    assert rendered.data.decode() == (
        GERMAN.removesuffix("\n") + '\n#: a:1\nmsgid "first"\nmsgstr "erste"\n\nmsgid "old"\nmsgstr "alt"\n\n'
        'msgid "known"\nmsgstr "bekannt"\n\n#, c-format\n#: a:3\nmsgctxt "x"\nmsgid "second"\n'
        'msgid_plural "seconds"\nmsgstr[0] "zweite"\nmsgstr[1] "zweiten"\n\nmsgid "third"\nmsgstr "dritte"'
    )
    assert rendered.lost == ("old",)


def test_a_file_without_a_header_gets_one_and_an_empty_target_too() -> None:
    source = '#: a\nmsgid "a"\nmsgstr ""\n'
    header = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: de\\n"\n'
        '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
    )
    assert written(source, {"a": "ä"}, "de") == header + '#: a\nmsgid "a"\nmsgstr "ä"\n'
    assert (
        written(source, {"a": "ä"}, "de", base="").strip() == (header + '#: a\nmsgid "a"\nmsgstr "ä"').strip()
    )


def test_a_declared_charset_is_kept_until_it_cannot_hold_a_translation() -> None:
    file = HEADER.format("de", "").replace("UTF-8", "ISO-8859-1") + 'msgid "a"\nmsgstr "für"\n'
    source = opened(file.encode("latin-1"), "source", "en")
    assert render(FORMAT, None, source, {"a": "über"}, "de").data == file.replace("für", "über").encode(
        "latin-1"
    )
    with pytest.raises(DocumentError, match="'č' cannot be written in ISO8859-1"):
        render(FORMAT, None, source, {"a": "ček"}, "de")


def test_an_ascii_file_becomes_utf8_once_it_has_to() -> None:
    file = HEADER.format("de", "").replace("UTF-8", "US-ASCII") + 'msgid "a"\nmsgstr ""\n'
    assert "charset=US-ASCII" in written(file, {"a": "b"}, "de")
    assert "charset=UTF-8" in written(file, {"a": "ü"}, "de")


def test_long_texts_are_wrapped_only_where_the_file_wraps() -> None:
    text = "lorem " * 30
    plain = GERMAN + 'msgid "a"\nmsgstr ""\n'
    assert written(plain, {"a": text}, "de").endswith(f'msgstr "{text}"\n')
    wrapping = GERMAN + 'msgid ""\n"a "\n"b"\nmsgstr ""\n'
    result = written(wrapping, {"a b": text}, "de")
    assert max(map(len, result.splitlines())) <= 79
    assert as_polib_reads(result) == {"a b": [text]}


@pytest.mark.parametrize(
    "data, line, told",
    [
        ('msgid "a"\nmsgstr "b', 2, "a string in double quotes that ends on its line"),
        ('msgid "a"\n\nmsgid "b"\nmsgstr ""\n', 3, "msgid is not expected here"),
        ('msgstr "b"\n', 1, "msgstr is not expected here"),
        ('msgid "a"\n# end\n', 1, "this entry has no msgstr"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr "c"\n', 3, "msgstr is not expected here"),
        ('msgid "a"\nmsgstr[0] "c"\n', 2, "msgstr[0] is not expected here"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[1] "c"\n', 3, "msgstr[1] is not expected here"),
        ('msgid "a"\nmsgstr "x"\n\nmsgid "a"\nmsgstr "y"\n', 4, "this message stands on line 1 already"),
        ('msgid "a"\nmsgstr "b\\q"\n', 2, "\\q is no escape"),
        ('msgid\nmsgstr "a"\n', 1, "this msgid has no string"),
        ('"a"\n', 1, "a comment or a keyword"),
        ('domain "x"\n', 1, "a comment or a keyword"),
        ("hello\n", 1, "a comment or a keyword"),
    ],
)
def test_what_is_not_po_is_refused_by_line(data: str, line: int, told: str) -> None:
    for spelled in (data, data.replace("\n", "\r\n")):
        with pytest.raises(DocumentError) as refused:
            opened(spelled, "source", "en")
        assert (refused.value.line, refused.value.place) == (line, f"a.po:{line}")
        assert told in refused.value.message


def test_an_empty_file_has_no_messages() -> None:
    assert opened("", "source", "en").blocks == ()
    assert written("", {}, "de") == ""


def test_plural_forms_for_a_message_without_them_are_refused() -> None:
    with pytest.raises(DragomanError, match="has no plural, and its translation has"):
        written('msgid "a"\nmsgstr ""\n', {"a": {"one": "x", "other": "y"}}, "de")


@given(st.data())
def test_what_the_pattern_refuses_the_complaint_explains(chance: st.DataObject) -> None:
    """Lines in any order: read as the second reader reads them, or refused with the line that is wrong."""
    lines = st.sampled_from(
        ['msgid "a"', 'msgid "b"', 'msgstr "x"', 'msgid_plural "c"', 'msgstr[0] "y"', 'msgstr[1] "z"', "",
         'msgctxt "m"', "# note", "#, fuzzy", '#~ msgid "o"', '"more\\n"', 'msgstr "\\q"', 'msgid', "junk"]
    )  # fmt: skip
    text = "".join(line + "\n" for line in chance.draw(st.lists(lines, max_size=9)))
    found, refused = outcome(text)
    if refused:
        assert 0 < refused.line <= text.count("\n")
        assert "cannot be read" not in refused.message
    else:
        assert found == [key for key in reread(text) if key]


def outcome(text: str) -> tuple[list[str], DocumentError | None]:
    try:
        return [entry.key for entry in messages(text)], None
    except DocumentError as refused:
        return [], refused
