"""The oracle answers as ICU does."""

from __future__ import annotations

import pytest

from tests.doubles.icu import icu

MESSAGE = "{who} has {n, plural, =0 {no files} one {# file} other {# files of {total}}}."


def test_a_message_is_read_with_its_arguments_and_formatted() -> None:
    assert icu().is_valid(MESSAGE)
    assert icu().arguments(MESSAGE) == ["n", "total", "who"]
    assert icu().formatted(MESSAGE, {"who": "Ann", "n": 2000, "total": 1}) == "Ann has 2,000 files of 1."
    assert icu().formatted("{n, plural, few {F} other {O}}", {"n": 3}, "pl") == "F"


def test_a_quoted_argument_is_none() -> None:
    assert icu().arguments("Kies '{example}' ''{other}''.") == ["other"]


@pytest.mark.parametrize("broken", ["{n, plural, one {x}}", "{", "{n, plural, one {x} other {y}", "{a b}"])
def test_what_icu_does_not_read_is_told(broken: str) -> None:
    assert not icu().is_valid(broken)
    with pytest.raises(ValueError, match="ICU error 65"):
        icu().arguments(broken)
