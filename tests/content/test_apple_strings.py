"""Apple's .strings: what is a comment and what is a string, escapes, and where new entries go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.documents import open_document, render
from dragoman.content.formats.apple_strings import AppleStrings
from dragoman.content.lexers.strings_entries import escaped, scan, unescaped
from dragoman.content.lexers.strings_rereading import reread
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Document
from tests.content.real_files import case, corpus

FORMAT = AppleStrings()
TEXTS = st.text(st.characters(codec="utf-16", exclude_characters="\0"))


def source(data: bytes | str) -> Document:
    data = data.encode() if isinstance(data, str) else data
    return open_document(FORMAT, "en.lproj/Localizable.strings", data, "source", "en")


def target(data: bytes | str) -> Document:
    data = data.encode() if isinstance(data, str) else data
    return open_document(FORMAT, "de.lproj/Localizable.strings", data, "target", "de")


def texts(document: Document) -> dict[str, str]:
    return {block.key: block.text for block in document.blocks}


def written(original: str, base: str | None, values: Mapping[str, str]) -> str:
    stands = None if base is None else target(base)
    return render(FORMAT, stands, source(original), values, "de").data.decode()


def test_a_comment_on_the_line_of_an_entry_opens_no_string() -> None:
    """[O01] Public: WeblateOrg/weblate#17259."""
    before, after = case("O01", "strings")
    assert texts(target(before)) == {"provider": "Feedbox", "add": "Add account", "bye": "Bye"}
    assert [block.note for block in source(before).blocks] == ["brand, don't translate", "button", ""]
    german = {"add": "Konto hinzufügen", "bye": "Tschüss"}
    assert render(FORMAT, target(before), source(before), german, "de").data == after
    whole = german | {"provider": "Feedbox"}
    assert render(FORMAT, None, source(before), whole, "de").data == after


def test_comments_are_notes_of_the_entry_that_they_touch() -> None:
    """[O01] The same, of our own."""
    document = source(
        "/* It's the file's \"header */\n\n// isn't\n/* two\n * lines */\na = b; /* \"x\" = 'y; */ // don't\n"
        '/* No comment provided by engineer. */\n"c" /* in */ = "d";\n\n/* far */\n\n"e" = "f"; // last\'s'
    )
    assert texts(document) == {"a": "b", "c": "d", "e": "f"}
    notes = ["isn't\ntwo\nlines\n\"x\" = 'y;\ndon't", "in", "last's"]
    assert [block.note for block in document.blocks] == notes


def test_keys_are_quoted_or_not_and_a_key_alone_is_its_own_value() -> None:
    document = source('CFBundleName = Name;\n\'it\' = "it\'s";\n"a/b~";http://x.y=1;')
    assert texts(document) == {"CFBundleName": "Name", "it": "it's", "a~1b~0": "a/b~", "http:~1~1x.y": "1"}


def test_escapes_are_read_as_apple_reads_them() -> None:
    document = source(
        r'"a" = "\"q\" \\ \n \U0041\U00e9\UD83D\uDE00 \101 \' \%";'.replace(r"\uDE00", r"\UDE00")
    )
    assert texts(document) == {"a": '"q" \\ \n Aé😀 A \' %'}


@given(TEXTS, st.sampled_from("\"'"), st.booleans())
def test_what_is_escaped_reads_back_by_both_readers(text: str, quote: str, ascii_only: bool) -> None:
    raw = escaped(text, quote, ascii_only)
    assert unescaped(raw) == text
    assert raw.isascii() or not ascii_only
    assert reread(f"k = {quote}{raw}{quote};") == {"k": text}


def test_a_file_that_escapes_all_but_ascii_goes_on_so() -> None:
    assert written('"a" = "\\U00e9";\n', None, {"a": "ü😀"}) == '"a" = "\\U00fc\\Ud83d\\Ude00";\n'
    assert written('"a" = "e";\n', None, {"a": "ü"}) == '"a" = "ü";\n'


def test_a_value_keeps_its_quotes_and_gets_them_where_it_had_none() -> None:
    after = written("a = 'x';\nb = Name;\n\"c d\";\n", None, {"a": 'it\'s "y"', "b": "Ñ n", "c d": "z"})
    assert after == 'a = \'it\\\'s "y"\';\nb = "Ñ n";\n"c d" = "z";\n'


HEADED = """\
/* Licence */

/* first */
"a" = "A";

// Part two

"b" = "B"; // b's
"c" = "C";
/* of d */
"d" = "D";
"""


def test_new_entries_come_with_their_comments_below_the_heading_that_the_target_has() -> None:
    values = {key: f"<{text}>" for key, text in texts(source(HEADED)).items()}
    whole = written(HEADED, None, values)
    for part in ("a", "b", "c", "d", "ab", "ac", "bd", "cd", "abd"):
        first = written(HEADED, None, {key: values[key] for key in part})
        assert texts(target(first)).keys() == set(part)
        assert "Licence" in first
        assert "Part two" in first
        assert written(HEADED, first, values) == whole


def test_new_entries_bring_a_heading_that_the_target_lacks_and_its_line_ends() -> None:
    values = {"b": "2", "d": "4"}
    base = '/* Lizenz */\r\n"a" = "1";\r\n"c" = "3";'
    after = written(HEADED, base, values)
    assert after == (
        '/* Lizenz */\r\n"a" = "1";\r\n\r\n// Part two\r\n\r\n"b" = "2"; // b\'s\r\n"c" = "3";\r\n'
        '/* of d */\r\n"d" = "4";'
    )


def test_entries_that_share_a_line_go_and_come_one_by_one() -> None:
    shared = '"a" = "A"; /* of a */ "b" = "B";\n"c" = "C";\n'
    assert [block.note for block in source(shared).blocks] == ["of a", "", ""]
    first = written(shared, None, {"b": "2", "c": "3"})
    assert texts(target(written(shared, first, {"a": "1"}))) == {"a": "1", "b": "2", "c": "3"}
    first = written(shared, None, {"a": "1"})
    assert texts(target(written(shared, first, {"b": "2", "c": "3"}))) == {"a": "1", "b": "2", "c": "3"}


def test_keys_that_the_source_lost_stay() -> None:
    rendered = render(FORMAT, target('"x" = "1";\n"a" = "2";\n'), source('"a" = "A";\n'), {"a": "3"}, "de")
    assert (rendered.data, rendered.lost) == (b'"x" = "1";\n"a" = "3";\n', ("x",))


def test_plural_forms_have_no_place_here() -> None:
    with pytest.raises(DragomanError, match="plural forms"):
        render(FORMAT, None, source('"a" = "b";'), {"a": {"one": "x", "other": "y"}}, "de")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('"a" = "b"\n\n"c" = "d";', 3, "semicolon is expected"),
        ('\n"a" = (x);', 2, "a list or data"),
        ('"a" = "\\341";', 1, "another character to each reader"),
        ('"a" = "b";;', 1, "a key is expected"),
        ('"a"', 1, "the file ends"),
    ],
)
def test_refusals_say_what_is_wrong_where(text: str, line: int, says: str) -> None:
    with pytest.raises(DocumentError, match=says) as refused:
        scan(text)
    assert refused.value.line == line


def test_long_and_hostile_texts_are_scanned_in_a_line() -> None:
    scan("".join(f'"k{n}" = "v"; /* * ** */\n' for n in range(20_000)))
    for hostile in ("/*" * 100_000, "/* " + "*" * 100_000, '"' + "\\" * 100_001, "a" * 100_000, "'" * 99_999):
        with pytest.raises(DocumentError):
            scan(hostile)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "file",
    [one for one in corpus("apple") if not str(getattr(one, "id", "")).endswith(("dict", "xcstrings"))],
)
def test_real_files_keep_every_byte_and_take_every_translation(file: Path, encoding: str) -> None:
    data = file.read_bytes().decode().encode(encoding)
    document = source(data)
    assert len(document.blocks) > 100
    assert render(FORMAT, None, document, texts(document), "de").data == data
    assert render(FORMAT, target(data), document, texts(document), "de").edits == ()
    values = {key: f"⟪{text}⟫ “\n" for key, text in texts(document).items()}
    after = render(FORMAT, None, document, values, "de").data
    assert texts(target(after)) == values == reread(after.decode(encoding))
    for half in (list(values)[::2], list(values)[1::2], list(values)[:3], list(values)[-3:]):
        first = render(FORMAT, None, document, {key: values[key] for key in half}, "de").data
        assert render(FORMAT, target(first), document, values, "de").data == after
