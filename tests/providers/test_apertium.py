"""Apertium: texts through its stream and back, and the real program where it is installed."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.locales import choose_code
from dragoman.kernel.errors import LocaleError, SettingsError
from dragoman.model.completions import CompletionRequest, PromptItem, ProviderAnswer
from dragoman.providers.apertium import ApertiumProvider, from_stream, installed_pairs, to_stream

needs_apertium = pytest.mark.skipif(
    not shutil.which("apertium") and os.environ.get("CI") != "true",
    reason="the program apertium is not installed",
)
ENGLISH_SPANISH = [("eng", "spa"), ("spa", "eng"), ("spa", "eng_US")]

signs = st.characters(exclude_categories=["Cs"]) | st.sampled_from("[]^$⟦⟧&#0\\\0\uffff")
texts = st.text(signs, min_size=1).filter(lambda text: text == text.strip(" ") and "  " not in text)


@given(st.lists(texts, min_size=1, max_size=5))
def test_texts_come_back_out_of_the_stream_as_they_went_in(items: list[str]) -> None:
    assert from_stream(to_stream(items), items) == tuple(items)


def test_markers_and_what_the_tools_would_eat_travel_as_blanks_and_signs_escaped() -> None:
    assert to_stream(["⟦1⟧a⟦/1⟧ ~\n[b] ⟦⟦ x@y?"]) == (
        "[⟦#0⟧][⟦1⟧]a[⟦/1⟧] [~\n]\\[b\\] [⟦⟦] x\\@y?[][⟦#end⟧]\n"
    )


@pytest.mark.parametrize(
    "stream",
    ["", "[⟦#0⟧]a.[]", "[⟦#1⟧]b.[][⟦#0⟧]a.[]", "[⟦#0⟧]a.[][⟦#0⟧]b.[]", "[⟦#0⟧]a.[][⟦#1⟧]b.[][⟦#2⟧]c.[]"],
)
def test_items_that_are_not_there_once_and_in_order_are_no_translation(stream: str) -> None:
    assert from_stream(stream, ["a", "b"]) is None


def test_locales_are_found_by_their_iso_639_3_codes() -> None:
    provider = ApertiumProvider("apertium", ENGLISH_SPANISH, choose_code)
    found = {tag: provider.target_code(tag) for tag in ("es", "es-MX", "en", "en-US")}
    assert found == {"es": "spa", "es-MX": "spa", "en": "eng", "en-US": "eng_US"}


def test_a_pair_that_is_not_installed_is_refused_before_anything_runs() -> None:
    provider = ApertiumProvider("apertium", ENGLISH_SPANISH, choose_code)
    for source, target in (("en", "fr"), ("fr", "es"), ("en", "en")):
        with pytest.raises(LocaleError):
            provider.render(CompletionRequest(source, target, (PromptItem("a", "x"),)))


def test_a_program_that_is_not_there_is_named_with_what_to_install() -> None:
    with pytest.raises(SettingsError, match="apertium-eng-spa"):
        installed_pairs("no-such-program")
    answer = translate("en", "es", ["x"], program="no-such-program")
    assert (answer.outcome, answer.code) == ("NOT_STARTED", "PROVIDER_NOT_REACHED")


def test_items_that_get_lost_together_are_translated_one_by_one(tmp_path: Path) -> None:
    log = tmp_path / "runs"
    program = script(
        tmp_path,
        f'text=$(cat); echo run >> {log}; case "$text" in *"#1"*) echo lost;; *) printf %s "$text";; esac',
    )
    answer = translate("en", "es", ["one", "two"], program=program)
    assert items(answer) == ["one", "two"]
    assert log.read_text().split() == ["run"] * 3


def test_a_program_that_fails_is_a_rejection_with_its_own_words(tmp_path: Path) -> None:
    answer = translate("en", "es", ["x"], program=script(tmp_path, "echo no such mode >&2; exit 1"))
    assert (answer.outcome, answer.code, answer.message) == ("REJECTED", "PROVIDER_REJECTED", "no such mode")


def test_a_deadline_leaves_the_attempt_unknown(tmp_path: Path) -> None:
    answer = translate("en", "es", ["x"], program=script(tmp_path, "exec sleep 600"), deadline_seconds=0.1)
    assert (answer.outcome, answer.code) == ("TIMEOUT_UNKNOWN", "PROVIDER_TIMEOUT_UNKNOWN")


def test_a_worker_that_stops_ends_the_whole_pipeline(tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    program = script(tmp_path, f"sleep 600 | (echo $BASHPID > {started}; exec sleep 600)")
    provider = ApertiumProvider("apertium", ENGLISH_SPANISH, choose_code, program)
    body = provider.render(CompletionRequest("en", "es", (PromptItem("a", "x"),)))

    async def stop_half_way() -> int:
        call = asyncio.create_task(provider.send(body, "attempt-1", 60))
        grandchild = os.pidfd_open(int(await asyncio.to_thread(started.read_text)))
        call.cancel()
        await asyncio.wait([call])
        return grandchild

    grandchild = asyncio.run(stop_half_way())
    try:
        assert select.select([grandchild], [], [], 30)[0]  # readable once the process has ended
    finally:
        os.close(grandchild)


@needs_apertium
def test_the_installed_program_translates_english_into_spanish() -> None:
    sources = ["Hello world", "The house is big.", "I like dogs", "The garden"]
    assert items(translate("en", "es", sources)) == [
        "Hola Mundo",
        "La casa es grande.",
        "Me gustan los perros",
        "El jardín",
    ]


@needs_apertium
def test_signs_of_all_kinds_survive_the_installed_program() -> None:
    sources = [
        "⟦1⟧ house ⟦2⟧",
        "The ⟦1⟧big⟦/1⟧ house",
        "[a] {b} ^c$ d/e f\\g h@i <j>",
        "100 % ~ 20 €",
        "First line\nsecond line",
        "tab\there",
        "The house…",
        "⟦⟦ literal",
        "⟦3⟧",
        "\uffff and \ufffe",
        "What? Yes!",
    ]
    translated = items(translate("en", "es", sources))
    kept = "[]{}^$/\\@<>~%€…?!⟦⟧\n\t\uffff\ufffe123"
    assert [[sign for sign in text if sign in kept] for text in translated] == [
        [sign for sign in text if sign in kept] for text in sources
    ]


@needs_apertium
def test_a_sign_at_which_the_program_hangs_costs_its_own_item_only() -> None:
    answer = translate("en", "es", ["nul\0sign", "The garden"])
    assert ApertiumProvider("a", ENGLISH_SPANISH, choose_code).read(answer.body or b"").items == (
        ("i1", "El jardín"),
    )


@needs_apertium
def test_a_text_is_translated_the_same_alone_and_among_others() -> None:
    sources = ["the house", "one", "Save", "You have ⟦1⟧ messages", "no end", "Price: 20", "x", "What? Yes!"]
    together = items(translate("en", "es", sources))
    assert [items(translate("en", "es", [source])) for source in sources] == [[text] for text in together]


def script(folder: Path, lines: str) -> str:
    """A program in Apertium's place."""
    program = folder / "apertium"
    program.write_text(f"#!/bin/bash\n{lines}\n")
    program.chmod(0o755)
    return str(program)


def translate(
    source: str, target: str, texts: list[str], *, program: str = "apertium", deadline_seconds: float = 60.0
) -> ProviderAnswer:
    provider = ApertiumProvider("apertium", ENGLISH_SPANISH, choose_code, program)
    named = tuple(PromptItem(f"i{n}", text) for n, text in enumerate(texts))
    asked = CompletionRequest(source, target, named)
    return asyncio.run(provider.send(provider.render(asked), "attempt-1", deadline_seconds))


def items(answer: ProviderAnswer) -> list[str]:
    """The texts of an answer, whose ids are checked on the way."""
    assert answer.outcome == "SUCCEEDED", answer.message
    found = ApertiumProvider("apertium", ENGLISH_SPANISH, choose_code).read(answer.body or b"").items
    assert [name for name, _ in found] == [f"i{n}" for n in range(len(found))]
    return [text for _, text in found]
