"""`dragoman jobs`: what there is, one whole, and one in quarantine tried again, as by the admin route."""

from __future__ import annotations

from tests.surfaces.cli.desk import Desk


def test_jobs_are_listed_shown_and_redriven_out_of_quarantine(desk: Desk) -> None:
    """The same id, new starts; who did it is written down; another is no job to be tried again."""
    desk.write("a.json", {"k": "Hello there"})
    assert desk.translate("a.json", "--to", "fr").code == 0
    [job] = desk.run("jobs", "list", "--json").object["items"]
    assert (job["status"], job["done_fields"]) == ("completed", 1)
    assert desk.run("jobs", "list", "--push", "p-1", "--json").object["items"] == []
    assert job["job_id"] in desk.run("jobs", "list").out
    shown = desk.run("jobs", "show", job["job_id"], "--json").object
    assert (shown["target_locale"], "items" in shown) == ("fr", False)
    assert "Hello" not in desk.run("jobs", "show", job["job_id"]).out
    refused = desk.run("jobs", "redrive", job["job_id"], "--json")
    assert (refused.code, refused.error["code"]) == (1, "nothing_to_retry")
    desk.execute("UPDATE jobs SET state = 'failed', error_code = 'gave_up', purged_at = NULL, starts = 5")
    assert desk.run("jobs", "redrive", job["job_id"], "--json").object["status"] == "queued"
    assert [(row.state, row.starts) for row in desk.rows("jobs", "state", "starts")] == [("queued", 0)]
    audit = [row for row in desk.rows("history") if row.action == "redrive_job"]
    assert [(row.subject, row.actor) for row in audit] == [(job["job_id"], "operator")]


def test_a_job_that_nobody_has_is_said_so(desk: Desk) -> None:
    for command in ("show", "redrive"):
        told = desk.run("jobs", command, "0199d3f0-4a1b-7c55-9c1e-3a7f6f2b8d10", "--json")
        assert (told.code, told.error["code"]) == (1, "not_found")
