"""`dragoman outbox`: what is on its way out, and a dead event sent once more."""

from __future__ import annotations

import asyncio

from tests.doubles.databases import opened
from tests.flow.engine.outbox_rows import put_event
from tests.surfaces.cli.desk import Desk


def _dead_event(desk: Desk) -> str:
    async def put() -> str:
        async with opened(desk.database_url) as database:
            return await database.run(put_event, "https://a.example/hook?key=secret", 1)

    event = asyncio.run(put())
    desk.execute("UPDATE outbox SET state = 'dead', next_attempt_at = NULL, error_code = 'PROVIDER_REJECTED'")
    return event


def test_a_dead_event_is_listed_and_redriven_and_that_is_written_down(desk: Desk) -> None:
    """[M-248] only scheme and host of its address are shown."""
    event = _dead_event(desk)
    told = desk.run("outbox", "list", "--state", "dead", "--json").object["items"]
    assert [(one["id"], one["state"], one["endpoint"]) for one in told] == [
        (event, "dead", "https://a.example")
    ]
    assert "key=secret" not in desk.run("outbox", "list").out
    assert desk.run("outbox", "redrive", event).code == 0
    assert [row.state for row in desk.rows("outbox", "state")] == ["pending"]
    audit = [row for row in desk.rows("history") if row.action == "redrive"]
    assert [(row.subject, row.actor) for row in audit] == [(event, "operator")]
    again = desk.run("outbox", "redrive", event, "--json")
    assert (again.code, again.error["code"]) == (1, "nothing_to_retry")


def test_a_state_that_is_none_is_refused(desk: Desk) -> None:
    told = desk.run("outbox", "list", "--state", "lost", "--json")
    assert (told.code, told.error["place"]) == (1, "--state")
