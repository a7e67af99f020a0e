"""Command lines that cannot be run: refused before anything is admitted, with what, where and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.surfaces.cli.desk import Desk


class Case(NamedTuple):
    """A command line behind `translate`, and what its refusal says: the code, the place, words of it."""

    words: str
    code: str
    place: str
    said: str


CASES = [
    Case("nowhere.json --to fr", "path_not_found", "nowhere.json", "nowhere.json does not exist"),
    Case("a.json nowhere --to fr", "path_not_found", "nowhere", "nowhere does not exist"),
    Case("pictures --to fr", "empty_request", "", "no source was found"),
    Case("a.json --to ,", "empty_request", "--to", "no target locale is named"),
    Case("a.json --to fr,en", "source_is_target", "--to", "en is the source locale"),
    Case("a.json --from fr --to FR", "source_is_target", "--to", "fr is the source locale"),
    Case("a.json --to f!r", "unsupported_locale", "--to", "'f!r' is not a locale"),
    Case("a.json --to qq", "unsupported_locale", "--to", "'qq' names no language"),
    Case("a.json --to fr-Zxyw", "unsupported_locale", "--to", "'fr-Zxyw' names no"),
    Case("a.json --to fr --from e!n", "unsupported_locale", "--from", "'e!n' is not a locale"),
    Case(
        "a.json b --to fr --out out/{stem}.{locale}{ext}",
        "output_conflict",
        "out/a.fr.json",
        "a.json in fr would be written to out/a.fr.json: ",
    ),
    Case("a.json --to fr,de --out out/a.json", "output_conflict", "out/a.json", "a.json in de would be too"),
    Case("a.json --to fr --out a.json", "output_conflict", "a.json", "that is a source"),
    Case("a.json --to fr --out ../{locale}.json", "output_outside_tree", "--out", "outside the working tree"),
    Case(
        "a.json --to fr --out {lang}.json", "invalid_request", "--out", "{locale} {path} {dir} {stem} {ext}"
    ),
    Case("../away.json --to fr", "output_outside_tree", "../away.json", "--out 'translated/{path}."),
    Case("a.json --to fr --mode some", "invalid_request", "--mode", "missing, changed, all, force"),
    Case("a.json --to fr --on-unknown ask", "invalid_request", "--on-unknown", "resend:unlimited, hold"),
    Case(
        "a.json --to fr --provider babel:fish", "provider_unknown", "--provider", "openai, pseudo, rehearsal"
    ),
    Case("a.json --to fr --provider openai", "provider_credentials_missing", "--provider", "OPENAI_API_KEY"),
]


@pytest.fixture
def tree(desk: Desk) -> Desk:
    """Two catalogues of one name, a folder without any, and one outside of the tree."""
    for name in ("a.json", "b/a.json", "../away.json"):
        desk.write(name, {"k": "Hello"})
    desk.write("pictures/a.png", b"\x89PNG")
    return desk


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)
def test_a_refusal_says_what_where_and_what_to_do_and_nothing_is_begun(tree: Desk, case: Case) -> None:
    """Exit code 1; as one object with --json, as words on standard error without."""
    before = _files(tree.folder)
    told = tree.translate(*case.words.split())
    assert told.code == 1
    assert (told.error["code"], told.error["place"]) == (case.code, case.place)
    assert case.said in told.error["message"]
    assert told.error["remedy"].endswith(".")
    assert told.err == ""
    said = tree.run("translate", *case.words.split())
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(case.code)
    assert case.said in said.err
    assert told.error["remedy"] in said.err
    assert tree.rows("manifests") == []
    assert _files(tree.folder) == before


def test_settings_that_cannot_be_read_are_refused_with_the_setting(tree: Desk) -> None:
    for text, said in (
        ("batch_size = 0", "setting batch_size: "),
        ("batchsize = 5", "setting batchsize: "),
        ("batch_size = ", "dragoman.toml cannot be read: "),
        ('openai_endpoint = "x"\n[providers.platform]\nprotocol = "chat"', "disagree"),
    ):
        tree.configure(text)
        told = tree.translate("a.json", "--to", "fr")
        assert (told.code, told.error["code"]) == (1, "invalid_settings")
        assert said in told.error["message"]


def test_the_key_of_a_refused_provider_may_stand_in_the_environment(
    tree: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of one's own needs none; the vendor's needs one, and an empty one is none."""
    monkeypatch.setenv("OPENAI_API_KEY", "")
    told = tree.translate("a.json", "--to", "fr", "--provider", "openai:gpt-4o-mini")
    assert told.error["code"] == "provider_credentials_missing"
    tree.configure('[providers.own]\nprotocol = "chat"\nbase_url = "http://127.0.0.1:9"\npriced = true\n')
    told = tree.translate("a.json", "--to", "fr", "--provider", "own")
    assert told.error["code"] == "provider_credentials_missing"
    assert "`key_variable` names" in told.error["message"]


def test_words_that_are_no_command_are_refused_with_the_usage(tree: Desk) -> None:
    for words in (
        ["translate", "a.json", "--tu", "fr"],
        ["status"],
        ["no-command"],
    ):
        told = tree.run(*words, db=False)
        assert told.code == 2
        assert "Usage: dragoman" in told.err
        assert told.out == ""


def test_a_locale_named_twice_is_one_locale(tree: Desk) -> None:
    told = tree.translate("a.json", "--to", "fr,FR", "--to", "fr")
    assert (told.code, told.object["counts"]["total"]) == (0, 1)


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".dragoman" not in path.parts
    }
