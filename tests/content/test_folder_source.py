"""The folder: what is found, where translations go, and what no path may do."""

from __future__ import annotations

import errno
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.content.formats.xcstrings import StringCatalogue
from dragoman.content.sources.folder import RENAMES, FolderSource, Found, find
from dragoman.kernel import limits
from dragoman.kernel.errors import CallerError, SourceError
from dragoman.model.contracts import Source


class Named(JsonCatalogue):
    """Knows files by their endings, and by nothing else."""

    extensions: tuple[str, ...] = (".json", ".md", ".po", ".pot", ".xml", ".strings", ".yml")
    renames = RENAMES


class Marked(Named):
    """Knows files by how they begin."""

    extensions: tuple[str, ...] = (".ts",)

    def detect(self, path: str, head: str) -> bool:
        return path.endswith(".ts") and head.startswith("<TS")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    monkeypatch.chdir(root)
    return root


def write(root: Path, *paths: str) -> None:
    for path in paths:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(path)


def search(
    root: Path, *paths: str, out: str = "", source: str = "en", to: Sequence[str] = ("de", "pt-BR")
) -> Found:
    return find(
        root,
        [Path(path) for path in paths or (".",)],
        formats=(Named(), Marked()),
        pattern=out,
        source_locale=source,
        target_locales=to,
    )


def outputs(root: Path, found: Found, locale: str = "de") -> dict[str, str]:
    source = FolderSource(root, templates=found.templates)
    return {document: source.target_path(document, locale) for document in found.templates}


def test_a_folder_is_a_source(tree: Path) -> None:
    source: Source = FolderSource(tree)
    write(tree, "a.md", "a.de.md")
    assert source.exists(["a.md", "b.md"]) == {"a.md": True, "b.md": False}
    assert source.can_edit("anybody", ["a.md"]) == {"a.md": True}
    assert source.read("a.md") == b"a.md"
    assert source.target_path("a.md", "de") == "a.de.md"
    assert source.read_target("a.md", "de") == b"a.de.md"
    assert source.read_target("a.md", "fr") is None
    with pytest.raises(CallerError, match=r"b\.md") as missing:
        source.read("b.md")
    assert missing.value.code == "document_not_found"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("build/{path}.{locale}{ext}", "build/guide/a.de.md"),
        ("build/{locale}/{path}{ext}", "build/de/guide/a.md"),
        ("{dir}/{stem}_{locale}{ext}", "docs/guide/a_de.md"),
        ("./x//{stem}-{locale}{ext}", "x/a-de.md"),
        ("{locale}/{{x}}{ext}", "de/{x}.md"),
    ],
)
def test_a_pattern_says_where_translations_go(tree: Path, pattern: str, path: str) -> None:
    write(tree, "docs/guide/a.md")
    assert outputs(tree, search(tree, "docs", out=pattern)) == {"docs/guide/a.md": path}


def test_a_pattern_starts_where_the_person_stands(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tree, "docs/guide/a.md")
    monkeypatch.chdir(tree / "docs")
    assert outputs(tree, search(tree, "guide", out="new/{path}.{locale}{ext}")) == {
        "docs/guide/a.md": "docs/new/a.de.md"
    }
    assert outputs(tree, search(tree, "guide", out="{dir}/{stem}.{locale}{ext}")) == {
        "docs/guide/a.md": "docs/guide/a.de.md"
    }
    absolute = f"{tree}/new/{{path}}.{{locale}}{{ext}}"
    assert outputs(tree, search(tree, "guide", out=absolute)) == {"docs/guide/a.md": "new/a.de.md"}


@pytest.mark.parametrize(
    "pattern", ["{path}.{lang}{ext}", "{path", "{path!r}.{locale}", "{}{locale}", "{0}{locale}"]
)
def test_a_pattern_with_another_field_is_refused(tree: Path, pattern: str) -> None:
    write(tree, "a.md")
    with pytest.raises(CallerError) as refusal:
        search(tree, out=pattern)
    assert (refusal.value.code, refusal.value.place) == ("invalid_request", "--out")


@pytest.mark.parametrize(
    "pattern", ["../{path}.{locale}{ext}", "/elsewhere/{path}.{locale}{ext}", "x/../../{locale}"]
)
def test_an_output_stays_in_the_working_tree(tree: Path, pattern: str) -> None:
    write(tree, "a.md")
    with pytest.raises(CallerError) as refusal:
        search(tree, out=pattern)
    assert refusal.value.code == "output_outside_tree"


def test_an_output_does_not_leave_through_a_link(tree: Path, tmp_path: Path) -> None:
    write(tree, "a.md")
    (tmp_path / "elsewhere").mkdir()
    (tree / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CallerError) as refusal:
        search(tree, out="link/{path}.{locale}{ext}")
    assert refusal.value.code == "output_outside_tree"
    (tmp_path / "elsewhere/secret").write_text("secret")
    (tree / "a.de.md").symlink_to(tmp_path / "elsewhere/secret")
    with pytest.raises(CallerError):
        FolderSource(tree).read_target("a.md", "de")


@pytest.mark.parametrize(
    "ref", ["../outside.md", "/etc/passwd", "x/../../outside.md", "link/outside.md", "", "a\0b"]
)
def test_no_reference_reads_outside_the_folder(tree: Path, ref: str) -> None:
    (tree.parent / "outside.md").write_text("secret")
    (tree / "link").symlink_to(tree.parent)
    source = FolderSource(tree)
    assert source.exists([ref]) == {ref: False}
    with pytest.raises(CallerError):
        source.read(ref)


def test_sources_outside_the_tree_need_an_output(tree: Path) -> None:
    write(tree.parent, "corpus/md/a.md")
    with pytest.raises(CallerError, match="--out") as refusal:
        search(tree, "../corpus/md")
    assert refusal.value.code == "output_outside_tree"
    found = search(tree, "../corpus/md", out="build/{path}.{locale}{ext}")
    assert outputs(tree, found) == {"../corpus/md/a.md": "build/a.de.md"}
    assert FolderSource(tree, templates=found.templates).read("../corpus/md/a.md") == b"corpus/md/a.md"


def test_dependencies_builds_and_hidden_files_are_no_sources(tree: Path) -> None:
    write(tree, "a.md", "node_modules/x/a.md", "build/a.md", "dist/a.json", ".git/a.md", "sub/.hidden.md",
          "a.txt", "package.json", "sub/node_modules/b.md", "sub/tsconfig.app.json", "sub/B.MD")  # fmt: skip
    assert list(search(tree).templates) == ["a.md", "sub/B.MD"]
    assert list(search(tree, "build", "package.json").templates) == ["build/a.md", "package.json"]


def test_links_are_followed_only_where_they_stay_below(tree: Path) -> None:
    write(tree, "docs/a.md")
    write(tree.parent, "outside.md")
    (tree / "docs/in.md").symlink_to("a.md")
    (tree / "docs/out.md").symlink_to("../../outside.md")
    (tree / "docs/loop").symlink_to(".")
    assert list(search(tree, "docs").templates) == ["docs/a.md", "docs/in.md"]


def test_a_missing_path_is_named(tree: Path) -> None:
    with pytest.raises(CallerError, match="nowhere") as refusal:
        search(tree, "nowhere")
    assert (refusal.value.code, refusal.value.place) == ("path_not_found", "nowhere")
    write(tree, "x.txt")
    with pytest.raises(CallerError) as empty:
        search(tree)
    assert empty.value.code == "empty_request"


def test_a_file_that_is_named_is_taken_whatever_its_format(tree: Path) -> None:
    write(tree, "notes.docx")
    assert outputs(tree, search(tree, "notes.docx")) == {"notes.docx": "notes.de.docx"}


@pytest.mark.parametrize(
    ("source", "there", "target"),
    [
        ("README.md", [], "README.de.md"),
        ("locales/en.json", [], "locales/de.json"),
        ("locales/en-US.json", [], "locales/de.json"),
        ("src/messages.en.json", [], "src/messages.de.json"),
        ("src/messages_en.json", [], "src/messages_de.json"),
        ("docs/en/guide/a.md", [], "docs/de/guide/a.md"),
        ("docs/guide/a.md", ["docs/fr/guide/b.md"], "docs/de/guide/a.md"),
        ("docs/guide/a.md", ["docs/fr/other.md"], "docs/guide/a.de.md"),
        ("po/app.pot", ["po/fr.po"], "po/de.po"),
        ("po/app.pot", [], "po/app.de.po"),
        ("locale/app.pot", ["locale/fr/LC_MESSAGES/app.po"], "locale/de/LC_MESSAGES/app.po"),
        ("locale/en/LC_MESSAGES/app.po", [], "locale/de/LC_MESSAGES/app.po"),
        ("po/en.po", [], "po/de.po"),
        ("app/res/values/strings.xml", [], "app/res/values-de/strings.xml"),
        ("App/en.lproj/Main.strings", [], "App/de.lproj/Main.strings"),
        ("App/Base.lproj/Main.strings", [], "App/de.lproj/Main.strings"),
        ("how_to.md", [], "how_to.de.md"),
        ("{slug}.md", [], "{slug}.de.md"),
    ],
)
def test_each_ecosystems_layout_is_found(tree: Path, source: str, there: list[str], target: str) -> None:
    write(tree, source, *there)
    assert outputs(tree, search(tree))[source] == target


@pytest.mark.parametrize(
    ("source", "locale", "target"),
    [
        ("po/en.po", "pt-BR", "po/pt_BR.po"),
        ("locale/en/LC_MESSAGES/app.po", "sr-Latn", "locale/sr@latin/LC_MESSAGES/app.po"),
        ("res/values/strings.xml", "pt-BR", "res/values-pt-rBR/strings.xml"),
        ("res/values/strings.xml", "sr-Latn", "res/values-b+sr+Latn/strings.xml"),
        ("App/en.lproj/Main.strings", "zh-TW", "App/zh-Hant.lproj/Main.strings"),
        ("locales/en.json", "zh-Hant", "locales/zh-Hant.json"),
    ],
)
def test_each_ecosystem_spells_locales_its_own_way(tree: Path, source: str, locale: str, target: str) -> None:
    write(tree, source)
    assert outputs(tree, search(tree, to=[locale]), locale)[source] == target


def test_the_trees_own_spelling_is_kept(tree: Path) -> None:
    write(tree, "docs/en/a.md", "docs/pt-br/b.md", "locales/en.json", "locales/pt_BR.json")
    found = search(tree)
    assert outputs(tree, found, "pt-BR") == {
        "docs/en/a.md": "docs/pt-br/a.md",
        "locales/en.json": "locales/pt_BR.json",
    }
    assert outputs(tree, found, "de") == {
        "docs/en/a.md": "docs/de/a.md",
        "locales/en.json": "locales/de.json",
    }


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("locales/en.json", "locales/fr.json"),
        ("a.md", "a.fr.md"),
        ("a_en.md", "a_fr.md"),
        ("a.md", "a-zh-Hant.md"),
        ("docs/en/a.md", "docs/fr/b.md"),
        ("docs/a.md", "docs/fr/a.md"),
        ("po/app.pot", "po/fr.po"),
        ("po/app.pot", "po/fr/LC_MESSAGES/app.po"),
        ("res/values/strings.xml", "res/values-fr/strings.xml"),
        ("App/en.lproj/Main.strings", "App/fr.lproj/Main.strings"),
        ("x_en-US.json", "x_pt_BR.json"),
    ],
)
def test_a_translation_is_never_a_source(tree: Path, source: str, translation: str) -> None:
    write(tree, source, translation)
    found = search(tree)
    assert list(found.templates) == [source]
    assert list(found.skipped) == [translation]
    with pytest.raises(CallerError, match=r"is in|translation of") as refusal:
        search(tree, translation)
    assert refusal.value.code == "empty_request"


@pytest.mark.parametrize(
    "name", ["how_to.md", "data.min.json", "sign-in.json", "what_is.md", "x.raw.json", "it.md"]
)
def test_a_word_is_no_locale_without_evidence(tree: Path, name: str) -> None:
    write(tree, name, "other.md")
    assert name in search(tree).templates


def test_outputs_of_earlier_runs_are_no_sources(tree: Path) -> None:
    pattern = "translated/{path}.{locale}{ext}"
    write(tree, "docs/a.md", "translated/docs/a.fr.md", "translated/docs/a.de.md", "translated/notes.md")
    found = search(tree, out=pattern, to=["de"])
    assert list(found.templates) == ["docs/a.md", "translated/notes.md"]
    assert found.skipped["translated/docs/a.fr.md"] == "it is where a translation of docs/a.md goes"


def test_two_pairs_with_one_output_are_refused(tree: Path) -> None:
    write(tree, "a/x.md", "b/x.md")
    with pytest.raises(CallerError) as meeting:
        search(tree, "a", "b", out="new/{path}.{locale}{ext}")
    assert meeting.value.code == "output_conflict"
    assert "a/x.md in de" in meeting.value.message
    with pytest.raises(CallerError) as locales_meet:
        search(tree, "a", out="new/{path}{ext}")
    assert locales_meet.value.code == "output_conflict"
    with pytest.raises(CallerError) as overwritten:
        search(tree, "a", out="{dir}/{stem}{ext}", to=["de"])
    assert overwritten.value.code == "output_conflict"
    assert outputs(tree, search(tree, "a", out="new/{path}{ext}", to=["de"])) == {"a/x.md": "new/x.md"}
    write(tree, "c/en/LC_MESSAGES/x.po")
    with pytest.raises(CallerError, match="zh_TW"):
        search(tree, "c", to=["zh-TW", "zh-Hant"])


def test_a_path_under_another_is_taken_once(tree: Path) -> None:
    write(tree, "docs/sub/a.md")
    found = search(tree, "docs/sub", "docs", out="new/{path}.{locale}{ext}")
    assert outputs(tree, found) == {"docs/sub/a.md": "new/a.de.md"}


def test_references_are_composed_whatever_the_file_system_does(tree: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "día/é.md")
    write(tree, decomposed)
    found = search(tree)
    assert list(found.templates) == ["día/é.md"]
    assert FolderSource(tree, templates=found.templates).read("día/é.md") == decomposed.encode()


def test_a_reference_has_a_bounded_length(tree: Path) -> None:
    long = "/".join(["d" * 100] * 6)
    write(tree, f"{long}/a.md")
    with pytest.raises(CallerError, match=str(limits.DOCUMENT_REF_CHARS_MAX)):
        search(tree)


def test_what_cannot_be_read_says_so(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tree, "a.md", "b.md")
    monkeypatch.setattr(limits, "DOCUMENT_BYTES_MAX", 3)
    with pytest.raises(CallerError) as large:
        FolderSource(tree).read("a.md")
    assert large.value.code == "payload_too_large"
    monkeypatch.undo()

    def broken(place: Path) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "read_bytes", broken)
    with pytest.raises(SourceError, match="Input/output error") as unreadable:
        FolderSource(tree).read("b.md")
    assert unreadable.value.code == "source_unavailable"


def test_of_a_folder_only_what_a_format_recognises_is_taken(tree: Path) -> None:
    """Unlike what a person names: that is a document, or an error which says why it is none."""
    write(tree, "app.ts", "qt.ts", "photo.png")
    (tree / "qt.ts").write_text("<TS/>")
    assert list(search(tree).templates) == ["qt.ts"]
    assert list(search(tree, "app.ts").templates) == ["app.ts"]


def test_yaml_of_a_folder_is_taken_only_where_its_place_speaks_of_locales(tree: Path) -> None:
    write(tree, "ci.yml", "config/locales/devise.yml", "app.en.yml", "en.yml", "deep/i18n/x/y.yml", "de.yml")
    assert set(search(tree).templates) == {
        "config/locales/devise.yml",
        "app.en.yml",
        "en.yml",
        "deep/i18n/x/y.yml",
    }
    assert list(search(tree, "ci.yml").templates) == ["ci.yml"]


def test_a_document_that_holds_all_locales_is_its_own_target(tree: Path) -> None:
    """Whatever the pattern; and no other document may be written over it."""
    write(tree, "App/a{b}.xcstrings", "App/a.md")
    formats = (StringCatalogue(), Named())

    def found(out: str = "") -> Found:
        return find(
            tree, [tree], formats=formats, pattern=out, source_locale="en", target_locales=("de", "fr")
        )

    for templates in (found().templates, found("out/{locale}/{path}{ext}").templates):
        source = FolderSource(tree, templates=templates)
        for locale in ("de", "fr"):
            assert source.target_path("App/a{b}.xcstrings", locale) == "App/a{b}.xcstrings"
    unseen = FolderSource(tree, "out/{locale}/{path}{ext}", formats=formats)
    assert unseen.target_path("App/a{b}.xcstrings", "de") == "App/a{b}.xcstrings"
    assert unseen.target_path("App/a.md", "de") == "out/de/App/a.md"
    with pytest.raises(CallerError) as refused:
        found("App/a{{b}}.xcstrings")
    assert refused.value.code == "output_conflict"
