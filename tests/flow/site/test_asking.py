"""What a request is, and what its source is asked before it is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import pytest

from dragoman.flow.site.admission import Admission, Caller
from dragoman.kernel.errors import CallerError, SourceError
from dragoman.kernel.offload import InlineOffload
from dragoman.store.database import Database
from tests.doubles.engines import event
from tests.doubles.sources import MemorySource
from tests.flow.site.scoped import site_of
from tests.flow.site.stage import CALLER, catalogue, stage
from tests.simulation.virtual import VirtualLoop

P = ParamSpec("P")
T = TypeVar("T")
DOCUMENTS = {"a.json": catalogue(one="One"), "posts/b.json": catalogue(two="Two")}
PAIRS = {"pairs": [{"document": "a.json", "locale": "de"}]}
SCOPE: dict[str, Any] = {"scope": {"collections": ["posts"], "locales": ["de"]}}


class DeafOffload(InlineOffload):
    """Works what is asked of us; what is asked of a source (which takes no arguments) is never answered."""

    async def call(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if not args:
            await asyncio.Event().wait()
        return fn(*args, **kwargs)


@pytest.mark.parametrize("asked", [PAIRS, SCOPE])
def test_a_source_has_two_seconds_to_answer_a_request(asked: Mapping[str, Any]) -> None:
    """[M-108] virtual ones; the database, which is none, is never come to."""
    none = cast(Database, object())

    async def wake() -> None:
        """Nobody is there."""

    async def play() -> float:
        admission = Admission(
            none, lambda *_: {"source_locale": "en"}, lambda _: MemorySource({}), wake, offload=DeafOffload()
        )
        with pytest.raises(SourceError, match="2 seconds") as silent:
            await admission.admit(CALLER, {"request_id": "r-1", **asked})
        assert silent.value.code == "source_unavailable"
        return asyncio.get_running_loop().time()

    loop = VirtualLoop()
    try:
        assert loop.run_until_complete(play()) == 2
    finally:
        loop.close()


def test_without_the_sources_answer_about_rights_nothing_is_durable(sqlite_url: str) -> None:
    """[M-108]"""

    async def play() -> None:
        async with stage(sqlite_url, DOCUMENTS) as site:

            def silent(actor: str, refs: Sequence[str]) -> Mapping[str, bool]:
                raise SourceError("no answer")

            site.source.can_edit = silent  # type: ignore[method-assign]
            with pytest.raises(SourceError):
                await site.admission.admit(CALLER, {"request_id": "r-1", **PAIRS})
            assert await site.enumeration.step() == 0

    asyncio.run(play())


def test_whatever_a_caller_says_is_part_of_its_request(sqlite_url: str) -> None:
    """[M-113, M-119] the same id with anything else beside it is a conflict; with the same it is the same."""

    async def play() -> None:
        async with stage(sqlite_url, {**DOCUMENTS, **site_of(1, 1)}) as site:
            for number, asked in enumerate((PAIRS, SCOPE)):
                request = {"request_id": f"r-{number}", "project": "docs", "mode": "missing", **asked}
                first = await site.admission.admit(CALLER, request)
                spelled = {**request, "publish": "auto", "partial": "auto"}
                assert (await site.admission.admit(CALLER, spelled)).manifest_id == first.manifest_id
                other = {"scope": {**SCOPE["scope"], "collections": ["pages"]}} if number else SCOPE
                changes: tuple[dict[str, Any], ...] = (
                    {"project": "app"}, {"mode": "all"}, {"canary_limit": 1}, {"tone": "formal"},
                    {"provider": "pseudo:wide"}, {"publish": "none"}, {"budget": {"usd": 1}},
                )  # fmt: skip
                for change in changes:
                    with pytest.raises(CallerError) as conflict:
                        await site.admission.admit(CALLER, {**request, **change})
                    assert conflict.value.code == "request_id_conflict", change
                kept = {name: value for name, value in request.items() if name not in ("pairs", "scope")}
                with pytest.raises(CallerError) as conflict:
                    await site.admission.admit(CALLER, {**kept, **other})
                assert conflict.value.code == "request_id_conflict"

    asyncio.run(play())


def test_a_request_id_is_its_actors_and_its_workspaces(database_url: str) -> None:
    """[M-117, M-146]"""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            callers = [CALLER, Caller("default", "noa"), Caller("another", "mia")]
            made = [await site.admission.admit(who, {"request_id": "r-1", **PAIRS}) for who in callers]
            assert len({one.manifest_id for one in made}) == 3
            again = [await site.admission.admit(who, {"request_id": "r-1", **PAIRS}) for who in callers]
            assert [one.manifest_id for one in again] == [one.manifest_id for one in made]

    asyncio.run(play())


def test_rights_are_those_of_who_asked_and_of_who_looks(sqlite_url: str) -> None:
    """[M-109, M-126, M-134, M-307] at admission, before a source is read, at a retry, of each failure."""

    async def play() -> None:
        async with stage(sqlite_url, DOCUMENTS) as site:
            asked: list[str] = []
            rights = site.source.can_edit

            def seen(actor: str, refs: Sequence[str]) -> Mapping[str, bool]:
                asked.append(actor)
                return rights(actor, refs)

            site.source.can_edit = seen  # type: ignore[method-assign]
            manifest = (await site.admit([("a.json", "de")])).manifest_id
            assert asked == ["mia"]
            await site.step_all()
            assert asked == ["mia", "mia"]
            [body] = site.engine.submissions()
            await site.deliver(event(body, "job-1", fail={body["items"][0]["ref"]: "checks_failed"}))
            await site.views.failures("default", manifest, reader="noa")
            await site.steering.retry("default", manifest, "mia")
            assert asked == ["mia", "mia", "noa", "mia"]

    asyncio.run(play())
