"""The way in and out of files, for any format: choose, open, render; every rendering is verified first.

Promises that nothing is given out which would not read back: by our reader and by a second parser, with the
same units, the untouched ones as they were, and no byte changed outside the declared edits. Knows no format.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dragoman.content.spans import ByteEdit, decode, encode, in_bytes, splice, splice_bytes
from dragoman.kernel.errors import CallerError, DocumentError, DragomanError
from dragoman.model.contracts import Format
from dragoman.model.documents import Document, Role, Text, Writing

HEAD_BYTES = 16_384
"""How much of a file tells its format."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A file ready to be written. `edits`, applied to the bytes of `base`, give exactly `data`.

    `base` says which file that is: the existing target, or the source. `lost` are the target's keys that the
    source does not have any more; they were left in place.
    """

    data: bytes
    edits: tuple[ByteEdit, ...]
    lost: tuple[str, ...]
    base: Role


def choose_format(formats: Iterable[Format], path: str, data: bytes = b"") -> Format:
    """The first format that knows the file by its name and how its bytes begin.

    Raises `CallerError` naming them all.
    """
    known, head = tuple(formats), head_of(data)
    for format in known:
        if format.detect(path, head):
            return format
    names = ", ".join(f"{format.name} ({' '.join(format.extensions)})" for format in known)
    raise CallerError(f"{path} is of no known format; known are: {names}", "unsupported_format", place=path)


def head_of(data: bytes) -> str:
    """The beginning of a file as text, as well as it can be read; what `Format.detect` looks at."""
    head = data[:HEAD_BYTES]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head.decode("utf-16", "replace")
    return head.decode("utf-8-sig", "replace")


def open_document(format: Format, path: str, data: bytes, role: Role, locale: str) -> Document:
    """Decode and read a file. Raises `DocumentError` whose `place` is `path:line`."""
    try:
        decoded = decode(data, format.charset(data))
        document = format.read(decoded.text, role, locale)
    except DocumentError as error:
        error.place = f"{path}:{error.line}" if error.line else path
        raise
    return replace(document, encoding=decoded.encoding, bom=decoded.bom)


def render(
    format: Format, base: Document | None, source: Document, translations: Mapping[str, Text], locale: str
) -> Rendered:
    """The target's bytes with these translations in place, verified.

    `base` is the target as it stands, None where none does. A format that is `whole` is always rebuilt from
    the source. Raises `DragomanError`: `would_empty` for an empty text over content, `verify_failed` with the
    reason where the result would not read back.
    """
    stand = source if base is None or format.whole else base
    _refuse_unfit(format, source, translations)
    _refuse_empty(base or source, source, translations)
    writing = format.write(stand, source, translations, locale)
    is_read = (stand.role, stand.locale) == ("target", locale)
    before = stand if is_read else format.read(stand.text, "target", locale)
    if before.blocks and not writing.text.strip():
        raise DragomanError("nothing would be left of the file's content", "would_empty")
    if base is not None and base.text.strip() and not writing.text.strip():
        raise DragomanError("the result is empty, and the target is not", "would_empty")
    rendered = _in_bytes(stand, writing)
    _verify_landed(format, writing, translations)
    _verify_reading(format, before, writing, locale)
    return rendered


def take_back(
    format: Format, now: Document, before: Document, keys: Collection[str], locale: str
) -> Rendered:
    """A shared file as it stands, with these texts of one locale as they were, or gone where none stood.

    Both documents are targets in that locale. Raises `DragomanError` verify_failed as `render` does.
    """
    former = {block.key: block.value for block in before.blocks}
    writing = format.write(now, before, {key: former.get(key, "") for key in keys}, locale)
    rendered = _in_bytes(now, writing)
    _verify_reading(format, now, writing, locale)
    return rendered


def explain(edits: Sequence[ByteEdit]) -> list[dict[str, object]]:
    """The edits as plain data: applied to the base's bytes, in order, they give the output's bytes."""
    return [
        {
            "start": edit.start,
            "end": edit.end,
            "kind": edit.kind,
            "key": edit.key,
            "text": edit.text,
            "encoding": edit.encoding,
        }
        for edit in edits
    ]


def _forms(value: Text) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value.values())


def _has_words(value: Text) -> bool:
    """Whether any form holds a letter: a text without one needs no translation."""
    return any(any(map(str.isalpha, form)) for form in _forms(value))


def _refuse_unfit(format: Format, source: Document, translations: Mapping[str, Text]) -> None:
    known = {block.key: block for block in source.blocks}
    if strange := next((key for key in translations if key not in known), None):
        raise DragomanError(f"there is no field {strange!r} in the source", "verify_failed")
    missing = [key for key, block in known.items() if key not in translations and _has_words(block.value)]
    if format.whole and missing:
        what = f"{len(missing)} of {len(known)} fields have no translation, the first is {missing[0]!r}"
        raise DragomanError(f"{what}; {format.name} is written complete or not at all", "verify_failed")


def _refuse_empty(stand: Document, source: Document, translations: Mapping[str, Text]) -> None:
    content = {
        block.key for block in (*source.blocks, *stand.blocks) if any(map(str.strip, _forms(block.value)))
    }
    for key, value in translations.items():
        if key in content and not all(map(str.strip, _forms(value) or ("",))):
            raise DragomanError(f"the translation of {key!r} is empty where content stands", "would_empty")


def _in_bytes(stand: Document, writing: Writing) -> Rendered:
    """Text to bytes, and the proof that the edits and nothing else made the difference."""
    if splice(stand.text, writing.edits) != writing.text:
        raise DragomanError("the text is not what its edits make of the base", "verify_failed")
    data = encode(writing.text, stand.encoding, stand.bom)
    edits = in_bytes(stand.text, writing.edits, stand.encoding, stand.bom)
    if splice_bytes(encode(stand.text, stand.encoding, stand.bom), edits) != data:
        raise DragomanError("a byte outside the declared edits would change", "verify_failed")
    return Rendered(data, edits, writing.lost, stand.role)


def _verify_landed(format: Format, writing: Writing, translations: Mapping[str, Text]) -> None:
    """Every translation has a place, letter by letter in catalogues; prose is fitted to its lines."""
    for key, asked in translations.items():
        if key not in writing.written or key in writing.removed:
            raise DragomanError(f"the translation of {key!r} found no place", "verify_failed")
        if not format.whole and not set(_forms(writing.written[key])) <= set(_forms(asked)):
            raise DragomanError(f"the translation of {key!r} was written as another text", "verify_failed")


def _verify_reading(format: Format, before: Document, writing: Writing, locale: str) -> None:
    """Read the result again, twice, and compare it with what was there and what was meant."""
    try:
        after = format.read(writing.text, "target", locale)
    except DocumentError as error:
        raise DragomanError(f"the result would not read back: {error.message}", "verify_failed") from error
    expected = {block.key: block.value for block in before.blocks if block.key not in writing.removed}
    expected |= writing.written
    found = {block.key: block.value for block in after.blocks}
    for key in {**expected, **found}:
        if expected.get(key) != found.get(key):
            untouched = "" if key in writing.written else ", which was not to be touched"
            raise DragomanError(f"{key!r} reads back as another text{untouched}", "verify_failed")
    if complaint := format.second_opinion(before, after):
        raise DragomanError(complaint, "verify_failed")
