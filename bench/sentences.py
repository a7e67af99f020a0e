"""Real sentences for a memory, what docstrings here say, and queries that are a little different."""

from __future__ import annotations

import ast
import contextlib
import random
import re
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

_SHORTEST, _LONGEST = 20, 250
_END = re.compile(r"(?<=[.!?:])\s+|\n\s*\n")


@lru_cache(maxsize=1)
def sentences(count: int) -> tuple[str, ...]:
    """So many different ones, in an order that stays. Where the machine has too
    few, the beginning of one goes on with the end of another."""
    found: dict[str, None] = {}
    for name in ("stdlib", "purelib"):
        for path in sorted(Path(sysconfig.get_paths()[name]).rglob("*.py")):
            found.update(dict.fromkeys(_of(path)))
            if len(found) >= count * 1.05:
                break
    listed = list(found)
    random.Random(5).shuffle(listed)
    if len(listed) < count:
        listed = list(dict.fromkeys([*listed, *_crossed(listed, 2 * (count - len(listed)))]))
    return tuple(listed[:count])


def queries(known: tuple[str, ...], new: tuple[str, ...], count: int) -> list[str]:
    """Four fifths with one to three words changed, half of these with two to four typos; one fifth new."""
    chance = random.Random(4)
    words = [word for text in new for word in text.split()]
    made = []
    for _ in range(count):
        draw = chance.random()
        if draw < 0.2:
            made.append(chance.choice(new))
            continue
        text = _edited(chance.choice(known), words, chance)
        made.append(_mistyped(text, chance) if draw < 0.6 else text)
    return made


def _of(path: Path) -> Iterator[str]:
    with contextlib.suppress(SyntaxError, UnicodeDecodeError, ValueError, OSError, RecursionError):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                for part in _END.split(ast.get_docstring(node) or ""):
                    text = " ".join(part.split())
                    if _SHORTEST <= len(text) <= _LONGEST and text.isprintable():
                        yield text


def _crossed(known: list[str], count: int) -> Iterator[str]:
    chance = random.Random(6)
    halves = [(words[: len(words) // 2], words[len(words) // 2 :]) for words in map(str.split, known)]
    for _ in range(count):
        yield " ".join([*chance.choice(halves)[0], *chance.choice(halves)[1]])


def _edited(text: str, words: list[str], chance: random.Random) -> str:
    parts = text.split()
    for _ in range(chance.choice((1, 1, 2, 3))):
        at, draw = chance.randrange(len(parts)), chance.random()
        if draw < 0.5:
            parts[at] = chance.choice(words)
        elif draw < 0.75:
            parts.insert(at, chance.choice(words))
        elif len(parts) > 4:
            del parts[at]
    return " ".join(parts)


def _mistyped(text: str, chance: random.Random) -> str:
    parts = text.split()
    for _ in range(chance.randint(2, 4)):
        at = chance.randrange(len(parts))
        word = parts[at]
        if len(word) > 3:
            k = chance.randrange(len(word) - 1)
            swapped = word[:k] + word[k + 1] + word[k] + word[k + 2 :]
            parts[at] = chance.choice((word[:k] + word[k + 1 :], swapped, word[:k] + "e" + word[k + 1 :]))
    return " ".join(parts)
