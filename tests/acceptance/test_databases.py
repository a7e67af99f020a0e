"""A whole run on each of the three databases: translate, again, status, results, revert, doctor."""

from __future__ import annotations

import json

import pytest

from tests.surfaces.cli.desk import Desk, answering

HEAD = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
WORDS = ("translate", "docs", "--to", "fr,de", "--provider", "hired", "--out", "out/{path}.{locale}{ext}")


def test_a_run_ends_alike_on_each_database(any_desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """[J-090] named by --db, or by DRAGOMAN_DATABASE_URL."""
    any_desk.write("docs/a.json", {"k": "Hello", "j": "Übermut 🚀"})
    any_desk.write("docs/b.md", "# Title\n\nSome *text* here.\n")
    any_desk.write("docs/c.po", f'{HEAD}msgid "Bye"\nmsgstr ""\n')
    any_desk.write("docs/d.json", "{")
    with answering() as server:
        any_desk.hire(server.url, priced=True)
        told = any_desk.run(*WORDS, "--json")
        assert (told.code, len(told.object["outputs"]), len(told.object["failures"])) == (3, 6, 2)
        assert told.object["cost"]["paid_tokens"] == sum(server.charged)
        assert any_desk.texts("out/a.fr.json") == {"k": "fr Hello", "j": "fr Übermut 🚀"}
        monkeypatch.setenv("DRAGOMAN_DATABASE_URL", any_desk.database_url)
        calls = len(server.calls)
        again = any_desk.run(*WORDS, "--json", db=False)
        assert (again.code, again.object["outputs"], len(server.calls)) == (3, [], calls)
        assert again.object["counts"]["skipped"] == 6
        status = any_desk.run("status", told.object["manifest_id"], "--json", db=False)
        assert status.object == told.object
        results = any_desk.run("results", told.object["manifest_id"], db=False).out.splitlines()
        assert len([one for one in map(json.loads, results) if one["state"] == "completed"]) == 6
        reverted = any_desk.run("revert", told.object["manifest_id"], "--json", db=False)
        assert reverted.object["outputs"] == []
        assert not [name for name in any_desk.names() if name.startswith("out/")]
        assert any_desk.run("doctor", "--json", db=False).object["findings"] == []
    assert not (any_desk.folder / ".dragoman" / "dragoman.sqlite").exists()
