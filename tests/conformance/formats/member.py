"""What a format brings along to the conformance suite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dragoman.model.contracts import Format
from dragoman.model.documents import Block, Text

Texts = Callable[[bytes], Sequence[str]]


def marked(block: Block, mark: str) -> Text:
    """A text with a mark behind it, and for a plural all categories of Polish."""
    if block.plural is None:
        return f"{block.text}{mark}"
    return {category: f"{block.text} {category}{mark}" for category in ("one", "few", "many", "other")}


@dataclass(frozen=True)
class Member:
    """A format with a small file of its own that shows what is peculiar to it, and what may go wrong with it.

    `sample` is written with `\\n` and is in English; the suite makes the other line ends and encodings of it.
    """

    format: Format
    path: str
    """A name that such a file has in real projects; `{locale}` stands for its locale."""
    sample: str
    oracle: Texts | None = None
    """All translations of a file as another library reads them, in any order; None where there is none."""
    malformed: Sequence[tuple[str, int]] = ()
    """Texts that are not of this format, and the line that the refusal names."""
    files: Sequence[str] = ("lf", "crlf", "bom", "utf16", "utf16be")
    """The line ends and encodings, of `test_formats.FILES`, that such files come in."""
    kept: Callable[[str], bool] = field(default=lambda key: False)
    """Whether a field without a translation stays as it is in a new target: its position means something."""
    translate: Callable[[Block, str], Text] = marked
    """Another text for a block, with this mark in it."""

    @property
    def name(self) -> str:
        """What pytest calls it: the format, and the file's ending."""
        return f"{self.format.name}-{self.path.rpartition('.')[2]}"
