"""Where things lie in this repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = REPOSITORY / "src" / "dragoman"


def committed_files() -> list[str]:
    """Paths of all files that git keeps, relative to the repository. Raises where this is no clone."""
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=REPOSITORY, text=True)
    return [path for path in listed.split("\0") if path]
