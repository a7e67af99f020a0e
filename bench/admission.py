"""How long a client waits until a request for many pairs is durable, over HTTP and in one process.

One client at a time. The peer is the minimal server of `bench.admission_server`, on the same database.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp

from bench.children import helper, resident_megabytes
from bench.measures import Spread, Table, ratio
from bench.places import folder, fresh
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.offload import ThreadOffload
from dragoman.store.database import Database
from dragoman.wiring.services import assemble
from dragoman.wiring.settings import load

_LOCALES = ("de", "fr", "pt-BR", "ja", "he")
_POSTS = {1_000: 40, 100_000: 3}
"""Pairs a request → requests a run."""
_DATABASES = ("sqlite", "postgresql")


def bench(runs: int, scale: float) -> list[Table]:
    """Medians of every run, ratios run by run."""
    return [_over_http(runs, scale), _in_process(runs, scale)]


def request(pairs: int, request_id: str) -> dict[str, Any]:
    """A request for so many pairs."""
    documents = range(pairs // len(_LOCALES))
    asked = [
        {"document": f"guide/section-{number:05d}/é.md", "locale": locale}
        for number in documents
        for locale in _LOCALES
    ]
    return {"request_id": request_id, "project": "bench", "pairs": asked}


def _over_http(runs: int, scale: float) -> Table:
    rows = []
    for kind in _DATABASES:
        for pairs, posts in _POSTS.items():
            taken: dict[str, list[float]] = {"minimal": [], "ours": []}
            grown: dict[str, list[float]] = {"minimal": [], "ours": []}
            for _ in range(runs):
                for server in taken:
                    seconds, megabytes = _posted(server, kind, pairs, max(3, round(posts * scale)))
                    taken[server].append(seconds * 1e3)
                    grown[server].append(megabytes)
            spread = {name: Spread(tuple(values)) for name, values in taken.items()}
            for name, shown in (("minimal", "FastAPI + rfc8785, one row"), ("ours", "ours")):
                relative = ratio(spread[name], spread["minimal"])
                rows.append([shown, kind, f"{pairs:,}", spread[name], relative, Spread(tuple(grown[name]))])
    heads = ["server", "database", "pairs", "median ms a request", "× minimal", "MB more"]
    note = "`MB more` is the server's resident memory after the requests less that after one small one."
    return Table("Admission over HTTP, one client", heads, rows, note)


def _posted(server: str, kind: str, pairs: int, posts: int) -> tuple[float, float]:
    """Median seconds of a request, and by how much the server grew."""
    with fresh(kind) as url, helper("admission_server", server, url) as said:
        address, token, pid = said.split()
        return asyncio.run(_post(address, token, int(pid), pairs, posts))


async def _post(address: str, token: str, pid: int, pairs: int, posts: int) -> tuple[float, float]:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    async with aiohttp.ClientSession(headers=headers) as session:

        async def post(size: int, name: str) -> float:
            body = json.dumps(request(size, name)).encode()
            began = time.perf_counter()
            async with session.post(address, data=body) as answer:
                text = await answer.text()
            assert answer.status == 202, text
            return time.perf_counter() - began

        for number in range(3):
            await post(len(_LOCALES), f"warm-{number}")
        before = resident_megabytes(pid)
        taken = [await post(pairs, f"r-{number}") for number in range(posts)]
        return statistics.median(taken), resident_megabytes(pid) - before


def _in_process(runs: int, scale: float) -> Table:
    rows = []
    for kind in _DATABASES:
        for pairs, posts in _POSTS.items():
            taken = []
            for _ in range(runs):
                with folder() as place, fresh(kind) as url:
                    taken.append(
                        asyncio.run(_admitted(place, url, pairs, max(3, round(posts * scale)))) * 1e3
                    )
            rows.append([kind, f"{pairs:,}", Spread(tuple(taken))])
    return Table("Admission in one process", ["database", "pairs", "median ms"], rows)


async def _admitted(place: Path, url: str, pairs: int, posts: int) -> float:
    clock, chance = SystemClock(), SystemChance()
    database = await Database.open(url, clock=clock, chance=chance)
    services = assemble(load(place, database_url=url), database, clock, chance, ThreadOffload())
    caller = services.caller("bench")
    taken = []
    for asked in _requests(pairs, posts):
        began = time.perf_counter()
        await services.admission.admit(caller, asked)
        taken.append(time.perf_counter() - began)
    await services.close()
    return statistics.median(taken)


def _requests(pairs: int, posts: int) -> Iterator[dict[str, Any]]:
    return (request(pairs, f"r-{number}") for number in range(posts))
