"""Every real file of the shared corpus, by whichever format knows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.formats import files, run
from tests.content.real_files import SHARED

CORPUS = SHARED / "corpus"
FOUND = [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in files(CORPUS)] or [
    pytest.param(Path(), marks=pytest.mark.skip(reason=f"no corpus at {CORPUS}"))
]


@pytest.mark.parametrize("path", FOUND)
def test_a_real_file_is_kept_by_an_empty_write_and_reads_back_when_all_is_replaced(path: Path) -> None:
    """By our reader and the format's second parser, with equal keys; what no edit names is untouched."""
    done = run(path)
    assert done.told == ""
    assert (done.kept, done.reread) == (True, True)


def test_no_file_of_the_corpus_is_of_an_unknown_format() -> None:
    """Beside the fixtures of one CMS, which are JavaScript."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus at {CORPUS}")
    known = set(files(CORPUS))
    assert {path.suffix for path in CORPUS.glob("*/*") if path not in known} <= {".js"}
    assert len(known) >= 110
