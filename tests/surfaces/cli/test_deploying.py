"""The first deployment, as docs/deployment.md has it: real processes over an empty database."""

from __future__ import annotations

import signal
import urllib.error
from pathlib import Path

import pytest

from tests.surfaces.cli.desk import sit_down, until
from tests.surfaces.cli.test_draining import MANIFESTS
from tests.surfaces.cli.test_serving import BODY, ask, listening


def test_migrate_run_and_readiness_open_the_door(
    bare_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-022] before the run nobody would work, and the door stays shut; after it new work is taken."""
    desk = sit_down(tmp_path / "tree", bare_url, monkeypatch)
    desk.write("a.json", {"hello": "Hello"})
    if not bare_url.startswith("sqlite"):
        assert "schema_unavailable" in desk.run("api", "--port", "0").err
    assert desk.run("migrate").out.endswith("(was brought up to date)\n")
    token = str(desk.run("tokens", "create", "ci").object["token"])
    with listening(desk, "api") as (url, api):
        with pytest.raises(urllib.error.HTTPError, match="503"):
            ask(f"{url}/readyz")
        with pytest.raises(urllib.error.HTTPError, match="503"):
            ask(f"{url}{MANIFESTS}", token, BODY)
        assert desk.end(desk.start("run", "--time-budget", "5")).code == 0
        until(lambda: ask(f"{url}/readyz")["ready"] is True)
        manifest_id = ask(f"{url}{MANIFESTS}", token, BODY)["manifest_id"]
        assert desk.end(desk.start("run", "--time-budget", "30")).code == 0
        assert ask(f"{url}{MANIFESTS}/{manifest_id}", token)["status"] == "completed"
        api.send_signal(signal.SIGTERM)
        assert desk.end(api).code == 0
