"""A database that is older, newer, locked, gone or none at all: refused at once, with what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from dragoman.store import engines
from dragoman.store.engines import engine_of
from dragoman.store.revisions import VERSION_TABLE
from tests.doubles.proxy import Proxy
from tests.surfaces.cli.desk import Desk, answering, sit_down, until

FR = ("a.json", "--to", "fr")
COMMANDS = (["status", "x"], ["results", "x"], ["retry", "x"], ["cancel", "x"], ["revert", "x"], ["migrate"])


@pytest.fixture
def tree(desk: Desk) -> Desk:
    desk.write("a.json", {"k": "Hello"})
    return desk


def set_version(url: str, version: str) -> None:
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = :it"), {"it": version})
    engine.dispose()


def refused(desk: Desk, code: str, said: str) -> None:
    """Every command says the same, and none ends with a trace."""
    told = desk.translate(*FR)
    assert (told.code, told.error["code"]) == (1, code)
    assert said in told.error["message"], told
    assert told.err == ""
    for words in COMMANDS:
        told = desk.run(*words)
        assert (told.code, told.out) == (1, "")
        assert told.err.startswith(f"{code}: ")
        assert told.err.count("\n") == 2
    found = desk.run("doctor", "--json")
    assert found.code == 3
    [finding] = found.object["findings"]
    assert said in finding["problem"]
    assert finding["remedy"]
    assert not (desk.folder / "a.fr.json").exists()


def test_a_newer_database_is_left_to_the_newer_program(tree: Desk) -> None:
    set_version(tree.database_url, "9999")
    refused(tree, "database_newer", "has schema 9999, this program knows ")


def test_an_embedded_database_is_made_without_a_word(tree: Desk) -> None:
    """In the state folder, where no other is named; it is nobody else's."""
    tree.database_url = ""
    told = tree.translate(*FR)
    assert (told.code, told.object["outputs"], told.err) == (0, ["a.fr.json"], "")
    assert (tree.folder / ".dragoman" / "dragoman.sqlite").is_file()
    assert tree.run("status", told.object["manifest_id"]).code == 0
    assert tree.run("migrate").out.endswith("nothing to do\n")


def test_an_older_server_is_refused_until_somebody_migrates_it(
    server_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-141] other programs may use it."""
    desk = sit_down(tmp_path / "tree", server_url, monkeypatch)
    desk.write("a.json", {"k": "Hello"})
    before = version_of(server_url)
    try:
        set_version(server_url, "0000")
        told = desk.translate(*FR)
        assert (told.code, told.error["code"]) == (1, "schema_unavailable")
        assert told.error["remedy"] == "Bring the database up to date: `dragoman migrate`."
    finally:
        set_version(server_url, before)
    assert desk.translate(*FR).code == 0


def version_of(url: str) -> str:
    engine = engine_of(url)
    with engine.connect() as connection:
        version = connection.scalar(sa.text(f"SELECT version_num FROM {VERSION_TABLE}"))
    engine.dispose()
    return str(version)


def test_a_locked_database_is_waited_for_and_then_refused(
    tree: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "MIGRATION_LOCK_SECONDS", 0.05)
    path = sa.make_url(tree.database_url).database or ""
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        refused(tree, "database_unavailable", f"{path} is locked by another process")
    finally:
        holder.close()
    assert tree.translate(*FR).code == 0


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "mysql"])
def test_a_server_that_is_gone_is_named_without_its_password(tree: Desk, kind: str) -> None:
    tree.database_url = f"{kind}://nobody:pw-marker@127.0.0.1:1/x"
    refused(tree, "database_unavailable", "nobody:***@127.0.0.1:1/x cannot be used")
    told = tree.run("translate", *FR)
    assert "pw-marker" not in told.out + told.err


def test_what_is_no_database_is_refused_and_left_as_it_is(tree: Desk) -> None:
    note = tree.write("note.txt", "no database at all\n" * 100)
    for place, said in (
        (note, "file is not a database"),
        (tree.folder, "unable to open"),
        (tree.folder / "nowhere" / "x.db", "unable to open"),
    ):
        tree.database_url = f"sqlite:///{place}"
        refused(tree, "database_unavailable", said)
    assert note.read_text() == "no database at all\n" * 100


@pytest.mark.parametrize(
    ("url", "said"),
    [("oracle://x", "oracle is no database that Dragoman knows"), ("nonsense", "cannot be read")],
)
def test_a_url_that_nobody_can_read_is_a_wrong_setting(tree: Desk, url: str, said: str) -> None:
    tree.database_url = url
    for words in (["translate", *FR, "--json"], ["doctor", "--json"]):
        told = tree.run(*words)
        assert (told.code, told.error["code"]) == (1, "invalid_settings")
        assert said in told.error["message"]


def test_a_server_that_goes_away_ends_the_run_and_the_next_one_goes_on(
    server_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of it: exit code 1 with the place, nothing is lost, and nobody is asked twice."""
    desk = sit_down(tmp_path / "tree", server_url, monkeypatch)
    desk.write("a.json", {f"k{n}": f"Hello number {n}" for n in range(4)})
    words = ("translate", "a.json", "--to", "fr", "--provider", "hired", "--json")
    url = sa.make_url(server_url)
    proxy = Proxy(url.host or "", url.port or 0)
    with answering("translate", "hang") as server:
        desk.hire(server.url, more="batch_size = 1\nconcurrency = 1")
        through = url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        desk.database_url = through
        run = desk.start(*words)
        try:
            until(lambda: len(server.calls) == 2)
            proxy.refuse()
            proxy.cut_all()
            told = desk.end(run)
        finally:
            proxy.close()
        assert (told.code, told.error["code"]) == (1, "database_unavailable")
        assert f"127.0.0.1:{proxy_port(through)}" in told.error["message"]
        server.release()
        desk.database_url = server_url
        again = desk.run(*words)
        assert (again.code, again.object["outputs"]) == (0, ["a.fr.json"])
        assert len(server.calls) == 5  # the hanging one was lost with its process


def proxy_port(url: str) -> int:
    return sa.make_url(url).port or 0
