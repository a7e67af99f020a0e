"""Publishing put together for tests: real store, real folder, real formats and executors; outages by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.content import documents
from dragoman.content.formats.gettext import GettextCatalogue
from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.content.formats.markdown import MarkdownFormat
from dragoman.content.formats.xcstrings import StringCatalogue
from dragoman.content.sources.folder import FolderSource
from dragoman.families.publication.dry_run import DryRun
from dragoman.families.publication.files import Files
from dragoman.families.publication_step import PublicationStep
from dragoman.flow.publishing.compensation import Restoring
from dragoman.flow.publishing.execution import Executing, Placing
from dragoman.flow.publishing.plans import Planning
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.errors import SourceError
from dragoman.kernel.identity import Chance
from dragoman.kernel.offload import InlineOffload
from dragoman.ledger.acting import Ledger
from dragoman.model.contracts import Executor, Format
from dragoman.model.documents import Text
from dragoman.model.effects import Answer, Outgoing
from dragoman.model.publications import Pace
from dragoman.model.scopes import Workspace
from dragoman.store.acts import compensating
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper
from dragoman.store.transaction import Row
from tests.doubles.databases import opened
from tests.flow.publishing import press_rows

HERE = Workspace("default")
FORMATS: tuple[Format, ...] = (JsonCatalogue(), GettextCatalogue(), MarkdownFormat(), StringCatalogue())


class Killed(BaseException):
    """The process dies here."""


async def _look_away() -> None:
    """Nobody watches."""


@dataclass
class Target:
    """The real executor, watched: counts its calls, and answers or dies as it is told."""

    executor: Executor
    name: str = "files:v1"
    ran: list[Outgoing] = field(default_factory=list)
    before: dict[str, Answer | BaseException] = field(default_factory=dict)
    after: dict[str, Answer | BaseException] = field(default_factory=dict)
    """What comes instead of the executor's own answer, by target, once: without the act, or after it."""
    watch: Callable[[], Awaitable[None]] = _look_away
    """Looks on while the executor is asked for something."""
    meanwhile: dict[str, Callable[[], object]] = field(default_factory=dict)
    """What somebody else does just before the act, by target, once."""

    async def run(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        self.ran.append(outgoing)
        target = str(outgoing.facts["target"])
        await self.watch()
        if target in self.meanwhile:
            self.meanwhile.pop(target)()
        if target in self.before:
            return _come(self.before.pop(target))
        answer = await self.executor.run(outgoing, deadline_seconds)
        return _come(self.after.pop(target)) if target in self.after else answer

    @property
    def order(self) -> list[str]:
        """The targets in the order in which they were asked for."""
        return [str(outgoing.facts["target"]) for outgoing in self.ran]


def _come(what: Answer | BaseException) -> Answer:
    if isinstance(what, BaseException):
        raise what
    return what


class Steps(SystemClock):
    """The machine's clock, whose monotonic side can be made to leap at every look."""

    step_seconds = 0.0
    _leapt = 0.0

    def monotonic(self) -> float:
        self._leapt += self.step_seconds
        return super().monotonic() + self._leapt


class WeatheredSource(FolderSource):
    """The folder, some of whose documents cannot be read now."""

    def __init__(self, root: Path, away: set[str]) -> None:
        super().__init__(root, "{locale}/{path}{ext}", formats=FORMATS)
        self._away = away

    def read(self, ref: str) -> bytes:
        if ref in self._away:
            raise SourceError(f"{ref} cannot be read: the disk is away")
        return super().read(ref)


class Press:
    """One publishing worker over a folder."""

    def __init__(self, database: Database, root: Path, pace: Pace) -> None:
        self.database = database
        self.root = root
        self.away: set[str] = set()
        self.files = Target(Files(Path, InlineOffload()))
        self.clock = Steps()
        self._pace = pace
        self._ordinal = 0
        self.start("host/boot/1/1")

    def start(self, owner: str, database: Any = None) -> None:
        """A worker process of this owner, over the same folder and database, or a `database` that fails."""
        database = database or self.database
        keeper = Keeper(database, self.clock, owner)
        executors: Mapping[str, Executor] = {"files:v1": self.files, "dry-run:v1": DryRun()}
        ledger = Ledger(database, {"publication_step": PublicationStep(executors)})
        self.planning = Planning(database, keeper, InlineOffload(), self._source, FORMATS)
        self.placing = Placing(self._source, FORMATS)
        self.executing = Executing(
            database,
            ledger,
            keeper,
            self.clock,
            InlineOffload(),
            {"forward": self.placing, "backward": Restoring(self._source, FORMATS)},
            self._pace,
        )

    def _source(self, settings: Mapping[str, Any]) -> FolderSource:
        return WeatheredSource(self.root, self.away)

    async def manifest(self, **settings: Any) -> str:
        """A manifest that publishes into the folder."""
        frozen = {"source_locale": "en", "executor": "files:v1", "root": str(self.root), "partial": "auto"}
        return await self.database.run(press_rows.add_manifest, frozen | settings)

    async def settle(
        self, manifest_id: str, document: str, locale: str = "fr", failed: Sequence[str] = ()
    ) -> str:
        """An intent of the document as it stands, settled, all of it translated but the failed fields."""
        self._ordinal += 1
        results = self.results(document, locale, failed)
        return await self.database.run(
            press_rows.settle, manifest_id, self._ordinal, document, locale, results
        )

    def results(
        self, document: str, locale: str = "fr", failed: Sequence[str] = ()
    ) -> dict[str, tuple[Text, Text | None]]:
        """Source and translation of each block: `«fr» ` before every text."""
        data = (self.root / document).read_bytes()
        form = documents.choose_format(FORMATS, document, data)
        read = documents.open_document(form, document, data, "source", "en")
        return {
            block.key: (block.value, None if block.key in failed else _translated(block.value, locale))
            for block in read.blocks
        }

    async def publish(self, manifest_id: str, *intent_ids: str) -> None:
        """Ask for it, plan it, and work until nothing is due."""
        await self.plan(manifest_id, *intent_ids)
        await self.work()

    async def three(self) -> str:
        """A manifest of three catalogues, planned."""
        for name in "abc":
            self.put_catalogue(f"{name}.json", hello=f"Hello {name}")
        manifest = await self.manifest()
        intents = [await self.settle(manifest, f"{name}.json") for name in "abc"]
        await self.plan(manifest, *intents)
        return manifest

    async def plan(self, manifest_id: str, *intent_ids: str) -> None:
        await self.database.run(press_rows.ask, manifest_id, list(intent_ids))
        assert await self.planning.step() == len(intent_ids)

    async def work(self) -> None:
        while await self.executing.step():
            pass

    async def later(self) -> None:
        """Work on, as if what waits had become due."""
        await self.database.run(press_rows.make_due)
        await self.work()

    async def after_the_lease(self, owner: str = "host/boot/2/2") -> None:
        """Another process takes over, once the lease of the last one is over."""
        await self.database.run(press_rows.end_leases)
        self.start(owner)
        await self.work()

    async def rows(self, name: str) -> list[Row]:
        return await self.database.read(press_rows.rows, name)

    async def states(self) -> tuple[list[str], list[str], list[str]]:
        """States of executions, steps and commands."""
        names = ("executions", "steps", "commands")
        found = [[row.state for row in await self.rows(name)] for name in names]
        return found[0], found[1], found[2]

    async def block(self, manifest_id: str) -> dict[str, Any]:
        return await self.database.read(press_rows.block, manifest_id)

    async def revert(self, manifest_id: str) -> list[str]:
        return await self.database.run(compensating.revert, HERE, manifest_id, "mia")

    def put(self, path: str, content: str) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
        return place

    def put_catalogue(self, path: str, **texts: str) -> Path:
        return self.put(path, json.dumps(texts, ensure_ascii=False, indent=2) + "\n")

    def texts(self, path: str) -> dict[str, str]:
        """A catalogue's texts; empty where no file stands."""
        place = self.root / path
        return json.loads(place.read_text()) if place.exists() else {}

    def tree(self) -> dict[str, bytes]:
        """Every file with its bytes."""
        places = sorted(place for place in self.root.rglob("*") if place.is_file())
        return {str(place.relative_to(self.root)): place.read_bytes() for place in places}


def _translated(value: Text, locale: str) -> Text:
    if isinstance(value, str):
        return f"«{locale}» {value}" if any(map(str.isalpha, value)) else value
    return {category: f"«{locale}» {form}" for category, form in value.items()}


@asynccontextmanager
async def press(
    url: str, root: Path, pace: Pace | None = None, chance: Chance | None = None
) -> AsyncIterator[Press]:
    """A publishing worker over a fresh database and an empty folder."""
    root.mkdir(exist_ok=True)
    async with opened(url, chance=chance) as database:
        yield Press(database, root, pace or Pace())
