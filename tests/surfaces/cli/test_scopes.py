"""A scope at a terminal: collections, globals and documents of a project's source instead of PATHs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.test_sources import TOKEN, reference_server, running, written
from tests.surfaces.cli.desk import Desk, answering, sent

FOLDERS = 'project = "docs"\nlocales = ["fr"]\n'


@pytest.fixture
def tree(desk: Desk) -> Desk:
    """Two folders of documents, and one beside them."""
    desk.configure(FOLDERS)
    for number in range(3):
        desk.write(f"posts/{number}.json", {"t": f"Post {number}"})
    desk.write("pages/a.json", {"t": "A page"})
    desk.write("top.json", {"t": "Top"})
    return desk


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--collection", "posts"], {"posts/0", "posts/1", "posts/2"}),
        (["--collection", "posts,pages", "--exclude", "posts"], {"pages/a"}),
        (["--all"], {"posts/0", "posts/1", "posts/2", "pages/a", "top"}),
        (["--all", "--exclude", "posts"], {"pages/a"}),
        (["--document", "posts/1.json", "--document", "top.json"], {"posts/1", "top"}),
    ],
)
def test_what_is_named_is_translated_and_nothing_else(tree: Desk, words: list[str], found: set[str]) -> None:
    """[C-028] and the same command again resumes or finds nothing to do."""
    told = tree.translate(*words)
    assert told.code == 0, told
    assert set(told.object["outputs"]) == {f"{name}.fr.json" for name in found}
    again = tree.translate(*words)
    assert (again.code, again.object["counts"]["skipped"]) == (0, len(found))


def test_a_scope_that_cannot_be_is_refused_by_its_flag(tree: Desk) -> None:
    for words, code in (
        (["--collection", "psots"], "unsupported_collection"),
        (["--all", "--exclude", "psots"], "unsupported_collection"),
        (["top.json", "--collection", "posts"], "invalid_request"),
        (["top.json", "--exclude", "posts"], "invalid_request"),
        (["top.json", "--no-drafts"], "invalid_request"),
        (["--collection", "posts", "--no-drafts"], "invalid_request"),
    ):
        told = tree.translate(*words)
        assert (told.code, told.error["code"]) == (1, code), words
    assert tree.rows("manifests", "id") == []


def test_a_canary_without_a_number_takes_ten(desk: Desk) -> None:
    """[C-076] wherever it stands among the words."""
    for number in range(12):
        desk.write(f"posts/{number:02}.json", {"t": f"Post {number}"})
    told = desk.translate("--collection", "posts", "--canary", "--to", "fr")
    assert (told.code, len(told.object["outputs"]), told.object["counts"]["skipped"]) == (0, 10, 2)
    told = desk.run(
        "translate", "posts", "--to", "de", "--json", "--db", desk.database_url, "--canary", db=False
    )
    assert (told.code, len(told.object["outputs"])) == (0, 10)


def test_a_scope_is_estimated_as_it_would_be_translated_and_nobody_is_called(tree: Desk) -> None:
    with answering() as server:
        tree.hire(server.url, more=FOLDERS)
        told = tree.run("estimate", "--collection", "posts", "--provider", "hired", "--json")
        assert told.code == 0, told
        assert (told.object["total"]["documents"], told.object["total"]["to_translate"]) == (3, 3)
        assert sent(server) == []
        assert tree.rows("manifests", "id") == []


def test_a_lock_is_kept_for_a_scope_too(tree: Desk) -> None:
    tree.configure("lock = true\n" + FOLDERS)
    assert tree.translate("--collection", "posts").code == 0
    assert tree.run("translate", "--collection", "posts", "--frozen").code == 0
    tree.write("posts/1.json", {"t": "Another"})
    told = tree.run("translate", "--collection", "posts", "--frozen", "--json")
    assert (told.code, [one["document"] for one in told.object["stale"]]) == (3, ["posts/1.json"])


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    monkeypatch.setenv("CMS_TOKEN", TOKEN)
    folder = tmp_path / "cms"
    written(folder, {f"en/posts/{n}.json": json.dumps({"t": f"Post {n}"}) for n in range(2)})
    written(folder, {"en/posts/draft-9.json": '{"t": "Draft"}', "en/site.json": '{"name": "Site"}'})
    with running(reference_server().serve(folder, 0, TOKEN)) as url:
        yield folder, url


def test_a_project_behind_a_server_is_translated_there(desk: Desk, server: tuple[Path, str]) -> None:
    """Rehearsed until its executor is chosen; then written there, by `translate` as by `up`."""
    folder, url = server
    settings = f'project = "cms"\nlocales = ["fr"]\n[projects.cms]\nsource = "http"\nurl = "{url}"\n'
    settings += 'token_variable = "CMS_TOKEN"\n'
    desk.configure(settings)
    nothing = desk.translate()
    assert (nothing.code, nothing.error["code"]) == (1, "empty_request")
    told = desk.translate("--all", "--no-drafts")
    assert (told.code, told.object["outputs"]) == (0, [])
    assert not (folder / "fr").exists()
    desk.configure(settings + 'executor = "http:v1"\n')
    told = desk.translate("--collection", "posts", "--global", "site.json", "--no-drafts")
    assert told.code == 0, told
    assert set(told.object["outputs"]) == {"fr/posts/0.json", "fr/posts/1.json", "fr/site.json"}
    assert not (folder / "fr/posts/draft-9.json").exists()
    told = desk.run("up", "--json")
    assert (told.code, told.object["state"]) == (0, "complete"), told
    assert json.loads((folder / "fr/posts/draft-9.json").read_text())["t"] not in ("", "Draft")
    assert desk.run("up").out.strip() == "nothing to do: everything is translated"
