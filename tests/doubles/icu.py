"""ICU itself as an oracle: PyICU of the system's Python, asked in a process of its own.

`icu()` gives the one of this test run; without PyICU the test skips, and in CI it fails.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from collections.abc import Mapping
from functools import lru_cache

import pytest

PYTHON = "/usr/bin/python3"
_SERVER = """
import icu, json, sys

def names(message):
    pattern = icu.MessagePattern()
    pattern.parse(message)
    kinds = icu.UMessagePatternPartType
    return sorted({
        pattern.getSubstring(pattern.getPart(index))
        for index in range(pattern.countParts())
        if pattern.getPartType(index) in (kinds.ARG_NAME, kinds.ARG_NUMBER)
    })

for line in sys.stdin:
    message, locale, values = json.loads(line)
    try:
        form = icu.MessageFormat(message, icu.Locale(locale))
        given = [icu.Formattable(value) for value in (values or {}).values()]
        said = form.format(list(values), given) if values else ""
        answer = [names(message), said]
    except icu.ICUError as error:
        answer = [None, "ICU error %s" % error.getErrorCode()]
    print(json.dumps(answer), flush=True)
"""


class Icu:
    """Answers about message formats. A message that ICU does not read raises `ValueError`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [PYTHON, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def is_valid(self, message: str, locale: str = "en") -> bool:
        """Whether ICU reads a message."""
        return self._ask(message, locale, None)[0] is not None

    def arguments(self, message: str, locale: str = "en") -> list[str]:
        """The names of all arguments of a message, at any depth, sorted."""
        return self._known(self._ask(message, locale, None))[0]

    def formatted(self, message: str, values: Mapping[str, str | int | float], locale: str = "en") -> str:
        """What a reader sees."""
        return self._known(self._ask(message, locale, values))[1]

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.communicate()

    def _ask(
        self, message: str, locale: str, values: Mapping[str, str | int | float] | None
    ) -> tuple[list[str] | None, str]:
        assert self._process.stdin
        assert self._process.stdout
        question = [message, locale.replace("-", "_"), None if values is None else dict(values)]
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        names, said = json.loads(self._process.stdout.readline())
        return names, said

    @staticmethod
    def _known(answer: tuple[list[str] | None, str]) -> tuple[list[str], str]:
        names, said = answer
        if names is None:
            raise ValueError(said)
        return names, said


@lru_cache(maxsize=1)
def _started() -> Icu | None:
    found = subprocess.run([PYTHON, "-c", "import icu"], capture_output=True, check=False)
    if found.returncode:
        return None
    started = Icu()
    atexit.register(started.close)
    return started


def icu() -> Icu:
    """The oracle of this run."""
    if not os.path.exists(PYTHON) or (started := _started()) is None:
        missing = f"{PYTHON} has no PyICU: install python3-icu"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return started
