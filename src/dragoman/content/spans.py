"""Bytes to text and back, and the splice: the only way in which a document's text ever changes.

Promises that what `decode` read `encode` writes byte for byte, that `splice` changes nothing outside its
edits, and that every edit can be told in byte offsets of the file. All of it is linear. Knows no format.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from dragoman.kernel.errors import DocumentError
from dragoman.model.documents import Edit, EditKind

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, ""),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, ""),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LINE_END = re.compile(r"\r\n|\n|\r")

by_place = itemgetter(0)
"""Sorts edits by their spans; those of one place keep their order."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text without its byte order mark, and what it takes to write it back identically."""

    text: str
    encoding: str
    bom: bytes


@dataclass(frozen=True, slots=True)
class ByteEdit:
    """One edit in the file itself: bytes `start` to `end` (half open) of the base become `text`, encoded."""

    start: int
    end: int
    text: str
    kind: EditKind
    key: str
    encoding: str

    @property
    def data(self) -> bytes:
        """The bytes that are put in."""
        return self.text.encode(self.encoding)


def decode(data: bytes, charset: str | None = None) -> Decoded:
    """Read UTF-8, UTF-16 with its mark, or the `charset` that the file declares.

    Raises `DocumentError` that names the line and the byte which cannot be read.
    """
    bom, encoding = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), (b"", None))
    if encoding == "":
        raise DocumentError("UTF-32 is not read: save the file as UTF-8", line=1)
    encoding = encoding or _codec(charset)
    body = data[len(bom) :]
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        before = body[: error.start].decode(encoding, "replace")
        byte = f"byte {len(bom) + error.start + 1} of the file (0x{body[error.start]:02x})"
        raise DocumentError(f"{byte} is not {encoding.upper()}", line_at(before, len(before))) from error
    if (zero := text.find("\0")) >= 0:
        raise DocumentError(
            "a NUL character: this is a binary file, or UTF-16 without its byte order mark",
            line=line_at(text, zero),
        )
    if bom + text.encode(encoding) != data:
        raise DocumentError(f"{encoding.upper()} does not write back as it was read: save the file as UTF-8")
    return Decoded(text, encoding, bom)


def encode(text: str, encoding: str, bom: bytes = b"") -> bytes:
    """The bytes of a text, its mark first. Raises `DocumentError` for what the encoding cannot hold."""
    try:
        return bom + text.encode(encoding)
    except UnicodeEncodeError as error:
        raise DocumentError(
            f"{text[error.start]!r} cannot be written in {encoding.upper()}: convert the file to UTF-8",
            line=line_at(text, error.start),
        ) from error


def splice(text: str, edits: Iterable[Edit]) -> str:
    """Replace each edit's span. Raises `ValueError` unless edits are in order, apart and inside the text."""
    parts: list[str] = []
    at = 0
    for edit in edits:
        start, end = edit.span.start, edit.span.end
        if not at <= start <= end <= len(text):
            raise ValueError(f"edit {start}…{end} of {edit.key!r} overlaps another, or leaves the text")
        parts += (text[at:start], edit.text)
        at = end
    parts.append(text[at:])
    return "".join(parts)


def in_bytes(text: str, edits: Sequence[Edit], encoding: str, bom: bytes = b"") -> tuple[ByteEdit, ...]:
    """The same edits in byte offsets of the file that `text` was decoded from."""
    found: list[ByteEdit] = []
    at, offset = 0, len(bom)
    for edit in edits:
        start = offset + len(text[at : edit.span.start].encode(encoding))
        end = start + len(text[edit.span.start : edit.span.end].encode(encoding))
        found.append(ByteEdit(start, end, edit.text, edit.kind, edit.key, encoding))
        at, offset = edit.span.end, end
    return tuple(found)


def splice_bytes(data: bytes, edits: Iterable[ByteEdit]) -> bytes:
    """Apply byte edits to the file that they were told for."""
    parts: list[bytes] = []
    at = 0
    for edit in edits:
        parts += (data[at : edit.start], edit.data)
        at = edit.end
    parts.append(data[at:])
    return b"".join(parts)


def line_at(text: str, offset: int) -> int:
    """The line of an offset, counted from 1, whichever way lines end."""
    line = 1
    for match in _LINE_END.finditer(text, 0, offset):
        # a CR at the edge of the search is the first half of a CRLF that the search could not see whole
        line += not (match[0] == "\r" and text.startswith("\n", match.end()))
    return line


def newline_of(text: str) -> str:
    """The file's own line end: that of its first line, LF where it has none."""
    match = _LINE_END.search(text)
    return match[0] if match else "\n"


def line_spans(text: str) -> list[tuple[int, int, int]]:
    """Every line as `(start, end of its characters, start of the next)`; an empty text has none."""
    spans: list[tuple[int, int, int]] = []
    at = 0
    for match in _LINE_END.finditer(text):
        spans.append((at, match.start(), match.end()))
        at = match.end()
    if at < len(text):
        spans.append((at, len(text), len(text)))
    return spans


def _codec(charset: str | None) -> str:
    """Python's name of a declared charset; ASCII is read as UTF-8, of which it is a part."""
    if charset is None:
        return "utf-8"
    try:
        name = codecs.lookup(charset).name
        "".encode(name)
    except LookupError as error:
        raise DocumentError(f"the declared charset {charset!r} is unknown: save the file as UTF-8") from error
    return "utf-8" if name == "ascii" else name
