"""Draws a command and what it printed as a terminal: `python -m docs.picture` renews the README's picture.

It runs the demo on a copy of examples/ in an empty folder, so that the picture shows a first run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PICTURE = REPOSITORY / "docs" / "images" / "translate.svg"
COMMAND = "dragoman translate examples --to fr,de"
COLUMNS = 88

_CHAR_WIDTH, _LINE_HEIGHT, _MARGIN = 8.4, 20, 18


def svg(lines: list[str]) -> str:
    """A terminal that shows these lines; the first is the command."""
    width = round(COLUMNS * _CHAR_WIDTH + 2 * _MARGIN)
    height = len(lines) * _LINE_HEIGHT + 2 * _MARGIN
    rows = "\n".join(_row(number, line) for number, line in enumerate(lines))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">
<title>{escape(lines[0])}</title>
<rect width="100%" height="100%" rx="8" fill="#16181d"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" fill="#d7dae0"
 xml:space="preserve">
{rows}
</g>
</svg>
"""


def record() -> list[str]:
    """Run the command once, as a newcomer would, and keep what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(REPOSITORY / "examples", Path(folder) / "examples")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": folder, "COLUMNS": str(COLUMNS), "NO_COLOR": "1"}
        printed = subprocess.check_output(COMMAND.split(), cwd=folder, env=environment, text=True)
    return [f"$ {COMMAND}", *printed.rstrip().splitlines()]


def _row(number: int, line: str) -> str:
    colour = ' fill="#8fd18f"' if number == 0 else ""
    return f'<text x="{_MARGIN}" y="{_MARGIN + 15 + number * _LINE_HEIGHT}"{colour}>{escape(line)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(svg(record()), encoding="utf-8")
