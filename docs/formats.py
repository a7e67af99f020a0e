"""Measures every format on real files: `python -m docs.formats ../shared/corpus` prints the table of
`docs/reference/formats.md`.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dragoman.content import locales
from dragoman.content.documents import choose_format, open_document, render
from dragoman.kernel.errors import CallerError, DragomanError
from dragoman.model.documents import Block, Text
from dragoman.wiring.catalogue import formats

LOCALE = "pl"
_MARK = "ż"


@dataclass(frozen=True, slots=True)
class Run:
    """What became of one real file.

    `kept`: writing what stands there changed no byte. `reread`: every text was replaced, written, verified
    by the second parser and read again, with the same keys and the texts that were meant. `told`: what went
    wrong.
    """

    path: Path
    format: str
    size: int
    blocks: int
    kept: bool
    reread: bool
    told: str = ""


def run(path: Path, data: bytes | None = None) -> Run:
    """Read a file as a source, write it as it is, translate all of it into Polish, read that again."""
    data = path.read_bytes() if data is None else data
    form = choose_format(formats(), path.name, data)
    source = open_document(form, path.name, data, "source", "en")
    wanted = {block.key: _translated(block) for block in source.blocks}
    try:
        full = render(form, None, source, wanted, LOCALE).data
        target = open_document(form, path.name, full, "target", LOCALE)
        found: Mapping[str, Text] = {block.key: block.value for block in target.blocks}
        base = open_document(form, path.name, full, "source", LOCALE) if form.whole else source
        again = render(form, target, base, found if form.whole else {}, LOCALE)
    except DragomanError as error:
        return Run(path, form.name, len(data), len(wanted), False, False, f"{error.code}: {error.message}")
    lost = [block.key for block in source.blocks if block.key not in found and block.state != "obsolete"]
    same = len(found) == len(wanted) or not form.whole
    told = f"{len(lost)} keys are not read back, the first is {lost[0]!r}" if lost else ""
    return Run(path, form.name, len(data), len(wanted), again.data == full, not lost and same, told)


def _translated(block: Block) -> Text:
    """Each text with a mark behind it; a plural in all categories of Polish, and its exact forms."""
    if block.plural is None:
        return f"{block.text}{_MARK}" if any(map(str.isalpha, block.text)) else block.text
    exact = [category for category in block.plural if category.startswith("=")]
    return {
        category: f"{block.plural.get(category, block.text)}{_MARK}"
        for category in (*exact, *locales.plural_categories(LOCALE))
    }


def files(corpus: Path) -> Iterator[Path]:
    """Every file of the corpus that is of a format of ours."""
    for path in sorted(corpus.glob("*/*")):
        try:
            choose_format(formats(), path.name, path.read_bytes())
        except CallerError:
            continue
        yield path


def table(corpus: Path) -> str:
    """A row a format that the corpus has files of."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for path in files(corpus):
        done = run(path)
        runs[done.format].append(done)
    heads = ("format", "files", "bytes", "texts", "unchanged by an empty write", "all replaced and read back")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in (form.name for form in formats() if form.name in runs):
        own = runs[name]
        kept, reread = sum(done.kept for done in own), sum(done.reread for done in own)
        size, blocks = sum(done.size for done in own), sum(done.blocks for done in own)
        count = len(own)
        lines.append(
            f"| `{name}` | {count} | {size:,} | {blocks:,} | {kept} of {count} | {reread} of {count} |"
        )
    every = [done for own in runs.values() for done in own]
    lines += ["", f"{len(every)} files, {sum(done.blocks for done in every):,} texts."]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(Path(sys.argv[1])))
