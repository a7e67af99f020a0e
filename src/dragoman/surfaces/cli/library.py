"""`dragoman memory …` and `dragoman glossary …`: files in and out, figures, and a search."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from dragoman.content import locales
from dragoman.flow.library.glossaries import Glossaries
from dragoman.flow.library.memories import Memories
from dragoman.kernel.errors import CallerError
from dragoman.model.memories import Place, Tally
from dragoman.model.scopes import Workspace
from dragoman.wiring.rounds import opened
from dragoman.wiring.settings import Settings

Library = Literal["memory", "glossary"]

_BOOKS: Mapping[Library, type[Memories | Glossaries]] = {"memory": Memories, "glossary": Glossaries}


class Chosen(NamedTuple):
    """Whose texts a command is about."""

    project: str
    source_locale: str
    target_locale: str

    def place(self, settings: Settings) -> Place:
        """Settings fill what was not said. Raises `LocaleError`, and `CallerError` where locales are one."""
        source = locales.canonical(self.source_locale or settings.source_locale, place="--from")
        target = locales.canonical(self.target_locale, place="--to")
        if source == target:
            raise CallerError(f"{source} is the source locale", "source_is_target", place="--to")
        return Place(project_of(self.project, settings), source, target)


def project_of(named: str, settings: Settings) -> str:
    """The project that a command is about."""
    return named or settings.project or settings.root.name or "default"


async def take_in(settings: Settings, chosen: Chosen, file: Path, library: Library, as_json: bool) -> int:
    """Read a file in."""
    place = chosen.place(settings)
    if not file.is_file():
        raise CallerError(f"no file {file}", "path_not_found", place="FILE")
    async with opened(settings, roles=()) as services:
        books = _BOOKS[library](services.database, services.offload)
        with file.open("rb") as stream, _progress(as_json, "read") as progress:
            tally = await books.take_in(Workspace(settings.workspace), place, stream, _kind(file), progress)
    return _tell(tally, as_json, "{read} read, {kept} new, {known} known before, {refused} failed a check")


async def give_out(settings: Settings, chosen: Chosen, file: Path, library: Library, as_json: bool) -> int:
    """Write a file."""
    place = chosen.place(settings)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    async with opened(settings, roles=()) as services:
        books = _BOOKS[library](services.database, services.offload)
        try:
            with fresh.open("wb") as stream, _progress(as_json, "written") as progress:
                tally = await books.give_out(
                    Workspace(settings.workspace), place, stream, _kind(file), progress
                )
            fresh.replace(file)
        except OSError as error:
            raise CallerError(f"{file} cannot be written: {error.strerror}", place="FILE") from error
        finally:
            fresh.unlink(missing_ok=True)
    return _tell(tally, as_json, "{kept} written, {passed_over} passed over, {refused} cannot be written")


async def stats(settings: Settings, project: str, as_json: bool) -> int:
    """Print figures."""
    async with opened(settings, roles=()) as services:
        memories = Memories(services.database, services.offload)
        found = await memories.stats(Workspace(settings.workspace), project_of(project, settings))
    if as_json:
        print(json.dumps(found))
        return 0
    for row in found["memory"]:
        print(f"{row['source_locale']} → {row['target_locale']}: {row['number']} from {row['origin']}")
    for row in found["terms"]:
        print(f"{row['source_locale']} → {row['target_locale'] or 'all'}: {row['number']} terms")
    return 0


async def search(settings: Settings, chosen: Chosen, text: str, most: int, as_json: bool) -> int:
    """Print what is found."""
    place = chosen.place(settings)
    async with opened(settings, roles=()) as services:
        memories = Memories(services.database, services.offload)
        found = await memories.search(Workspace(settings.workspace), place, text, most)
    if as_json:
        print(json.dumps({"found": [one._asdict() for one in found]}, ensure_ascii=False))
        return 0
    for one in found:
        print(f"{one.score:5.1f}  {one.source}\n       {one.text}  ({one.origin})")
    return 0


def _kind(file: Path) -> str:
    return file.suffix.lower().removeprefix(".")


def _tell(tally: Tally, as_json: bool, words: str) -> int:
    print(json.dumps(asdict(tally)) if as_json else words.format(**asdict(tally)))
    return 0


@contextmanager
def _progress(as_json: bool, done: str) -> Iterator[Callable[[int], None]]:
    """A line that counts, where somebody looks."""
    console = Console(stderr=True)
    if as_json or not console.is_terminal:
        yield lambda _: None
        return
    columns: tuple[Any, ...] = (SpinnerColumn(), TextColumn("{task.completed:,}"), TextColumn(done))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task(done, total=None)
        yield lambda count: bar.update(task, completed=count)
