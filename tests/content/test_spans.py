from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content import spans
from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Edit, Span

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
FILES = st.tuples(
    TEXTS,
    st.sampled_from(
        [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")]
    ),
)


def edits_of(text: str, cuts: list[int], news: list[str]) -> list[Edit]:
    places = sorted(cut % (len(text) + 1) for cut in cuts)
    return [
        Edit(Span(start, end), new, "value", f"k{number}")
        for number, ((start, end), new) in enumerate(zip(pairwise(places), news, strict=False))
        if number % 2 == 0
    ]


@given(FILES)
def test_what_is_decoded_encodes_to_the_same_bytes(file: tuple[str, tuple[str, bytes]]) -> None:
    text, (encoding, bom) = file
    if not bom and text.startswith("\ufeff"):
        return  # that is a mark, not a character
    decoded = spans.decode(bom + text.encode(encoding))
    assert decoded == spans.Decoded(text, encoding, bom)
    assert spans.encode(decoded.text, decoded.encoding, decoded.bom) == bom + text.encode(encoding)


@given(FILES, st.lists(st.integers(0, 10_000), max_size=12), st.lists(TEXTS, max_size=12))
def test_byte_edits_make_of_the_base_what_the_splice_makes_of_its_text(
    file: tuple[str, tuple[str, bytes]], cuts: list[int], news: list[str]
) -> None:
    text, (encoding, bom) = file
    edits = edits_of(text, cuts, news)
    told = spans.in_bytes(text, edits, encoding, bom)
    data = spans.encode(text, encoding, bom)
    assert spans.splice_bytes(data, told) == spans.encode(spans.splice(text, edits), encoding, bom)
    assert [edit.key for edit in told] == [edit.key for edit in edits]


@given(TEXTS)
def test_no_edit_is_no_change(text: str) -> None:
    assert spans.splice(text, ()) == text


@given(TEXTS, st.lists(st.integers(0, 10_000), max_size=12), st.lists(TEXTS, max_size=12))
def test_a_splice_keeps_all_that_lies_between_its_edits(text: str, cuts: list[int], news: list[str]) -> None:
    edits = edits_of(text, cuts, news)
    result = spans.splice(text, edits)
    at = kept = 0
    for edit in edits:
        between = text[kept : edit.span.start]
        assert result.startswith(between + edit.text, at)
        at += len(between) + len(edit.text)
        kept = edit.span.end
    assert result[at:] == text[kept:]


@pytest.mark.parametrize(
    "places",
    [[(3, 5), (4, 6)], [(3, 5), (1, 2)], [(5, 3)], [(8, 11)]],
    ids=["overlap", "order", "turned", "out"],
)
def test_edits_that_overlap_or_leave_the_text_are_refused(places: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="overlaps another, or leaves the text"):
        spans.splice("0123456789", [Edit(Span(*place), "x", "value") for place in places])


def test_insertions_at_one_place_keep_their_order() -> None:
    edits = [Edit(Span(1, 1), new, "insertion") for new in "abc"]
    assert spans.splice("12", edits) == "1abc2"


@pytest.mark.parametrize(
    "data, line, told",
    [
        (b"one\ntwo\n\xff", 3, "byte 9 of the file (0xff) is not UTF-8"),
        (b"one\r\ntwo \xc3\x28", 2, "byte 10 of the file (0xc3)"),
        (b"\xef\xbb\xbfa\rb\xa0", 2, "byte 7 of the file (0xa0)"),
        (b"\xff\xfea\0\n\0b", 2, "is not UTF-16-LE"),
        (b"\xff\xfe\0\0a\0\0\0", 1, "UTF-32 is not read"),
        (b"one\nt\0wo", 2, "a NUL character"),
    ],
)
def test_bytes_that_cannot_be_read_are_refused_by_line_and_byte(data: bytes, line: int, told: str) -> None:
    with pytest.raises(DocumentError) as refused:
        spans.decode(data)
    assert refused.value.line == line
    assert told in refused.value.message


def test_a_declared_charset_is_obeyed_and_its_limits_are_told() -> None:
    decoded = spans.decode("für".encode("latin-1"), "ISO-8859-1")
    assert decoded.text == "für"
    assert spans.encode(decoded.text, decoded.encoding) == "für".encode("latin-1")
    with pytest.raises(DocumentError, match="'č' cannot be written in ISO8859-1: convert the file to UTF-8"):
        spans.encode("ano\nč", decoded.encoding)
    with pytest.raises(DocumentError, match="charset 'klingon' is unknown"):
        spans.decode(b"x", "klingon")
    with pytest.raises(DocumentError, match="charset 'hex' is unknown"):
        spans.decode(b"00", "hex")


@given(st.lists(st.sampled_from(["a", "\r", "\n", "\r\n", "\u2028", "\f"])).map("".join))
def test_lines_are_counted_alike_whichever_way_they_end(text: str) -> None:
    lines = spans.line_spans(text)
    assert "".join(text[start:following] for start, _, following in lines) == text
    for number, (start, end, _) in enumerate(lines, start=1):
        assert spans.line_at(text, start) == number
        assert spans.line_at(text, end) == number
