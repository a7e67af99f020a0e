"""A small request does not wait behind a large one: each step of the site goes round what has work."""

from __future__ import annotations

import asyncio

from tests.flow.site.stage import Stage, catalogue, stage

LOCALES = ("fr", "de", "es", "it", "nl", "pl", "pt", "sv", "da", "fi")
DOCUMENTS = {f"d{n}.json": catalogue(title=f"Title {n}") for n in range(200)}
LARGE = [(name, locale) for name in DOCUMENTS for locale in LOCALES]
SMALL = [(f"d{n}.json", "cs") for n in range(10)]


async def _round(site: Stage) -> None:
    """Each step once, as busy workers do side by side."""
    await site.enumeration.step()
    await site.preparing.step()
    await site.submitting.step()


def _is_submitted(site: Stage) -> bool:
    return any(item["targetLang"] == "cs" for body in site.engine.submissions() for item in body["items"])


def test_ten_intents_start_within_a_round_behind_two_thousand(database_url: str) -> None:
    """They are at the engine after one round behind another's two thousand, and those go on meanwhile."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS, prepare_per_step=50, submit_per_step=1) as site:
            large = await site.admit(LARGE, "large")
            for _ in range(4):
                await _round(site)
            await site.admit(SMALL, "small")
            rounds = 0
            while not _is_submitted(site):
                await _round(site)
                rounds += 1
                assert rounds < 60
            assert rounds <= 3  # one of the large one's at each of the three steps, at most
            counts = await site.counts(large.manifest_id)
            assert counts["preparing"] > len(LARGE) // 2

    asyncio.run(play())
