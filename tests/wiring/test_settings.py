"""What settings may say, and what is refused at start."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.kernel.errors import SettingsError
from dragoman.kernel.limits import FIELDS_PER_ITEM, FIELDS_PER_ITEM_SETTING_MAX
from dragoman.wiring import linking
from dragoman.wiring.rounds import loops, opened
from dragoman.wiring.settings import Settings, SubmissionSettings, load


def refused(folder: Path, monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    """What `load` says to these variables."""
    with monkeypatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(f"DRAGOMAN_{name}", value)
        with pytest.raises(SettingsError) as said:
            load(folder)
    return said.value.message


def test_two_thousand_pairs_and_a_mebibyte_fit_under_any_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-112, M-120]"""
    assert "pairs_max" in refused(tmp_path, monkeypatch, PAIRS_MAX="1999")
    assert "request_bytes_max" in refused(tmp_path, monkeypatch, REQUEST_BYTES_MAX=str(1024 * 1024 - 1))
    monkeypatch.setenv("DRAGOMAN_PAIRS_MAX", "2000")
    monkeypatch.setenv("DRAGOMAN_REQUEST_BYTES_MAX", str(1024 * 1024))
    least = load(tmp_path)
    assert (least.pairs_max, least.request_bytes_max) == (2_000, 1024 * 1024)
    usual = Settings()
    assert (usual.pairs_max, usual.request_bytes_max) == (2_000, 1024 * 1024), "the environment's"
    monkeypatch.undo()
    usual = Settings()
    assert (usual.pairs_max, usual.request_bytes_max) == (100_000, 16 * 1024 * 1024)


def test_what_a_submission_may_hold_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[M-066, M-227] Callers have a hundred fields an item; the site in the process need not split files."""
    usual = Settings()
    assert linking.capacity_of(usual).fields_per_item_max == FIELDS_PER_ITEM
    assert linking.local_capacity(usual).fields_per_item_max == FIELDS_PER_ITEM_SETTING_MAX
    (tmp_path / "dragoman.toml").write_text("[submissions]\nitems = 7\nfields_per_item = 250\n", "utf-8")
    chosen = linking.capacity_of(load(tmp_path))
    assert (chosen.items_max, chosen.fields_per_item_max) == (7, 250)
    assert linking.local_capacity(load(tmp_path)).fields_per_item_max == 250
    for name, value in (("ITEMS", "1001"), ("BYTES", "1"), ("FIELD_CHARACTERS", "100001")):
        said = refused(tmp_path, monkeypatch, **{f"SUBMISSIONS__{name}": value})
        assert f"submissions.{name.lower()}" in said


@pytest.mark.parametrize("name", ["a@b", "x" * 128])
def test_a_providers_name_fits_into_what_its_jobs_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "dragoman.toml").write_text(f'[providers."{name}"]\nprotocol = "pseudo"\n')
    assert "at most 127 characters" in refused(tmp_path, monkeypatch)


def test_a_token_travels_unencrypted_to_this_machine_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-317]"""
    said = refused(tmp_path, monkeypatch, ENGINE__URL="http://engine.example:8080")
    assert "engine.url" in said
    for url in ("http://127.0.0.1:1", "http://[::1]:1/x", "http://localhost:1", "https://engine.example"):
        monkeypatch.setenv("DRAGOMAN_ENGINE__URL", url)
        assert load(tmp_path).engine.url == url
    monkeypatch.setenv("DRAGOMAN_ENGINE__URL", "http://engine.example:8080")
    monkeypatch.setenv("DRAGOMAN_ENGINE__PLAIN_HTTP", "true")
    assert load(tmp_path).engine.plain_http


def test_the_state_lies_beside_the_settings_or_at_the_repositorys_root_or_here(tmp_path: Path) -> None:
    """And the default database in it. Settings of a folder above count before a repository that is nearer."""
    here = tmp_path / "project" / "docs" / "guide"
    here.mkdir(parents=True)

    def place() -> Path:
        found = load(here)
        assert found.database == f"sqlite:///{found.state_folder / 'dragoman.sqlite'}"
        assert found.state_folder == found.root / ".dragoman"
        return found.root

    assert place() == here
    (tmp_path / "project" / "docs" / ".git").mkdir()
    assert place() == tmp_path / "project" / "docs"
    (tmp_path / "project" / "dragoman.toml").touch()
    assert place() == tmp_path / "project"


def test_how_much_a_step_of_the_site_takes_is_a_setting(sqlite_url: str, tmp_path: Path) -> None:
    """[M-061, M-063, M-340] the seed's eight preparations and four submissions, or fewer, hold where set."""
    for number in range(5):
        (tmp_path / f"{number}.json").write_text('{"k": "Text"}')
    pairs = [{"document": f"{number}.json", "locale": "fr"} for number in range(5)]
    settings = Settings(
        database_url=sqlite_url, root=tmp_path, state_folder=tmp_path / "s",
        prepare_per_step=3, submit_per_step=2, submissions=SubmissionSettings(items=1),
    )  # fmt: skip

    async def play() -> None:
        async with opened(settings, roles=()) as services:
            await services.admission.admit(services.caller("mia"), {"request_id": "r", "pairs": pairs})
            step = {loop.name: loop.step for loop in loops(services, ("site",))}
            await step["enumerate"]()
            assert [await step["prepare"]() for _ in range(3)] == [3, 2, 0]
            assert [await step["submit"]() for _ in range(4)] == [2, 2, 1, 0]

    asyncio.run(play())


def test_what_has_ended_is_kept_for_a_month_and_never_for_less_than_a_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-295]"""
    assert load(tmp_path).retention_days == 30
    monkeypatch.setenv("DRAGOMAN_RETENTION_DAYS", "7")
    assert load(tmp_path).retention_days == 7
    monkeypatch.undo()
    assert "retention_days" in refused(tmp_path, monkeypatch, RETENTION_DAYS="6")
