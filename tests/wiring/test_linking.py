"""A site and its far engine: secrets come and go, and none goes while work that was sent under it is open."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.kernel import signing
from dragoman.kernel.errors import SettingsError
from dragoman.model.effects import Answer
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Tx
from dragoman.wiring import linking
from dragoman.wiring.rounds import opened
from dragoman.wiring.settings import EngineSettings, Settings
from tests.flow.site.stage import catalogue, stage

OLD, NEW = "the old secret of the suite", "the new secret of the suite"
IN_FORCE, BEFORE = "DRAGOMAN_CALLBACK_SECRET", "DRAGOMAN_CALLBACK_SECRET_BEFORE"


def settings_for(url: str, folder: Path, **more: Any) -> Settings:
    engine = EngineSettings(url="http://127.0.0.1:9", callback_url="https://site.example/callbacks", **more)
    return Settings(database_url=url, root=folder, state_folder=folder / "s", engine=engine)


def settle(tx: Tx) -> None:
    rows = tables.submissions
    tx.touched(sa.update(rows).values(settled_at=tx.now, reconcile_at=None, next_attempt_at=None))


async def submit(url: str, settings: Settings) -> None:
    """One open submission under the secret in force."""
    async with stage(url, {"a.json": catalogue(a="Hello")}) as site:
        site.sender = linking.sender(settings)
        site.engine.weather = [Answer("CONNECTION_UNKNOWN")]
        await site.admit([("a.json", "de")])
        await site.enumeration.step()
        await site.preparing.step()
        await site.submitting.step()


async def start(settings: Settings) -> None:
    async with opened(settings, roles=("site",)):
        pass


def test_a_secret_may_be_added_at_any_time_and_goes_only_when_its_work_has_ended(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-102] A site that would start without it is refused, and told which variable to set."""
    settings = settings_for(database_url, tmp_path)
    monkeypatch.setenv(IN_FORCE, OLD)

    async def play() -> None:
        await submit(database_url, settings)
        monkeypatch.setenv(IN_FORCE, NEW)
        monkeypatch.setenv(BEFORE, OLD)
        await start(settings)
        assert linking.sender(settings).mark == signing.mark(NEW), "new work goes out under the new one"
        for secret in (OLD, NEW):
            headers = signing.sign(secret, "d-1", 1_000, b"{}")
            signing.verify(linking.callback_secrets(settings), headers, b"{}", 1_000)
        monkeypatch.delenv(BEFORE)
        with pytest.raises(SettingsError) as refused:
            await start(settings)
        assert refused.value.code == "callback_secret_missing"
        assert BEFORE in refused.value.message
        assert OLD not in refused.value.message
        await start(settings_for(database_url, tmp_path, forget_secrets=True))
        async with opened(settings, roles=()) as services:  # looking on needs no secret
            assert await linking.lost_secrets(settings, services.database) == 1
            await services.database.run(settle)
        await start(settings)

    asyncio.run(play())


def test_a_mark_tells_secrets_apart_and_nobody_what_they_are() -> None:
    assert signing.mark(OLD) != signing.mark(NEW)
    assert len(signing.mark(OLD)) == 16
    assert OLD[:4] not in signing.mark(OLD)


def test_an_account_is_the_engines_address_and_the_reference_to_its_token(tmp_path: Path) -> None:
    """[M-098] and where site and engine are one process, it is that."""
    far = settings_for("sqlite:///x.db", tmp_path)
    assert linking.sender(far).engine == "DRAGOMAN_ENGINE_TOKEN@http://127.0.0.1:9"
    assert linking.sender(Settings(root=tmp_path)).engine == "local"
