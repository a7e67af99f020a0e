"""What tests of scopes share: a site with collections, and how it is asked for and walked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.kernel.clock import SystemClock
from dragoman.model.intents import Admitted
from tests.flow.site.stage import CALLER, Stage, catalogue


def site_of(posts: int = 7, pages: int = 3) -> dict[str, bytes]:
    """Two collections and a global."""
    documents = {f"posts/{number:04}.json": catalogue(text=f"Post {number}") for number in range(posts)}
    documents |= {f"pages/{number:04}.json": catalogue(text=f"Page {number}") for number in range(pages)}
    return {**documents, "site.json": catalogue(name="The site")}


async def admit(site: Stage, request_id: str = "r-1", canary: int = 0, **scope: Any) -> Admitted:
    asked: dict[str, Any] = {"request_id": request_id, "project": "docs"}
    asked["scope"] = {"locales": ["de", "fr"], **scope}
    if canary:
        asked["canary_limit"] = canary
    return await site.admission.admit(CALLER, asked)


async def enumerate_all(site: Stage) -> None:
    while await site.enumeration.step():
        pass


def expected(documents: Mapping[str, bytes], *prefixes: str) -> set[tuple[str, str]]:
    named = [ref for ref in documents if ref.startswith(prefixes)]
    return {(ref, locale) for ref in named for locale in ("de", "fr")}


class SlowClock(SystemClock):
    """Every look at it is so many seconds later."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds, self.at = seconds, 0.0

    def monotonic(self) -> float:
        self.at += self.seconds
        return self.at
