"""No secret in any row, log line, answer or file: a run with a provider's key and a callback's secret."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.model.scopes import Workspace
from dragoman.store.acts import calling
from dragoman.store.engines import engine_of
from dragoman.store.schema import metadata
from dragoman.wiring.rounds import opened
from dragoman.wiring.settings import load
from tests.surfaces.cli.desk import KEY, Desk, answering

CALLBACK_SECRET = "whsec_marker_0123456789abcdefghijklmnopqrstuv"
SOURCE = "Hello marker of a source text"


def cells(url: str) -> Iterator[tuple[str, str]]:
    """Every cell of every table as text, with the name of its column."""
    engine = engine_of(url)
    try:
        with engine.connect() as connection:
            for table in metadata.sorted_tables:
                for row in connection.execute(sa.select(table)):
                    for name, value in zip(table.columns.keys(), row, strict=True):
                        text = bytes(value).decode("utf-8", "replace") if _is_bytes(value) else str(value)
                        yield f"{table.name}.{name}", text
    finally:
        engine.dispose()


def _is_bytes(value: object) -> bool:
    return isinstance(value, bytes | bytearray | memoryview)


def columns_with(url: str, needle: str) -> set[str]:
    return {column for column, text in cells(url) if needle in text}


def files_with(folder: Path, needle: str) -> list[str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.name for path in found if needle.encode() in path.read_bytes())


def test_the_key_of_a_provider_is_in_its_requests_and_nowhere_else(
    any_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-093, M-316] also where the provider quotes it, a call fails, or the log tells everything.

    [M-301] and no text of a document is in the log.
    """
    any_desk.write("a.json", {"k": SOURCE})
    any_desk.write("b.json", {"k": "Forbidden marker"})
    quoting = {
        "act": "status",
        "status": 401,
        "body": {"error": {"message": f"wrong key {KEY}", "code": "x"}},
    }
    monkeypatch.setenv("DRAGOMAN_LOG_LEVEL", "DEBUG")
    monkeypatch.setattr(calling, "RETRY_FIRST_SECONDS", 0.01)
    with answering("close", quoting, rules=[{"contains": "Forbidden", "act": quoting}]) as server:
        any_desk.hire(server.url, priced=True)
        runs = [
            any_desk.run("translate", name, "--to", "fr", "--provider", "hired", *more)
            for name, more in (("b.json", ["--json"]), ("b.json", []), ("a.json", ["--on-unknown", "hold"]))
        ]
        server.script.acts = ()
        runs.append(any_desk.run("translate", "a.json", "--to", "de", "--provider", "hired"))
        runs.append(any_desk.run("doctor"))
        assert {call.headers["authorization"] for call in server.calls} == {f"Bearer {KEY}"}
    said = "".join(told.out + told.err for told in runs)
    assert "job ended" in said  # the log was really on
    assert "HTTP 401: wrong key" in said
    assert KEY not in said
    assert SOURCE not in said
    assert columns_with(any_desk.database_url, KEY) == set()
    assert files_with(any_desk.folder, KEY) == []


def test_texts_lie_where_texts_belong_and_requests_are_purged(any_desk: Desk) -> None:
    """[M-094] once a run has ended: not in effects, attempts, history, intents, submissions or calls."""
    any_desk.write("a.json", {"k": SOURCE})
    with answering() as server:
        any_desk.hire(server.url)
        assert any_desk.translate("a.json", "--to", "fr", "--provider", "hired").code == 0
    texts = {"memory.source", "memory.text", "results.text", "job_fields.text", "job_fields.result"}
    texts |= {"memory_fresh.source", "memory_segments.source"}  # what a search compares with
    answers = {"answers.body", "outbox.payload"}
    assert columns_with(any_desk.database_url, SOURCE) <= texts | answers
    assert files_with(any_desk.folder, SOURCE) == ["a.fr.json", "a.json"]


def test_the_secret_of_a_callback_is_sealed_where_it_lies(
    any_desk: Desk, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """[M-216, M-317] in no payload, log line or answer; the signature is made with it all the same."""
    monkeypatch.setenv("DRAGOMAN_SEALING_KEY", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
    monkeypatch.setenv("DRAGOMAN_LOG_LEVEL", "DEBUG")
    body = {
        "submissionId": "01a2292c-0000-7000-8000-000000000002",
        "clientJobId": "01a2292c-0000-7000-8000-000000000001",
        "sourceLang": "en",
        "options": {"provider_config": "pseudo"},
        "callbackUrl": "https://callbacks.example/there",
        "items": [{"ref": "a", "targetLang": "fr", "fields": {"k": SOURCE}}],
    }

    async def worked() -> dict[str, Any]:
        async with opened(load(Path.cwd(), database_url=any_desk.database_url)) as here:
            accepted = await here.acceptance.accept(
                "ada", "default", "", json.dumps(body).encode(), CALLBACK_SECRET
            )
            here.workers.wake()
            async with asyncio.timeout(30):
                while True:
                    view = await here.jobs.get(Workspace("default"), accepted.job_id)
                    if view["status"] == "completed":
                        return dict(view)
                    await asyncio.sleep(0.02)

    view = asyncio.run(worked())
    out, err = capfd.readouterr()
    assert CALLBACK_SECRET not in json.dumps(view) + out + err
    assert SOURCE not in out + err
    assert columns_with(any_desk.database_url, CALLBACK_SECRET) == set()
    assert files_with(any_desk.folder, CALLBACK_SECRET) == []
    [job] = any_desk.rows("jobs", "callback_secret")
    assert len(job.callback_secret) > len(CALLBACK_SECRET)


def test_the_secret_of_an_embedded_engine_lies_in_its_file_alone(desk: Desk) -> None:
    """0600, made at first start; the rows keep a reference."""
    desk.write("a.json", {"k": SOURCE})
    assert desk.translate("a.json", "--to", "fr").code == 0
    file = desk.folder / ".dragoman" / "callback.key"
    assert file.stat().st_mode & 0o777 == 0o600
    secret = file.read_text("ascii").strip()
    assert len(secret) >= 40
    assert columns_with(desk.database_url, secret) == set()
    assert files_with(desk.folder, secret) == ["callback.key"]
    assert {row.callback_secret for row in desk.rows("jobs", "callback_secret")} == {"local"}
