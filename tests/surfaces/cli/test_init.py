"""`dragoman init`: what a tree holds is found and written down, and `translate` needs no words then."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from tests.surfaces.cli.desk import Desk

ANDROID = '<resources>\n    <string name="a">Hello</string>\n</resources>\n'


@pytest.fixture
def bare(desk: Desk) -> Desk:
    """A tree that nobody has set up."""
    (desk.folder / "dragoman.toml").unlink(missing_ok=True)
    return desk


def written(desk: Desk) -> dict[str, Any]:
    return tomllib.loads(desk.read("dragoman.toml"))


def test_it_finds_formats_the_source_and_the_locales_that_stand_beside_it(bare: Desk) -> None:
    bare.write("locales/en.json", {"a": "Hello"})
    bare.write("locales/de.json", {"a": "Hallo"})
    bare.write("app/res/values/strings.xml", ANDROID)
    bare.write("app/res/values-pt-rBR/strings.xml", ANDROID)
    bare.write("src/main.ts", "export const a = 1;\n")
    told = bare.run("init", "--yes", db=False)
    assert told.code == 0, told.err
    settings = written(bare)
    assert settings["source_locale"] == "en"
    assert settings["locales"] == ["de", "pt-BR"]
    assert settings["sources"] == ["app", "locales"]
    assert "2 documents in en" in told.out
    assert "android" in told.out
    assert "next: dragoman translate" in told.out


def test_afterwards_translate_needs_no_words(bare: Desk) -> None:
    bare.write("locales/fr.json", {"a": "Bonjour"})
    bare.write("locales/it.json", {})
    bare.write("locales/es.json", {"a": "Hola"})
    told = bare.run("init", "--from", "fr", "--yes", "--json", db=False)
    assert told.object["source_locale"] == "fr"
    assert told.object["locales"] == ["es", "it"]
    done = bare.run("translate", "--provider", "pseudo", "--json")
    assert done.code == 0, done.err
    assert done.object["outputs"] == ["locales/it.json"]
    assert bare.read("locales/es.json") == '{\n  "a": "Hola"\n}\n'


def test_a_tree_with_settings_or_without_documents_is_refused_and_left_alone(bare: Desk) -> None:
    empty = bare.run("init", "--yes", "--json", db=False)
    assert (empty.code, empty.error["code"]) == (1, "empty_request")
    bare.write("en.json", {"a": "Hello"})
    bare.write("dragoman.toml", 'project = "mine"\n')
    refused = bare.run("init", "--yes", "--json", db=False)
    assert refused.code == 1
    assert "stands here already" in refused.error["message"]
    assert bare.read("dragoman.toml") == 'project = "mine"\n'


def test_without_settings_and_words_translate_says_what_it_needs(bare: Desk) -> None:
    bare.write("en.json", {"a": "Hello"})
    for words, place in ((["en.json"], "--to"), (["--to", "de"], "PATH")):
        told = bare.run("translate", *words, "--json")
        assert (told.code, told.error["code"], told.error["place"]) == (1, "empty_request", place)
