"""Xcode's string catalogues: whose text is whose, what varies, and how Xcode would have written it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.content import locales, protection
from dragoman.content.documents import open_document, render, take_back
from dragoman.content.formats.xcstrings import StringCatalogue
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Document, Text
from tests.content.real_files import case, corpus

FORMAT = StringCatalogue()
CATALOGUES = [one for one in corpus("apple") if str(getattr(one, "id", "")).endswith(("xcstrings", "apple"))]


def source(data: bytes | str) -> Document:
    data = data.encode() if isinstance(data, str) else data
    return open_document(FORMAT, "a.xcstrings", data, "source", "en")


def target(data: bytes | str, locale: str) -> Document:
    data = data.encode() if isinstance(data, str) else data
    return open_document(FORMAT, "a.xcstrings", data, "target", locale)


def values(document: Document) -> dict[str, Text]:
    return {block.key: block.value for block in document.blocks}


def written(text: str, locale: str, translations: Mapping[str, Text]) -> str:
    return render(FORMAT, target(text, locale), source(text), translations, locale).data.decode()


def laid_out(value: Any) -> str:
    """As Xcode would write it."""
    text = json.dumps(value, ensure_ascii=False, indent=2, separators=(",", " : "))
    return "\n".join(
        line.replace("{}", "{\n\n" + " " * (len(line) - len(line.lstrip())) + "}")
        for line in text.split("\n")
    )


def unit(text: str, state: str = "translated") -> dict[str, Any]:
    return {"stringUnit": {"state": state, "value": text}}


def plural(state: str = "translated", **forms: str) -> dict[str, Any]:
    return {"variations": {"plural": {name: unit(text, state) for name, text in forms.items()}}}


def catalogue(**strings: Any) -> str:
    return laid_out({"sourceLanguage": "en", "strings": strings, "version": "1.0"})


def test_a_new_language_stands_where_xcode_would_read_it() -> None:
    """[O12] Byte for byte; plural categories are the target's, sorted as Xcode sorts them."""
    before, after = case("O12", "xcstrings")
    document = source(before)
    assert values(document) == {
        "%lld alerts": {"one": "%lld alert", "other": "%lld alerts"},
        "Empty": "Empty",
    }
    czech = {"one": "%lld výstraha", "few": "%lld výstrahy", "many": "%lld výstrahy", "other": "%lld výstrah"}
    for base in (None, target(before, "cs")):
        assert render(FORMAT, base, document, {"%lld alerts": czech}, "cs").data == after
    again = render(FORMAT, target(after, "cs"), source(after), {"%lld alerts": czech}, "cs")
    assert again.edits == ()


def test_markers_stand_for_apples_arguments() -> None:
    """[O12] An argument that stands for a plural (`%#@birds@`), and the number inside of one (`%arg`)."""
    shown = protection.protect("%1$#@birds@ on %#@trees@, %arg of %lld, %@ and %1$@", "printf")
    assert list(shown.markers.values()) == ["%1$#@birds@", "%#@trees@", "%arg", "%lld", "%@", "%1$@"]
    assert protection.restore(shown, shown.text) == "%1$#@birds@ on %#@trees@, %arg of %lld, %@ and %1$@"


def test_what_is_no_unit_and_what_is_its_own_text() -> None:
    text = catalogue(
        **{
            "": {},
            "Key only": {"comment": "said", "localizations": {"de": unit("Nur")}},
            "a/b~": {"localizations": {"en": unit("Named", "new")}},
            "gone": {"extractionState": "stale", "localizations": {"en": unit("Gone")}},
            "not": {"shouldTranslate": False, "localizations": {"en": unit("Not")}},
            "blank": {"localizations": {"en": unit("")}},
        }
    )
    document = source(text)
    assert values(document) == {"Key only": "Key only", "a~1b~0": "Named", "gone": "Gone"}
    assert [block.note for block in document.blocks] == ["said", "", ""]
    assert [block.state for block in document.blocks] == ["", "", "obsolete"]
    german = target(text, "de")
    assert [(block.text, block.state) for block in german.blocks] == [
        ("Nur", ""),
        ("", "untranslated"),
        ("", "obsolete"),
    ]


@pytest.mark.parametrize(
    ("state", "read"), [("translated", ""), ("new", "untranslated"), ("needs_review", "fuzzy"), ("", "fuzzy")]
)
def test_states_say_what_is_finished_and_a_translation_is(state: str, read: str) -> None:
    text = catalogue(a={"localizations": {"de": unit("A", state), "en": unit("A")}})
    assert [block.state for block in target(text, "de").blocks] == [read]
    after = catalogue(a={"localizations": {"de": unit("B"), "en": unit("A")}})
    assert written(text, "de", {"a": "B"}) == after
    rendered = render(FORMAT, target(text, "de"), source(text), {"a": "A"}, "de")
    assert [edit.kind for edit in rendered.edits] == ([] if state == "translated" else ["metadata"])


@pytest.mark.parametrize(
    ("there", "fresh", "order"),
    [
        (["en"], "cs", ["en", "cs"]),
        (["en", "cs", "fr"], "de", ["en", "cs", "de", "fr"]),
        (["ar", "en", "fr"], "cs", ["ar", "cs", "en", "fr"]),
        (["ar", "de", "en"], "zh-Hans", ["ar", "de", "en", "zh-Hans"]),
        (["de"], "cs", ["cs", "de"]),
    ],
)
def test_languages_are_sorted_beside_a_source_that_may_lead(
    there: list[str], fresh: str, order: list[str]
) -> None:
    text = catalogue(key={"comment": "c", "localizations": {code: unit(code) for code in there}})
    after = catalogue(key={"comment": "c", "localizations": {code: unit(code) for code in order}})
    assert written(text, fresh, {"key": fresh}) == after


def test_localizations_come_where_there_were_none_and_go_without_a_trace() -> None:
    text = catalogue(a={}, b={"comment": "c", "shouldTranslate": True}, c={"localizations": {}})
    after = catalogue(
        a={"localizations": {"de": unit("A")}},
        b={"comment": "c", "localizations": {"de": unit("B")}, "shouldTranslate": True},
        c={"localizations": {"de": unit("C")}},
    )
    assert written(text, "de", {"a": "A", "b": "B", "c": "C"}) == after


def test_a_plural_grows_shrinks_and_is_put_in_the_place_of_a_text() -> None:
    english = plural(one="%lld day", other="%lld days")
    for there in (plural(one="1", other="2"), plural("new", few="1", many="3", other="2"), unit("%lld Tage")):
        text = catalogue(a={"localizations": {"en": english, "pl": there}})
        polish = {"one": "%lld dzień", "few": "%lld dni", "many": "%lld dni.", "other": "%lld dnia"}
        after = catalogue(a={"localizations": {"en": english, "pl": plural(**dict(sorted(polish.items())))}})
        assert written(text, "pl", {"a": polish}) == after
        japanese = written(text, "ja", {"a": {"other": "%lld日"}})
        assert values(target(japanese, "ja")) == {"a": {"other": "%lld日"}}
        assert values(target(japanese, "pl")) == values(target(text, "pl"))


def test_a_form_for_zero_is_exact_where_the_language_has_none() -> None:
    text = catalogue(a={"localizations": {"en": plural(one="one", other="many", zero="none")}})
    assert values(source(text)) == {"a": {"one": "one", "other": "many", "=0": "none"}}
    german = written(text, "de", {"a": {"=0": "keine", "one": "eins", "other": "viele"}})
    assert json.loads(german)["strings"]["a"]["localizations"]["de"] == plural(
        one="eins", other="viele", zero="keine"
    )
    arabic = dict.fromkeys(("=0", *locales.plural_categories("ar")), "x") | {"zero": "صفر"}
    assert values(target(written(text, "ar", {"a": arabic}), "ar"))["a"] == {
        name: form for name, form in arabic.items() if name != "=0"
    }


def test_devices_and_substitutions_are_texts_of_their_own() -> None:
    birds = {"argNum": 1, "formatSpecifier": "lld", **plural(one="%arg bird", other="%arg birds")}
    english = {
        **unit("%#@birds@ here"),
        "substitutions": {"birds": birds},
    }
    tap = {"variations": {"device": {"mac": unit("Click"), "other": plural(one="Tap", other="Taps")}}}
    text = catalogue(a={"localizations": {"en": english}}, b={"localizations": {"en": tap}})
    assert values(source(text)) == {
        "a": "%#@birds@ here",
        "a/substitutions/birds": {"one": "%arg bird", "other": "%arg birds"},
        "b/device/mac": "Click",
        "b/device/other": {"one": "Tap", "other": "Taps"},
    }
    first = written(
        text, "fr", {"a/substitutions/birds": {"one": "1", "many": "n", "other": "2"}, "b/device/mac": "x"}
    )
    french = target(first, "fr")
    assert [(block.key, block.state) for block in french.blocks] == [
        ("a", "untranslated"),
        ("a/substitutions/birds", ""),
        ("b/device/mac", ""),
        ("b/device/other", "untranslated"),
    ]
    done = written(
        first, "fr", {"a": "ici %#@birds@", "b/device/other": {"one": "y", "many": "w", "other": "z"}}
    )
    fresh = {"argNum": 1, "formatSpecifier": "lld", **plural(many="n", one="1", other="2")}
    assert json.loads(done)["strings"]["a"]["localizations"]["fr"] == {
        **unit("ici %#@birds@"),
        "substitutions": {"birds": fresh},
    }
    assert done == laid_out(json.loads(done))


@pytest.mark.parametrize(
    ("locale", "code"),
    [("zh-CN", "zh-Hans"), ("zh-TW", "zh-Hant"), ("pt-BR", "pt-BR"), ("he", "he"), ("nb", "nb")],
)
def test_languages_are_spelled_as_apple_does_or_as_the_file_does(locale: str, code: str) -> None:
    text = catalogue(a={})
    after = written(text, locale, {"a": "x"})
    assert list(json.loads(after)["strings"]["a"]["localizations"]) == [code]
    lower = catalogue(b={"localizations": {"pt_br": unit("y")}}, a={})
    if locale == "pt-BR":
        assert list(json.loads(written(lower, locale, {"a": "x"}))["strings"]["a"]["localizations"]) == [
            "pt_br"
        ]


def test_texts_are_taken_back_as_they_were_and_the_rest_is_not_touched() -> None:
    """States, categories and the places that were there before come back; what others said since stays."""
    english = plural(one="day", other="days")
    before = catalogue(
        a={"localizations": {"en": english, "fr": unit("Vu", "needs_review")}},
        b={},
        c={"comment": "c"},
        d={"localizations": {"en": {**unit("x"), "substitutions": {"n": {"argNum": 1, **english}}}}},
    )
    asked: dict[str, Text] = {"a": {"one": "1", "many": "2", "other": "3"}, "b": "B", "c": "C", "d": "D"}
    asked["d/substitutions/n"] = {"one": "4", "many": "5", "other": "6"}
    ours = written(before, "fr", asked)
    now = written(ours, "de", {"a": {"one": "eins", "other": "viele"}, "b": "Bé"})
    keys = list(asked)
    back = take_back(FORMAT, target(now, "fr"), target(before, "fr"), keys, "fr").data.decode()
    assert back == written(before, "de", {"a": {"one": "eins", "other": "viele"}, "b": "Bé"})
    assert take_back(FORMAT, target(ours, "fr"), target(before, "fr"), keys, "fr").data.decode() == before
    for part in (["d"], ["d/substitutions/n"], ["a", "c"]):
        rest = target(take_back(FORMAT, target(now, "fr"), target(before, "fr"), part, "fr").data, "fr")
        assert {block.key for block in rest.blocks if block.state == ""} == set(keys) - set(part)


def test_a_file_in_another_spelling_keeps_its_own() -> None:
    strings = {"a": {"localizations": {"de": unit("x")}}, "b": {}}
    plain = json.dumps({"sourceLanguage": "en", "strings": strings}, separators=(",", ":"))
    after = written(plain, "cs", {"a": "é", "b": "ü"})
    assert json.dumps(json.loads(after), ensure_ascii=False, separators=(",", ":")) == after
    tabbed = json.dumps(json.loads(plain), indent="\t") + "\n"
    after = written(tabbed.replace("\n", "\r\n"), "cs", {"a": "1", "b": "2"})
    assert after.replace("\r\n", "\n") == json.dumps(json.loads(after), indent="\t") + "\n"
    assert "\n" not in after.replace("\r\n", "")


def test_a_catalogue_of_another_language_is_refused() -> None:
    with pytest.raises(DocumentError, match="source language is de"):
        source('{"sourceLanguage": "de", "strings": {}}')
    with pytest.raises(DocumentError, match="has no form `other`"):
        source(catalogue(a={"localizations": {"en": plural(one="x")}}))


def test_what_the_base_does_not_hold_finds_no_place() -> None:
    with pytest.raises(DragomanError, match="found no place"):
        render(FORMAT, target(catalogue(b={}), "de"), source(catalogue(a={}, b={})), {"a": "x"}, "de")


@pytest.mark.parametrize("file", CATALOGUES)
def test_real_catalogues_keep_every_byte_and_take_every_translation(file: Path) -> None:
    data = file.read_bytes()
    text, document = data.decode(), source(data)
    assert len(document.blocks) > 100
    for locale in ("fr", "zh-CN"):
        standing = target(data, locale)
        finished = {block.key: block.value for block in standing.blocks if block.state == ""}
        assert render(FORMAT, standing, document, finished, locale).data == data
    for locale in ("hu", "pt-BR"):
        fresh = {block.key: f"«{block.text}»" for block in document.blocks}
        after = written(text, locale, fresh)
        assert values(target(after, locale)) == fresh
        assert after == laid_out(json.loads(after))
        loaded = json.loads(after)["strings"]
        for entry in loaded.values():
            assert list(entry.get("localizations", ())) == sorted(entry.get("localizations", ()))
        half = written(text, locale, dict(list(fresh.items())[::2]))
        assert written(half, locale, fresh) == after
