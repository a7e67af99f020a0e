"""Targets that cannot be written, or that people changed: told, left alone, and in nobody else's way."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.surfaces.cli.desk import Desk

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
def small_disk(folder: Path) -> Iterator[None]:
    """A file system of 64 KiB at this folder."""
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=False
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


def leftovers(desk: Desk) -> list[str]:
    """Files of ours beside the targets."""
    return sorted(path.name for path in desk.folder.rglob(".*.dragoman"))
