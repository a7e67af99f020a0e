"""`action.yml`: one step, whose shell lines run here as a runner would run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.surfaces.cli.desk import ROOT, Desk


def step() -> dict[str, Any]:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    [only] = action["runs"]["steps"]
    told = " ".join(only["env"].values())
    asked = {word for word in action["inputs"] if f"inputs.{word} " in told}
    assert asked == set(action["inputs"]), "every input is used"
    return dict(only)


def run(desk: Desk, **inputs: str) -> subprocess.CompletedProcess[str]:
    """As a runner does: the shell named, with the runner's flags and the step's environment."""
    only = step()
    assert only["shell"] == "bash"
    assert "${{" not in only["run"], "what comes from outside is no part of the script"
    told = dict.fromkeys(only["env"], "") | inputs
    bin_folder = str(Path(sys.executable).parent)
    environment = {**os.environ, **told, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    environment["DRAGOMAN_DATABASE_URL"] = desk.database_url
    flags = ["--noprofile", "--norc", "-eo", "pipefail", "-c", only["run"]]
    return subprocess.run(
        ["bash", *flags], cwd=desk.folder, env=environment, capture_output=True, text=True, check=False
    )


def test_it_runs_up_and_ends_with_its_exit_code(desk: Desk) -> None:
    """[J-107] 0 where all is up to date, else the command's own code, which fails the step."""
    desk.configure('project = "docs"\nlocales = ["fr"]\nsources = ["en"]\n')
    desk.write("en/a.json", {"hello": "Hello"})
    ended = run(desk, PUSH_ID="3f1c2a9", ARGUMENTS="--to fr,de")
    assert ended.returncode == 0, ended
    told = json.loads(ended.stdout)
    assert (told["state"], told["push_id"]) == ("complete", "3f1c2a9")
    assert desk.names().count("de/a.json") == 1
    desk.write("en/b.json", "{no json")
    assert run(desk).returncode == 3
    missing = run(desk, DRAGOMAN_SERVER="http://127.0.0.1:9")
    assert (missing.returncode, json.loads(missing.stdout)["error"]["code"]) == (1, "unauthorized")
