"""`dragoman translate --speed batch`: through the provider's batches, where it has them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.flow.engine.translation import calls
from dragoman.store.acts import calling
from tests.surfaces.cli.desk import ROOT, Desk

HIRED = ("a.json", "--to", "fr", "--provider", "hired", "--speed", "batch")


@pytest.fixture
def vendor(tmp_path: Path) -> Iterator[str]:
    """The address of a vendor of batches, a process of its own; each batch is found working once."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"known_headers": True}), encoding="utf-8")
    words = [sys.executable, "-m", "tests.doubles.openai_batch_server", "--script", str(script)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is looked at again at once."""
    for module in (calling, calls):
        monkeypatch.setattr(module, "RETRY_FIRST_SECONDS", 0.01)


def hire(desk: Desk, url: str, more: str = "") -> None:
    desk.configure(
        f'[providers.hired]\nprotocol = "chat"\nmodel = "test"\nbase_url = "{url}"\n{more}'
        "priced = true\nusd_per_million_tokens = [10, 40]\nkey_variable = 'HIRED_KEY'\n"
    )


@pytest.mark.usefixtures("_soon")
def test_a_command_at_speed_batch_is_worked_through_batches(
    desk: Desk, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIRED_KEY", "sk-of-a-good-length")
    desk.write("a.json", {"k": "Hello my friend"})
    hire(desk, vendor, "batches = true\n")
    told = desk.translate(*HIRED)
    assert (told.code, told.object["outputs"]) == (0, ["a.fr.json"])
    assert desk.texts("a.fr.json") == {"k": "fr Hello my friend"}
    kinds = [row.idempotency for row in desk.rows("effects", "idempotency")]
    assert kinds.count("PROVIDER_QUERY_RECONCILABLE") == 1
    [attempt] = [row.provider_ref for row in desk.rows("attempts", "provider_ref") if row.provider_ref]
    assert attempt == "batch_1"


def test_an_estimate_at_speed_batch_is_half_of_another(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIRED_KEY", "sk-of-a-good-length")
    desk.write("a.json", {"k": "Hello my friend"})
    hire(desk, "http://127.0.0.1:9/v1", "batches = true\n")
    full, half = (
        desk.run("estimate", *words, "--json").object["total"]["at_most"]["usd"]
        for words in (HIRED[:-2], HIRED)
    )
    assert half == pytest.approx(full / 2, abs=1e-6)
    assert half > 0


def test_a_provider_without_batches_is_refused_before_anything_is_begun(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIRED_KEY", "sk-of-a-good-length")
    desk.write("a.json", {"k": "Hello my friend"})
    hire(desk, "http://127.0.0.1:9/v1")
    told = desk.translate(*HIRED)
    assert (told.code, told.object["error"]["place"]) == (1, "--speed")
    assert desk.translate(*HIRED[:-1], "soon").object["error"]["place"] == "--speed"
