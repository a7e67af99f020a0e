"""The command of the issue on real files: every output parses, and nothing but the declared edits changed."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polib
import pytest
from markdown_it import MarkdownIt

from tests.content.real_files import SHARED
from tests.surfaces.cli.desk import ROOT, Desk, Told

KINDS = ("md", "po", "json")
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
    assert told.code in (0, 3), told.err
    outputs = told.object["outputs"]
    sources = [path for kind in KINDS for path in (corpus / kind).iterdir()]
    named = len(outputs) + len(told.object["failures"]) + told.err.count("left out ")
    assert named == len(sources) == 23
    assert all(failure["message"] for failure in told.object["failures"])
    assert len(outputs) >= 20
    for target in outputs:
        explained = told.object["edits"][target]
        assert explained["base"] == "source"
        base = (desk.folder / explained["document"]).resolve().read_bytes()
        written = (desk.folder / target).read_bytes()
        assert applied(base, explained["edits"]) == written, target
        assert written != base
        assert_it_parses(desk.folder / target, base)
    assert bytes_below(corpus) == before
    assert desk.run("revert", told.object["manifest_id"]).code == 0
    assert desk.names() == ["dragoman.toml"]


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


def assert_it_parses(path: Path, base: bytes) -> None:
    """By a reader of somebody else's, with the same units as the source."""
    if path.suffix == ".json":
        after, before = json.loads(path.read_bytes()), json.loads(base)
        assert keys(after) == keys(before)
    elif path.suffix == ".po":
        catalogue, source = polib.pofile(str(path)), polib.pofile(base.decode())
        assert catalogue.metadata["Language"] == "es"
        assert [(entry.msgctxt, entry.msgid) for entry in catalogue] == [
            (entry.msgctxt, entry.msgid) for entry in source
        ]
        assert catalogue.percent_translated() == 100
    else:
        after, before = shape(path.read_text("utf-8")), shape(base.decode())
        assert after == before


def keys(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: keys(value) for key, value in node.items()}
    return [keys(value) for value in node] if isinstance(node, list) else type(node).__name__


def shape(text: str) -> list[tuple[str, str]]:
    """The blocks of a Markdown document, without their texts; fences with them."""
    body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    return [(token.type, token.content if token.type == "fence" else token.tag) for token in tokens]


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
