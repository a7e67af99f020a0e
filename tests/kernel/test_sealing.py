"""Callback secrets at rest: what opens, and all that must not."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.kernel import identity
from dragoman.kernel.errors import SettingsError
from dragoman.kernel.sealing import KEY_BYTES, Sealer

KEY = base64.b64encode(bytes(range(32))).decode()
NONCE = bytes(12)
SECRET = "a secret of the site"


@given(
    st.text(st.characters(codec="utf-8")),
    st.text(st.characters(codec="utf-8")),
    st.binary(min_size=12, max_size=12),
)
def test_what_was_sealed_for_a_job_opens_for_that_job(secret: str, job: str, nonce: bytes) -> None:
    assert Sealer(KEY).open(Sealer(KEY).seal(secret, job, nonce), job) == secret


def test_a_sealed_secret_is_text_without_the_secret() -> None:
    sealed = Sealer(KEY).seal(SECRET, "job", NONCE)
    assert sealed.startswith("v1.")
    assert sealed.isascii()
    assert SECRET.encode() not in base64.urlsafe_b64decode(sealed.removeprefix("v1."))


def test_it_opens_for_no_other_job() -> None:
    sealed = Sealer(KEY).seal(SECRET, "job-1", NONCE)
    with pytest.raises(SettingsError, match="job-2"):
        Sealer(KEY).open(sealed, "job-2")


def test_it_opens_under_no_other_key() -> None:
    sealed = Sealer(identity.secret()).seal(SECRET, "job", NONCE)
    with pytest.raises(SettingsError, match="DRAGOMAN_SEALING_KEY"):
        Sealer(KEY).open(sealed, "job")


@given(st.integers(0, 47), st.integers(1, 255))
def test_it_opens_with_no_byte_changed(position: int, change: int) -> None:
    data = bytearray(base64.urlsafe_b64decode(Sealer(KEY).seal(SECRET, "job", NONCE).removeprefix("v1.")))
    data[position] ^= change
    with pytest.raises(SettingsError):
        Sealer(KEY).open("v1." + base64.urlsafe_b64encode(data).decode(), "job")


@pytest.mark.parametrize("sealed", ["", "v1.", "v1.AAAA", "v2.AAAA", SECRET, "v1.not base64"])
def test_what_was_never_sealed_does_not_open(sealed: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        Sealer(KEY).open(sealed, "job")
    assert SECRET not in refusal.value.message


@pytest.mark.parametrize(
    "spelling",
    [
        base64.b64encode(bytes(range(224, 256))).decode(),
        base64.urlsafe_b64encode(bytes(range(224, 256))).decode(),
        base64.urlsafe_b64encode(bytes(range(224, 256))).decode().rstrip("="),
        f" {base64.b64encode(bytes(range(224, 256))).decode()}\n",
    ],
)
def test_one_key_in_any_spelling_of_base64_is_one_key(spelling: str) -> None:
    sealed = Sealer(base64.b64encode(bytes(range(224, 256))).decode()).seal(SECRET, "job", NONCE)
    assert Sealer(spelling).open(sealed, "job") == SECRET


def test_a_fresh_secret_of_identity_is_a_sealing_key() -> None:
    Sealer(identity.secret(KEY_BYTES))


@pytest.mark.parametrize("key", ["", "  \n"])
def test_no_key_is_said_to_be_missing(key: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        Sealer(key)
    assert refusal.value.code == "sealing_key_missing"


@pytest.mark.parametrize(
    "key", ["short", base64.b64encode(bytes(31)).decode(), base64.b64encode(bytes(33)).decode(), "é" * 43]
)
def test_a_key_of_another_size_or_alphabet_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(SettingsError, match="32 bytes") as refusal:
        Sealer(key)
    assert refusal.value.code == "invalid_settings"
    assert key not in refusal.value.message


@pytest.mark.parametrize("size", [0, 11, 13])
def test_a_nonce_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="12 bytes"):
        Sealer(KEY).seal(SECRET, "job", bytes(size))


def test_nonces_of_identity_do_not_repeat() -> None:
    assert len({identity.nonce() for _ in range(1_000)}) == 1_000
