"""What is printed, and where: one object for machines, plain lines for pipes, a table for terminals."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from rich.console import Console

from dragoman.surfaces.cli.report import Report
from dragoman.surfaces.cli.telling import show
from dragoman.surfaces.cli.typed import Asked
from tests.surfaces.cli.desk import Desk, answering

OBJECT = {"manifest_id", "status", "counts", "outputs", "failures", "waiting", "cost"}
COUNTS = {"total", "preparing", "queued", "processing", "completed", "failed", "protected", "skipped"}
COST = {"paid_usd", "paid_tokens", "wasted_tokens", "at_risk_tokens", "memory_fields", "provider_fields"}
FAILURE = {
    "document": "a.json",
    "locale": "fr",
    "code": "checks_failed",
    "message": "1 of 2 fields failed",
    "remedy": "Retry.",
    "retryable": True,
    "fields": [
        {"key": "k", "code": "checks_failed", "check": "placeholders", "message": "[b]%s[/b] is gone"}
    ],
}


def report(**changes: Any) -> Report:
    counts = dict.fromkeys(COUNTS, 0) | {"total": 1}
    cost = dict.fromkeys(COST, 0) | {"at_risk_calls": 0, "at_risk_usd": 0.0, "lost_jobs": 0}
    return Report(**({"manifest_id": "m", "status": "completed", "counts": counts, "cost": cost} | changes))


def test_the_object_has_the_documented_members_and_nothing_else_stands_on_standard_output(desk: Desk) -> None:
    """As bytes of a process of its own: one line, in UTF-8, whatever the environment says of colours."""
    desk.write("a.json", {"k": "Hello", "ü": "Übermut"})
    desk.write("b.json", "{")
    run = desk.start("translate", ".", "--to", "fr", "--json", FORCE_COLOR="1", COLUMNS="20", PYTHONUTF8="0")
    ended = desk.end(run)
    told = ended.object
    assert ended.out == json.dumps(told, ensure_ascii=False) + "\n"
    assert ended.code == 3, ended.err
    assert set(told) == OBJECT
    assert set(told["counts"]) == COUNTS
    assert sum(told["counts"].values()) == 2 * told["counts"]["total"]
    assert set(told["cost"]) >= COST
    assert told["outputs"] == ["a.fr.json"]
    [failure] = told["failures"]
    assert set(failure) == {"document", "locale", "code", "message", "fields"}


def test_edits_are_told_where_they_were_asked_for(desk: Desk) -> None:
    desk.write("a.json", {"k": "Hello"})
    told = desk.translate("a.json", "--to", "fr", "--explain-edits").object
    assert set(told) == OBJECT | {"edits"}
    assert list(told["edits"]) == told["outputs"]


def test_away_from_a_terminal_each_failure_has_uncut_lines_of_its_own(desk: Desk) -> None:
    """No frame, no colour, no bar, also where somebody asks for a narrow one."""
    long = "a-name-that-is-longer-than-any-column-would-be/" * 3 + "a.json"
    desk.write(long, "{")
    told = desk.run("translate", ".", "--to", "fr")
    assert told.code == 3
    said = "line 1: the file ends, but a key in double quotes is expected here"
    assert f"  {long} fr invalid_fields: {said}" in told.out.splitlines()
    assert "\x1b" not in told.out + told.err
    assert not set("┃│━▏") & set(told.out + told.err)


def test_a_table_keeps_to_the_width_of_its_terminal_and_to_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Square brackets in texts are no markup."""
    monkeypatch.setenv("NO_COLOR", "1")
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=60, markup=False, highlight=False)
    show(console, report(failures=[FAILURE]))
    table = re.sub(r"\x1b\[[\d;]*m", "", shown.getvalue()).partition("└")[0].splitlines()
    assert {len(line) for line in table} == {60}
    assert "[b]%s[/b]" in shown.getvalue()
    assert not re.search(r"\x1b\[[\d;]*3\dm", shown.getvalue())


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"failures": [FAILURE]}, 3),
        ({"waiting": [{}]}, 4),
        ({"failures": [FAILURE], "waiting": [{}]}, 4),
        ({"failures": [FAILURE], "waiting": [{}], "interrupted": True}, 130),
        ({"interrupted": True}, 130),
    ],
)
def test_of_several_exit_codes_the_first_of_130_1_4_3_0_is_taken(changes: dict[str, Any], code: int) -> None:
    assert report(**changes).exit_code == code


def test_many_outputs_and_failures_are_cut_for_people_and_never_for_machines() -> None:
    many = report(outputs=[f"{n}.json" for n in range(60)], failures=[FAILURE] * 60)
    shown = io.StringIO()
    show(Console(file=shown, width=80, markup=False, highlight=False), many)
    assert "… and 35 more files" in shown.getvalue()
    assert "… and 35 more failures, all of them with --json" in shown.getvalue()
    assert len(many.as_json()["outputs"]) == len(many.as_json()["failures"]) == 60


def test_the_command_that_is_told_asks_for_the_same_and_holds_no_password() -> None:
    asked = Asked(
        paths=("my docs", "b.json"),
        locales=("fr", "de"),
        source_locale="en",
        out="out/{path}.{locale}{ext}",
        provider="hired:m",
        base_url="",
        mode="force",
        on_unknown="hold",
        stay=True,
        explain=True,
        dry_run=False,
        as_json=True,
        database_url="postgresql://me:secret@host/db",
    )
    assert asked.again == (
        "dragoman translate 'my docs' b.json --to fr,de --from en --out 'out/{path}.{locale}{ext}' "
        "--provider hired:m --force --db 'postgresql://me:…@host/db'"
    )


def test_help_names_every_flag(desk: Desk) -> None:
    told = desk.run("translate", "--help", db=False)
    flags = "from to out provider base-url mode on-unknown wait force explain-edits dry-run db json"
    for flag in flags.split():
        assert f"--{flag}" in told.out
    assert told.code == 0


def test_help_and_version_load_nothing_that_is_not_needed(desk: Desk) -> None:
    """So that they answer at once."""
    desk.database_url = ""
    code = "import sys; sys.argv[1:] = ['version']; import dragoman.__main__ as m\n"
    code += "try: m.main()\nexcept SystemExit: pass\n"
    code += "print([one for one in ('sqlalchemy', 'aiohttp', 'fastapi', 'rich') if one in sys.modules])"
    run = desk.python(code)
    assert run.endswith("[]\n"), run


def test_a_key_in_the_environment_chooses_its_provider(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """And `OPENAI_BASE_URL` its server; `--base-url` goes before it."""
    desk.write("a.json", {"k": "Hello"})
    with answering() as server, answering() as other:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-marker")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert desk.translate("a.json", "--to", "fr").object["outputs"] == ["a.fr.json"]
        assert desk.texts("a.fr.json") == {"k": "fr Hello"}
        assert [call.headers["authorization"] for call in server.calls] == ["Bearer sk-marker"]
        told = desk.translate("a.json", "--to", "de", "--base-url", other.url, "--provider", "openai:mine")
        assert told.code == 0
        assert [json.loads(call.body)["model"] for call in other.calls] == ["mine"]
        assert len(server.calls) == 1


def test_texts_that_the_source_lost_are_left_and_named(desk: Desk) -> None:
    """By file and key, for people and for machines; what a person wants with them is theirs to say."""
    desk.write("locales/en.json", {"a": "Hello", "b": "Good bye"})
    desk.write("locales/de.json", {"old": "Weg", "a": "Hallo"})
    told = desk.translate("locales", "--to", "de", "--provider", "pseudo", "--json")
    assert told.object["lost"] == {"locales/de.json": ["old"]}
    assert desk.texts("locales/de.json")["old"] == "Weg"
    desk.write("locales/en.json", {"a": "Hello", "b": "Good bye", "c": "Again"})
    plain = desk.translate("locales", "--to", "de", "--provider", "pseudo")
    assert "locales/de.json: old: not in the source any more, and left as they are" in plain.out + plain.err
