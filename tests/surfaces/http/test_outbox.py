"""The outbox as an administrator sees it: no texts, no secrets, and a dead event goes again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import sqlalchemy as sa

from dragoman.store.rows import outbox
from dragoman.store.schema import metadata
from dragoman.store.transaction import Tx
from tests.surfaces.http.house import House, served

OUTBOX = "/v1/admin/webhook-outbox"


def add_events(tx: Tx, workspace: str, count: int) -> list[str]:
    """Events of ended jobs, none of which was sent."""
    return [
        outbox.add(
            tx,
            workspace=workspace,
            job_id=tx.new_id(),
            sequence=1,
            event="job.completed",
            url="https://user:hidden@site.example/callbacks?key=hidden",
            secret="sealed-and-secret",
            payload=json.dumps({"items": ["a text of a customer"]}).encode(),
        )
        for _ in range(count)
    ]


def kill(tx: Tx, outbox_id: str) -> None:
    """The event's window is over."""
    table = metadata.tables["outbox"]
    dead = {"state": "dead", "dead_at": tx.now, "next_attempt_at": None}
    tx.touched(sa.update(table).where(table.c.id == outbox_id).values(**dead))


def audit_of(tx: Tx, subject: str) -> list[tuple[str, str]]:
    """(actor, action) of what people did to something."""
    history = metadata.tables["history"]
    rows = tx.all(sa.select(history.c.actor, history.c.action).where(history.c.subject == subject))
    return [(row.actor, row.action) for row in rows]


def test_dead_events_are_listed_without_secrets_and_redriven_once(database_url: str, tmp_path: Path) -> None:
    """[M-247, M-248, M-249]"""

    async def story() -> None:
        async with served(database_url, tmp_path) as house:
            database, client = house.services.database, house.client
            admin = await house.exact_token(["admin"])
            first, second, third = await database.run(add_events, "default", 3)
            await database.run(add_events, "elsewhere", 1)
            await database.run(kill, first)
            listed = await client.get(OUTBOX, headers=admin, params={"state": "dead"})
            assert [item["id"] for item in listed.json()["items"]] == [first]
            everything = await pages(house, admin)
            assert everything == [third, second, first]
            for hidden in ("hidden", "sealed-and-secret", "a text of a customer"):
                assert hidden not in listed.text

            redriven = await client.post(f"{OUTBOX}/{first}/redrive", headers=admin)
            assert (redriven.status_code, redriven.json()) == (202, {"id": first, "state": "pending"})
            again = await client.post(f"{OUTBOX}/{first}/redrive", headers=admin)
            assert again.status_code == 409
            assert await database.read(audit_of, first) == [("ada", "redrive")]

    asyncio.run(story())


async def pages(house: House, admin: dict[str, str]) -> list[str]:
    """The ids of all events, read two a page."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": "2", **({"cursor": cursor} if cursor else {})}
        page = (await house.client.get(OUTBOX, headers=admin, params=params)).json()
        found += [item["id"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            return found


def test_another_workspaces_event_cannot_be_redriven(sqlite_url: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            (theirs,) = await house.services.database.run(add_events, "elsewhere", 1)
            await house.services.database.run(kill, theirs)
            admin = await house.exact_token(["admin"])
            answer = await house.client.post(f"{OUTBOX}/{theirs}/redrive", headers=admin)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")

    asyncio.run(story())
