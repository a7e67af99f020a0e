"""The command of the issue on real files: every output parses, and nothing but the declared edits changed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polib
import pytest

from tests.acceptance.shapes import shape
from tests.content.real_files import SHARED
from tests.surfaces.cli.desk import ROOT, Desk, Told

KINDS = (
    "android", "arb", "ftl", "html", "json", "md", "po", "properties", "qt", "resx", "subs", "xliff12",
    "xliff20", "yaml",
)  # fmt: skip
OUTPUTS, WORDLESS, UNASKED = 80, 1, 6
"""How many files have a translation, how many have no text that wants one, and how many are YAML whose name
does not say that it is English: in a folder, such files count as settings.
"""
OUT = "build/corpus/{path}.{locale}{ext}"


@pytest.fixture
def corpus() -> Path:
    folder = SHARED / "corpus"
    if not folder.is_dir():
        pytest.skip(f"no corpus at {SHARED}: set DRAGOMAN_SHARED to the folder that holds it")
    return folder


def translated(desk: Desk, paths: Sequence[Path], *more: str) -> Told:
    words = ("--to", "es", "--provider", "pseudo", "--out", OUT, "--explain-edits")
    return desk.translate(*map(str, paths), *words, *more)


def test_the_corpus_is_translated_and_each_output_is_its_base_with_the_declared_edits(
    desk: Desk, corpus: Path
) -> None:
    """Every byte outside of them is the base's; what is left out or fails is named with its reason.

    And a revert leaves the tree as it was.
    """
    before = bytes_below(corpus)
    told = translated(desk, [corpus / kind for kind in KINDS])
    assert told.code == 0, (told.err, told.object["failures"])
    outputs = told.object["outputs"]
    sources = [path for kind in KINDS for path in (corpus / kind).iterdir()]
    assert len(sources) == OUTPUTS + WORDLESS + UNASKED + left_out(told)
    assert (len(outputs), told.object["counts"]["skipped"]) == (OUTPUTS, WORDLESS)
    for target in outputs:
        explained = told.object["edits"][target]
        assert explained["base"] == "source"
        base = (desk.folder / explained["document"]).resolve().read_bytes()
        written = (desk.folder / target).read_bytes()
        assert applied(base, explained["edits"]) == written, target
        assert written != base
        assert_it_reads_as_it_did(target, written, base)
    assert bytes_below(corpus) == before
    assert desk.run("revert", told.object["manifest_id"]).code == 0
    assert desk.names() == ["dragoman.toml"]


def test_apples_files_likewise_where_one_holds_all_languages(desk: Desk, corpus: Path) -> None:
    """A string catalogue is its own target: other languages keep their bytes, and a revert gives it back."""
    shutil.copytree(corpus / "apple", desk.folder / "apple")
    before = bytes_below(desk.folder)
    told = translated(desk, [Path("apple")])
    assert told.code == 0, (told.err, told.object["failures"])
    assert told.object["outputs"] == [
        "apple/Rectangle_Main.xcstrings",
        "build/corpus/tethys_Localizable.es.strings",
        "build/corpus/tethys_Localizable.es.stringsdict",
    ]
    for target, explained in told.object["edits"].items():
        base, written = before[explained["document"]], (desk.folder / target).read_bytes()
        assert explained["base"] == ("target" if target in before else "source")
        assert applied(base, explained["edits"]) == written != base, target
        assert_it_reads_as_it_did(target, written, base)
    assert desk.run("revert", told.object["manifest_id"]).code == 0
    assert bytes_below(desk.folder).items() >= before.items()
    assert desk.names() == sorted(before)


def test_a_second_run_over_existing_targets_changes_only_what_it_declares(desk: Desk, corpus: Path) -> None:
    """With --force every value is written again, into the target as it stands: the very same bytes."""
    names = ("json", "po/amo.pot", "po/django_adminjs_ar.po", "md/docsy__index.md")
    paths = [corpus / name for name in names]
    assert translated(desk, paths).code == 0
    before = bytes_below(desk.folder / "build")
    told = translated(desk, paths, "--force")
    assert told.code == 0, told.object["failures"]
    for target, explained in told.object["edits"].items():
        base = before[target.removeprefix("build/")]
        if explained["base"] == "source":
            base = (desk.folder / explained["document"]).resolve().read_bytes()
        assert applied(base, explained["edits"]) == (desk.folder / target).read_bytes()
    assert bytes_below(desk.folder / "build") == before


@pytest.mark.skipif(
    shutil.which("apertium") is None and os.environ.get("CI") != "true",
    reason="apertium is not installed here: `make apertium`",
)
def test_apertium_translates_the_examples_into_spanish(desk: Desk) -> None:
    """A real engine, offline: words that nobody would write in English, and every placeholder kept."""
    for path in (ROOT / "examples").iterdir():
        if path.is_file():  # Python may have put a folder of bytecode there
            shutil.copy(path, desk.folder)
    told = desk.translate(".", "--to", "es", "--provider", "apertium", "--out", "out/{path}.{locale}{ext}")
    assert told.code in (0, 3), told
    assert told.object["outputs"], told
    assert len(told.object["outputs"]) + len(told.object["failures"]) >= 3
    written = "".join(desk.read(target) for target in told.object["outputs"])
    assert len(set(re.findall(r"\b(?:el|la|los|las|una|para|con|del|que|es)\b", written))) >= 4


def applied(base: bytes, edits: Sequence[Mapping[str, Any]]) -> bytes:
    """What the declared edits make of a file's bytes: spans in order, apart from each other."""
    out, at = bytearray(), 0
    for edit in edits:
        assert at <= edit["start"] <= edit["end"] <= len(base)
        out += base[at : edit["start"]] + edit["text"].encode(edit["encoding"])
        at = edit["end"]
    return bytes(out + base[at:])


def assert_it_reads_as_it_did(name: str, written: bytes, base: bytes) -> None:
    """By a reader of somebody else's, with the same units as the source."""
    assert shape(name, written) == shape(name, base), name
    if name.endswith(".po"):
        catalogue = polib.pofile(written.decode())
        assert catalogue.metadata["Language"] == "es"
        assert catalogue.percent_translated() == 100


def left_out(told: Told) -> int:
    """How many files are no sources, as standard error says."""
    more = re.search(r"and (\d+) more are left out", told.err)
    return told.err.count("\nleft out ") + told.err.startswith("left out ") + int(more[1] if more else 0)


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
