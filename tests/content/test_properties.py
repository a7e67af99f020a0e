from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from moz.l10n.formats.properties.parse import properties_parse
from moz.l10n.model import Entry, PatternMessage

from dragoman.content.documents import open_document, render
from dragoman.content.formats import properties
from dragoman.content.formats.properties import PropertiesCatalogue
from dragoman.content.lexers.properties_entries import scan
from dragoman.content.lexers.properties_rereading import reread
from dragoman.content.protection import protect, restore
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Document, Role
from tests.content.real_files import corpus

FORMAT = PropertiesCatalogue()


def opened(data: bytes | str, role: Role = "source") -> Document:
    return open_document(FORMAT, "a.properties", data.encode() if isinstance(data, str) else data, role, "de")


def texts(document: Document) -> dict[str, str]:
    return {block.key: block.text for block in document.blocks}


def written(source: bytes | str, values: Mapping[str, str], base: bytes | str | None = None) -> str:
    data = render(FORMAT, None if base is None else opened(base, "target"), opened(source), values, "de").data
    return data.decode("utf-8")


def by_mozilla(data: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for section in properties_parse(data).sections:
        for entry in section.entries:
            if isinstance(entry, Entry) and isinstance(entry.value, PatternMessage):
                found[".".join((*section.id, *entry.id))] = "".join(map(str, entry.value.pattern))
    return found


@pytest.mark.parametrize("file", corpus("properties"))
def test_real_bundles_come_through(file: Path) -> None:
    """A no-op is identical, and another library reads every text that we read and every one that we write."""
    data = file.read_bytes()
    document = opened(data)
    same = texts(document)
    assert len(same) == len(by_mozilla(data.decode()))
    assert render(FORMAT, None, document, same, "de").data == data
    assert render(FORMAT, opened(data, "target"), document, {}, "de").data == data
    values = {key: f"«{text}» l'été" for key, text in same.items()}
    whole = render(FORMAT, None, document, values, "de").data
    assert whole.isascii(), "pure ASCII stays so, as every Java reads it"
    assert texts(opened(whole, "target")) == values
    raw = {key: properties._message(value) for key, value in values.items()}
    assert by_mozilla(whole.decode()) == raw
    for half in (list(values)[::2], list(values)[1::2], list(values)[:3], list(values)[-3:]):
        first = render(FORMAT, None, document, {key: values[key] for key in half}, "de").data
        assert render(FORMAT, opened(first, "target"), document, values, "de").data == whole


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("a=b", "a", "b"),
        ("a:b", "a", "b"),
        ("a b", "a", "b"),
        (" \ta \f=  b ", "a", "b "),
        ("a = = b", "a", "= b"),
        ("a\\ b\\=c\\:d = e", "a b=c:d", "e"),
        ("a\\\n  b=c", "ab", "c"),
        ("a=b\\\r\n   c\\\n\td", "a", "bcd"),
        ("a=\\\n  b", "a", "b"),
        ("a \\\n  : b", "a", "b"),
        ("a=b\\\\\nc=d", "a", "b\\"),
        ("a=b\\", "a", "b"),
        ("a=\\u00e4\\uD83D\\uDE00\\n\\q", "a", "ä😀\nq"),
        ("a", "a", ""),
        ("=b", "", "b"),
        ("a=# no comment", "a", "# no comment"),
        ("a=b\\\n# no comment", "a", "b# no comment"),
        ("\\\n# comment\na=b", "a", "b"),
    ],
)
def test_keys_and_values_are_as_java_reads_them(text: str, key: str, value: str) -> None:
    assert (scan(text)[0].key, scan(text)[0].text) == (key, value)
    assert reread(text)[0] == (key, value)


@given(st.text(st.sampled_from("ab=: \t\f\\\n\ru0#!'")))
def test_any_lines_are_read_alike_by_two_readers(text: str) -> None:
    try:
        entries = scan(text)
    except DocumentError:
        assume(False)
    assert [(entry.key, entry.text) for entry in entries] == reread(text)


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    st.sampled_from(["x", "x \\\n  y z", "\\n\\\n  y"]),
)
def test_any_text_can_be_written_anywhere(text: str, old: str) -> None:
    assume(text.strip())
    out = written(f"a={old}\nb=ü", {"a": text, "b": "ü"})
    assert texts(opened(out, "target"))["a"] == text


def test_of_two_entries_of_one_key_the_last_counts() -> None:
    document = opened("a=one\nb=two\na=three\n")
    assert texts(document) == {"b": "two", "a": "three"}
    assert written("a=one\nb=two\na=three\n", {"a": "drei", "b": "zwei"}) == "a=one\nb=zwei\na=drei\n"
    assert written("a=one\nb=two\na=three\n", {"b": "zwei"}) == "b=zwei\n"


def test_comments_right_above_an_entry_are_its_note() -> None:
    document = opened("# Licence\n\n# one\n! two\na=b\n# far\n\nc=d\n")
    assert [block.note for block in document.blocks] == ["one\ntwo", ""]


def test_a_new_key_stands_behind_its_neighbour_with_its_comments() -> None:
    source = "# Licence\n\na=A\n\n# About b\nb = B\nc=C\n"
    assert written(source, {"b": "Be", "a": "Ah"}, "# Lizenz\r\n\r\nc=Ce\r\n") == (
        "# Lizenz\r\n\r\na=Ah\r\n\r\n# About b\r\nb = Be\r\nc=Ce\r\n"
    )
    assert written(source, {"b": "Be", "c": "Ce"}, "a=Ah") == "a=Ah\n\n# About b\nb = Be\nc=Ce"
    assert written(source, {"a": "Ah"}, "") == "a=Ah\n"


def test_keys_that_the_source_lost_stay_and_are_listed() -> None:
    rendered = render(FORMAT, opened("a=x\nold=y\n", "target"), opened("a=b\n"), {"a": "z"}, "de")
    assert (rendered.data, rendered.lost) == (b"a=z\nold=y\n", ("old",))


def test_a_file_that_escapes_everything_goes_on_so_and_one_that_does_not_does_not() -> None:
    assert written("a=\\u00E4\nb=x", {"a": "öß", "b": "—😀"}) == "a=\\u00F6\\u00DF\nb=\\u2014\\uD83D\\uDE00"
    assert written("a=ä\nb=\\u00a0x\\:", {"a": "öß", "b": "\xa0:y"}) == "a=öß\nb=\\u00a0\\:y"


def test_latin_1_stays_latin_1_and_escapes_what_it_lacks() -> None:
    data = "a=für\nb=x\n".encode("iso-8859-1")
    document = opened(data)
    assert (document.encoding, texts(document)) == ("iso8859-1", {"a": "für", "b": "x"})
    rendered = render(FORMAT, None, document, {"a": "größer", "b": "„€“"}, "de")
    assert rendered.data == "a=größer\nb=\\u201e\\u20ac\\u201c\n".encode("iso-8859-1")


def test_a_damaged_utf_8_file_is_refused_and_not_taken_for_latin_1() -> None:
    with pytest.raises(DocumentError, match="0xfc"):
        opened("a=größer\nb=".encode() + b"\xfc\n")


def test_an_apostrophe_is_doubled_where_a_message_has_an_argument_and_nowhere_else() -> None:
    """Java's `MessageFormat` is applied only where there are arguments."""
    source = "a=The object {0} isn''t here\nb=It isn't\nc=Literal '{'0'}' of {1}\n"
    document = opened(source)
    assert texts(document) == {
        "a": "The object {0} isn't here",
        "b": "It isn't",
        "c": "Literal '{'0'}' of {1}",
    }
    assert {block.syntax for block in document.blocks} == {"icu"}
    assert written(source, {"a": "L'objet {0} n'est pas là", "b": "Ce n'est pas", "c": "'{'0'}' d''{1}"}) == (
        "a=L''objet {0} n''est pas l\\u00e0\nb=Ce n'est pas\nc='{'0'}' d''{1}\n"
    )
    assert written("a=Not {0}\n", {"a": "N'est {0}"}) == "a=N''est {0}\n"


def test_a_project_without_message_format_shows_it_by_single_apostrophes() -> None:
    assert written("a=It isn't {0}\n", {"a": "Ce n'est pas {0}"}) == "a=Ce n'est pas {0}\n"


PIECES = ("' ", "''x", "{0}", " '{'x ", "d''{0}", "x'''", "'y", " ")


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_shown_and_written_apostrophes_are_each_others_inverse(shown: str) -> None:
    """But for a single one right before an argument, which `protection` doubles."""
    assume(not re.search(r"(?<!')(?:'')*'\{(?!')", shown))
    assert properties._shown(properties._message(shown)) == shown


def test_continued_lines_stay_continued() -> None:
    source = "a=First sentence of a text \\\n    that goes on and on for long.\nb=one\\n\\\n  two\n"
    out = written(
        source, {"a": "Ein Satz, der länger ist, und noch länger, und noch", "b": "eins\nzwei\n drei"}
    )
    assert out == (
        "a=Ein Satz, der l\\u00e4nger ist, und noch \\\n    l\\u00e4nger, und noch\n"
        "b=eins\\n\\\n  zwei\\n\\\n  \\ drei\n"
    )


def test_a_plural_has_no_place() -> None:
    with pytest.raises(DragomanError, match="plural forms"):
        written("a=b", {"a": {"one": "x", "other": "y"}})  # type: ignore[dict-item]


JAVA = """
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.text.MessageFormat;
import java.util.*;
public class Oracle {
  static String hex(String text) {
    StringBuilder out = new StringBuilder();
    for (char c : text.toCharArray()) out.append(String.format("%04x", (int) c));
    return out.toString();
  }
  public static void main(String[] args) throws IOException {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = lines.readLine()) != null;) {
      StringBuilder text = new StringBuilder();
      for (int at = 0; at < line.length(); at += 4)
        text.append((char) Integer.parseInt(line.substring(at, at + 4), 16));
      if (args[0].equals("message")) {
        System.out.println(hex(new MessageFormat(text.toString()).format(new Object[] {"ARG"})));
        continue;
      }
      StringBuilder out = new StringBuilder();
      Properties read = new Properties();
      try { read.load(new StringReader(text.toString())); }
      catch (IllegalArgumentException refused) { System.out.println("refused"); continue; }
      for (String key : new TreeSet<>(read.stringPropertyNames()))
        out.append(hex(key)).append('=').append(hex(read.getProperty(key))).append(' ');
      System.out.println(out.toString().trim());
    }
  }
}
"""


def by_java(folder: Path, mode: str, texts: list[str]) -> list[str]:
    """One line of Java's answer to each text; skips the test where there is no Java."""
    java = shutil.which("java")
    if java is None:
        pytest.skip("no Java here")
    (folder / "Oracle.java").write_text(JAVA)
    asked = "".join(f"{_hex(text)}\n" for text in texts)
    command = [java, str(folder / "Oracle.java"), mode]
    answer = subprocess.run(command, input=asked, capture_output=True, text=True, check=True, timeout=120)
    return answer.stdout.splitlines()


def _hex(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()


def test_java_reads_what_we_read(tmp_path: Path) -> None:
    """But for a lone backslash at a file's end: to Java an empty key after LF, and nothing after CRLF."""
    chance = random.Random(7)
    signs = "ab=: \t\f\\\n\ru0#!é😀"
    files = ["".join(chance.choices(signs, k=chance.randint(1, 24))) + "\nz=z" for _ in range(4000)]
    for text, answer in zip(files, by_java(tmp_path, "load", files), strict=True):
        try:
            read = {entry.key: entry.text for entry in scan(text)}
        except DocumentError:
            assert answer == "refused", text
            continue
        ours = {f"{_hex(key)}={_hex(value)}" for key, value in read.items()}
        assert set(answer.split()) == ours, repr(text)


def test_java_shows_messages_as_their_blocks_do(tmp_path: Path) -> None:
    """`MessageFormat` of what is written for a translation shows that translation, its argument filled in."""
    shown = ["L'objet {0} n'est pas là", "d''{0}'", "{0}'s ''x''", "It isn't '{'0'}' but {0}'"]
    protected = [protect("of {0}", "icu")]
    shown += [
        restore(protected[0], f"{before}⟦1⟧{behind}") for before in ("d'", "", "l''") for behind in ("", "'s")
    ]
    answers = by_java(tmp_path, "message", [properties._message(text) for text in shown])
    for text, answer in zip(shown, answers, strict=True):
        literal = text.replace("''{", "'{").replace("{0}", "ARG").replace("'{'", "{").replace("'}'", "}")
        assert bytes.fromhex(answer).decode("utf-16-be") == literal, text
