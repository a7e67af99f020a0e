from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from dragoman.content.documents import open_document, render
from dragoman.content.formats.rails_yaml import RailsYaml
from dragoman.content.protection import protect, restore
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Document, Text
from dragoman.wiring import catalogue
from tests.content.real_files import case, corpus

FORMAT = RailsYaml()
T8 = """\
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
  tos: >-
    Folded text
    of two lines

  precision: 3
"""
PLURAL = """\
en:
  mails:
    zero: No mails
    one: 'One mail'
    other: '%{count} mails'   # how many
  last: End
"""


def source(text: str | bytes) -> Document:
    return open_document(FORMAT, "en.yml", text if isinstance(text, bytes) else text.encode(), "source", "en")


def target(text: str | bytes, locale: str = "pl") -> Document:
    return open_document(
        FORMAT, "x.yml", text if isinstance(text, bytes) else text.encode(), "target", locale
    )


def values(document: Document) -> dict[str, Text]:
    return {block.key: block.value for block in document.blocks}


def written(
    text: str, translations: Mapping[str, Text], standing: str | None = None, locale: str = "pl"
) -> str:
    base = None if standing is None else target(standing, locale)
    return render(FORMAT, base, source(text), translations, locale).data.decode()


def pseudo(value: Text) -> Text:
    if isinstance(value, str):
        return f"«{value}»"
    exact = {name: f"«{text}»" for name, text in value.items() if name.startswith("=")}
    return exact | {name: f"«{value.get(name, value['other'])}»" for name in ("one", "few", "many", "other")}


def real() -> list[object]:
    """The files of the corpus whose root is a locale."""
    return [one for one in corpus("yaml") if "docsy" not in str(getattr(one, "id", ""))]


@pytest.mark.parametrize("file", real())
def test_real_files_written_with_their_own_texts_are_themselves(file: Path) -> None:
    data, locale = file.read_bytes(), file.stem.rpartition("_")[2]
    document = source(data)
    standing = target(data, locale)
    assert render(FORMAT, standing, document, values(standing), locale).edits == ()
    assert render(FORMAT, standing, document, {}, locale).data == data


@pytest.mark.parametrize("file", real())
def test_real_files_translated_are_read_alike_by_ruamel(file: Path) -> None:
    document = source(file.read_bytes())
    wanted = {key: pseudo(value) for key, value in values(document).items()}
    data = render(FORMAT, None, document, wanted, "pl").data
    assert values(target(data)) == wanted
    reader = YAML(typ="safe", pure=True)
    before, after = reader.load(file.read_text("utf-8")), reader.load(data.decode())
    assert list(after) == ["pl"]
    found = dict(leaves(after["pl"]))
    for key, value in wanted.items():
        forms = (
            {key: value}
            if isinstance(value, str)
            else {f"{key}/{name}": text for name, text in value.items()}
        )
        for path, text in forms.items():
            assert found.pop(path.replace("=0", "zero")) == text
    assert all(dict(leaves(next(iter(before.values())))).get(path) == leaf for path, leaf in found.items())


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in items:
            yield from leaves(inner, f"{path}/{name}" if path else str(name))
    else:
        yield path, value.rstrip("\n") if isinstance(value, str) else value


@pytest.mark.parametrize("file", real())
def test_real_files_grow_back_to_what_a_whole_translation_gives(file: Path) -> None:
    document = source(file.read_bytes())
    wanted = {key: pseudo(value) for key, value in values(document).items()}
    whole = render(FORMAT, None, document, wanted, "pl").data
    for half in (list(wanted)[::2], list(wanted)[1::2], list(wanted)[:3], list(wanted)[-3:]):
        first = render(FORMAT, None, document, {key: wanted[key] for key in half}, "pl").data
        assert render(FORMAT, target(first), document, wanted, "pl").data == whole


def test_answers_are_texts_and_their_names_no_booleans() -> None:
    """[O02]"""
    given, expected = case("O02", "yml")
    document = source(given)
    assert {block.key: "boolean in YAML 1.1" in block.note for block in document.blocks} == {
        "answers/yes": True,
        "answers/no": True,
        "answers/on": False,
    }
    translations = {"answers/yes": "Sí", "answers/no": "No", "answers/on": "Activado"}
    assert render(FORMAT, None, document, translations, "es").data == expected


def test_words_that_yaml_takes_for_booleans_are_quoted_in_a_new_file_and_left_in_a_standing_one() -> None:
    text = "en:\n  yes: Yes\n  off: off\n  real: true\n  time: 12:30\n  n: 1\n"
    assert list(values(source(text))) == ["yes", "off"]
    same = values(source(text))
    assert written(text, same) == text.replace("en:", "pl:").replace("Yes", '"Yes"').replace(
        " off\n", ' "off"\n'
    )
    standing = text.replace("en:", "pl:")
    assert written(text, same, standing) == standing
    assert written(text, {"yes": "on"}, standing) == standing.replace("Yes", '"on"')


def test_a_rails_file_keeps_order_comments_quotes_blocks_and_anchors() -> None:
    """[T8]"""
    spanish = {
        "Yes": "Sí",
        "No": "No",
        "Hello %{name}, you have %{count} mails": "Hola %{name}, tienes %{count} correos",
        "Save": "Guardar",
        "Don't save": "No guardar l'original",
        "A title": "Un título: nuevo",
        "First line with %{count}\n  indented\n\nLast line": "Primera con %{count}\n  sangrada\n\nÚltima",
        "Folded text of two lines": "Texto plegado",
    }
    document = source(T8)
    translations: dict[str, Text] = {}
    for block in document.blocks:
        protected = protect(block.text, block.syntax)
        said = spanish[block.text]
        for number, raw in protected.markers.items():
            said = said.replace(raw, f"⟦{number}⟧")
        translations[block.key] = restore(protected, said)
    result = render(FORMAT, None, document, translations, "es").data.decode()
    assert result == (
        "# The application's texts\n"
        "es:\n"
        "  # Answers to questions\n"
        '  yes: "Sí"\n'
        "  no: 'No'   # short\n"
        "  greeting: Hola %{name}, tienes %{count} correos\n"
        "  defaults: &defaults\n"
        "    save: Guardar\n"
        "    cancel: 'No guardar l''original'\n"
        "  form:\n"
        "    <<: *defaults\n"
        "    title: &title 'Un título: nuevo'\n"
        "    again: *title\n"
        "  help: |\n"
        "    Primera con %{count}\n"
        "      sangrada\n"
        "\n"
        "    Última\n"
        "  tos: >-\n"
        "    Texto plegado\n"
        "\n"
        "  precision: 3\n"
    )
    assert {block.key: block.note for block in document.blocks if block.note} == {
        "yes": "Answers to questions",
        "no": "short",
    }


def test_a_plural_gets_the_categories_of_its_locale_and_keeps_its_explicit_zero() -> None:
    (block, _) = source(PLURAL).blocks
    assert block.plural == {"=0": "No mails", "one": "One mail", "other": "%{count} mails"}
    forms = {"=0": "Brak", "one": "Jeden", "few": "%{count} a", "many": "it's: m", "other": "%{count} o"}
    assert written(PLURAL, {"mails": forms, "last": "Koniec"}) == (
        "pl:\n  mails:\n    zero: Brak\n    one: 'Jeden'\n    few: '%{count} a'\n    many: 'it''s: m'\n"
        "    other: '%{count} o'   # how many\n  last: Koniec\n"
    )
    lacking = {name: text for name, text in forms.items() if name != "=0"}
    assert "    zero: 'it''s: m'\n" in written(PLURAL, {"mails": lacking}).replace('"it\'s: m"', "'it''s: m'")
    assert written(PLURAL, {"mails": {"other": "件"}}, locale="ja") == (
        "ja:\n  mails:\n    zero: 件\n    other: '件'   # how many\n"
    )


def test_zero_is_a_category_where_the_locale_has_it() -> None:
    forms = {name: f"{name} %{{count}}" for name in ("=0", "zero", "one", "two", "few", "many", "other")}
    result = written(PLURAL, {"mails": forms}, locale="ar")
    assert list(dict(values(target(result, "ar")))["mails"]) == ["zero", "one", "two", "few", "many", "other"]
    assert "zero: '=0 %{count}'" in result or 'zero: "=0 %{count}"' in result or "zero: =0 %{count}" in result


def test_a_plural_in_brackets_grows_in_brackets() -> None:
    text = 'en:\n  days: { one: "a day", other: "days" }\n'
    forms = {"one": "dzień", "few": "dni", "many": "dni", "other": "dnia"}
    assert written(text, {"days": forms}) == (
        'pl:\n  days: { one: "dzień", few: "dni", many: "dni", other: "dnia" }\n'
    )


@pytest.mark.parametrize(
    "root, role_locale, expected",
    [
        ("en", "es", "es"),
        ("en", "pt-BR", "pt-BR"),
        ("en_US", "pt-BR", "pt_BR"),
        ('"en"', "de", '"de"'),
        ("en", "no", '"no"'),
    ],
)
def test_the_root_is_named_for_the_target(root: str, role_locale: str, expected: str) -> None:
    assert written(f"{root}:\n  a: b\n", {"a": "c"}, locale=role_locale) == f"{expected}:\n  a: c\n"


@pytest.mark.parametrize("root, locale", [("pt", "pt-BR"), ("zh-CN", "zh-Hans"), ("nb", "no"), ("de", "de")])
def test_a_root_that_says_so_already_stays(root: str, locale: str) -> None:
    assert written("en:\n  a: b\n", {"a": "c"}, f"{root}:\n  a: x\n", locale) == f"{root}:\n  a: c\n"


def test_a_copy_of_the_source_that_stands_for_a_target_is_named_anew() -> None:
    assert written("en:\n  a: b\n", {"a": "c"}, "en:\n  a: b\n", "fr") == "fr:\n  a: c\n"


@pytest.mark.parametrize("standing", ["pl:\n", "pl: {}\n", "pl: ~", "pl: # none yet\n"])
def test_a_root_without_keys_is_filled(standing: str) -> None:
    result = written("en:\n  a:\n    b: x\n  c: y\n", {"a/b": "X", "c": "Y"}, standing)
    assert values(target(result)) == {"a/b": "X", "c": "Y"}


def test_new_keys_stand_behind_their_neighbours_and_lost_ones_stay() -> None:
    text = "en:\n  a: 1a\n\n  # of b\n  b: 2b\n  c:\n    d: 3d\n    e: 4e\n    n: 5\n  f: |\n    text\n"
    text += "  g: end\n"
    standing = "pl:\r\n    a: 'jeden'\r\n    c:\r\n        e: cztery\r\n    old: stare"
    result = render(
        FORMAT, target(standing), source(text), {"b": "dwa", "c/d": "trzy", "f": "a\nb", "g": "k"}, "pl"
    )
    assert result.data.decode() == (
        "pl:\r\n    a: 'jeden'\r\n\r\n    # of b\r\n    b: dwa\r\n"
        "    c:\r\n        d: trzy\r\n        e: cztery\r\n"
        "    f: |\r\n      a\r\n      b\r\n    g: k\r\n    old: stare"
    )
    assert result.lost == ("old",)


def test_what_has_no_translation_goes_with_its_comments_but_anchors_that_are_needed_stay() -> None:
    text = (
        "en:\n  # of a\n  a: x\n  b:\n    c: &c y\n    d: z\n  e: *c\n  l: [p, q]\n  m:\n    n: o\n  z: 1\n"
    )
    assert written(text, {"b/d": "ż", "l/0": "ó"}) == (
        "pl:\n  b:\n    c: &c y\n    d: ż\n  e: *c\n  l: [ó, q]\n  z: 1\n"
    )


def test_a_bomb_of_aliases_is_no_bomb() -> None:
    levels = "".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 40))
    text = f"en:\n  l0: &l0 [lol, lol]\n{levels}  last: word\n"
    assert list(values(source(text))) == ["l0/0", "l0/1", "last"]
    assert written(text, {"last": "słowo", "l0/0": "x", "l0/1": "y"}).endswith("  last: słowo\n")


@pytest.mark.parametrize(
    "path, text, name",
    [
        ("config/locales/en.yml", "# c\n---\nen:\n  a: b\n", "rails"),
        ("config/locales/x.yaml", "'pt-BR': # c\n  a: b\n", "rails"),
        ("i18n/no.yml", "no: Nei\nyes: Ja\n", "yaml"),
        ("i18n/en.yml", "en:\n  a: b\nother: x\n", "yaml"),
        ("i18n/en.yml", "title:\n  a: b\n", "yaml"),
        ("i18n/en.yml", "- id: en\n  translation: x\n", "yaml"),
    ],
)
def test_a_file_is_rails_where_its_only_key_is_a_locale(path: str, text: str, name: str) -> None:
    chosen = next(form for form in catalogue.formats() if form.detect(path, text))
    assert chosen.name == name


@pytest.mark.parametrize(
    "text, line, told",
    [
        ("", 1, "begins with the key of its locale"),
        ("en: text\n", 1, "below 'en' stand no keys"),
        ("en:\n  a: b\nde:\n  a: b\n", 3, "a Rails file has one root"),
        ("en:\n  a: b\n---\nde:\n  a: b\n", 3, "a second document begins here"),
        ("en:\n  a: b\n  ? [x]\n  : y\n", 3, "a key must be a single text"),
        ("en:\n  a: &a\n    b: *a\n", 3, "inside of its own anchor"),
        ("en:\n  a: *b\n", 2, "nothing before is anchored as &b"),
        ("en: " + "[" * 200 + "]" * 200, 1, "nested more than 100 deep"),
    ],
)
def test_what_is_no_rails_file_is_refused_by_line(text: str, line: int, told: str) -> None:
    with pytest.raises(DocumentError) as refused:
        source(text)
    assert refused.value.place == f"en.yml:{line}"
    assert told in refused.value.message


def test_a_text_that_stands_where_the_source_has_a_plural_becomes_one() -> None:
    forms = {"=0": "Brak", "one": "Jeden", "few": "a", "many": "m", "other": "o"}
    result = written(PLURAL, {"mails": forms}, "pl:\n  mails: dużo\n  last: Koniec\n")
    assert values(target(result)) == {"mails": forms, "last": "Koniec"}
