"""Commands on a manifest that exists, and on the system: status, results, retry, cancel, revert, upkeep."""

from __future__ import annotations

import json

import pytest

from dragoman.surfaces.cli import following
from tests.surfaces.cli.desk import Desk, Told, answering, sent

HIRED = ("--provider", "hired")
BAD = {"contains": "Bad", "act": "content_filter"}


@pytest.fixture
def tree(desk: Desk) -> Desk:
    desk.write("a.json", {"k": "Hello", "j": "Bad words"})
    desk.write("b.json", {"k": "Bye"})
    return desk


def of(told: Told) -> str:
    return str(told.object["manifest_id"])


def test_status_tells_of_an_ended_manifest_what_its_run_told(tree: Desk) -> None:
    """[M-127] the same object, and the same exit code, without working anything."""
    with answering(rules=[BAD]) as server:
        tree.hire(server.url)
        told = tree.translate("a.json", "b.json", "--to", "fr", *HIRED)
        calls = len(server.calls)
        status = tree.run("status", of(told), "--json")
        assert (status.code, status.object) == (told.code, told.object)
        assert told.code == 3
        said = tree.run("status", of(told))
        assert said.code == 3
        for line in (
            "  wrote a.fr.json",
            "  wrote b.fr.json",
            "1 failed:",
            "  a.json fr content_refused: 1 of 2 fields failed",
            "    j: content_refused The provider refuses this text.",
            "failed: 1 completed, 1 failed of 2",
            f"To retry 1 of them: dragoman retry {of(told)}",
        ):
            assert line in said.out.splitlines(), said.out
        assert len(server.calls) == calls


def test_a_retry_sends_what_failed_and_nothing_else(tree: Desk) -> None:
    """[M-132, M-137, M-138] then nothing is left to be retried."""
    with answering(rules=[BAD]) as server:
        tree.hire(server.url)
        told = tree.translate("a.json", "b.json", "--to", "fr", *HIRED)
        before = len(server.calls)
        server.script.rules = ()
        again = tree.run("retry", of(told), "--json")
        assert (again.code, of(again)) == (0, of(told))
        assert again.object["status"] == "completed"
        assert sent(server)[before:] == [["Bad words"]]
        assert tree.texts("a.fr.json") == {"k": "fr Hello", "j": "fr Bad words"}
        none = tree.run("retry", of(told), "--json")
        assert (none.code, none.error["code"]) == (1, "nothing_to_retry")
        assert len(server.calls) == before + 1


def test_a_retry_takes_the_failures_that_are_named(tree: Desk) -> None:
    """[M-135] and refuses those of another manifest."""
    tree.write("b.json", {"k": "Bad news"})
    with answering(rules=[BAD]) as server:
        tree.hire(server.url)
        told = tree.translate("a.json", "b.json", "--to", "fr", *HIRED)
        before = len(server.calls)
        server.script.rules = ()
        [intent] = [row.id for row in tree.rows("intents", "id", "document") if row.document == "b.json"]
        foreign = tree.run("retry", of(told), "--intent", "x", "--json")
        assert (foreign.code, foreign.error["code"], foreign.error["place"]) == (
            1,
            "invalid_request",
            "intent_ids",
        )
        again = tree.run("retry", of(told), "--intent", intent, "--json")
        assert (again.code, [failure["document"] for failure in again.object["failures"]]) == (3, ["a.json"])
        assert sent(server)[before:] == [["Bad news"]]


def test_results_are_one_object_a_line_with_the_reason_where_there_is_no_text(tree: Desk) -> None:
    with answering(rules=[BAD]) as server:
        tree.hire(server.url)
        told = tree.translate("a.json", "b.json", "--to", "fr", *HIRED)
    results = [json.loads(line) for line in tree.run("results", of(told)).out.splitlines()]
    assert [(one["document"], one["locale"], one["state"]) for one in results] == [
        ("a.json", "fr", "failed"),
        ("b.json", "fr", "completed"),
    ]
    assert results[0]["fields"]["k"] == {"state": "translated", "text": "fr Hello", "via": "ai"}
    assert results[0]["fields"]["j"]["code"] == "content_refused"


def test_a_text_that_passes_with_warnings_is_in_review_and_stays_there_when_it_is_recalled(
    tree: Desk,
) -> None:
    """The full stop is lost: a person should look, and nothing is held back. Memory forgets no warning."""
    tree.write("c.json", {"k": "Save the file."})
    tree.write("d.json", {"k": "Save the file."})
    wanted = {"state": "review", "text": "Enregistrez", "review": ["punctuation"]}
    with answering("translate", dictionary={"Save the file.": "Enregistrez"}) as server:
        tree.hire(server.url)
        for name, via in (("c.json", "ai"), ("d.json", "memory")):
            told = tree.translate(name, "--to", "fr", *HIRED)
            assert told.code == 0
            (result,) = map(json.loads, tree.run("results", of(told)).out.splitlines())
            assert result["fields"]["k"] == {**wanted, "via": via}
        assert len(server.calls) == 1


def test_a_canceled_manifest_begins_nothing_more_and_keeps_what_was_paid_for(
    tree: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its open pairs end as skipped; a later run pays only for what was not translated."""
    monkeypatch.setattr(following, "_NAMED_TIME_SECONDS", 0)
    slow = {"act": "slow_down", "retry_after": 60}
    with answering("translate", slow) as server:
        tree.hire(server.url, more="batch_size = 1\nconcurrency = 1")
        told = tree.translate("a.json", "b.json", "--to", "fr", *HIRED)
        assert (told.code, len(server.calls)) == (4, 2)
        canceled = tree.run("cancel", of(told), "--json")
        assert (canceled.code, canceled.object["status"]) == (0, "canceled")
        counts = canceled.object["counts"]
        assert counts["skipped"] + counts["completed"] == counts["total"] == 2
        assert len(server.calls) == 2
        assert [row.text for row in tree.rows("memory", "text")] == [f"fr {sent(server)[0][0]}"]
        again = tree.run("cancel", of(told), "--json")
        assert (again.code, again.object["status"]) == (0, "canceled")


def test_a_revert_restores_what_stood_there_and_leaves_alone_what_people_changed(tree: Desk) -> None:
    """New files go, replaced ones come back; a conflict is listed with exit code 3."""
    tree.write("b.fr.json", {"k": "Au revoir"})
    tree.write("c.json", {"k": "You"})
    before = tree.read("b.fr.json")
    with answering() as server:
        tree.hire(server.url)
        told = tree.translate("a.json", "b.json", "c.json", "--to", "fr", *HIRED, "--force")
        assert told.code == 0
        assert tree.read("b.fr.json") != before
        tree.write("c.fr.json", {"k": "Toi"})
        reverted = tree.run("revert", of(told), "--json")
        assert (reverted.code, reverted.object["outputs"]) == (3, ["c.fr.json"])
        [failure] = reverted.object["failures"]
        assert (failure["document"], failure["code"]) == ("c.json", "target_conflict")
        assert not (tree.folder / "a.fr.json").exists()
        assert tree.read("b.fr.json") == before
        assert tree.texts("c.fr.json") == {"k": "Toi"}
        assert len(server.calls) == 1


def test_a_revert_of_nothing_is_refused(tree: Desk) -> None:
    told = tree.translate("a.json", "--to", "fr", "--dry-run")
    refused = tree.run("revert", of(told), "--json")
    assert (refused.code, refused.error["code"]) == (1, "already_ended")


def test_what_was_reverted_is_translated_anew_from_memory(tree: Desk) -> None:
    with answering() as server:
        tree.hire(server.url)
        told = tree.translate("a.json", "--to", "fr", *HIRED)
        assert tree.run("revert", of(told)).code == 0
        assert tree.names() == ["a.json", "b.json", "dragoman.toml"]
        again = tree.translate("a.json", "--to", "fr", *HIRED)
        assert (again.code, again.object["outputs"], len(server.calls)) == (0, ["a.fr.json"], 1)


@pytest.mark.parametrize("command", ["status", "results", "retry", "cancel", "revert"])
def test_a_manifest_that_nobody_knows_is_not_found(tree: Desk, command: str) -> None:
    told = tree.run(command, "01a2292c-0000-7000-8000-000000000000")
    assert (told.code, told.out) == (1, "")
    assert told.err.startswith("not_found: no manifest 01a2292c-0000-7000-8000-000000000000\n")


def test_a_token_is_printed_once_and_kept_as_its_hash(tree: Desk) -> None:
    made = tree.run("tokens", "create", "ada", "--capability", "manifests:write")
    token = made.object
    assert made.code == 0
    assert set(token) == {"id", "token", "workspace"}
    [row] = tree.rows("tokens")
    assert row.actor == "ada"
    assert token["token"] not in str(row)
    assert tree.run("tokens", "revoke", token["id"]).code == 0
    gone = tree.run("tokens", "revoke", token["id"])
    assert (gone.code, gone.err.split(":")[0]) == (1, "not_found")
    wrong = tree.run("tokens", "create", "ada", "--capability", "fly")
    assert wrong.code == 1
    assert "manifests:write" in wrong.err


def test_the_doctor_misses_a_worker_only_where_there_is_work(
    tree: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_NAMED_TIME_SECONDS", 0)
    with answering({"act": "slow_down", "retry_after": 60}) as server:
        tree.hire(server.url)
        assert tree.translate("a.json", "--to", "fr", *HIRED).code == 4
    tree.execute("DELETE FROM workers")
    told = tree.run("doctor", "--json")
    assert (told.code, [finding["problem"] for finding in told.object["findings"]]) == (
        3,
        ["no worker was seen in the last 150 seconds"],
    )


def test_a_role_that_nobody_plays_is_refused(tree: Desk) -> None:
    told = tree.run("worker", "--role", "cook")
    assert (told.code, told.out) == (1, "")
    assert "roles are site, engine, publishing" in told.err


def test_the_doctor_finds_nothing_wrong_after_a_run(tree: Desk) -> None:
    assert tree.translate("a.json", "--to", "fr").code == 0
    told = tree.run("doctor", "--json")
    assert (told.code, told.object["findings"]) == (0, [])
    assert tree.run("doctor").out.endswith("\nnothing is wrong\n")
    tree.execute("DELETE FROM workers")  # as if it had been long ago
    assert tree.run("doctor").code == 0
    assert tree.run("migrate").out.endswith(", nothing to do\n")


def test_the_doctor_tells_how_things_stand_and_what_waits_for_whom(tree: Desk) -> None:
    """Who works, what is open; money, a silent provider, dead events, an engine that is not understood."""
    assert tree.translate("a.json", "--to", "fr").code == 0
    later = "(SELECT max(updated_at) FROM outbox) + 3600000000000"
    for sql in (
        "UPDATE jobs SET state = 'queued', parked_for = 'budget'",
        "UPDATE outbox SET state = 'dead'",
        f"INSERT INTO pauses (account, until, code, updated_at) VALUES ('hired@x', {later}, 'spent', 1)",
        "UPDATE submissions SET reconcile_at = 1, error_code = 'x', error_message = 'HTTP 401'",
        "UPDATE receipts SET state = 'FAILED_MANUAL'",
    ):
        tree.execute(sql)
    told = tree.run("doctor", "--json")
    assert told.code == 3
    found = [finding["problem"] for finding in told.object["findings"]]
    for said in (
        "1 jobs wait for money",
        "nobody calls hired before ",
        "1 events could not be delivered and are dead",
        "1 submissions cannot be asked about: HTTP 401",
        "1 events contradict what is on record and were set aside",
    ):
        assert [problem for problem in found if problem.startswith(said)], (said, found)
    assert all(finding["remedy"] for finding in told.object["findings"])
    stands = told.object["stands"]
    assert (stands["outbox"]["dead"], stands["jobs"]["queued budget"]) == (1, 1)
    assert {"site", "engine", "publishing"} <= set(stands["workers"])
    assert "outbox: 1 dead" in tree.run("doctor").out.splitlines()
