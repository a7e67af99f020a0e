"""`dragoman run` for cron, `dragoman api` beside it, and what the doctor says of retention."""

from __future__ import annotations

import signal
from typing import Any

import sqlalchemy as sa

from dragoman.store.acts.leasing import LEASED
from dragoman.store.engines import engine_of
from dragoman.store.schema import effects, site
from tests.surfaces.cli.desk import Desk
from tests.surfaces.cli.test_serving import BODY, ask, listening

MANIFESTS = "/v1/workspaces/default/manifests"


def rows(desk: Desk, table: sa.Table) -> list[sa.Row[Any]]:
    engine = engine_of(desk.database_url)
    with engine.begin() as connection:
        found = list(connection.execute(sa.select(table)))
    engine.dispose()
    return found


def served_by_the_api_alone(desk: Desk, *requests: str) -> None:
    """Admit over `dragoman api`, which works nothing itself."""
    desk.write("a.json", {"hello": "Hello"})
    token = desk.run("tokens", "create", "ada").object["token"]
    with listening(desk, "api") as (url, run):
        for request_id in requests:
            ask(f"{url}{MANIFESTS}", token, {**BODY, "request_id": request_id})
        run.send_signal(signal.SIGTERM)
        assert desk.end(run).code == 0


def test_run_drains_what_is_due_once_and_ends(desk: Desk) -> None:
    """[M-085] [M-086] [M-302] exit code 0; start, duration and how it ended are on record; no lease stays."""
    assert desk.run("run", "--json").object["why"] == "drained"  # whoever ran it was seen: admission is open
    served_by_the_api_alone(desk, "r-1", "r-2")
    assert [row.phase for row in rows(desk, site.manifests)] == ["enumerating", "enumerating"]
    told = desk.run("run", "--time-budget", "50", "--max-manifests", "20", "--json")
    assert told.code == 0, told
    assert (told.object["why"], told.object["ended"], told.object["at_work"]) == ("drained", 2, 0)
    assert {row.phase for row in rows(desk, site.manifests)} == {"ended"}
    assert not [row for table in LEASED for row in rows(desk, table) if row.lease_owner]
    assert {(row.external, row.exit_class) for row in rows(desk, effects.workers)} == {(True, "drained")}
    assert all(row.last_run_at and row.duration_microseconds for row in rows(desk, effects.workers))


def test_run_is_bounded_by_manifests_and_by_time(desk: Desk) -> None:
    """[M-085] each bound ends it with exit code 4; a later run goes on with what was left."""
    desk.run("run")
    served_by_the_api_alone(desk, *[f"r-{number}" for number in range(3)])
    told = desk.run("run", "--role", "engine", "--json")
    assert (told.code, told.object["ended"], told.object["at_work"]) == (0, 0, 3), "another role's work"
    told = desk.run("run", "--max-manifests", "1", "--json")
    assert told.object["why"] in ("manifests", "drained")
    assert told.code == (4 if told.object["why"] == "manifests" else 0)
    assert desk.run("run", "--json").object["at_work"] == 0
    assert desk.run("run", "--role", "cook").code == 1


def test_the_doctor_says_what_retention_would_remove(desk: Desk) -> None:
    """[M-295] by number; a failed manifest is not among them."""
    desk.write("a.json", {"hello": "Hello"})
    assert desk.translate("a.json", "--to", "fr").code == 0
    assert desk.run("doctor", "--json").object["retention"]["manifests"] == 0
    engine = engine_of(desk.database_url)
    with engine.begin() as connection:
        connection.execute(sa.update(site.manifests).values(completed_at=1))
    engine.dispose()
    assert desk.run("doctor", "--json").object["retention"]["manifests"] == 1
    assert "1 manifests are past their time" in desk.run("doctor").out
