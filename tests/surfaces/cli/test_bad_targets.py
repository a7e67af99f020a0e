"""Targets that cannot be written, or that people changed: told, left alone, and in nobody else's way."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.surfaces.cli import following
from tests.surfaces.cli.desk import Desk, answering

FR = ("--to", "fr")


@contextmanager
def small_files(bytes_max: int) -> Iterator[None]:
    """No file of this process may grow over this size: to whoever writes it is a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder that nobody can write into, root neither."""
    before = folder.stat().st_mode
    if os.geteuid():
        undo: Callable[[], object] = lambda: folder.chmod(before)  # noqa: E731 - one of two ways back
        folder.chmod(0o555)
    else:
        undo = lambda: _become(folder, "-i")  # noqa: E731
        if _become(folder, "+i"):
            pytest.skip("root writes everywhere here: the file system knows no immutable folders")
    try:
        yield
    finally:
        undo()


@contextmanager
def small_disk(folder: Path, kibibytes: int = 64) -> Iterator[None]:
    """A small file system at this folder."""
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(folder)], check=False
    ).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _become(folder: Path, attribute: str) -> int:
    return subprocess.run(["chattr", attribute, str(folder)], check=False, capture_output=True).returncode


def test_a_file_that_grows_too_large_fails_alone_and_is_written_once_there_is_room(desk: Desk) -> None:
    """Nothing of it stays behind, the others are written, and the rerun costs nothing."""
    padding = "1" * 3_000_000
    desk.write("a.json", {"k": "Hello my friend"})
    desk.write("large.json", f'{{"k": "Bye my friend", "n": 0.{padding}}}')
    desk.write("z.json", {"k": "You again"})
    with small_files(2_500_000):
        told = desk.translate("a.json", "large.json", "z.json", *FR)
    assert (told.code, told.object["outputs"]) == (3, ["a.fr.json", "z.fr.json"])
    assert told.object["failures"] == [
        {
            "document": "large.json",
            "locale": "fr",
            "code": "target_refused",
            "message": "large.fr.json: the file would be larger than allowed",
            "fields": [],
        }
    ]
    assert "free disk space. Then: dragoman translate a.json large.json z.json --to fr" in told.err
    assert leftovers(desk) == []
    again = desk.translate("a.json", "large.json", "z.json", *FR)
    assert (again.code, again.object["outputs"]) == (0, ["large.fr.json"])
    assert (again.object["cost"]["paid_tokens"], again.object["cost"]["memory_fields"]) == (0, 1)


def test_on_a_full_disk_what_stands_there_stays_whole(desk: Desk) -> None:
    """The disk is full for every file, and each is listed."""
    with small_disk(desk.folder / "out"):
        for number in range(3):
            desk.write(f"docs/{number}.json", f'{{"k": "Hello number {number}", "n": 0.{"1" * 50_000}}}')
        desk.write("out/0.fr.json", '{"k": "Bonjour", "j": "Reste"}')
        desk.write("out/full", b"x" * 40_000)
        told = desk.translate("docs", *FR, "--out", "out/{path}.{locale}{ext}", "--force")
        assert (told.code, told.object["counts"]["completed"]) == (3, 3)
        assert told.object["outputs"] == ["out/0.fr.json"]
        assert [failure["message"] for failure in told.object["failures"]] == [
            "out/1.fr.json: the disk is full",
            "out/2.fr.json: the disk is full",
        ]
        assert desk.texts("out/0.fr.json")["j"] == "Reste"
        assert leftovers(desk) == []


def test_a_full_disk_under_the_database_ends_the_run_and_the_next_one_goes_on(desk: Desk) -> None:
    """Exit code 1 with the reason: nobody waits for ever, nor for what the dead process held."""
    large_documents(desk)
    with small_disk(desk.folder / "disk", 1_500):
        desk.database_url = f"sqlite:///{desk.folder / 'disk' / 'dragoman.db'}"
        assert desk.run("migrate").code == 0
        told = desk.end(desk.start("translate", "docs", *FR, "--json"))
        assert (told.code, told.error["code"]) == (1, "database_unavailable")
        assert "full" in told.error["message"]
        subprocess.run(["mount", "-o", "remount,size=64m", str(desk.folder / "disk")], check=True)
        again = desk.translate("docs", *FR)
        assert (again.code, again.object["counts"]["completed"]) == (0, 10)


def test_a_database_file_that_may_not_grow_ends_the_run(desk: Desk) -> None:
    """Where nobody knows whether a commit stands, the process behaves as if it had died."""
    large_documents(desk)
    size = Path(desk.database_url.removeprefix("sqlite:///")).stat().st_size
    with small_files(size + 100_000):
        run = desk.start("translate", "docs", *FR, "--json")
    told = desk.end(run)
    assert told.code == 1
    assert told.error["code"] in ("commit_unknown", "database_unavailable")
    assert "dragoman.db" in told.error["message"]
    again = desk.translate("docs", *FR)
    assert (again.code, again.object["counts"]["completed"]) == (0, 10)


def test_what_a_person_changed_meanwhile_is_a_conflict_and_is_left_alone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between asking and writing: listed with exit code 3; the rerun respects it, --force does not."""
    desk.write("a.json", {"k": "Hello", "j": "Bye"})
    desk.write("b.md", "# Hello\n\nText.\n")
    desk.write("c.json", {"k": "You"})
    words = ("a.json", "b.md", "c.json", *FR, "--provider", "hired")
    with answering({"act": "slow_down", "retry_after": 1}) as server:
        desk.hire(server.url)
        monkeypatch.setattr(following, "_NAMED_TIME_SECONDS", 0)
        assert desk.translate(*words).code == 4
        monkeypatch.setattr(following, "_NAMED_TIME_SECONDS", 60)
        desk.write("a.fr.json", {"k": "Salut"})
        desk.write("b.fr.md", "# Salut\n\nTexte.\n")
        told = desk.translate(*words)
        assert (told.code, told.object["outputs"]) == (3, ["c.fr.json"])
        assert [(failure["document"], failure["code"]) for failure in told.object["failures"]] == [
            ("a.json", "target_conflict"),
            ("b.md", "target_conflict"),
        ]
        assert "a.fr.json" in told.object["failures"][0]["message"]
        assert "compare, then translate with --force" in told.err
        assert desk.texts("a.fr.json") == {"k": "Salut"}
        assert desk.read("b.fr.md") == "# Salut\n\nTexte.\n"
        assert desk.translate(*words).code == 0
        assert desk.texts("a.fr.json") == {"k": "Salut", "j": "fr Bye"}
        assert desk.translate(*words, "--force").code == 0
        assert desk.texts("a.fr.json") == {"k": "fr Hello", "j": "fr Bye"}
        assert desk.read("b.fr.md") == "# fr Hello\n\nfr Text.\n"
        assert len(server.calls) == 2


def test_a_folder_that_cannot_be_written_into_stops_no_other(desk: Desk) -> None:
    for folder in "abc":
        desk.write(f"{folder}/x.json", {"k": f"Hello {folder}"})
    with read_only(desk.folder / "a"):
        told = desk.translate("a", "b", "c", *FR)
        assert (told.code, told.object["outputs"]) == (3, ["b/x.fr.json", "c/x.fr.json"])
        [failure] = told.object["failures"]
        assert (failure["document"], failure["code"]) == ("a/x.json", "target_refused")
        assert failure["message"].startswith("a/x.fr.json: the process may not write there")
    told = desk.translate("a", "b", "c", *FR)
    assert (told.code, told.object["outputs"]) == (0, ["a/x.fr.json"])


def test_every_refused_file_is_listed_however_many(desk: Desk) -> None:
    for number in range(30):
        desk.write(f"docs/d{number:02}.json", {"k": f"Hello number {number}"})
        (desk.folder / f"docs/d{number:02}.fr.json").mkdir()
    desk.write("docs/e.json", {"k": "Hello"})
    told = desk.translate("docs", *FR)
    assert (told.code, told.object["outputs"]) == (3, ["docs/e.fr.json"])
    assert len(told.object["failures"]) == 30
    assert {failure["message"] for failure in told.object["failures"]} == {
        f"docs/d{number:02}.fr.json: a folder stands there" for number in range(30)
    }


def test_what_a_person_changed_is_protected_and_only_force_replaces_it(desk: Desk) -> None:
    """A text of a person's is kept while its source changes; the other texts of the file are brought up."""
    desk.write("a.json", {"k": "Hello", "j": "Bye"})
    assert desk.translate("a.json", *FR).code == 0
    before = desk.texts("a.fr.json")
    desk.write("a.fr.json", {**before, "k": "Salut"})
    desk.write("a.json", {"k": "Hello you", "j": "Bye now"})
    told = desk.translate("a.json", *FR, "--mode", "changed")
    assert told.code == 0
    assert desk.texts("a.fr.json")["k"] == "Salut"
    assert desk.texts("a.fr.json")["j"] != before["j"]
    told = desk.translate("a.json", *FR, "--mode", "all")
    assert desk.texts("a.fr.json")["k"] == "Salut"
    told = desk.translate("a.json", *FR, "--force")
    assert (told.code, told.object["outputs"]) == (0, ["a.fr.json"])
    assert desk.texts("a.fr.json")["k"] not in ("Salut", before["k"])


def test_a_whole_document_that_a_person_changed_is_protected_until_force(desk: Desk) -> None:
    desk.write("a.md", "# Hello\n\nBye.\n")
    assert desk.translate("a.md", *FR).code == 0
    desk.write("a.fr.md", "# Salut\n\nAdieu.\n")
    desk.write("a.md", "# Hello you\n\nBye.\n")
    told = desk.translate("a.md", *FR, "--mode", "changed")
    assert (told.code, told.object["counts"]["protected"], told.object["outputs"]) == (0, 1, [])
    assert desk.read("a.fr.md") == "# Salut\n\nAdieu.\n"
    told = desk.translate("a.md", *FR, "--force")
    assert (told.code, told.object["outputs"]) == (0, ["a.fr.md"])
    assert "Salut" not in desk.read("a.fr.md")


def test_what_the_settings_lock_is_translated_in_no_mode(desk: Desk) -> None:
    """A key, or a whole file; both count as protected, what is not there stays away, and nobody misses it."""
    desk.configure(
        'project = "docs"\nlocales = ["fr"]\nsources = ["en"]\nlock = true\n'
        '[projects.docs]\nlocked = ["en/*.json#brand*", "en/legal/*"]\n'
    )
    desk.write("en/a.json", {"brand.name": "Dragoman", "hello": "Hello"})
    desk.write("en/b.json", {"brand": "Dragoman"})
    desk.write("en/legal/terms.md", "# Terms\n\nNone.\n")
    estimated = desk.run("estimate", "--json")
    assert estimated.object["total"]["fields"] == 1
    for mode in ("missing", "force"):
        told = desk.translate("--mode", mode)
        counts = told.object["counts"]
        assert (told.code, counts["completed"], counts["protected"]) == (0, 1, 2)
        assert set(desk.texts("fr/a.json")) == {"hello"}
        assert [name for name in desk.names() if name.startswith("fr/")] == ["fr/a.json"]
    assert desk.run("up").out.strip() == "nothing to do: everything is translated"
    assert desk.run("up", "--frozen", "--json").object == {"checked": 3, "stale": []}


def large_documents(desk: Desk) -> None:
    for number in range(10):
        desk.write(f"docs/{number}.json", {f"k{n}": f"Hello {number} {n} " * 100 for n in range(10)})


def leftovers(desk: Desk) -> list[str]:
    """Files of ours beside the targets."""
    return sorted(path.name for path in desk.folder.rglob(".*.dragoman"))
