"""Admission is closed: nothing new is taken, and everything that was taken goes on to its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dragoman.wiring.rounds import ROLES, loops
from tests.surfaces.http.house import MANIFESTS, PAIRS, House, served
from tests.surfaces.http.test_callbacks import CALLBACKS, signed


async def until_completed(house: House, token: dict[str, str], manifest_id: str) -> None:
    """Wait until all pairs are completed."""
    while True:
        status = (await house.client.get(f"{MANIFESTS}/{manifest_id}", headers=token)).json()
        if status["counts"]["completed"] == status["counts"]["total"] > 0:
            return
        await asyncio.sleep(0.02)


def test_what_was_admitted_goes_on_while_admission_is_closed(database_url: str, tmp_path: Path) -> None:
    """[M-321, M-323] every loop runs that runs else; status, results, cancel and events are answered."""
    (tmp_path / "a.json").write_text('{"hello": "Hello"}')

    async def ask() -> tuple[dict[str, str], str, str, set[str]]:
        async with served(database_url, tmp_path) as house:
            await house.see_worker()
            token = await house.token()
            names = {loop.name for loop in loops(house.services, ROLES)}
            return token, await house.admit(token), await house.admit(token, canary_limit=1), names

    async def go_on(token: dict[str, str], manifest_id: str, canary_id: str, names: set[str]) -> None:
        async with served(database_url, tmp_path, ROLES, admission="closed") as house:
            assert {loop.name for loop in loops(house.services, ROLES)} == names >= {
                "enumerate", "prepare", "submit", "translate", "deliver", "reconcile", "retain", "sweep",
            }  # fmt: skip
            await until_completed(house, token, manifest_id)
            for path in (MANIFESTS, f"{MANIFESTS}/{canary_id}/promote"):
                refused = await house.client.post(
                    path, json={"request_id": "x", "pairs": PAIRS}, headers=token
                )
                assert (refused.status_code, refused.json()["code"]) == (503, "admission_closed")
            results = await house.client.get(f"{MANIFESTS}/{manifest_id}/results", headers=token)
            assert len(results.json()["items"]) == 2
            retried = await house.client.post(f"{MANIFESTS}/{manifest_id}/retry", headers=token)
            assert (retried.status_code, retried.json()["code"]) == (409, "nothing_to_retry")
            canceled = await house.client.post(f"{MANIFESTS}/{canary_id}/cancel", headers=token)
            assert canceled.status_code == 202
            event = (await house.rows("outbox"))[0]
            body = bytes(event.payload)
            again = await house.client.post(CALLBACKS, content=body, headers=signed(house, body, event.id))
            assert again.status_code == 200
            assert (await house.client.get("/readyz")).status_code == 200

    asyncio.run(go_on(*asyncio.run(ask())))
