"""The public cases T5 to T9, from the command line to the file: each byte, each call, each token."""

from __future__ import annotations

from typing import Any

import pytest
from lxml import html
from ruamel.yaml import YAML

from tests.acceptance.books import HIRED, assert_the_ledger_is_exact
from tests.surfaces.cli.desk import Desk, answering, sent

PAGE = "<p>To disable it, write &lt;script&gt; in the template. It&#39;s &quot;safe&quot;.</p>"
MESSAGE = "{productCount, plural, =1 {You have one product.} other {You have # products.}}"
POLISH = {
    "You have one product.": "Masz jeden produkt.",
    "You have ⟦1⟧ products. (the sentence for one)": "Masz ⟦1⟧ produkt.",
    "You have ⟦1⟧ products. (the sentence for few)": "Masz ⟦1⟧ produkty.",
    "You have ⟦1⟧ products. (the sentence for many)": "Masz ⟦1⟧ produktów.",
    "You have ⟦1⟧ products. (the sentence for other)": "Masz ⟦1⟧ produktu.",
}
CATALOGUE = """\
# Texts of the shop.
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
RUSSIAN = {
    "Order": "Заказать",
    "⟦1⟧ item (plural form `one`, for numbers like 1, 21, 31)": "⟦1⟧ товар",
    "⟦1⟧ items (plural form `few`, for numbers like 2, 3, 4)": "⟦1⟧ товара",
    "⟦1⟧ items (plural form `many`, for numbers like 5, 6, 7)": "⟦1⟧ товаров",
    "⟦1⟧ items (plural form `other`)": "⟦1⟧ товара",
    "Two lines:\n  the second is indented": "Две строки:\n  вторая с отступом",
    "leading space": "пробел",
}
RAILS = """\
# The application's texts
en:
  # Answers to questions
  yes: "Yes"
  no: 'No'   # short
  greeting: Hello %{name}, you have %{count} mails
  defaults: &defaults
    save: Save
    cancel: 'Don''t save'
  form:
    <<: *defaults
    title: &title A title
    again: *title
  help: |
    First line with %{count}
      indented

    Last line
"""
SPANISH = {
    "Yes": "Sí",
    "No": "No",
    "Hello ⟦1⟧, you have ⟦2⟧ mails": "Hola ⟦1⟧, tienes ⟦2⟧ correos",
    "Save": "Guardar",
    "Don't save": "No guardar",
    "A title": "Un título",
    "First line with ⟦1⟧\n  indented\n\nLast line": "Primera línea con ⟦1⟧\n  sangrada\n\nÚltima línea",
}
OFFERED = ("zh", "zh-TW", "pt-PT", "pt-BR", "sr")


def swapped(text: str, *pairs: tuple[str, str]) -> str:
    """The text with each old part, which stands there once, replaced."""
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


IN_RUSSIAN = swapped(
    CATALOGUE,
    ("Language: en", "Language: ru"),
    (
        "nplurals=2; plural=(n != 1);",
        "nplurals=3; plural=n % 10 == 1 && n % 100 != 11 ? 0 : n % 10 >= 2 && n % 10 <= 4 && "
        "(n % 100 < 12 || n % 100 > 14) ? 1 : 2;",
    ),
    ('msgid "Order"\nmsgstr ""', 'msgid "Order"\nmsgstr "Заказать"'),
    ('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "%d товар"\nmsgstr[1] "%d товара"\nmsgstr[2] "%d товаров"'),
    ('indented"\nmsgstr ""', 'indented"\nmsgstr ""\n"Две строки:\\n"\n"  вторая с отступом"'),
    ('msgid " leading space"\nmsgstr ""', 'msgid " leading space"\nmsgstr " пробел"'),
)


def test_t5_entities_stay_what_they_are(desk: Desk) -> None:
    """No element comes to be and no ampersand is doubled; the tree has the source's shape."""
    said = 'To disable it, write ⟦1⟧ in the template. It\'s "safe".'
    desk.write("a.html", PAGE)
    with answering(dictionary={said: "C'est \"sûr\" : pour l'éteindre, ⟦1⟧ dans le modèle."}) as server:
        desk.hire(server.url, priced=True)
        told = desk.translate("a.html", "--to", "fr", *HIRED)
        assert (told.code, told.object["outputs"]) == (0, ["a.fr.html"])
        assert desk.read("a.fr.html") == (
            "<p>C&#39;est &quot;sûr&quot; : pour l&#39;éteindre, &lt;script&gt; dans le modèle.</p>"
        )
        assert sent(server) == [[said]]
        assert server.calls[0].question["items"][0]["markers"] == {"1": "&lt;script&gt;"}
        before, after = (
            [node.tag for node in html.fragment_fromstring(desk.read(name)).iter()]
            for name in ("a.html", "a.fr.html")
        )
        assert after == before == ["p"]
        assert_the_ledger_is_exact(desk, told, server)


@pytest.mark.parametrize("answer", ["<script>", "&lt;script&gt;", "&amp;lt;script&amp;gt;"])
def test_t5_a_marker_that_is_spelled_out_is_refused(desk: Desk, answer: str) -> None:
    desk.write("a.html", PAGE)
    with answering(then={"act": "translate", "replace": {"⟦1⟧": answer}}) as server:
        desk.hire(server.url, priced=True)
        told = desk.translate("a.html", "--to", "fr", *HIRED)
        assert (told.code, told.object["outputs"]) == (3, [])
        [field] = told.object["failures"][0]["fields"]
        assert (field["code"], field["check"]) == ("checks_failed", "placeholders")
        assert "&lt;script&gt;" in field["message"]
        assert len(server.calls) == 2
        assert_the_ledger_is_exact(desk, told, server)


def test_t6_an_icu_plural_gets_the_forms_of_the_target(desk: Desk) -> None:
    desk.write("a.json", {"p": MESSAGE})
    with answering(dictionary=POLISH) as server:
        desk.hire(server.url, priced=True)
        told = desk.translate("a.json", "--to", "pl", *HIRED)
        assert told.code == 0
        assert desk.texts("a.pl.json") == {
            "p": "{productCount, plural, =1 {Masz jeden produkt.} one {Masz # produkt.} "
            "few {Masz # produkty.} many {Masz # produktów.} other {Masz # produktu.}}"
        }
        assert desk.read("a.pl.json") == desk.read("a.json").replace(MESSAGE, desk.texts("a.pl.json")["p"])
        assert [len(texts) for texts in sent(server)] == [5]
        assert_the_ledger_is_exact(desk, told, server)


@pytest.mark.parametrize("place", [0, -1])
def test_t6_without_its_exact_branch_or_its_other_a_plural_fails(desk: Desk, place: int) -> None:
    """The first sentence is that for `=1`, the last that for `other`; the other text is written."""
    desk.write("a.json", {"k": "Hello", "p": MESSAGE})
    lost = {"contains": "You have", "act": {"act": "omit", "index": place}}
    with answering(dictionary=POLISH, rules=[lost]) as server:
        desk.hire(server.url, priced=True, more="batch_size = 1")
        told = desk.translate("a.json", "--to", "pl", *HIRED)
        assert (told.code, told.object["outputs"]) == (3, ["a.pl.json"])
        [failure] = told.object["failures"]
        assert [(field["key"], field["code"], field["check"]) for field in failure["fields"]] == [
            ("p", "checks_failed", "missing")
        ]
        assert [len(texts) for texts in sent(server)] == [1, 5, 5]
        assert desk.texts("a.pl.json") == {"k": "pl Hello"}
        assert_the_ledger_is_exact(desk, told, server)


def test_t7_a_po_file_keeps_everything_but_what_is_translated(desk: Desk) -> None:
    desk.write("a.po", CATALOGUE)
    with answering(dictionary=RUSSIAN) as server:
        desk.hire(server.url, priced=True)
        told = desk.translate("a.po", "--to", "ru", *HIRED)
        assert (told.code, told.object["outputs"]) == (0, ["a.ru.po"])
        assert desk.read("a.ru.po") == IN_RUSSIAN
        assert len(sent(server)) == 1
        assert sorted(sent(server)[0]) == [
            "Order", "Two lines:\n  the second is indented", "leading space",
            "⟦1⟧ item", "⟦1⟧ items", "⟦1⟧ items", "⟦1⟧ items",
        ]  # fmt: skip
        assert_the_ledger_is_exact(desk, told, server)


def test_t7_entries_that_are_translated_keep_their_bytes(desk: Desk) -> None:
    """In whatever way somebody laid them out."""
    stands = swapped(IN_RUSSIAN, ('"Заказать"', '""'), ('"Language: ru', '"X-Editor: own\\n"\n"Language: ru'))
    stands = swapped(stands, ('msgstr " пробел"', 'msgstr   ""\n   " пробел"'))
    desk.write("a.po", CATALOGUE)
    desk.write("a.ru.po", stands)
    with answering(dictionary=RUSSIAN) as server:
        desk.hire(server.url, priced=True)
        told = desk.translate("a.po", "--to", "ru", *HIRED)
        assert told.code == 0
        assert desk.read("a.ru.po") == swapped(stands, ('"Order"\nmsgstr ""', '"Order"\nmsgstr "Заказать"'))
        assert sent(server) == [["Order"]]
        assert_the_ledger_is_exact(desk, told, server)


def test_t8_a_rails_file_keeps_its_keys_quotes_blocks_and_anchors(desk: Desk) -> None:
    desk.write("config/locales/en.yml", RAILS)
    with answering(dictionary=SPANISH) as server:
        desk.hire(server.url, priced=True)
        told = desk.translate("config/locales/en.yml", "--to", "es", *HIRED)
        assert (told.code, told.object["outputs"]) == (0, ["config/locales/es.yml"])
        written = desk.read("config/locales/es.yml")
        assert written == swapped(
            RAILS,
            ("\nen:", "\nes:"),
            ('"Yes"', '"Sí"'),
            ("Hello %{name}, you have %{count} mails", "Hola %{name}, tienes %{count} correos"),
            ("save: Save", "save: Guardar"),
            ("'Don''t save'", "'No guardar'"),
            ("A title", "Un título"),
            ("First line with %{count}\n      indented", "Primera línea con %{count}\n      sangrada"),
            ("Last line", "Última línea"),
        )
        reread: Any = YAML(typ="safe").load(written)
        assert reread["es"]["yes"] == "Sí"
        assert reread["es"]["form"] == {
            "save": "Guardar", "cancel": "No guardar", "title": "Un título", "again": "Un título"
        }  # fmt: skip
        assert [sorted(texts) for texts in sent(server)] == [sorted(SPANISH)]
        assert_the_ledger_is_exact(desk, told, server)


def test_t9_each_locale_is_asked_for_under_the_providers_code_or_refused_unasked(desk: Desk) -> None:
    """Files are named by the caller's tags. The list names targets, and English is none of them."""
    desk.write("a.json", {"k": "Hello"})
    with answering() as server:
        desk.hire(server.url, priced=True)
        desk.configure(f"{desk.read('dragoman.toml')}locales = {list(OFFERED)}\n")
        told = desk.translate("a.json", "--to", "zh-Hant,pt-BR,sr-Latn", *HIRED)
        assert told.code == 3
        assert sorted(told.object["outputs"]) == ["a.pt-BR.json", "a.zh-Hant.json"]
        asked = [(call.question["source_locale"], call.question["target_locale"]) for call in server.calls]
        assert sorted(asked) == [("en", "pt-BR"), ("en", "zh-TW")]
        assert desk.texts("a.zh-Hant.json") == {"k": "zh-TW Hello"}
        assert desk.texts("a.pt-BR.json") == {"k": "pt-BR Hello"}
        [failure] = told.object["failures"]
        assert (failure["locale"], failure["code"]) == ("sr-Latn", "unsupported_locale")
        assert "sr-Latn" in failure["fields"][0]["message"]
        assert_the_ledger_is_exact(desk, told, server)
        again = desk.translate("a.json", "--to", "sr-Latn", *HIRED)
        assert (again.code, again.object["outputs"], len(server.calls)) == (3, [], 2)
        assert again.object["cost"]["paid_tokens"] == 0
