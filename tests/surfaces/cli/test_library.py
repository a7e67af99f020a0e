"""`dragoman memory` and `dragoman glossary`: what comes in is used, and what it changes is asked again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.surfaces.cli.desk import Desk, answering, sent

HIRED = ("--to", "fr", "--provider", "hired")


@pytest.fixture
def tree(desk: Desk) -> Desk:
    desk.write("app_en.arb", arb())
    return desk


def arb(note: str = "of a window") -> dict[str, Any]:
    return {
        "@@locale": "en",
        "title": "The folder is here",
        "@title": {"description": note},
        "body": "Hello my friend",
        "end": "Good bye my friend",
    }


def test_what_is_imported_fills_fields_without_a_call(tree: Desk) -> None:
    """[J-052]: the command line's memory is the one that every translation looks into."""
    tree.write("m.csv", "en,fr\nHello my friend,Bonjour mon ami\nGood bye my friend,Au revoir mon ami\n")
    with answering() as server:
        tree.hire(server.url)
        told = tree.run("memory", "import", "m.csv", "--to", "fr", "--json")
        assert (told.code, told.object["kept"]) == (0, 2)
        told = tree.translate("app_en.arb", *HIRED)
        assert told.code == 0
        assert sent(server) == [["The folder is here"]]
        assert "Bonjour mon ami" in tree.read("app_fr.arb")
    found = tree.run("memory", "search", "Hello my dear friend", "--to", "fr", "--json").object["found"]
    assert [(one["source"], one["origin"]) for one in found] == [("Hello my friend", "imported")]
    stats = tree.run("memory", "stats", "--json").object["memory"]
    assert {(row["origin"], row["number"]) for row in stats} == {("ai", 1), ("imported", 2)}


def test_in_mode_changed_exactly_what_a_change_touches_is_asked_again(tree: Desk) -> None:
    """A note, a term in use, or the style of the project: the fields that they touch and no others."""
    with answering() as server:
        tree.hire(server.url)

        def asked() -> list[list[str]]:
            before = len(server.calls)
            told = tree.translate("app_en.arb", *HIRED, "--mode", "changed")
            assert told.code == 0, told
            return sent(server)[before:]

        assert tree.translate("app_en.arb", *HIRED).code == 0
        assert asked() == []
        tree.write("app_en.arb", arb("of a disk"))
        assert asked() == [["The folder is here"]]
        assert asked() == []
        tree.write("g.csv", "term,translation\nfriend,friend\nwindow,fenêtre\n")
        assert tree.run("glossary", "import", "g.csv", "--to", "fr").code == 0
        assert asked() == [["Hello my friend", "Good bye my friend"]]
        assert server.calls[-1].question["items"][0]["glossary"] == [["friend", "friend"]]
        assert asked() == []


def test_a_glossary_of_no_known_kind_is_refused_with_its_name(tree: Desk) -> None:
    tree.write("g.xlsx", "no table")
    told = tree.run("glossary", "import", "g.xlsx", "--to", "fr", "--json")
    assert told.code != 0
    assert told.error["code"] == "unsupported_format"
    told = tree.run("memory", "export", "none/m.tmx", "--to", "fr", "--json")
    assert told.code != 0
    told = tree.run("memory", "import", "missing.tmx", "--to", "fr", "--json")
    assert told.error["code"] == "path_not_found"
    told = tree.run("memory", "import", "g.xlsx", "--to", "en", "--json")
    assert told.error["code"] == "source_is_target"
