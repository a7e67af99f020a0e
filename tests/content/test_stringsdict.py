"""Apple's .stringsdict: variables and their plural forms, format strings, widths and devices."""

from __future__ import annotations

import plistlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from dragoman.content import locales
from dragoman.content.documents import open_document, render
from dragoman.content.formats.stringsdict import StringsDict
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Block, Document, Text
from tests.content.real_files import corpus

FORMAT = StringsDict()
FILES = [one for one in corpus("apple") if str(getattr(one, "id", "")).endswith(("stringsdict", "apple"))]
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0">\n<dict>\n'
TAIL = "</dict>\n</plist>\n"


def source(data: bytes | str) -> Document:
    data = data.encode() if isinstance(data, str) else data
    return open_document(FORMAT, "en.lproj/a.stringsdict", data, "source", "en")


def target(data: bytes | str, locale: str) -> Document:
    data = data.encode() if isinstance(data, str) else data
    return open_document(FORMAT, "x.lproj/a.stringsdict", data, "target", locale)


def values(document: Document) -> dict[str, Text]:
    return {block.key: block.value for block in document.blocks}


def written(text: str, base: str | None, locale: str, translations: Mapping[str, Text]) -> str:
    stands = None if base is None else target(base, locale)
    return render(FORMAT, stands, source(text), translations, locale).data.decode()


def variable(name: str, **forms: str) -> str:
    said = "".join(f"<key>{category}</key><string>{form}</string>" for category, form in forms.items())
    return (
        f"<key>{name}</key><dict><key>NSStringFormatSpecTypeKey</key>"
        f"<string>NSStringPluralRuleType</string>{said}</dict>"
    )


def entry(name: str, says: str, *variables: str) -> str:
    return (
        f"  <key>{name}</key><dict><key>NSStringLocalizedFormatKey</key><string>{says}</string>"
        f"{''.join(variables)}</dict>\n"
    )


def translation(block: Block, locale: str) -> Text:
    if block.plural is None:
        return f"«{block.text}»"
    exact = [name for name in block.plural if name.startswith("=")]
    return {name: f"{name} «{block.text}» &<" for name in (*exact, *locales.plural_categories(locale))}


def test_a_variable_is_a_plural_and_a_format_string_a_text_where_it_has_words() -> None:
    text = HEAD + entry("a", "%#@n@", variable("n", zero="none", one="%d &lt;one>", other="%d more"))
    text += (
        entry("b/c", "%1$#@n@ in %@, %lld", variable("n", other="all"))
        + "<key>d</key><string>D</string>\n"
        + TAIL
    )
    assert values(source(text)) == {
        "a/n": {"=0": "none", "one": "%d <one>", "other": "%d more"},
        "b~1c/NSStringLocalizedFormatKey": "%1$#@n@ in %@, %lld",
        "b~1c/n": {"other": "all"},
        "d": "D",
    }
    assert {block.syntax for block in source(text).blocks} == {"printf"}


def test_categories_grow_and_go_in_the_order_of_cldr_like_their_neighbours() -> None:
    text = HEAD + entry("a", "%#@n@", variable("n", one="one", two="two", other="other")) + TAIL
    polish = {"one": "1", "few": "2", "many": "5", "other": "1.5"}
    after = HEAD + entry("a", "%#@n@", variable("n", **polish)) + TAIL
    assert written(text, None, "pl", {"a/n": polish}) == after
    assert written(text, text, "pl", {"a/n": polish}) == after
    assert written(after, after, "ja", {"a/n": {"other": "x"}}) == (
        HEAD + entry("a", "%#@n@", variable("n", other="x")) + TAIL
    )
    spread = text.replace("<key>", "\r\n\t<key>").replace("<string>", "\r\n\t<string>")
    grown = after.replace("<key>", "\r\n\t<key>").replace("<string>", "\r\n\t<string>")
    assert written(spread, None, "pl", {"a/n": polish}) == grown


def test_a_form_for_zero_is_exact_where_the_language_has_none() -> None:
    text = HEAD + entry("a", "%#@n@", variable("n", zero="none", other="some")) + TAIL
    german = written(text, None, "de", {"a/n": {"=0": "keine", "one": "eins", "other": "viele"}})
    assert german == HEAD + entry("a", "%#@n@", variable("n", zero="keine", one="eins", other="viele")) + TAIL
    without = written(text, None, "de", {"a/n": {"one": "eins", "other": "viele"}})
    assert without == HEAD + entry("a", "%#@n@", variable("n", one="eins", other="viele")) + TAIL
    arabic = dict.fromkeys(locales.plural_categories("ar"), "x")
    assert values(target(written(text, None, "ar", {"a/n": arabic}), "ar")) == {"a/n": arabic}


def test_widths_and_devices_are_texts_of_their_own() -> None:
    rule = "<key>NSStringVariableWidthRuleType</key><dict><key>1</key><string>Hi</string></dict>"
    device = "<key>NSStringDeviceSpecificRuleType</key><dict><key>mac</key><string>Click</string></dict>"
    text = f"{HEAD}<key>a</key><dict>{rule}</dict>\n<key>b</key><dict>{device}</dict>{TAIL}"
    assert values(source(text)) == {
        "a/NSStringVariableWidthRuleType/1": "Hi",
        "b/NSStringDeviceSpecificRuleType/mac": "Click",
    }


def test_new_entries_and_variables_come_where_the_source_has_them() -> None:
    one = entry("a", "A %#@n@ %#@m@", variable("n", one="x", other="y"), variable("m", other="z"))
    text = (
        HEAD
        + one
        + entry("b", "%#@n@", variable("n", other="b"))
        + entry("c", "%#@n@", variable("n", other="c"))
        + TAIL
    )
    forms = {"one": "1", "other": "2"}
    everything = {"a/NSStringLocalizedFormatKey": "Ä %#@n@ %#@m@"} | dict.fromkeys(
        ("a/n", "a/m", "b/n", "c/n"), forms
    )
    whole = written(text, None, "de", everything)
    for part in (["a/n"], ["b/n"], ["c/n"], ["a/n", "c/n"], ["b/n", "c/n"]):
        first = written(text, None, "de", {key: everything[key] for key in part})
        assert written(text, first, "de", everything) == whole
    lacking = HEAD + entry("a", "A", variable("m", other="z")) + TAIL
    assert values(target(written(text, lacking, "de", everything), "de")) == everything
    empty = "<plist>\n<dict/>\n</plist>"
    assert values(target(written(text, empty, "de", {"b/n": forms}), "de")) == {"b/n": forms}


def test_keys_that_the_source_lost_stay() -> None:
    text = HEAD + entry("a", "%#@n@", variable("n", other="x")) + TAIL
    base = (
        HEAD
        + entry("z", "%#@n@", variable("n", other="x"))
        + entry("a", "%#@n@", variable("n", other="x"))
        + TAIL
    )
    rendered = render(FORMAT, target(base, "ja"), source(text), {"a/n": {"other": "y"}}, "ja")
    assert rendered.lost == ("z/n",)
    assert list(values(target(rendered.data, "ja"))) == ["z/n", "a/n"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + entry("a", "%#@n@", variable("n", one="x")) + TAIL, "no form `other`"),
        ('<!DOCTYPE p [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><plist><dict/></plist>', "entity"),
        ("<plist/>", "no property list"),
        ("<dict><key>a</key></dict>", "in turn"),
    ],
)
def test_refusals_say_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(DocumentError, match=says):
        source(text)


def test_what_plistlib_cannot_read_is_not_written() -> None:
    text = HEAD + "<key>a</key><string>x</string><key>b</key><integer>c</integer>" + TAIL
    with pytest.raises(DragomanError, match="plistlib cannot read"):
        written(text, None, "de", {"a": "y"})
    with pytest.raises(DragomanError, match="plural forms"):
        written(text, None, "de", {"a": {"other": "y"}})


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("locale", ["de", "pl", "ar", "ja"])
def test_real_files_keep_every_byte_and_take_every_translation(file: Path, locale: str) -> None:
    data = file.read_bytes()
    document = source(data)
    assert len(document.blocks) == 3
    assert render(FORMAT, None, document, values(document), "en").data == data
    assert render(FORMAT, target(data, locale), document, {}, locale).data == data
    asked = {block.key: translation(block, locale) for block in document.blocks}
    after = render(FORMAT, None, document, asked, locale).data
    assert render(FORMAT, target(after, locale), document, asked, locale).edits == ()
    loaded = plistlib.loads(after)
    for key, forms in values(target(after, locale)).items():
        name, variable = key.split("/")
        assert not isinstance(forms, str)
        assert set(forms.values()) <= set(loaded[name][variable].values())
        assert set(locales.plural_categories(locale)) <= loaded[name][variable].keys()
