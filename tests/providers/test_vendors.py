"""Vendors and prices are data, and what nobody bills costs nothing."""

from __future__ import annotations

from decimal import Decimal

import pytest
from yarl import URL

from dragoman.providers.prices import Flat, Free, listed
from dragoman.providers.vendors import ANY, AZURE, OPENAI, Vendor, vendor_of


@pytest.mark.parametrize(
    "url, vendor",
    [
        ("https://api.openai.com/v1", OPENAI),
        ("https://acme.openai.azure.com/openai/v1", AZURE),
        ("https://acme.services.ai.azure.com/openai/v1", AZURE),
        ("https://api.openai.com.example.org/v1", ANY),
        ("https://notopenai.azure.com/v1", ANY),
        ("http://127.0.0.1:8000/v1", ANY),
    ],
)
def test_a_vendor_is_known_by_its_host(url: str, vendor: Vendor) -> None:
    assert vendor_of(URL(url)) is vendor


def test_money_is_rounded_up_once_a_call() -> None:
    flat = Flat(Decimal("0.15"), Decimal("0.60"))
    assert [flat.microusd(*used) for used in ((0, 0), (1, 0), (1, 1), (100, 50))] == [0, 1, 1, 45]
    assert Free().microusd(10**9, 10**9) == 0


def test_the_table_knows_models_and_says_which_it_does_not_know() -> None:
    mini = listed("gpt-4o-mini", "openai")
    assert mini is not None
    assert mini.microusd(1_000_000, 1_000_000) == 750_000
    assert mini.microusd(1_000_000, 0, cached=1_000_000) < mini.microusd(1_000_000, 0)
    assert mini.microusd(1, 0) == 1
    assert listed("unheard-of", "openai") is None
    assert listed("unheard-of", None) is None


def test_a_price_does_not_depend_on_when_it_is_looked_up() -> None:
    mini = listed("gpt-4o-mini", "openai")
    assert mini is not None
    assert mini.microusd(1_000, 1_000, created_seconds=1_790_000_000) == mini.microusd(
        1_000, 1_000, created_seconds=0
    )
