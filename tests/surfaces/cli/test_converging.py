"""`dragoman up`: the project of dragoman.toml, until nothing is wanted."""

from __future__ import annotations

from tests.surfaces.cli.desk import Desk

SETTINGS = 'project = "docs"\nlocales = ["de", "fr"]\nsources = ["en"]\n'


def test_up_brings_the_project_up_to_date_and_then_has_nothing_to_do(desk: Desk) -> None:
    """[J-099] [J-056] [J-057] the split is told as it is; the second time nothing is asked of anybody."""
    desk.configure(SETTINGS)
    desk.write("en/a.json", {"hello": "Hello", "bye": "Bye"})
    told = desk.run("up", "--json")
    assert (told.code, told.object["state"], told.object["trigger"]) == (0, "complete", "up")
    assert told.object["fields"]["done"] == 4
    assert set(desk.texts("fr/a.json")) == {"hello", "bye"}
    assert told.object["fields"]["via_memory"] + told.object["fields"]["via_ai"] == 4
    desk.write("en/c.json", {"new": "New", "hello": "Hello"})
    (desk.folder / "fr/a.json").unlink()
    split = desk.run("up")
    assert "content memory 4 · AI 2;" in split.out, "what was lost comes from memory, what is new from AI"
    again = desk.run("up")
    assert (again.code, again.out.strip()) == (0, "nothing to do: everything is translated")


def test_up_that_cannot_complete_says_where_to_look(desk: Desk) -> None:
    """[J-104] exit code 3, and the command that tells why."""
    desk.configure(SETTINGS)
    desk.write("en/a.json", {"hello": "Hello"})
    desk.write("en/b.json", "{no json")
    told = desk.run("up")
    assert told.code == 3, told
    assert "dragoman status" in told.err
    assert desk.names().count("fr/a.json") == 1


def test_up_without_locales_is_refused(desk: Desk) -> None:
    desk.configure('sources = ["en"]\n')
    desk.write("en/a.json", {"hello": "Hello"})
    told = desk.run("up", "--json")
    assert (told.code, told.error["code"]) == (1, "empty_request")
