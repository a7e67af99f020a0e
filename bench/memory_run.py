"""One measurement of a memory: `python -m bench.memory_run URL SEGMENTS`."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time
from collections.abc import Sequence

from rapidfuzz import fuzz, process

from bench.children import tell
from bench.sentences import queries, sentences
from dragoman.content import likeness, sameness
from dragoman.flow.library.memories import Memories
from dragoman.kernel.limits import FUZZY_PAGE, FUZZY_SCORE_MIN
from dragoman.kernel.offload import InlineOffload
from dragoman.model.memories import Place, Query, Remembered, Shelf
from dragoman.model.scopes import Workspace
from dragoman.store.acts import remembering
from dragoman.store.database import Database
from dragoman.store.transaction import Tx
from tests.doubles.databases import opened

HOME, PLACE = Workspace("home"), Place("docs", "en", "fr")
_BATCH, _BATCHES, _ROUNDS = 50, 1_000, 3
_QUERIES, _WARM = 400, 30


async def run(url: str, count: int) -> None:
    """Fill, look up, search."""
    listed = sentences(count + count // 20)
    known, new = listed[:count], listed[count:]
    async with opened(url, synchronous="NORMAL") as database:
        await _fill(database, known)
        hashes = [sameness.source_hash(text) for text in known]
        exact, exact_cpu, reads = await _exact(database, hashes)
        began, used = time.perf_counter(), time.process_time()
        await Memories(database, InlineOffload()).index(HOME, Shelf("docs", "en"))
        indexed, indexed_cpu = time.perf_counter() - began, time.process_time() - used
        found = await _fuzzy(database, known, queries(known, new, _QUERIES + _WARM))
        sqlite = url.startswith("sqlite")
        raw, raw_cpu = _raw(url.removeprefix("sqlite:///"), hashes) if sqlite else (0.0, 0.0)
    tell(
        exact_per_second=exact,
        exact_per_cpu_second=exact_cpu,
        reads_per_second=reads,
        raw_per_second=raw,
        raw_per_cpu_second=raw_cpu,
        index_seconds=indexed,
        index_cpu_seconds=indexed_cpu,
        **found,
    )


async def _fill(database: Database, known: Sequence[str]) -> None:
    context = sameness.context_hash("none", "", "")
    for start in range(0, len(known), 1_000):
        page = [
            Remembered(sameness.source_hash(text), context, text, text.upper(), "none", "imported")
            for text in known[start : start + 1_000]
        ]
        await database.run(remembering.take_in, HOME, PLACE, page)
    await database.run(remembering.take_stock, HOME)  # as an import ends


def _batches(hashes: Sequence[str]) -> list[Sequence[str]]:
    mixed = sorted(hashes, key=lambda one: one[::-1])  # in no order that the table has
    starts = range(0, _BATCH * _BATCHES, _BATCH)
    return [sorted(mixed[start % len(mixed) : start % len(mixed) + _BATCH]) for start in starts]


async def _exact(database: Database, hashes: Sequence[str]) -> tuple[float, float, float]:
    """Look-ups a second and a CPU second, all batches in one read; and a second, one read for each."""
    batches = _batches(hashes)
    asked = sum(map(len, batches))
    best = best_cpu = 0.0
    for _ in range(_ROUNDS):
        began, used = time.perf_counter(), time.process_time()
        assert await database.read(_look_all, batches) == asked
        best = max(best, asked / (time.perf_counter() - began))
        best_cpu = max(best_cpu, asked / (time.process_time() - used))
    began = time.perf_counter()
    for batch in batches:
        await database.read(remembering.recall, HOME, PLACE, batch)
    return best, best_cpu, asked / (time.perf_counter() - began)


def _look_all(tx: Tx, batches: Sequence[Sequence[str]]) -> int:
    return sum(len(remembering.recall(tx, HOME, PLACE, batch)) for batch in batches)


def _raw(path: str, hashes: Sequence[str]) -> tuple[float, float]:
    """The same rows by sqlite3 alone, tuples and nothing else."""
    connection = sqlite3.connect(path)
    marks = ",".join("?" * _BATCH)
    sql = (
        "SELECT source_hash, context_hash, text, plural, origin, basis FROM memory WHERE workspace = ? "
        f"AND project = ? AND source_locale = ? AND target_locale = ? AND source_hash IN ({marks})"
    )
    batches = _batches(hashes)
    best = best_cpu = 0.0
    for _ in range(_ROUNDS):
        began, used = time.perf_counter(), time.process_time()
        for batch in batches:
            connection.execute(sql, ("home", "docs", "en", "fr", *batch)).fetchall()
        best = max(best, _BATCH * _BATCHES / (time.perf_counter() - began))
        best_cpu = max(best_cpu, _BATCH * _BATCHES / (time.process_time() - used))
    return best, best_cpu


async def _fuzzy(database: Database, known: Sequence[str], asked: list[str]) -> dict[str, float]:
    """Each query here and by rapidfuzz, one after the other, so that both meet the same weather; and all of
    them again in pages, as a job asks."""
    ours, ours_cpu, brute = [], [], []
    hits = both = 0
    for number, text in enumerate(asked):
        began, used = time.perf_counter(), time.process_time()
        found = await database.read(remembering.look_alike, HOME, PLACE.shelf, [_query(0, text)])
        best = likeness.closest(text, found[0], 1)
        took, took_cpu = time.perf_counter() - began, time.process_time() - used
        used = time.process_time()
        other = process.extractOne(text, known, scorer=fuzz.ratio, score_cutoff=FUZZY_SCORE_MIN)
        if number >= _WARM:
            ours.append(took)
            ours_cpu.append(took_cpu)
            brute.append(time.process_time() - used)
            hits += other is not None
            both += other is not None and bool(best)
    return {
        "fuzzy_p50_ms": _at(ours, 0.5),
        "fuzzy_p95_ms": _at(ours, 0.95),
        "fuzzy_p50_cpu_ms": _at(ours_cpu, 0.5),
        "fuzzy_p95_cpu_ms": _at(ours_cpu, 0.95),
        "fuzzy_page_cpu_ms": await _in_pages(database, asked),
        "brute_p50_cpu_ms": _at(brute, 0.5),
        "recall": both / hits if hits else 1.0,
    }


async def _in_pages(database: Database, asked: list[str]) -> float:
    """CPU milliseconds a query, where a page of them is one look."""
    used = time.process_time()
    for start in range(0, len(asked), FUZZY_PAGE):
        page = asked[start : start + FUZZY_PAGE]
        queries = [_query(number, text) for number, text in enumerate(page)]
        found = await database.read(remembering.look_alike, HOME, PLACE.shelf, queries)
        for number, text in enumerate(page):
            likeness.closest(text, found[number], 1)
    return (time.process_time() - used) / len(asked) * 1e3


def _query(key: int, text: str) -> Query:
    return Query(key, tuple(likeness.asked_grams(text)), *likeness.band(len(text)))


def _at(seconds: Sequence[float], share: float) -> float:
    return sorted(seconds)[int(len(seconds) * share)] * 1e3


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2])))
