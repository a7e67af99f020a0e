"""Pseudo-localization: longer, accented, in brackets, and not a marker touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.providers.exchange import MARKER
from dragoman.providers.pseudo import pseudo

texts = st.lists(st.sampled_from(["Save", " ", "⟦1⟧", "⟦/1⟧", "⟦12⟧", "⟦⟦", "x", "2024", "é", "\n"])).map(
    "".join
)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Save", "[Šåṽé ·]"),
        ("Hello ⟦1⟧world⟦/1⟧", "[Ĥéļļö ⟦1⟧ŵöŕļð⟦/1⟧ ···]"),
        ("a ⟦⟦ b", "[å ⟦⟦ ƀ ·]"),
        ("2024", "[2024 ·]"),
    ],
)
def test_a_text_is_accented_and_grows(text: str, expected: str) -> None:
    assert pseudo(text) == expected


@given(texts)
def test_markers_stay_as_they_are_and_in_order(text: str) -> None:
    assert MARKER.findall(pseudo(text)) == MARKER.findall(text)


@given(st.text(min_size=1), st.integers(0, 20))
def test_a_text_keeps_to_its_length_limit_where_the_source_does(text: str, room: int) -> None:
    assert len(pseudo(text, len(text) + room)) <= len(text) + room


@given(st.text(min_size=10).filter(lambda text: not MARKER.search(text)))
def test_a_text_grows_by_about_a_third(text: str) -> None:
    assert 1.2 * len(text) <= len(pseudo(text)) <= 1.4 * len(text) + 4
