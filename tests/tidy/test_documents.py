"""Documents that hold: links lead somewhere, printed pages equal the code, the README's commands run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.__main__ import DOCS, pages
from tests.tidy.paths import REPOSITORY, committed_files

_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")
_RUNNABLE = re.compile(r"^```sh runnable\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _documents() -> list[str]:
    outside = ("examples/", "tests/")
    return [file for file in committed_files() if file.endswith(".md") and not file.startswith(outside)]


def _commands() -> list[str]:
    blocks = _RUNNABLE.findall((REPOSITORY / "README.md").read_text(encoding="utf-8"))
    return [command for block in blocks for command in block.strip().splitlines()]


def test_every_link_leads_somewhere() -> None:
    broken = [
        f"{file}: {target}"
        for file in _documents()
        for target in _LINK.findall((REPOSITORY / file).read_text(encoding="utf-8"))
        if not (REPOSITORY / file).parent.joinpath(target).exists()
    ]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(("page", "text"), pages().items(), ids=pages().keys())
def test_a_printed_page_says_what_the_code_says(page: str, text: str) -> None:
    assert (DOCS / page).read_text(encoding="utf-8") == text, "run `make docs`"


@pytest.mark.parametrize("command", _commands())
def test_the_commands_of_the_readme_run(command: str, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }

    ran = subprocess.run(
        ["bash", "-ec", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
    assert ran.stdout
