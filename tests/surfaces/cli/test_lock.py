"""`dragoman.lock`: a fresh clone pays nothing twice, edits stay, `--frozen` names what is stale."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.surfaces.cli.desk import Desk, answering, sent

LOCKED = 'lock = true\nproject = "docs"\nlocales = ["fr"]\nsources = ["en"]\n'


def cloned(desk: Desk, folder: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The same tree elsewhere, with a database that knows nothing."""
    shutil.copytree(desk.folder, folder, ignore=shutil.ignore_patterns(".dragoman"))
    monkeypatch.chdir(folder)
    return Desk(folder, database_url)


def test_a_fresh_clone_pays_nothing_and_keeps_what_a_person_edited(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is taken over counts as before: ours moves with its source, a person's text stays."""
    with answering() as server:
        desk.hire(server.url, more=LOCKED)
        desk.write("en/a.json", {"hello": "Hello", "bye": "Bye"})
        desk.write("en/b.md", "# Title\n\nWords here.\n")
        desk.write("en/c.json", {"one": "One", "two": "Two"})
        desk.write("fr/c.json", {"one": "Une personne"})
        assert desk.translate("--provider", "hired").code == 0
        told = desk.read("dragoman.lock").splitlines()[1:]
        assert [line.split("\t")[:2] for line in told] == [
            [f"en/{name}", "fr"] for name in ("a.json", "b.md", "c.json")
        ]
        assert [len(line.split("\t")) for line in told] == [3, 3, 4], (
            "the last one holds a text of a person's"
        )
        paid = len(sent(server))
        files = {name: desk.read(name) for name in desk.names() if name.startswith("fr/")}

        clone = cloned(desk, tmp_path / "clone", f"sqlite:///{tmp_path / 'clone.sqlite'}", monkeypatch)
        assert clone.translate("--provider", "hired").code == 0
        assert clone.run("up", "--provider", "hired").code == 0
        assert len(sent(server)) == paid, "nothing was paid twice"
        assert {name: clone.read(name) for name in files} == files
        origins = {(row.document, row.origin) for row in clone.rows("entries", "document", "origin")}
        ours = {(f"en/{name}", "ours") for name in ("a.json", "b.md", "c.json")}
        assert origins == {*ours, ("en/c.json", "imported")}

        clone.write("fr/a.json", {**clone.texts("fr/a.json"), "bye": "Ciao, dit une personne"})
        clone.write("en/a.json", {"hello": "Hello, you", "bye": "Bye, you"})
        clone.translate("--provider", "hired", "--mode", "changed")
        assert clone.texts("fr/a.json")["bye"] == "Ciao, dit une personne"
        assert clone.texts("fr/a.json")["hello"] not in files["fr/a.json"]
        assert clone.texts("fr/c.json")["one"] == "Une personne"


def test_an_edited_target_is_protected_in_a_fresh_clone(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its line fits no more, so nothing there counts as ours."""
    desk.configure(LOCKED)
    desk.write("en/a.json", {"hello": "Hello", "bye": "Bye"})
    assert desk.translate().code == 0
    desk.write("fr/a.json", {**desk.texts("fr/a.json"), "bye": "Ciao, dit une personne"})
    edited = desk.read("fr/a.json")
    clone = cloned(desk, tmp_path / "clone", f"sqlite:///{tmp_path / 'clone.sqlite'}", monkeypatch)
    for mode in ("missing", "changed", "all"):
        clone.translate("--mode", mode)
        assert clone.read("fr/a.json") == edited


def test_a_text_that_was_seen_to_be_a_persons_is_a_persons_in_every_clone(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its line still fits, the texts beside it are ours, and it outlives a change of its source, and another
    of its own.
    """
    desk.configure(LOCKED)
    desk.write("en/a.json", {"hello": "Hello", "bye": "Bye"})
    desk.write("en/b.md", "# Title\n\nWords here.\n")
    assert desk.translate().code == 0
    before = desk.texts("fr/a.json")
    desk.write("fr/a.json", {**before, "bye": "Ciao, dit une personne"})
    desk.write("fr/b.md", desk.read("fr/b.md").replace("#", "# Une personne:"))
    prose = desk.read("fr/b.md")
    assert desk.run("up", "--frozen").code == 3
    assert desk.translate().code == 0
    assert [len(line.split("\t")) for line in desk.read("dragoman.lock").splitlines()[1:]] == [5, 5]
    assert desk.run("up", "--frozen").code == 0
    edited = {**before, "bye": "Ciao, dit une autre personne"}
    desk.write("fr/a.json", edited)
    assert desk.run("up", "--frozen").code == 0

    clone = cloned(desk, tmp_path / "clone", f"sqlite:///{tmp_path / 'clone.sqlite'}", monkeypatch)
    assert clone.translate().code == 0
    found = {(row.document, row.origin) for row in clone.rows("entries", "document", "origin")}
    assert found == {(f"en/{name}", origin) for name in ("a.json", "b.md") for origin in ("ours", "person")}
    assert clone.read("dragoman.lock") == desk.read("dragoman.lock")
    clone.write("en/a.json", {"hello": "Hello, you", "bye": "Bye, you"})
    clone.write("en/b.md", "# Title\n\nOther words here.\n")
    for mode in ("missing", "changed", "all"):
        assert clone.translate("--mode", mode).code == 0
        assert clone.texts("fr/a.json")["bye"] == edited["bye"]
        assert clone.read("fr/b.md") == prose
    assert clone.texts("fr/a.json")["hello"] != before["hello"]
    assert clone.translate("--force").code == 0
    assert clone.texts("fr/a.json")["bye"] != edited["bye"]
    assert {row.origin for row in clone.rows("entries", "origin")} == {"ours"}


def test_frozen_names_what_is_stale_and_opens_no_database(desk: Desk) -> None:
    """Exit code 3, as text and as JSON; 0 once everything is as locked; 1 without a lock."""
    desk.configure(LOCKED)
    for name in "abcd":
        desk.write(f"en/{name}.json", {"t": f"Text {name}"})
    none = desk.run("translate", "--frozen", "--json")
    assert (none.code, none.error["code"]) == (1, "path_not_found")
    assert desk.translate().code == 0
    before = desk.read("dragoman.lock")
    nowhere = ("--db", "postgresql://nobody@127.0.0.1:9/none")
    for command in ("translate", "up"):
        told = desk.run(command, "--frozen", "--json", *nowhere, db=False)
        assert (told.code, told.object) == (0, {"checked": 4, "stale": []})
    desk.write("en/a.json", {"t": "Another text"})
    desk.write("fr/b.json", {"t": "Une personne"})
    (desk.folder / "fr/c.json").unlink()
    (desk.folder / "en/d.json").unlink()
    desk.write("en/e.json", {"t": "New"})
    told = desk.run("up", "--frozen", "--json", *nowhere, db=False)
    assert told.code == 3
    assert {(one["document"], one["locale"], one["why"]) for one in told.object["stale"]} == {
        ("en/a.json", "fr", "source or translation changed since"),
        ("en/b.json", "fr", "source or translation changed since"),
        ("en/c.json", "fr", "its translation is gone"),
        ("en/d.json", "fr", "its document is gone"),
        ("en/e.json", "fr", "it has no line"),
    }
    shown = desk.run("translate", "--frozen", *nowhere, db=False)
    assert shown.code == 3
    assert "stale: en/a.json fr: source or translation changed since" in shown.out
    assert "5 stale of 4" in shown.out
    assert desk.read("dragoman.lock") == before


def test_an_unfinished_merge_is_told_before_anything_is_done(desk: Desk) -> None:
    desk.configure(LOCKED)
    desk.write("en/a.json", {"t": "Text"})
    desk.write("dragoman.lock", "<<<<<<< HEAD\n=======\n>>>>>>> theirs\n")
    for words in (("translate",), ("up",), ("up", "--frozen")):
        told = desk.run(*words, "--json")
        assert (told.code, told.error["place"]) == (1, "dragoman.lock:1")
    assert "fr/a.json" not in desk.names()


def test_without_the_setting_no_lock_is_begun_and_one_that_stands_is_kept(desk: Desk) -> None:
    """Lines of documents that a command did not name stay, those of documents that are gone go."""
    desk.configure('locales = ["fr"]\nsources = ["en"]\n')
    desk.write("en/a.json", {"t": "Text"})
    desk.write("en/b.json", {"t": "Words"})
    assert desk.translate().code == 0
    assert "dragoman.lock" not in desk.names()
    gone, kept = (f"en/{name}.json\tde\t{'0' * 64}" for name in ("gone", "a"))
    desk.write("dragoman.lock", f"{gone}\n{kept}\n")
    assert desk.translate("en/b.json", "--dry-run").code == 0
    assert desk.read("dragoman.lock") == f"{gone}\n{kept}\n"
    assert desk.translate("en/b.json").code == 0
    told = [line.split("\t")[:2] for line in desk.read("dragoman.lock").splitlines()[1:]]
    assert told == [["en/a.json", "de"], ["en/b.json", "fr"]]
