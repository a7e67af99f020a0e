"""One suite for every source: it says what it has, lists it exactly, and reads what stands there now.

The source `http` is held to it in front of the reference server in `examples/`, and then to the faults that a
server of its contract can have.
"""

from __future__ import annotations

import importlib.util
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.content.sources.folder import FolderSource
from dragoman.content.sources.http_source import HttpSource
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.errors import CallerError, DragomanError, SourceError
from dragoman.kernel.identity import sha256
from dragoman.model.contracts import Source

MEMBERS = ("files", "http")
TOKEN = "a token of the conformance suite"
_SERVER = Path(__file__).parents[2] / "examples" / "source_server.py"


def reference_server() -> Any:
    """The module in `examples/`."""
    spec = importlib.util.spec_from_file_location("source_server", _SERVER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[str]:
    """A server at work in a thread; its base URL."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def written(folder: Path, documents: Mapping[str, str]) -> None:
    for name, text in documents.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")


class Stand:
    """A source over documents that a test may write and take away, by reference."""

    def __init__(self, source: Callable[[], Source], folder: Path) -> None:
        self._make = source
        self.folder = folder

    @property
    def source(self) -> Source:
        """A fresh one, as every step gets."""
        return self._make()

    def write(self, **documents: str) -> None:
        written(self.folder, {name.replace("__", "/") + ".json": text for name, text in documents.items()})


@pytest.fixture(params=MEMBERS)
def stand(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stand]:
    """Each member over the same documents."""
    if request.param == "files":
        formats = [JsonCatalogue()]
        yield Stand(lambda: FolderSource(tmp_path, formats=formats, source_locale="en"), tmp_path)
        return
    folder = tmp_path / "en"
    folder.mkdir()
    with running(reference_server().serve(tmp_path, 0, TOKEN)) as url:
        yield Stand(lambda: HttpSource(url, lambda: TOKEN, "en", SystemClock()), folder)


def walked(source: Source, collection: str, limit: int, drafts: bool = True) -> list[str]:
    """A collection page by page."""
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = source.list(collection, cursor, limit, drafts)
        assert len(page.documents) <= limit
        found += page.documents
        cursor = page.next
    return found


def test_it_says_what_it_has(stand: Stand) -> None:
    """[C-030] every collection that it names can be walked, another one is refused by name."""
    stand.write(posts__a='{"a": "A"}', pages__b='{"b": "B"}')
    contents = stand.source.contents()
    assert {"posts", "pages"} <= set(contents.collections)
    for name in contents.collections:
        walked(stand.source, name, 10)
    with pytest.raises(CallerError) as refused:
        stand.source.list("psots", "", 10, True)
    assert refused.value.code == "unsupported_collection"


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_a_collection_is_listed_exactly_whatever_the_page(stand: Stand, limit: int) -> None:
    """[C-035, C-040, C-042, C-044] no document twice, none left out, in one order."""
    stand.write(**{f"posts__{number:02}": '{"a": "A"}' for number in range(7)}, pages__x='{"b": "B"}')
    assert walked(stand.source, "posts", limit) == [f"posts/{number:02}.json" for number in range(7)]


def test_what_comes_and_goes_between_two_pages_moves_no_other(stand: Stand) -> None:
    """[C-035] pages go by key: a document behind the cursor neither hides nor doubles one before it."""
    stand.write(**{f"posts__{number:02}": '{"a": "A"}' for number in range(0, 10, 2)})
    first = stand.source.list("posts", "", 2, True)
    assert first.next is not None
    stand.write(posts__01='{"a": "A"}')
    (stand.folder / first.documents[1]).unlink()
    rest: list[str] = []
    cursor: str | None = first.next
    while cursor is not None:
        page = stand.source.list("posts", cursor, 2, True)
        rest, cursor = [*rest, *page.documents], page.next
    assert rest == ["posts/04.json", "posts/06.json", "posts/08.json"]


def test_every_reference_listed_can_be_read_and_says_its_collection(stand: Stand) -> None:
    """[C-040, C-051, C-079]"""
    stand.write(posts__a='{"a": "A"}', posts__b='{"b": "Bé"}')
    source = stand.source
    for ref in walked(source, "posts", 10):
        assert source.collection_of(ref) == "posts"
        assert source.exists([ref]) == {ref: True}
        assert source.read(ref) == (stand.folder / ref).read_bytes()
        assert source.fingerprint(ref) == sha256(source.read(ref))


def test_what_is_not_there_is_said_so(stand: Stand) -> None:
    """[C-049, C-101] by `exists`, and by name when it is read."""
    stand.write(posts__a='{"a": "A"}')
    source = stand.source
    assert source.exists(["posts/a.json", "posts/gone.json"]) == {
        "posts/a.json": True,
        "posts/gone.json": False,
    }
    for ask in (source.read, source.fingerprint):
        with pytest.raises(CallerError) as missing:
            ask("posts/gone.json")
        assert missing.value.code == "document_not_found"
    for never in ("posts/" + "x" * 500 + ".json", "posts/\ud800.json", "posts", "posts/"):
        assert source.exists([never]) == {never: False}
    for outside in ("../secret.json", "posts/../../secret.json", "/etc/hosts"):
        with pytest.raises(DragomanError):
            source.read(outside)


def test_a_target_is_what_stands_there_and_nothing_else(stand: Stand) -> None:
    """[C-047] no fallback to another locale; two pairs never share a path."""
    stand.write(posts__a='{"a": "A"}', posts__b='{"b": "B"}')
    source = stand.source
    assert source.read_target("posts/a.json", "fr") is None
    paths = {source.target_path(f"posts/{name}.json", locale) for name in "ab" for locale in ("fr", "de")}
    assert len(paths) == 4


def test_it_reads_what_stands_there_now(stand: Stand) -> None:
    """[M-096] a fingerprint moves with the bytes."""
    stand.write(posts__a='{"a": "A"}')
    before = stand.source.fingerprint("posts/a.json")
    stand.write(posts__a='{"a": "B"}')
    assert stand.source.fingerprint("posts/a.json") != before


def test_rights_are_answered_for_every_document_asked(stand: Stand) -> None:
    """[M-109] also beyond one page of questions."""
    stand.write(posts__a='{"a": "A"}')
    refs = [f"posts/{number}.json" for number in range(250)]
    assert stand.source.can_edit("mia", refs) == dict.fromkeys(refs, True)
    assert set(stand.source.exists([*refs, "posts/a.json"])) == {*refs, "posts/a.json"}


def test_globs_name_collections_of_files(tmp_path: Path) -> None:
    """[C-040] `**` crosses folders, `*` does not; a document belongs to the first that takes it."""
    written(tmp_path, dict.fromkeys(("docs/a.json", "docs/deep/b.json", "app.json"), '{"a": "A"}'))
    globs = {"guides": ["docs/**/*.json"], "top": ["*.json"], "flat": ["docs/?.json"]}
    source = FolderSource(tmp_path, formats=[JsonCatalogue()], source_locale="en", collections=globs)
    assert source.contents().collections == ("guides", "top", "flat", "docs", "files")
    assert walked(source, "guides", 1) == ["docs/a.json", "docs/deep/b.json"]
    assert walked(source, "top", 9) == ["app.json"]
    assert walked(source, "flat", 9) == ["docs/a.json"]
    assert walked(source, "files", 9) == ["app.json", "docs/a.json", "docs/deep/b.json"]
    assert [source.collection_of(ref) for ref in ("docs/a.json", "app.json", "x/y.json", "z.md")] == [
        "guides", "top", "x", "files",
    ]  # fmt: skip


def test_translations_are_no_sources_of_a_listing(tmp_path: Path) -> None:
    """[C-040] what we wrote is not met as a source of the next walk."""
    written(tmp_path, dict.fromkeys(("docs/a.json", "docs/a.fr.json", "i18n/en.json"), '{"a": "A"}'))
    source = FolderSource(tmp_path, formats=[JsonCatalogue()], source_locale="en")
    assert walked(source, "files", 9) == ["docs/a.json", "i18n/en.json"]
    target = source.target_path("i18n/en.json", "de")
    assert target == "i18n/de.json"
    written(tmp_path, {target: '{"a": "Ä"}'})
    assert walked(FolderSource(tmp_path, formats=[JsonCatalogue()], source_locale="en"), "files", 9) == [
        "docs/a.json",
        "i18n/en.json",
    ]


def test_the_reference_server_tells_drafts_globals_and_rights(tmp_path: Path) -> None:
    """[C-041, C-054, M-307] as its module says, and behind a token."""
    written(
        tmp_path,
        {
            "en/posts/a.json": "{}", "en/posts/draft-b.json": "{}", "en/site.json": "{}",
            "fr/posts/a.json": '{"a": "Ah"}', "rights.json": '{"mia": ["posts"]}',
        },
    )  # fmt: skip
    with running(reference_server().serve(tmp_path, 0, TOKEN)) as url:
        source = HttpSource(url, lambda: TOKEN, "en", SystemClock())
        assert source.contents() == (("posts",), ("site.json",), True)
        assert walked(source, "posts", 9) == ["posts/a.json", "posts/draft-b.json"]
        assert walked(source, "posts", 9, drafts=False) == ["posts/a.json"]
        assert source.can_edit("mia", ["posts/a.json", "site.json"]) == {
            "posts/a.json": True,
            "site.json": False,
        }
        assert source.collection_of("site.json") == "site.json"
        assert source.read_target("posts/a.json", "fr") == b'{"a": "Ah"}'
        stranger = HttpSource(url, lambda: "another", "en", SystemClock())
        with pytest.raises(SourceError, match="does not know our token"):
            stranger.contents()


Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def scripted(answer: Callable[[str, str], Answer]) -> Iterator[HttpSource]:
    """The source in front of a server that answers as a function of method and path says."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, body = answer(self.command, self.path)
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_HEAD = _answer  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as url:
        yield HttpSource(url, lambda: "", "en", SystemClock(), call_seconds=5)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((500, {}, b"oops"), "status 500"),
        ((403, {}, b""), "refuses our token"),
        ((429, {"Retry-After": "9"}, b""), "asks to slow down"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), "not followed"),
        ((200, {}, b"<html>"), "it is no JSON"),
        ((200, {}, b"[" * 100_000), "it is no JSON"),
        ((200, {}, b"[1]"), "it is no object"),
        ((200, {}, b'{"documents": {}}'), "documents is no list"),
        ((200, {}, b'{"documents": [1, 2, 3]}'), "documents is no list of at most 2"),
        ((200, {}, b'{"documents": [], "next": 7}'), "next is neither"),
        ((200, {}, b'{"documents": [{"id": 7}]}'), "an id is no text"),
        ((200, {}, b'{"documents": [{"id": "a\\u0000b"}]}'), "an id is no text"),
        ((200, {"Content-Length": "90"}, b"{}"), "cannot be asked"),
        ((0, {}, b""), "cannot be asked"),
    ],
)
def test_a_server_that_answers_otherwise_is_named(answer: Answer, said: str) -> None:
    """[C-071, M-108] always as `source_unavailable`, and never with a token in the message."""
    with scripted(lambda *_: answer) as source, pytest.raises(SourceError, match=said) as refused:
        source.list("posts", "", 2, True)
    assert refused.value.code == "source_unavailable"


def test_documents_without_an_id_are_told_by_their_number() -> None:
    """[C-043]"""
    body = b'{"documents": [{"id": null}, {"id": ""}, {}, {"id": "7.json"}, "x"], "next": "c2"}'
    with scripted(lambda *_: (200, {}, body)) as source:
        assert source.list("posts", "", 9, True) == (("posts/7.json",), "c2", 4)


def test_answers_are_bounded_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """[C-102] by size, and by the ETag where there is one."""
    monkeypatch.setattr("dragoman.kernel.limits.DOCUMENT_BYTES_MAX", 1000)
    with scripted(lambda *_: (200, {}, b"x" * 1001)) as source, pytest.raises(CallerError) as large:
        source.read("posts/a.json")
    assert large.value.code == "payload_too_large"
    with (
        scripted(lambda *_: (200, {"ETag": f'"{"0" * 64}"'}, b"x")) as source,
        pytest.raises(SourceError, match="otherwise than its ETag"),
    ):
        source.read("posts/a.json")


def test_a_silent_server_costs_no_more_than_its_seconds() -> None:
    """[C-022] the call ends by itself."""
    wait = threading.Event()

    def silent(*_: str) -> Answer:
        wait.wait(20)
        return 200, {}, b"{}"

    with scripted(silent) as source:
        source._call_seconds = 0.2
        with pytest.raises(SourceError, match="in time"):
            source.contents()
        wait.set()


def test_nobody_at_the_address_is_said_so() -> None:
    """[M-108]"""
    source = HttpSource("http://127.0.0.1:9", lambda: "", "en", SystemClock())
    with pytest.raises(SourceError, match="cannot be asked"):
        source.contents()


def test_the_reference_server_keeps_the_written_contract(tmp_path: Path) -> None:
    """[C-040] every answer fits the schema in docs/reference/source-openapi.json, and no path is missing."""
    written(tmp_path, {"en/posts/a.json": "{}", "en/posts/b.json": "{}", "en/site.json": "{}"})
    contract = json.loads((_SERVER.parents[1] / "docs/reference/source-openapi.json").read_bytes())
    place, tag = "/documents/posts/a.json?locale=", f'"{sha256(b"[]")}"'
    asked: dict[tuple[str, str], tuple[str, dict[str, Any], int]] = {
        ("get", "/collections"): ("/collections", {}, 200),
        ("get", "/collections/{collection}/documents"): ("/collections/posts/documents?limit=1", {}, 200),
        ("post", "/documents/exists"): ("/documents/exists", {"json": {"documents": ["posts/a.json"]}}, 200),
        ("post", "/documents/rights"): (
            "/documents/rights",
            {"json": {"actor": "a", "documents": ["posts/a.json"]}},
            200,
        ),
        ("get", "/documents/{ref}"): (f"{place}en", {}, 200),
        ("head", "/documents/{ref}"): (f"{place}en", {}, 200),
        ("put", "/documents/{ref}"): (
            f"{place}fr",
            {"content": b"[]", "headers": {"If-None-Match": "*"}},
            201,
        ),
        ("delete", "/documents/{ref}"): (f"{place}fr", {"headers": {"If-Match": tag}}, 204),
    }
    methods = ("get", "post", "head", "put", "delete")
    assert {(m, path) for path, place in contract["paths"].items() for m in place if m in methods} == set(
        asked
    )
    with running(reference_server().serve(tmp_path, 0, TOKEN)) as url:
        for (method, path), (target, more, status) in asked.items():
            said = contract["paths"][path][method]["responses"][str(status)]
            headers = {"Authorization": f"Bearer {TOKEN}", **more.pop("headers", {})}
            answer = httpx2.request(method.upper(), url + target, headers=headers, **more)
            assert answer.status_code == status
            if "application/json" in said.get("content", {}):
                schema = said["content"]["application/json"]["schema"]
                jsonschema_rs.validate(schema, answer.json())
            if "headers" in said:
                assert re.fullmatch(said["headers"]["ETag"]["schema"]["pattern"], answer.headers["ETag"])
