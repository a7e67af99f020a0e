"""Real batches: posts with fields of plugins share submissions with files and globals, from any source."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.content.formats.markdown import MarkdownFormat
from dragoman.content.formats.wordpress_post import WordPressPost
from dragoman.content.sources.folder import FolderSource
from dragoman.content.sources.http_source import HttpSource
from dragoman.flow.site.preparation import Preparing
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.limits import ITEMS_PER_SUBMISSION
from dragoman.kernel.offload import InlineOffload
from dragoman.model.contracts import Source
from dragoman.store.database import Database
from tests.conformance.test_sources import TOKEN, reference_server, running, written
from tests.flow.site.stage import Stage

FORMATS = (WordPressPost(), MarkdownFormat(), JsonCatalogue())
PROTECTED = ("kept-keyword", "170000:1", "field_5f2c", "kept-token", "two-columns", "#ff0000")


def post(number: int) -> str:
    """As WordPress gives it for editing, with what SEO plugins and ACF add to it."""
    return json.dumps(
        {
            "id": number,
            "title": {"raw": f"Post {number}"},
            "content": {"raw": f"<!-- wp:paragraph -->\n<p>Words {number}.</p>\n<!-- /wp:paragraph -->"},
            "meta": {
                "_yoast_wpseo_title": f"Search title {number}",
                "_yoast_wpseo_focuskw": "kept-keyword",
                "_edit_lock": "170000:1",
                "_hero": "field_5f2c",
                "session_token": "kept-token",
            },
            "acf": {"hero": f"Welcome {number}", "layout": "two-columns", "colour": "#ff0000"},
        }
    )


DOCUMENTS = {f"posts/{number}.json": post(number) for number in range(30)}
DOCUMENTS |= {f"app/{number}.json": json.dumps({"label": f"Label {number}"}) for number in range(15)}
DOCUMENTS |= {"pages/a.md": "# A page\n\nIts words.\n", "site.json": '{"name": "The site"}'}
STRUCTURED = {"title", "content/p", "meta/_yoast_wpseo_title", "acf/hero"}


@pytest.fixture(params=["files", "http"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Source]]:
    """The same documents, in a folder and behind a server."""
    if request.param == "files":
        written(tmp_path, DOCUMENTS)
        yield lambda: FolderSource(tmp_path, "{locale}/{path}{ext}", None, FORMATS, "en")
        return
    written(tmp_path / "en", DOCUMENTS)
    with running(reference_server().serve(tmp_path, 0, TOKEN)) as url:
        yield lambda: HttpSource(url, lambda: TOKEN, "en", SystemClock())


async def submitted(
    url: str, make: Callable[[], Source], pairs: list[tuple[str, str]]
) -> list[dict[str, Any]]:
    """The submissions that these pairs come to, as an engine gets them."""
    database = await Database.open(url, clock=SystemClock(), chance=SystemChance())
    try:
        site = Stage(database, make())  # type: ignore[arg-type]
        site.preparing = Preparing(
            database, site.keeper, site.clock, SystemChance(), InlineOffload(), lambda _: make(), FORMATS
        )
        admitted = await site.admit(pairs)
        await site.step_all()
        assert await site.counts(admitted.manifest_id) == {"queued": len(pairs)}
        return [json.loads(body) for body in site.engine.bodies]
    finally:
        await database.close()


def test_posts_with_fields_of_plugins_share_submissions_with_files_and_globals(
    sqlite_url: str, source: Callable[[], Source]
) -> None:
    """[M-229, M-230, M-347] each holds two items at least; what protects or configures is in none of them."""
    pairs = [(document, locale) for document in DOCUMENTS for locale in ("de", "fr")]
    bodies = asyncio.run(submitted(sqlite_url, source, pairs))
    assert all(len(body["items"]) >= 2 for body in bodies)
    items = [item for body in bodies for item in body["items"]]
    assert len(items) == len(pairs)
    kinds = [frozenset(item["fields"]) for item in items]
    assert kinds.count(frozenset(STRUCTURED)) == 60
    for body in bodies[:1]:
        fields = {frozenset(item["fields"]) for item in body["items"]}
        assert {frozenset(STRUCTURED), frozenset({"label"})} <= fields, "posts and files in one"
    sent = json.dumps(bodies)
    assert [word for word in PROTECTED if word in sent] == []


def test_only_limits_make_an_item_go_alone(sqlite_url: str, source: Callable[[], Source]) -> None:
    """[M-348] one more than fits is the only single, whatever fields it has."""
    everything = sorted((document, locale) for document in DOCUMENTS for locale in ("de", "fr", "it"))
    pairs = everything[: ITEMS_PER_SUBMISSION + 1]
    bodies = asyncio.run(submitted(sqlite_url, source, pairs))
    assert sorted(len(body["items"]) for body in bodies) == [1, ITEMS_PER_SUBMISSION]
