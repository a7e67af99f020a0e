"""One measurement of a memory's files: `python -m bench.exchange_run make|time …`."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from bench.children import peak_megabytes, tell
from bench.sentences import sentences
from dragoman.content.exchange import csv_rows
from dragoman.content.exchange.tmx import TmxUnit, write_tmx
from dragoman.flow.library.memories import Memories
from dragoman.kernel.offload import InlineOffload
from dragoman.model.memories import Place
from dragoman.model.scopes import Workspace
from tests.doubles.databases import opened

HOME, PLACE = Workspace("home"), Place("docs", "en", "fr")


def make(folder: Path, count: int) -> None:
    """A TMX and a CSV of so many units, and small ones to begin with."""
    units = [TmxUnit(text, text.upper(), "en", "fr") for text in sentences(count)]
    for name, some in (("m", units), ("warm", units[:50])):
        with (folder / f"{name}.tmx").open("wb") as file:
            write_tmx(file, some, "en")
        with (folder / f"{name}.csv").open("wb") as file:
            file.write(csv_rows.row(csv_rows.UNIT_COLUMNS))
            file.writelines(map(csv_rows.unit_row, some))
    tell(bytes=(folder / "m.tmx").stat().st_size)


async def run(url: str, file: Path, count: int) -> None:
    """Take a file in, and write it again; CPU seconds, and the peak of resident memory above the start."""
    kind = file.suffix.removeprefix(".")
    async with opened(url, synchronous="NORMAL") as database:
        memories = Memories(database, InlineOffload())
        with file.with_stem("warm").open("rb") as stream:
            await memories.take_in(HOME, Place("warm", "en", "fr"), stream, kind)
        told: dict[str, float] = {}
        for name, act in (("in", memories.take_in), ("out", memories.give_out)):
            looked: list[int] = []
            before, began = peak_megabytes(), (time.process_time(), time.perf_counter())
            with (file if name == "in" else Path(os.devnull)).open("rb" if name == "in" else "wb") as stream:
                tally = await act(HOME, PLACE, stream, kind, looked.append)
            assert tally.read == looked[-1] >= 0.98 * count, tally
            told[f"{name}_cpu_seconds"] = time.process_time() - began[0]
            told[f"{name}_seconds"] = time.perf_counter() - began[1]
            told[f"{name}_megabytes"] = peak_megabytes() - before
        tell(**told)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        asyncio.run(run(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])))
