"""`POST …/manifests/estimate`: a price for the body that admission would take; nobody is called."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from dragoman.store.schema import metadata
from tests.surfaces.http.house import MANIFESTS, served

PAIRS = [{"document": "a.json", "locale": locale} for locale in ("fr", "de")]


def test_a_request_is_priced_by_locale_and_nothing_is_written(sqlite_url: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            (tmp_path / "a.json").write_text(json.dumps({"k": "Hello", "n": "42"}))
            headers = await house.token()
            before = await house.count(*metadata.tables)
            answer = await house.client.post(f"{MANIFESTS}/estimate", json={"pairs": PAIRS}, headers=headers)
            assert answer.status_code == 200, answer.text
            told = answer.json()
            assert [one["locale"] for one in told["locales"]] == ["de", "fr"]
            assert (told["total"]["to_translate"], told["total"]["passed_through"]) == (2, 2)
            assert await house.count(*metadata.tables) == before
            for wrong, code in (
                ({"pairs": [PAIRS[0], PAIRS[0]]}, "duplicate_pair"),
                ({"pairs": PAIRS, "budget": {"tokens": 0}}, "invalid_request"),
                ({"pairs": PAIRS, "provider": "nobody"}, "provider_unknown"),
            ):
                answer = await house.client.post(f"{MANIFESTS}/estimate", json=wrong, headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text

    asyncio.run(story())


def test_a_budget_is_admitted_with_the_request_and_nothing_is_bounded_to_nothing(
    sqlite_url: str, tmp_path: Path
) -> None:
    """0 is 422; absent and null are unlimited; what was said stands in the frozen settings."""

    async def story() -> None:
        async with served(sqlite_url, tmp_path) as house:
            await house.see_worker()
            headers = await house.token()
            for budget in ({"usd": 0}, {"tokens": -1}, {"euro": 1}, 5):
                body = {"request_id": "r", "pairs": PAIRS, "budget": budget}
                answer = await house.client.post(MANIFESTS, json=body, headers=headers)
                assert (answer.status_code, answer.json()["place"].split(".")[0]) == (422, "budget")
            await house.admit(headers, budget={"usd": 2.5})
            await house.admit(headers, budget=None)
            told = [json.loads(row.settings).get("budget") for row in await house.rows("manifests")]
            assert sorted(map(str, told)) == ["None", "{'usd': 2.5}"]

    asyncio.run(story())
