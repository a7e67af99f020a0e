"""One file that holds all locales, from the command line: each locale is written and taken back alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.surfaces.cli.desk import Desk, Told

CATALOGUE = """\
{
  "sourceLanguage" : "en",
  "strings" : {
    "%lld days" : {
      "localizations" : {
        "en" : {
          "variations" : {
            "plural" : {
              "one" : {
                "stringUnit" : {
                  "state" : "translated",
                  "value" : "%lld day"
                }
              },
              "other" : {
                "stringUnit" : {
                  "state" : "translated",
                  "value" : "%lld days"
                }
              }
            }
          }
        }
      }
    },
    "Hello %@" : {

    },
    "Looked at" : {
      "localizations" : {
        "fr" : {
          "stringUnit" : {
            "state" : "needs_review",
            "value" : "Vu"
          }
        }
      }
    },
    "Never" : {
      "shouldTranslate" : false
    }
  },
  "version" : "1.0"
}"""
NAME = "App/Localizable.xcstrings"
PSEUDO = ("--provider", "pseudo")


@pytest.fixture
def tree(desk: Desk) -> Desk:
    desk.write(NAME, CATALOGUE)
    return desk


def strings(desk: Desk) -> dict[str, Any]:
    return dict(desk.texts(NAME)["strings"])


def said(desk: Desk, key: str) -> set[str]:
    return set(strings(desk)[key].get("localizations", {}))


def without(desk: Desk, *codes: str) -> Any:
    """The catalogue as it is read, without what is said in these languages."""
    found = strings(desk)
    for entry in found.values():
        for code in codes:
            entry.get("localizations", {}).pop(code, None)
    return found


def manifest(told: Told) -> str:
    assert told.code == 0, told
    return str(told.object["manifest_id"])


def test_two_locales_go_into_the_document_itself_and_come_out_again(tree: Desk) -> None:
    source = without(tree, "de", "fr")
    told = tree.translate(NAME, "--to", "fr", "--to", "de", *PSEUDO)
    assert (told.code, told.object["outputs"]) == (0, [NAME])
    assert tree.names() == [NAME, "dragoman.toml"]
    assert said(tree, "%lld days") == {"en", "fr", "de"}
    assert said(tree, "Hello %@") == {"fr", "de"}
    french = strings(tree)["%lld days"]["localizations"]["fr"]["variations"]["plural"]
    assert list(french) == ["many", "one", "other"]
    assert without(tree, "de", "fr")["Never"] == {"shouldTranslate": False}
    assert without(tree, "de", "fr")["%lld days"] == source["%lld days"]
    assert tree.run("revert", manifest(told)).code == 0
    assert tree.read(NAME) == CATALOGUE


def test_a_second_run_finds_nothing_to_do(tree: Desk) -> None:
    manifest(tree.translate(NAME, "--to", "fr", "--to", "de", *PSEUDO))
    before = tree.read(NAME)
    again = tree.translate("App", "--to", "fr", "--to", "de", *PSEUDO)
    assert (again.code, again.object["outputs"], tree.read(NAME)) == (0, [], before)


def test_one_locale_is_taken_back_and_the_other_stays_letter_by_letter(tree: Desk) -> None:
    """Also where the other was written later, and what was to be reviewed is so again."""
    first = manifest(tree.translate(NAME, "--to", "fr", *PSEUDO))
    second = manifest(tree.translate(NAME, "--to", "de", *PSEUDO))
    both = tree.read(NAME)
    assert tree.run("revert", first).code == 0
    only = tree.read(NAME)
    assert said(tree, "Hello %@") == {"de"}
    assert strings(tree)["Looked at"]["localizations"]["fr"] == {
        "stringUnit": {"state": "needs_review", "value": "Vu"}
    }
    assert tree.run("revert", second).code == 0
    assert tree.read(NAME) == CATALOGUE
    manifest(tree.translate(NAME, "--to", "de", *PSEUDO))
    assert tree.read(NAME) == only
    manifest(tree.translate(NAME, "--to", "fr", *PSEUDO))
    assert json.loads(tree.read(NAME)) == json.loads(both)


def test_what_a_person_changed_since_stays_and_the_rest_is_taken_back(tree: Desk) -> None:
    first = manifest(tree.translate(NAME, "--to", "de", *PSEUDO))
    catalogue = tree.texts(NAME)
    catalogue["strings"]["Hello %@"]["localizations"]["de"]["stringUnit"]["value"] = "Hallo, %@"
    catalogue["strings"]["Looked at"]["comment"] = "of a person"
    tree.write(NAME, json.dumps(catalogue, ensure_ascii=False, indent=2, separators=(",", " : ")))
    told = tree.run("revert", first, "--json")
    assert said(tree, "Looked at") == {"fr"}
    assert said(tree, "%lld days") == {"en"}
    assert strings(tree)["Hello %@"]["localizations"]["de"]["stringUnit"]["value"] == "Hallo, %@"
    assert strings(tree)["Looked at"]["comment"] == "of a person"
    [failure] = told.object["failures"]
    assert (told.code, failure["code"], failure["locale"]) == (3, "target_conflict", "de")
    assert "changed 1 of its texts" in failure["message"]


def test_a_table_of_all_locales_is_its_own_target_too(desk: Desk) -> None:
    table = "key,en,fr,de\nhello,Hello,,\nbye,Good bye,,\n"
    desk.write("texts.csv", table)
    told = desk.translate("texts.csv", "--to", "fr", "--to", "de", *PSEUDO)
    assert (told.code, told.object["outputs"]) == (0, ["texts.csv"])
    assert all(all(row.split(",")) for row in desk.read("texts.csv").splitlines())
    other = manifest(desk.translate("texts.csv", "--to", "it", *PSEUDO))
    assert desk.run("revert", manifest(told)).code == 0
    assert [row.split(",")[2:4] for row in desk.read("texts.csv").splitlines()[1:]] == [["", ""], ["", ""]]
    assert all(row.split(",")[4] for row in desk.read("texts.csv").splitlines())
    assert desk.run("revert", other).code == 0


def test_another_document_may_not_be_written_over_a_shared_one(tree: Desk) -> None:
    tree.write("App/Localizable.json", '{"a": "b"}')
    refused = tree.translate("App", "--to", "fr", *PSEUDO, "--out", NAME)
    assert refused.error["code"] == "output_conflict"
