"""Ids, chance and hashes."""

from __future__ import annotations

import hashlib
import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.kernel import identity
from dragoman.kernel.identity import Chance, SeededChance, SystemChance


@pytest.fixture(params=["system", "seeded"])
def chance(request: pytest.FixtureRequest) -> Chance:
    return SystemChance() if request.param == "system" else SeededChance(7)


def test_ids_are_lowercase_uuids_of_version_7_that_sort_by_their_making(chance: Chance) -> None:
    ids = [chance.new_id() for _ in range(2_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert {(UUID(one).version, UUID(one).variant, len(one)) for one in ids} == {
        (7, "specified in RFC 4122", 36)
    }
    assert not [one for one in ids if one != str(UUID(one))]


def test_words_have_the_length_asked_for_and_no_digit_that_reads_as_a_letter(chance: Chance) -> None:
    words = [chance.token(12) for _ in range(500)]
    assert all(re.fullmatch("[a-z2-7]{12}", word) for word in words)
    assert len(set(words)) > 450


def test_fractions_lie_between_zero_and_one(chance: Chance) -> None:
    fractions = [chance.fraction() for _ in range(1_000)]
    assert all(0 <= fraction < 1 for fraction in fractions)
    assert 0.4 < sum(fractions) / len(fractions) < 0.6


def draws(chance: Chance) -> list[object]:
    return [draw for _ in range(20) for draw in (chance.new_id(), chance.token(5), chance.fraction())]


def test_a_seed_repeats_everything_and_another_seed_nothing() -> None:
    assert draws(SeededChance("w-1")) == draws(SeededChance("w-1"))
    assert not set(draws(SeededChance("w-1"))) & set(draws(SeededChance("w-2")))


def test_seeded_ids_sort_beyond_sixteen_bits() -> None:
    chance = SeededChance(1)
    chance._count = 2**16 - 2
    ids = [chance.new_id() for _ in range(4)]
    assert ids == sorted(ids)


@pytest.mark.parametrize(("size_bytes", "least"), [(32, 43), (1, 22)])
def test_a_secret_has_128_bits_at_least(size_bytes: int, least: int) -> None:
    made = {identity.secret(size_bytes) for _ in range(100)}
    assert len(made) == 100
    assert all(len(secret) >= least and re.fullmatch("[A-Za-z0-9_-]+", secret) for secret in made)


def test_text_and_its_utf8_bytes_have_one_hash() -> None:
    assert identity.sha256("straße") == identity.sha256("straße".encode())
    assert identity.sha256(b"") == hashlib.sha256().hexdigest()


parts = st.lists(st.text("a1:2", max_size=4), max_size=4)


@given(parts, parts)
def test_different_tuples_never_share_a_key_hash(left: list[str], right: list[str]) -> None:
    assert (identity.key_hash(*left) == identity.key_hash(*right)) == (left == right)
