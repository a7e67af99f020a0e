"""Documents that are not what they seem: each fails alone, at its line, and stops no other."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.content import documents
from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.flow.publishing.plans import Planning
from dragoman.model.documents import Document, Role
from dragoman.surfaces.cli import following
from tests.surfaces.cli.desk import Desk

HEAD = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
OUT = ("--out", "out/{path}.{locale}{ext}")
BROKEN = {
    "broken.json": (b'{\n  "k": "Hello",\n  "j": oops\n}\n', "line 3: "),
    "twice.json": (
        b'{\n  "k": "Hello",\n  "k": "Hello you"\n}\n',
        "line 3: the key 'k' stands here a second",
    ),
    "cut.json": (b'{\n  "k": "Hel', "line 2: "),
    "empty.json": (b"", "line 1: the file is empty"),
    "blank.json": (b" \n\n", "the file is empty"),
    "bytes.json": (b'{\n  "k": "Hell\xff"\n}\n', "line 2: byte 15 of the file (0xff) is not UTF-8"),
    "bytes.md": (b"# Hello\n\nHell\xc3\x28o\n", "line 3: byte 14 of the file (0xc3) is not UTF-8"),
    "cut.po": (f'{HEAD}msgid "Hello\nmsgstr ""\n'.encode(), "line 5: "),
    "bytes.po": (HEAD.encode() + b'msgid "Hell\xff"\nmsgstr ""\n', "line 5: "),
    "front.md": (b"---\ntitle: [a\n---\n\nHello\n", "line "),
}


def test_what_is_not_valid_fails_alone_with_its_line_and_the_others_are_written(desk: Desk) -> None:
    """[M-192] exit code 3: each is listed with its reason, none may be retried, nothing else is lost."""
    for name, (data, _) in BROKEN.items():
        desk.write(f"docs/{name}", data)
    desk.write("docs/good.json", {"k": "Hello"})
    desk.write("docs/good.md", "# Hello\n")
    told = desk.translate("docs", "--to", "fr", *OUT)
    assert told.code == 3
    assert told.object["status"] == "failed"
    assert told.object["outputs"] == ["out/good.fr.json", "out/good.fr.md"]
    failures = {failure["document"]: failure for failure in told.object["failures"]}
    assert sorted(failures) == sorted(f"docs/{name}" for name in BROKEN)
    for name, (_, line) in BROKEN.items():
        failure = failures[f"docs/{name}"]
        assert (failure["code"], failure["locale"], failure["fields"]) == ("invalid_fields", "fr", [])
        assert line in failure["message"], failure
    counts = told.object["counts"]
    assert (counts["completed"], counts["failed"], counts["total"]) == (2, len(BROKEN), 2 + len(BROKEN))
    assert "Mend the document at the line named" in told.err
    assert "dragoman translate docs --to fr --out 'out/{path}.{locale}{ext}'" in told.err
    retried = desk.run("retry", told.object["manifest_id"], "--json")
    assert (retried.code, retried.error["code"]) == (1, "nothing_to_retry")


def test_a_mended_document_is_translated_by_the_same_command_and_nothing_else_is(desk: Desk) -> None:
    desk.write("docs/a.json", {"k": "Hello"})
    desk.write("docs/b.json", b"{")
    assert desk.translate("docs", "--to", "fr", *OUT).code == 3
    desk.write("docs/b.json", {"k": "Bye"})
    told = desk.translate("docs", "--to", "fr", *OUT)
    assert (told.code, told.object["outputs"]) == (0, ["out/b.fr.json"])
    assert told.object["counts"]["skipped"] == 1


def test_a_format_that_nobody_knows_fails_with_the_names_of_those_known(desk: Desk) -> None:
    """A file that is named is never passed over in silence, as one that is merely found in a folder is."""
    desk.write("notes.xyz", "Hello")
    desk.write("docs/more.xyz", "Hello")
    desk.write("docs/a.json", {"k": "Hello"})
    told = desk.translate("docs", "notes.xyz", "--to", "fr", *OUT)
    assert (told.code, told.object["outputs"]) == (3, ["out/a.fr.json"])
    [failure] = told.object["failures"]
    assert (failure["document"], failure["code"]) == ("notes.xyz", "unsupported_format")
    for form in ("gettext (.po .pot)", "json (.json)", "markdown (.md .markdown)"):
        assert form in failure["message"]


@pytest.mark.parametrize(
    ("name", "text", "grown"),
    [
        ("a.json", '{\n  "k": "Hello",\n  "n": 3\n}', 0),
        ("a.md", "# Hello\n\n- one", 0),
        ("a.po", HEAD + 'msgid "Hello"\nmsgstr ""', 2),  # by Language and Plural-Forms
    ],
)
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["bare", "bom"])
def test_byte_order_mark_and_line_ends_are_kept(
    desk: Desk, name: str, text: str, grown: int, bom: bytes
) -> None:
    """CRLF in each line that had it, none behind the last one, which had none."""
    desk.write(name, bom + text.replace("\n", "\r\n").encode())
    told = desk.translate(name, "--to", "fr", "--out", "out/{stem}{ext}")
    assert told.code == 0, told
    after = (desk.folder / "out" / name).read_bytes()
    assert after.startswith(bom + text[:1].encode())
    assert after.count(b"\n") == after.count(b"\r\n") == text.count("\n") + grown
    assert not after.endswith(b"\n")


def test_files_without_a_text_have_nothing_to_be_done(desk: Desk) -> None:
    for name, data in {"a.md": "", "b.po": "", "c.json": "{}", "d.md": "\n\n", "e.po": HEAD}.items():
        desk.write(f"docs/{name}", data)
    told = desk.translate("docs", "--to", "fr", *OUT)
    assert (told.code, told.object["outputs"], told.object["failures"]) == (0, [], [])
    assert told.object["counts"]["skipped"] == 5


def test_a_target_that_is_not_valid_is_left_alone_and_named(desk: Desk) -> None:
    desk.write("docs/a.json", {"k": "Hello"})
    desk.write("docs/b.json", {"k": "Bye"})
    desk.write("out/a.fr.json", b'{\n  "k" "Salut"\n}\n')
    told = desk.translate("docs", "--to", "fr", *OUT)
    assert (told.code, told.object["outputs"]) == (3, ["out/b.fr.json"])
    [failure] = told.object["failures"]
    assert failure["document"] == "docs/a.json"
    assert "out/a.fr.json" in failure["message"]
    assert "line 2" in failure["message"]
    assert desk.read("out/a.fr.json") == '{\n  "k" "Salut"\n}\n'


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("deep.json", "[" * 10_000, "nested deeper than 200 levels"),
        (
            "deep.md",
            f"---\na: {'[' * 3_000}{']' * 3_000}\n---\nHello\n",
            "line 2: this YAML is nested too deeply",
        ),
        ("nul.json", '{"k": "Hello \\u0000 you"}', "field 'k' holds a NUL character"),
        ("half.json", '{"k": "Hello \\ud800 you"}', "half of a surrogate pair"),
        ("long.json", f'{{"k": "{"Hello " * 30_000}"}}', "has 180000 characters, at most 100000"),
        ("nul.md", "Hello \x00 you\n", "a NUL character"),
        ("charset.po", HEAD.replace("UTF-8", "nonsense"), "the declared charset 'nonsense' is unknown"),
    ],
)
def test_what_no_engine_would_take_fails_before_it_is_sent_with_others(
    desk: Desk, name: str, data: str, said: str
) -> None:
    desk.write(f"docs/{name}", data)
    desk.write("docs/good.json", {"k": "Hello"})
    told = desk.translate("docs", "--to", "fr", *OUT)
    assert (told.code, told.object["outputs"]) == (3, ["out/good.fr.json"])
    [failure] = told.object["failures"]
    assert failure["document"] == f"docs/{name}"
    assert said in failure["message"]


def test_a_defect_of_ours_that_one_document_shows_stops_no_other(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`internal_error`, to be retried; where it is read as well as where it is written."""
    read, render = JsonCatalogue.read, documents.render

    def reading(self: JsonCatalogue, text: str, role: Role, locale: str) -> Document:
        if "unreadable" in text:
            raise KeyError(text)
        return read(self, text, role, locale)

    def rendering(*given: Any) -> documents.Rendered:
        if "unwritable" in given[2].text:
            raise ZeroDivisionError
        return render(*given)

    monkeypatch.setattr(JsonCatalogue, "read", reading)
    monkeypatch.setattr(documents, "render", rendering)
    for name in ("fine", "unreadable", "unwritable"):
        desk.write(f"docs/{name}.json", {"k": f"Hello {name} words"})
    told = desk.translate("docs", "--to", "fr", *OUT)
    assert (told.code, told.object["outputs"]) == (3, ["out/fine.fr.json"])
    assert [
        (failure["document"], failure["code"], failure["message"]) for failure in told.object["failures"]
    ] == [
        ("docs/unreadable.json", "internal_error", "KeyError while it was prepared"),
        (
            "docs/unwritable.json",
            "internal_error",
            "out/unwritable.fr.json: ZeroDivisionError while it was rendered",
        ),
    ]
    monkeypatch.undo()
    monkeypatch.chdir(desk.folder)
    assert (
        desk.run("retry", told.object["manifest_id"]).code == 3
    )  # what was not written is no failed translation
    again = desk.translate("docs", "--to", "fr", *OUT)
    assert (again.code, again.object["outputs"]) == (0, ["out/unwritable.fr.json"])
    assert desk.names().count("out/unreadable.fr.json") == 1


def test_a_step_that_always_fails_ends_the_run_with_its_name(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1: nobody waits for a lease, and then for the same again."""

    async def failing(_self: Planning) -> int:
        raise RuntimeError

    monkeypatch.setattr(Planning, "step", failing)
    monkeypatch.setattr(following, "_PATIENCE_SECONDS", 0.1)
    desk.write("a.json", {"k": "Hello"})
    told = desk.translate("a.json", "--to", "fr")
    assert (told.code, told.error["code"]) == (1, "internal_error")
    assert told.error["message"].startswith("plan: RuntimeError")
