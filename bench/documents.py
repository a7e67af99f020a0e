"""What the whole path is measured with: JSON documents of one field, each text different, in one folder."""

from __future__ import annotations

import json
from pathlib import Path

LOCALES = ("de", "es", "fr", "it", "pt")
_PER_FOLDER = 1000


def names(count: int) -> list[str]:
    """References of so many documents."""
    return [f"pages/{number // _PER_FOLDER}/{number}.json" for number in range(count)]


def write(root: Path, count: int, fields: int = 1) -> None:
    """Write them."""
    for number, name in enumerate(names(count)):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = {
            f"title{field}": f"Message {field} of page {number} was moved to the folder that you chose"
            for field in range(fields)
        }
        path.write_text(json.dumps(texts), "utf-8")
