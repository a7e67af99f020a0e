"""What people translated passes: errors are rare and true, warnings are no noise. On the real files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.content import documents
from dragoman.content.inspection import Remark, inspect
from dragoman.model.documents import Document
from dragoman.wiring.catalogue import formats
from tests.content.real_files import SHARED

CORPUS = SHARED / "corpus"
BILINGUAL = {
    "po/allauth_zh_Hant.po": "zh-Hant",
    "po/django_adminjs_ar.po": "ar",
    "po/django_conf_de.po": "de",
    "po/django_humanize_ru.po": "ru",
    "po/sphinx_pl.po": "pl",
    "qt/monero-core_ar.ts": "ar",
    "qt/monero-core_de.ts": "de",
    "qt/monero-core_ru.ts": "ru",
}
BESIDE = {
    "json/starlight_en.json": {"json/starlight_ar.json": "ar", "json/starlight_de.json": "de"},
    "arb/gallery_en.arb": {"arb/gallery_ar.arb": "ar", "arb/gallery_de.arb": "de"},
    "yaml/docsy_en.yaml": {"yaml/docsy_ar.yaml": "ar", "yaml/docsy_de.yaml": "de"},
    "yaml/rails_en.yml": {
        "yaml/rails_ar.yml": "ar",
        "yaml/rails_ja.yml": "ja",
        "yaml/rails_nb.yml": "nb",
        "yaml/rails_ru.yml": "ru",
    },
    "properties/tomcat_manager.properties": {
        f"properties/tomcat_manager_{locale}.properties": locale
        for locale in ("de", "fr", "ja", "ru", "zh-CN")
    },
}
OF_THE_FILE = ("missing", "lost", "unfinished", "inconsistent", "plurals")
ERRORS_MAX, WARNINGS_MAX = 0.005, 0.08


def opened(name: str, role: str, locale: str) -> Document:
    path = CORPUS / name
    data = path.read_bytes()
    form = documents.choose_format(formats(), path.name, data)
    return documents.open_document(form, path.name, data, role, locale)  # type: ignore[arg-type]


def inspected() -> Iterator[tuple[str, int, tuple[Remark, ...]]]:
    """Each translation: its name, how many texts it holds, and what is said of them."""
    every = [(target, target, locale) for target, locale in BILINGUAL.items()]
    every += [
        (source, target, locale) for source, found in BESIDE.items() for target, locale in found.items()
    ]
    known = {extension for form in formats() for extension in form.extensions}
    for source, target, locale in every:
        if Path(target).suffix in known:
            document = opened(target, "target", locale)
            filled = sum(any(value for value in _forms(block.value)) for block in document.blocks)
            yield target, filled, inspect(opened(source, "source", "en"), document)


def _forms(value: object) -> list[str]:
    return [value] if isinstance(value, str) else list(value.values())  # type: ignore[attr-defined]


def test_what_people_translated_passes() -> None:
    """At most one text in two hundred is told to be wrong, and one in twelve to be worth a look."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus at {SHARED}")
    texts, said = 0, Counter[str]()
    wrong: list[str] = []
    for name, filled, remarks in inspected():
        texts += filled
        for remark in remarks:
            if remark.finding.check not in OF_THE_FILE:
                said[remark.finding.severity] += 1
                said[f"{remark.finding.severity} {remark.finding.check}"] += 1
                if remark.finding.severity == "error":
                    wrong.append(f"{name}:{remark.line} {remark.finding.check}: {remark.finding.message}")
    print(f"{texts} translations: {dict(said)}")
    assert texts > 3000
    assert said["error"] <= ERRORS_MAX * texts, "\n".join(wrong)
    assert said["warning"] <= WARNINGS_MAX * texts, said
    assert not said["error script"]
    assert said["warning language"] + said["warning script"] <= 3, "neither is a guess on people's texts"
