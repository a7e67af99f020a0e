"""`dragoman check`: what it finds, how it tells it, what it exits with; it writes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.content.checks import CHECKS
from dragoman.content.inspection import FILE_CHECKS
from tests.surfaces.cli.desk import Desk, Told

PO = """msgid ""
msgstr ""
"Language: de\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

#, python-format
msgid "Hello %s"
msgstr "Hallo"

msgid "Open"
msgstr "Öffnen"
"""
XLIFF = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file source-language="en" target-language="fr" datatype="plaintext" original="a">
    <body>
      <trans-unit id="a">
        <source>See https://a.test</source>
        <target>Voir https://b.test</target>
      </trans-unit>
    </body>
  </file>
</xliff>
"""


@pytest.fixture
def filled(desk: Desk) -> Desk:
    """A catalogue in three languages: German has an error and a warning, French is right."""
    desk.write("locales/en.json", {"greet": "Hello {{name}}", "save": "Save the file."})
    desk.write("locales/de.json", {"greet": "Hallo", "save": "Datei sichern"})
    desk.write("locales/fr.json", {"greet": "Bonjour {{name}}", "save": "Enregistrez le fichier."})
    return desk


def check(desk: Desk, *words: str) -> Told:
    return desk.run("check", *words, db=False)


def found(told: Told) -> list[tuple[str, int, str, str, str]]:
    return [
        (one["path"], one["line"], one["key"], one["check"], one["severity"])
        for one in told.object["findings"]
    ]


def test_findings_are_told_by_file_line_and_key(filled: Desk) -> None:
    told = check(filled, "locales")
    assert told.code == 3
    lines = told.out.splitlines()
    assert lines[0] == "locales/de.json (de)"
    assert lines[1].startswith("  2:greet error placeholders: missing: {{name}}")
    assert lines[2].startswith("  3:save warning punctuation: ")
    assert lines[-1] == "2 files checked: 1 errors, 1 warnings"


def test_it_writes_nothing_and_needs_no_database(filled: Desk) -> None:
    before = filled.names()
    check(filled, "locales")
    assert filled.names() == before
    assert not (filled.folder / ".dragoman").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("locales", 3),
        ("locales --to fr", 0),
        ("locales --fail-on never", 0),
        ("locales --to fr --fail-on warning", 0),
        ("locales --to de,fr --fail-on warning", 3),
        ("locales --to fr,de --errors-only --fail-on warning", 3),
        ("locales --to es", 0),
        ("locales --to es --fail-on warning", 3),
        ("locales --format xml", 1),
        ("locales --fail-on nothing", 1),
        ("locales --to q!", 1),
        ("locales --from e!n", 1),
        ("nowhere", 1),
        ("locales/en.json", 3),
        ("locales/fr.json", 0),
        ("locales/de.json", 3),
    ],
)
def test_the_exit_code_follows_the_bar(filled: Desk, words: str, code: int) -> None:
    assert check(filled, *words.split()).code == code


def test_json_holds_every_finding(filled: Desk) -> None:
    told = check(filled, "locales", "--format", "json")
    assert told.object["counts"] == {"files": 2, "error": 1, "warning": 1}
    assert found(told) == [
        ("locales/de.json", 2, "greet", "placeholders", "error"),
        ("locales/de.json", 3, "save", "punctuation", "warning"),
    ]
    assert told.object["findings"][0]["missing"] == ["{{name}}"]
    only = check(filled, "locales", "--format", "json", "--errors-only")
    assert len(only.object["findings"]) == 1


def test_a_translation_that_is_named_is_held_against_its_source_alone(filled: Desk) -> None:
    told = check(filled, "locales/de.json", "--format", "json")
    assert told.object["counts"]["files"] == 1
    assert {path for path, *_ in found(told)} == {"locales/de.json"}


def test_bilingual_files_are_held_against_themselves(desk: Desk) -> None:
    desk.write("de.po", PO)
    desk.write("a.fr.xlf", XLIFF)
    told = check(desk, ".", "--format", "json")
    assert told.code == 3
    assert found(told) == [
        ("a.fr.xlf", 7, found(told)[0][2], "addresses", "error"),
        ("de.po", 8, "Hello %s", "placeholders", "error"),
    ]
    assert check(desk, "de.po", "--to", "fr").code == 1


def test_a_catalogue_beside_its_template_is_checked_once(desk: Desk) -> None:
    desk.write(
        "po/app.pot", PO.replace("Language: de", "Language: ").replace("Hallo", "").replace("Öffnen", "")
    )
    desk.write("po/de.po", PO)
    told = check(desk, "po", "--format", "json")
    assert [(path, name) for path, _, _, name, _ in found(told)] == [("po/de.po", "placeholders")]


def test_a_file_that_cannot_be_read_is_a_finding(filled: Desk) -> None:
    filled.write("locales/de.json", '{"greet": "Hallo",\n "save": }\n')
    told = check(filled, "locales", "--format", "json")
    assert told.code == 3
    assert found(told) == [("locales/de.json", 2, "", "unreadable", "error")]


def test_nothing_to_check_is_said(desk: Desk) -> None:
    desk.write("en.json", {"a": "Save"})
    told = check(desk, "en.json", "--format", "json")
    assert told.code == 1
    assert told.error["code"] == "empty_request"


LOG = {"$schema": str, "version": str, "runs": list}
RUN = {"tool": dict, "results": list, "columnKind": str}
RULE = {"id": str, "shortDescription": dict, "help": dict, "defaultConfiguration": dict}
RESULT = {"ruleId": str, "ruleIndex": int, "level": str, "message": dict, "locations": list}
"""What SARIF 2.1.0 requires of each object, and what code hosts show; property → type."""


def conforms(thing: dict[str, Any], wanted: Mapping[str, type]) -> bool:
    return all(isinstance(thing.get(name), kind) for name, kind in wanted.items())


def test_sarif_names_its_rules_and_the_line_of_each_result(filled: Desk) -> None:
    told = check(filled, "locales", "--format", "sarif")
    log = json.loads(told.out)
    assert conforms(log, LOG)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert conforms(run, RUN)
    driver = run["tool"]["driver"]
    assert driver["name"] == "dragoman"
    assert all(conforms(rule, RULE) for rule in driver["rules"])
    assert all(rule["help"]["text"] and rule["shortDescription"]["text"] for rule in driver["rules"])
    names = [rule["id"] for rule in driver["rules"]]
    assert len(set(names)) == len(names)
    assert set(names) == {*CHECKS, *FILE_CHECKS}
    for result in run["results"]:
        assert conforms(result, RESULT)
        assert result["level"] in ("none", "note", "warning", "error")
        assert names[result["ruleIndex"]] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"] == {"uri": "locales/de.json", "uriBaseId": "%SRCROOT%"}
        assert place["region"]["startLine"] >= 1
    assert [result["level"] for result in run["results"]] == ["error", "warning"]


def test_a_sarif_uri_is_one(desk: Desk) -> None:
    desk.write("my texts/en.json", {"a": "Hello {{name}}"})
    desk.write("my texts/de.json", {"a": "Hallo"})
    told = check(desk, "my texts", "--format", "sarif")
    (result,) = json.loads(told.out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "my%20texts/de.json"
