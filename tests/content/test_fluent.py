from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.content.documents import open_document, render
from dragoman.content.formats.fluent import FluentResource
from dragoman.content.protection import protect, restore
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Document, Text
from tests.conformance.formats.members.fluent import read as moz_reads
from tests.content.real_files import case, corpus

FORMAT = FluentResource()
PLURAL = """\
left = You have { $count ->
        [0] nothing
        [one] one item
       *[other] { $count } items
    } left
"""


def source(text: str | bytes) -> Document:
    return open_document(FORMAT, "a.ftl", text if isinstance(text, bytes) else text.encode(), "source", "en")


def target(text: str | bytes, locale: str = "pl") -> Document:
    return open_document(
        FORMAT, "a.ftl", text if isinstance(text, bytes) else text.encode(), "target", locale
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
    return {name: f"«{value.get(name, value['other'])}»" for name in ("one", "few", "many", "other")}


@pytest.mark.parametrize("file", corpus("ftl"))
def test_real_files_written_with_their_own_texts_are_themselves(file: Path) -> None:
    data = file.read_bytes()
    document = source(data)
    assert render(FORMAT, None, document, values(document), "pl").edits == ()
    assert render(FORMAT, target(data), document, values(document), "pl").edits == ()
    assert render(FORMAT, target(data), document, {}, "pl").data == data


@pytest.mark.parametrize("file", corpus("ftl"))
def test_real_files_translated_are_read_alike_by_moz_l10n(file: Path) -> None:
    document = source(file.read_bytes())
    wanted = {key: pseudo(value) for key, value in values(document).items()}
    data = render(FORMAT, None, document, wanted, "pl").data
    read = target(data)
    assert values(read) == wanted
    theirs = {"".join(text.split()) for text in moz_reads(data)}
    for value in wanted.values():
        for form in [value] if isinstance(value, str) else value.values():
            if "(" not in form:  # moz.l10n spells functions in its own way
                assert "".join(form.replace("{$", "{ $").split()) in theirs


@pytest.mark.parametrize("file", corpus("ftl"))
def test_real_files_grow_back_to_what_a_whole_translation_gives(file: Path) -> None:
    document = source(file.read_bytes())
    wanted = {key: pseudo(value) for key, value in values(document).items()}
    whole = render(FORMAT, None, document, wanted, "pl").data
    for half in (list(wanted)[::2], list(wanted)[1::2], list(wanted)[:3], list(wanted)[-3:]):
        first = render(FORMAT, None, document, {key: wanted[key] for key in half}, "pl").data
        assert render(FORMAT, target(first), document, wanted, "pl").data == whole


def test_a_bracket_is_quoted_only_where_it_would_be_code() -> None:
    """[O09]"""
    given, expected = case("O09", "ftl")
    words = {"Loading data": "Lade Daten", "text": "Text", "bold": "fett", "more": "mehr"}
    document = source(given)
    translations: dict[str, Text] = {}
    for block in document.blocks:
        protected = protect(block.text, block.syntax)
        shown = protected.text
        for word, said in words.items():
            shown = shown.replace(word, said)
        translations[block.key] = restore(protected, shown)
    assert render(FORMAT, None, document, translations, "de").data == expected


@pytest.mark.parametrize(
    "given, text, expected",
    [
        ("a = [x]\n", "[y]", "a = [y]\n"),
        ("a = x\n", "*y\n.z\n[w]", 'a = *y\n    { "." }z\n    { "[" }w]\n'),
        ("a =\n  x\n", "[y]\nz", 'a =\n  { "[" }y]\n  z\n'),
        ("a =\n    x\n      y\n", "p\n  q\n\nr", "a =\n    p\n      q\n\n    r\n"),
        ("a = x\n", "p\n  q", 'a = p\n    { "" }  q\n'),
        ("a = x\n", " y ", 'a = { "" } y { "" }\n'),
        ('a = { " " }x{ "  " }\n', " y  ", 'a = { " " }y{ "  " }\n'),
        ("a = x\n", '{ "" }y\n{ "[" }z{ " " }', 'a = { "" }{ "" }y\n    { "" }{ "[" }z{ " " }{ "" }\n'),
        ("a =\n    .b = x\n", "y\nz", "a =\n    .b = y\n        z\n"),
        ("a = { $x }, { NUMBER($n,\n    minimumFractionDigits: 2) }\n", None, "a = { $x }, { NUMBER($n, min"),
        ('a = { "{" }x{ "}" }\n', None, 'a = { "{" }x{ "}" }ż\n'),
    ],
)
def test_a_text_is_spelled_as_its_place_needs_it(given: str, text: str | None, expected: str) -> None:
    document = source(given)
    (block,) = document.blocks
    assert written(given, {block.key: block.text + "ż" if text is None else text}).startswith(expected)


@pytest.mark.parametrize("text", ["a { b", "a } b", "{ not one }", "{ $x -> \n *[a] b\n }", "{}"])
def test_a_brace_that_is_no_placeable_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(DragomanError, match="no placeable of Fluent: a brace in a text is written"):
        written("a = x\n", {"a": text})


@settings(max_examples=300, deadline=None)
@given(
    st.text(
        st.sampled_from(" \n[.*]=-#\"'ab\\ż→𝄞") | st.characters(codec="utf-8", exclude_characters="\r{}\0")
    ),
    st.sampled_from(
        ["a = x\n", "a =\n    x\n", "a =\n  x\n    y\n", "a = b\n    .c = x\n", "a = x", "a =\r\n    x\r\n"]
    ),
)
def test_any_text_can_stand_in_any_pattern_and_reads_back(text: str, given: str) -> None:
    if not text.strip():
        return
    key = source(given).blocks[-1].key
    assert values(target(written(given, {key: text}, given)))[key] == text


def test_a_plural_is_whole_sentences_and_gets_the_variants_of_its_locale() -> None:
    (block,) = source(PLURAL).blocks
    assert block.plural == {
        "=0": "You have nothing left",
        "one": "You have one item left",
        "other": "You have { $count } items left",
    }
    forms = {
        "=0": "Nic",
        "one": "Jeden",
        "few": "{ $count } a\nb",
        "many": "{ $count } m",
        "other": "{ $count } o",
    }
    assert written(PLURAL, {"left": forms}) == (
        "left = { $count ->\n"
        "        [0] Nic\n"
        "        [one] Jeden\n"
        "        [few] { $count } a\n"
        "            b\n"
        "        [many] { $count } m\n"
        "       *[other] { $count } o\n"
        "    }\n"
    )
    assert written(PLURAL, {"left": {"other": "全部"}}, locale="ja") == (
        "left = { $count ->\n       *[other] 全部\n    }\n"
    )


def test_one_variant_changed_changes_its_line_alone() -> None:
    text = "a = { $n ->\n    [one] x\n   *[other] y\n}\n"
    assert written(text, {"a": {"one": "x", "other": "z"}}, text, "de") == text.replace("y", "z")


def test_other_choices_are_a_text_for_each_variant_and_one_around_them() -> None:
    text = (
        "who = Meet { $sex ->\n    [male] him\n"
        "   *[other] { $n ->\n        [one] it\n       *[other] them\n    }\n}."
        " { POS($n) ->\n    [first] 1\n   *[second] 2\n}\n"
        'nth = { NUMBER($n, type: "ordinal") ->\n    [one] st\n   *[other] th\n}\n'
    )
    found = values(source(text))
    assert found == {
        "who": "Meet { $sex -> … }. { POS($n) -> … }",
        "who/male": "him",
        "who/other": {"one": "it", "other": "them"},
        "who/#2/first": "1",
        "who/#2/second": "2",
        "nth/one": "st",
        "nth/other": "th",
    }
    result = written(text, {**found, "who": "Spotkaj { $sex -> … }! { POS($n) -> … }", "who/male": "jego"})
    assert result == text.replace("Meet", "Spotkaj").replace("}. {", "}! {").replace("him", "jego")
    with pytest.raises(DragomanError, match=r"the choice '\{ POS"):
        written(text, {"who": "{ POS($n) -> … } { $sex -> … }"})


def test_comments_are_notes_and_attributes_of_terms_are_grammar() -> None:
    document = source(
        "### All\n\n## Group\n\n# Own\n# twice\na = x\n-b = Brand\n    .gender = f\n\n##\n\nc =\n    .d = y\n"
    )
    assert {block.key: block.note for block in document.blocks} == {
        "a": "Own\ntwice\nGroup\nAll",
        "-b": "Group\nAll",
        "c.d": "All",
    }


def test_what_has_no_translation_goes_but_for_terms_and_what_others_need() -> None:
    text = "# of a\na = x\n\n-t = Brand\nb = y\nc = see { b }\nd = v\n    .e = w\n    .f = z\n"
    assert written(text, {"c": "zob. { b }", "d.f": "ż"}) == (
        "\n-t = Brand\nb = y\nc = zob. { b }\nd =\n    .f = ż\n"
    )


def test_new_entries_and_attributes_stand_behind_their_neighbours() -> None:
    text = "a = 1a\n\n# of b\nb =\n    2b\n    .x = 3b\n    .y = 4b\n\n## Group\n\nc = 5c\n-t = T\n"
    standing = "a = jeden\r\nb = dwa\r\n  .y = cztery\r\n## Group\r\nold = stare"
    result = render(
        FORMAT,
        target(standing),
        source(text),
        {"b.x": "trzy\n.x", "c": "pięć", "-t": "T"},
        "pl",
    )
    assert result.data.decode() == (
        'a = jeden\r\nb = dwa\r\n    .x = trzy\r\n        { "." }x\r\n  .y = cztery\r\n## Group\r\n'
        "\r\nc = pięć\r\n-t = T\r\nold = stare"
    )
    assert result.lost == ("old",)


def test_a_value_that_lacks_is_put_before_the_attributes() -> None:
    assert written("a =\n    x\n    .b = y\n", {"a": "ż", "a.b": "y"}, "a =\n  .b = y\n") == (
        "a =\n    ż\n  .b = y\n"
    )


def test_a_pattern_of_another_shape_is_written_anew() -> None:
    forms = {"=0": "0", "one": "1", "few": "2", "many": "5", "other": "x"}
    result = written(PLURAL, {"left": forms}, "left = zostało\n")
    assert values(target(result)) == {"left": forms}
    text = "w = { $s ->\n    [m] he\n   *[f] she\n}\n"
    assert written(text, {"w/m": "on"}, "w = { $s ->\n   *[f] ona\n}\n") == (
        "w = { $s ->\n    [m] on\n   *[f] ona\n}\n"
    )


@pytest.mark.parametrize(
    "text, line, told",
    [
        ("a = b\n\n!junk\n", 3, "this is not Fluent: Expected an entry start"),
        ("a = { $x ->\n    [a] b\n}\n", 3, "this is not Fluent"),
        ("a = b\n    .c = d\n    .c = e\n", 3, "'a.c' stands here a second time"),
        ("a = { $x ->\n    [a] b\n    [a] b\n   *[c] d\n}\n", 3, "'a/a' stands here a second time"),
        ("a = " + "{" * 3000, 1, "nested too deeply"),
    ],
)
def test_what_is_not_fluent_is_refused_by_line(text: str, line: int, told: str) -> None:
    with pytest.raises(DocumentError) as refused:
        source(text)
    assert refused.value.place == f"a.ftl:{line}"
    assert told in refused.value.message


@pytest.mark.parametrize(
    "text",
    [
        "a = x {" + " " * 200_000 + "$x }\n",
        "a =" + "\n" * 100_000 + "    x\n",
        "a = b" + "\n    { $x }" * 5_000 + "\n",
        "a = " + '{ "" }' * 5_000 + "\n",
        "a = " + '"{' * 20_000 + "\n",
        "# c\n" * 20_000 + "a = b\n",
    ],
    ids=["blanks", "lines", "placeables", "quotes", "braces", "comments"],
)
@pytest.mark.timeout(30)
def test_reading_takes_linear_time(text: str) -> None:
    try:
        document = source(text)
    except DocumentError:
        return
    render(FORMAT, target(text), document, {"a": str(document.blocks[0].value) + "c"}, "pl")
