"""What the doctor says of work whose engine, or whose callback secret, is not here any more."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.model.effects import Answer
from dragoman.surfaces.cli import serving
from dragoman.wiring import linking
from dragoman.wiring.settings import EngineSettings, Settings
from tests.flow.site.stage import catalogue, stage
from tests.flow.site.test_submitting import make_due

HERE, ELSEWHERE = "http://127.0.0.1:9", "http://127.0.0.1:10"
IN_FORCE, BEFORE = "DRAGOMAN_CALLBACK_SECRET", "DRAGOMAN_CALLBACK_SECRET_BEFORE"
OLD, NEW = "the old secret of the suite", "the new secret of the suite"


def _settings(url: str, folder: Path, engine: str) -> Settings:
    far = (
        EngineSettings(url=engine, callback_url="https://site.example/callbacks")
        if engine
        else EngineSettings()
    )
    return Settings(database_url=url, root=folder, state_folder=folder / "s", engine=far)


async def _sent(settings: Settings, *weather: Answer) -> None:
    """One submission that is with the engine, unless that says otherwise; one that stands is sent again."""
    async with stage(settings.database, {"a.json": catalogue(a="Hello")}) as site:
        site.sender, site.engine.weather = linking.sender(settings), list(weather)
        await site.admit([("a.json", "de")])
        await site.database.run(make_due)
        await site.step_all()


def _found(capsys: pytest.CaptureFixture[str], settings: Settings) -> list[dict[str, str]]:
    capsys.readouterr()
    asyncio.run(serving.doctor(settings, as_json=True))
    found = json.loads(capsys.readouterr().out)["findings"]
    return [one for one in found if "worker" not in one["problem"]]


@pytest.mark.parametrize("now", [ELSEWHERE, ""])
def test_work_of_another_engine_is_told(
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    now: str,
) -> None:
    """[M-098] Nobody here may send it or ask about it; each account is named, with what to do."""
    monkeypatch.setenv(IN_FORCE, OLD)
    settings = _settings(database_url, tmp_path, HERE)
    asyncio.run(_sent(settings))
    assert _found(capsys, settings) == []
    [finding] = _found(capsys, _settings(database_url, tmp_path, now))
    me = f"DRAGOMAN_ENGINE_TOKEN@{now}" if now else "local"
    made_for = f"1 open submissions were made for the engine DRAGOMAN_ENGINE_TOKEN@{HERE}, and this is {me}"
    assert finding["problem"] == made_for
    assert "that engine in its settings" in finding["remedy"]


def test_a_lost_secret_is_told_until_it_is_back(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """[M-102] Which variable to set, and never the secret itself."""
    monkeypatch.setenv(IN_FORCE, OLD)
    settings = _settings(database_url, tmp_path, HERE)
    asyncio.run(_sent(settings))
    monkeypatch.setenv(IN_FORCE, NEW)
    [finding] = _found(capsys, settings)
    assert finding["problem"].startswith("1 open submissions were sent under a callback secret that is gone")
    assert BEFORE in finding["problem"]
    assert OLD not in str(finding)
    monkeypatch.setenv(BEFORE, OLD)
    assert _found(capsys, settings) == []


def test_a_site_without_a_callback_secret_is_told_what_waits_for_it(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """[M-101] Until there is one, and what waited for it has gone out."""
    monkeypatch.delenv(IN_FORCE, raising=False)
    settings = _settings(database_url, tmp_path, HERE)
    asyncio.run(_sent(settings, Answer("NOT_STARTED", code="callback_secret_missing", message="none")))
    [finding] = _found(capsys, settings)
    assert finding["problem"].startswith("1 submissions wait for a callback secret")
    assert "callback secret" in finding["remedy"]
    monkeypatch.setenv(IN_FORCE, NEW)
    asyncio.run(_sent(settings))
    assert _found(capsys, settings) == []
