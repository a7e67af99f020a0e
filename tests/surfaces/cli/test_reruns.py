"""The same command again: it goes on where it stopped, pays for nothing twice, and knows what changed."""

from __future__ import annotations

import pytest

from dragoman.surfaces.cli import following
from tests.surfaces.cli.desk import Desk, answering, sent

HIRED = ("--provider", "hired")
FR = ("a.json", "--to", "fr", *HIRED)
SLOW = {"act": "slow_down", "retry_after": 1}


@pytest.fixture
def tree(desk: Desk) -> Desk:
    desk.write("a.json", {"k": "Hello my friend", "j": "Bye my friend"})
    return desk


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends as soon as it would have to wait for a time."""
    monkeypatch.setattr(following, "_NAMED_TIME_SECONDS", 0)


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_NAMED_TIME_SECONDS", 60)


def test_with_nothing_to_do_all_is_skipped_and_nobody_is_asked(tree: Desk) -> None:
    """[J-040] files keep their time, and a lost translation is written again from memory without a call."""
    with answering() as server:
        tree.hire(server.url)
        assert tree.translate(*FR).code == 0
        path = tree.folder / "a.fr.json"
        before = path.stat().st_mtime_ns
        told = tree.translate(*FR)
        counts = told.object["counts"]
        assert (told.code, counts["skipped"], counts["total"], told.object["outputs"]) == (0, 1, 1, [])
        assert path.stat().st_mtime_ns == before
        path.unlink()
        told = tree.translate(*FR)
        assert (told.code, told.object["outputs"]) == (0, ["a.fr.json"])
        assert (told.object["cost"]["memory_fields"], told.object["cost"]["paid_tokens"]) == (2, 0)
        assert len(server.calls) == 1


def test_without_settings_work_is_the_folders_own_project_in_the_default_workspace(desk: Desk) -> None:
    """Its row says what it is read in, as canonical JSON, and its version moves where that does."""
    desk.write("a.json", {"k": "Hello"})
    kept = ("workspace", "name", "settings", "version")
    name = desk.folder.name
    for _ in range(2):
        assert desk.translate("a.json", "--to", "fr").code == 0
        assert desk.rows("projects", *kept) == [("default", name, '{"source_locale":"en"}', 1)]
    assert desk.translate("a.json", "--from", "de", "--to", "fr").code == 0
    assert desk.rows("projects", *kept) == [("default", name, '{"source_locale":"de"}', 2)]


@pytest.mark.usefixtures("_impatient")
def test_an_active_manifest_of_the_same_order_is_resumed_however_it_is_typed(
    tree: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of locales and paths, an absolute path, or what is told of it make no other order."""
    tree.write("b.json", {"k": "You"})
    with answering(SLOW) as server:
        tree.hire(server.url)
        first = tree.translate("a.json", "b.json", "--to", "fr,de", *HIRED)
        assert first.code == 4
        be_patient(monkeypatch)
        words = ("b.json", str(tree.folder / "a.json"), "--to", "DE", "--to", "fr", *HIRED)
        told = tree.run("translate", *words, "--explain-edits")
        assert told.code == 0
        assert f"going on with manifest {first.object['manifest_id']}" in told.err
        assert len(tree.rows("manifests")) == 1


@pytest.mark.usefixtures("_impatient")
def test_another_order_is_another_manifest_and_waits_for_the_pairs_of_the_first(
    tree: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It brings the older one to its end too, names it, and pays for no text twice."""
    with answering(SLOW) as server:
        tree.hire(server.url)
        first = tree.translate(*FR)
        assert first.code == 4
        blocked = tree.translate(*FR, "--out", "other/{path}.{locale}{ext}")
        assert [waiting["reason"] for waiting in blocked.object["waiting"]] == ["waiting_pair"]
        assert "they go on when it ends" in blocked.err
        be_patient(monkeypatch)
        told = tree.run("translate", *FR, "--out", "other/{path}.{locale}{ext}")
        assert told.code == 0
        assert f"also going on with manifest {first.object['manifest_id']}" in told.err
        assert tree.texts("other/a.fr.json") == tree.texts("a.fr.json")
        assert len(sent(server)) == 2  # the one that was put off, and the one that was answered
        assert len(tree.rows("manifests")) == 2


def test_a_changed_source_asks_for_what_is_new_or_for_what_changed_as_the_mode_says(tree: Desk) -> None:
    with answering() as server:
        tree.hire(server.url)
        assert tree.translate(*FR).code == 0
        tree.write("a.json", {"k": "Hello my foe", "j": "Bye my friend", "n": "News"})
        told = tree.translate(*FR)
        assert (told.code, sent(server)[1:]) == (0, [["News"]])
        assert tree.texts("a.fr.json")["k"] == "fr Hello my friend"
        told = tree.translate(*FR, "--mode", "changed")
        assert (told.code, sent(server)[2:]) == (0, [["Hello my foe"]])
        told = tree.translate(*FR, "--mode", "all")
        assert (told.code, told.object["cost"]["memory_fields"], len(server.calls)) == (0, 3, 3)
    assert tree.texts("a.fr.json") == {
        "k": "fr Hello my foe",
        "j": "fr Bye my friend",
        "n": "fr News",
    }


@pytest.mark.usefixtures("_impatient")
def test_a_text_that_changed_while_it_was_translated_is_not_written_and_is_named(
    tree: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 3 with the command; that command translates what is new, and only that."""
    tree.write("a.md", "# Hello\n\nBye.\n")
    words = ("a.json", "a.md", "--to", "fr", *HIRED)
    with answering(SLOW) as server:
        tree.hire(server.url)
        assert tree.translate(*words).code == 4
        tree.write("a.json", {"k": "Hello my foe", "j": "Bye my friend"})
        tree.write("a.md", "# Hello\n\nSo long.\n")
        be_patient(monkeypatch)
        told = tree.translate(*words)
        assert (told.code, told.object["outputs"]) == (3, ["a.fr.json"])
        assert [(failure["document"], failure["code"]) for failure in told.object["failures"]] == [
            ("a.json", "source_moved"),
            ("a.md", "source_moved"),
        ]
        assert "Then: dragoman translate a.json a.md --to fr" in told.err
        assert tree.texts("a.fr.json") == {"j": "fr Bye my friend"}
        told = tree.translate(*words)
        assert (told.code, told.object["outputs"]) == (0, ["a.fr.json", "a.fr.md"])
        assert sorted(text for texts in sent(server)[2:] for text in texts) == ["Hello my foe", "So long."]
    assert tree.read("a.fr.md") == "# fr Hello\n\nfr So long.\n"


def test_a_dry_run_writes_no_file_and_says_which_it_would_write(tree: Desk) -> None:
    """The run after it takes everything from memory."""
    tree.write("b.json", {"k": "You"})
    tree.write("b.fr.json", {"k": "Toi"})
    before = tree.names()
    with answering() as server:
        tree.hire(server.url)
        told = tree.run("translate", "a.json", "b.json", "--to", "fr", *HIRED, "--dry-run")
        assert (told.code, tree.names()) == (0, before)
        assert "would write a.fr.json" in told.out
        assert "wrote" not in told.out.replace("would write", "")
        told = tree.translate("a.json", "b.json", "--to", "fr", *HIRED)
        assert (told.code, told.object["outputs"], len(server.calls)) == (0, ["a.fr.json"], 1)
        assert told.object["cost"]["memory_fields"] == 2


def test_another_model_is_asked_only_for_what_no_person_has_said(tree: Desk) -> None:
    """What one model made is stale for another; what people and files say is not, and the same model's word
    is not bought twice."""
    tree.write("m.csv", "en,fr\nBye my friend,Au revoir mon ami\n")
    with answering() as server:
        tree.hire(server.url)
        assert tree.run("memory", "import", "m.csv", "--to", "fr").code == 0
        assert tree.translate(*FR).code == 0
        there = ("a.json", "--to", "fr", "--provider", "hired:other", "--out")
        told = tree.translate(*there, "o/{path}{ext}")
        assert (told.code, told.object["cost"]["memory_fields"], len(server.calls)) == (0, 1, 2)
        assert sent(server)[-1] == ["Hello my friend"]
        told = tree.translate(*there, "p/{path}{ext}")
        assert (told.code, told.object["cost"]["memory_fields"], len(server.calls)) == (0, 2, 2)


def test_equal_texts_are_sent_once(tree: Desk) -> None:
    tree.write("a.json", {"a": "Hello", "b": "Hello", "c": "Bye", "d": "Hello"})
    with answering() as server:
        tree.hire(server.url)
        told = tree.translate(*FR)
        assert (told.code, sent(server)) == (0, [["Hello", "Bye"]])
    assert tree.texts("a.fr.json") == {"a": "fr Hello", "b": "fr Hello", "c": "fr Bye", "d": "fr Hello"}
