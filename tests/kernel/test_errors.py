"""The error tree and its codes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.kernel import errors, limits
from dragoman.kernel.errors import CODES, DragomanError, sanitize


def tree(root: type[DragomanError] = DragomanError) -> list[type[DragomanError]]:
    """The errors of the kernel; a room may have one of its own, which it does not let out."""
    ours = [child for child in root.__subclasses__() if child.__module__ == errors.__name__]
    return [root, *(leaf for child in ours for leaf in tree(child))]


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_a_code_is_short_stable_snake_case_and_says_what_to_do(code: errors.Code) -> None:
    """[M-313] The effect catalogue alone keeps the upper case of its seed."""
    spelling = r"[A-Z]+(_[A-Z]+)*" if code.kind == "effect" else r"[a-z]+(_[a-z]+)*"
    assert re.fullmatch(spelling, code.name)
    assert len(code.name.encode()) <= limits.CODE_BYTES
    assert code.remedy.endswith(".")
    assert 200 <= code.status <= 599


def test_no_code_stands_twice() -> None:
    assert len(CODES) == len(errors._TABLE)


@pytest.mark.parametrize(
    "name",
    [
        "authorization_revoked",
        "document_not_found",
        "unsupported_locale",
        "target_protected",
        "invalid_fields",
        "payload_too_large",
    ],
)
def test_what_only_a_person_can_mend_is_not_retried(name: str) -> None:
    """[M-192]"""
    assert not CODES[name].retryable


@pytest.mark.parametrize(
    "name", ["backend_unavailable", "backend_rate_limited", "lease_lost", "internal_error", "retry_exhausted"]
)
def test_what_may_pass_by_itself_can_be_retried(name: str) -> None:
    """[M-193]"""
    assert CODES[name].retryable


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_every_error_of_the_tree_has_a_code_of_the_table_and_its_remedy(kind: type[DragomanError]) -> None:
    error = kind("what happened")
    assert error.remedy == CODES[error.code].remedy
    assert str(error) == error.message == "what happened"


def test_the_drawing_above_the_tree_is_the_tree() -> None:
    drawn = re.findall(r"^ +[│├└─ ]*([A-Z]\w+) ", str(errors.__doc__), re.MULTILINE)
    assert ["DragomanError", *drawn] == [kind.__name__ for kind in tree()]


def test_an_unknown_code_cannot_be_raised() -> None:
    """[M-313]"""
    with pytest.raises(ValueError, match="unknown error code"):
        DragomanError("x", "no_such_code")


def test_a_document_error_names_its_line() -> None:
    error = errors.DocumentError("a quote is never closed", line=12)
    assert error.message == "line 12: a quote is never closed"
    assert error.place == "line 12"
    assert errors.DocumentError("empty").place == ""


@given(st.text() | st.text(st.sampled_from("a\r\n\x00\x85\u2028\u2029\u202e\u2066\u200f\u061c €")))
def test_a_message_is_one_bounded_line_without_control_or_bidi_characters(text: str) -> None:
    """[M-314]"""
    message = sanitize(text)
    assert len(message.encode("utf-8")) <= limits.MESSAGE_BYTES
    assert len(message.splitlines()) <= 1
    assert not re.search("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", message)


def test_a_long_message_is_cut_between_characters() -> None:
    """[M-314]"""
    assert sanitize("€" * 500) == "€" * (limits.MESSAGE_BYTES // 3)


def test_every_error_sanitizes_its_message() -> None:
    """[M-314]"""
    assert errors.StoreError("gone\r\nX-Injected: yes\x1b[31m").message == "gone X-Injected: yes [31m"
