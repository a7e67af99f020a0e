"""Words that no committed file says: hosts of package registries, and folders of one machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.tidy.rules import WORDS_OF_ELSEWHERE

_ELSEWHERE = re.compile("|".join(WORDS_OF_ELSEWHERE))


def problems(root: Path, files: Iterable[str]) -> list[str]:
    """One line for each place in these files, named relative to `root`. What is no text is passed over."""
    found = []
    for file in files:
        try:
            lines = (root / file).read_text(encoding="utf-8").splitlines()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        for number, line in enumerate(lines, 1):
            found += [f"{file}:{number}: {match[0]}" for match in _ELSEWHERE.finditer(line)]
    return found
