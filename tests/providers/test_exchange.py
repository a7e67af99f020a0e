"""One JSON object is asked, one is answered, and an answer is read as far as it is whole."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.completions import CompletionRequest, PromptItem, Usage
from dragoman.providers import exchange

storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
pairs = st.lists(st.tuples(storable, storable), max_size=6)


def reply(items: list[tuple[str, str]], *, ascii_only: bool = False) -> str:
    return json.dumps({"items": [{"id": i, "text": t} for i, t in items]}, ensure_ascii=ascii_only)


def test_the_question_holds_what_an_item_has_and_no_empty_member() -> None:
    full = PromptItem("k2", "Save ⟦1⟧", "a button", 40, (("Save", "Sichern"),), {"1": "%s"}, "⟦1⟧ is missing")
    asked = json.loads(
        exchange.question(CompletionRequest("en", "de", (full, PromptItem("a7", "Ö"))), "en", "de")
    )
    assert asked == {
        "source_locale": "en",
        "target_locale": "de",
        "items": [
            {
                "id": "k2",
                "text": "Save ⟦1⟧",
                "note": "a button",
                "max_length": 40,
                "glossary": [["Save", "Sichern"]],
                "markers": {"1": "%s"},
                "complaint": "⟦1⟧ is missing",
            },
            {"id": "a7", "text": "Ö"},
        ],
    }


def test_the_order_in_which_markers_were_found_does_not_change_the_question() -> None:
    one, other = (
        CompletionRequest("en", "de", (PromptItem("a", "x", markers=markers),))
        for markers in ({"1": "<b>", "2": "%s", "10": "<i>"}, {"10": "<i>", "2": "%s", "1": "<b>"})
    )
    assert exchange.question(one, "en", "de") == exchange.question(other, "en", "de")


@given(pairs, st.booleans())
def test_a_whole_reply_gives_its_items_in_order_with_duplicates(
    items: list[tuple[str, str]], ascii_only: bool
) -> None:
    assert exchange.read_items(reply(items, ascii_only=ascii_only)) == (tuple(items), True)


@given(pairs, st.data())
def test_a_cut_reply_gives_exactly_the_items_whose_closing_brace_came(
    items: list[tuple[str, str]], data: st.DataObject
) -> None:
    whole = reply(items)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    complete = [
        n
        for n in range(len(items) + 1)
        if reply(items[:n])[:-2] <= cut and cut.startswith(reply(items[:n])[:-2])
    ]
    expected = tuple(items[: max(complete, default=0)])
    assert exchange.read_items(cut) == (expected, False)


@given(st.text())
def test_reading_never_raises(text: str) -> None:
    exchange.read_items(text)


@given(st.binary())
def test_reading_an_answer_never_raises(kept: bytes) -> None:
    exchange.read_answer(kept)


def test_fences_and_words_around_the_reply_are_passed_over() -> None:
    fenced = "Here you are:\n```json\n" + reply([("a", "x")]) + "\n```\nAnything else?"
    assert exchange.read_items(fenced) == ((("a", "x"),), True)


def test_raw_line_breaks_in_a_text_are_taken() -> None:
    assert exchange.read_items('{"items":[{"id":"a","text":"one\ntwo"}]}') == ((("a", "one\ntwo"),), True)


def test_items_that_are_no_items_count_as_not_answered() -> None:
    odd = [
        '{"id":"a"}',
        '{"id":1,"text":"x"}',
        '{"id":"b","text":null}',
        '"c"',
        "null",
        '{"id":"d","text":"ok"}',
    ]
    assert exchange.read_items('{"items":[' + ",".join(odd) + "]}") == ((("d", "ok"),), True)


def test_texts_that_no_database_holds_count_as_not_answered() -> None:
    said = r'{"items":[{"id":"a","text":"\ud83d"},{"id":"b","text":"x\u0000"},{"id":"c","text":"ok"}]}'
    assert exchange.read_items(said) == ((("c", "ok"),), True)


def test_nesting_without_end_is_unreadable_and_nothing_worse() -> None:
    assert exchange.read_items('{"items":' + "[" * 100_000) == ((), False)


def test_absurd_counts_are_made_safe() -> None:
    assert [exchange.tokens(n) for n in (-1, True, 1.5, "7", None, 10**30, 12)] == [0, 0, 0, 0, 0, 10**12, 12]


def test_an_answer_said_twice_is_read_once() -> None:
    answer = exchange.answer([("a", "x")], Usage(3, 2))
    read = exchange.read_answer(answer + answer)
    assert (read.items, read.finish, read.usage) == ((("a", "x"),), "complete", Usage(3, 2, 0, 5))
