"""WordPress posts, pages, terms and media as its REST API gives them for editing (JSON with `raw` values).

Promises one text for each paragraph, heading, item and caption of the content, for the spoken attributes of
Gutenberg's blocks, for title and excerpt, for what people wrote into ACF's fields and into the SEO values of
Yoast, Rank Math, AIOSEO and SEOPress; that blocks, their attributes, shortcodes and all other members stay as
they are; and that attributes keep the escaping of block comments. What is `rendered` is output and stays. Is
written whole, and rebuilt from its source. Fields of plugins under names of their own are not seen.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, cast

from dragoman.content.catalogues.rich_text import SPOKEN, is_spoken
from dragoman.content.lexers import gutenberg
from dragoman.content.lexers.gutenberg import Piece
from dragoman.content.lexers.html_blocks import SPOKEN as READ_OUT
from dragoman.content.lexers.json_offsets import string_offsets
from dragoman.content.lexers.json_tokens import Value, scan, spelling_of
from dragoman.content.spans import splice
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Block, Document, Edit, Role, Span, Text, Writing

_POST = re.compile(
    r'"(?:title|content|excerpt|caption|description)"\s*:\s*\{\s*"raw"\s*:|(?:<|\\u003c)!-- wp:',
    re.IGNORECASE,
)
_FIELDS = ("title", "excerpt", "content", "caption", "description", "alt_text")
_META = re.compile(
    r"_yoast_wpseo_(?:title|metadesc|bctitle|(?:opengraph|twitter)-(?:title|description))"
    r"|rank_math_(?:(?:facebook_|twitter_)?(?:title|description)|breadcrumb_title)"
    r"|_aioseo_(?:og_|twitter_)?(?:title|description)"
    r"|_seopress_titles_(?:title|desc)|_seopress_social_(?:fb|twitter)_(?:title|desc)"
)
_CODE = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*|field_\w+|#[0-9A-Fa-f]{3,8}|\d[\d.:T+-]*Z?")
"""What a field holds that is a choice, a colour or a date."""
_ATTRIBUTES = SPOKEN | {
    "mediaAlt",
    "customText",
    "moreText",
    "submitLabel",
    "submitButtonText",
    "searchLabel",
}


@dataclass(frozen=True, slots=True)
class _Held:
    """One string of the file with the texts in it; keys are those of blocks."""

    path: tuple[str, ...]
    value: Value
    pieces: Sequence[Piece]
    prefix: str


class WordPressPost:
    """The format `wordpress`."""

    name = "wordpress"
    extensions: tuple[str, ...] = (".json",)
    whole = True
    shared = False
    renames: Mapping[str, str] = {}

    def detect(self, path: str, head: str) -> bool:
        """JSON with a `raw` title or content, or with blocks, near its beginning."""
        return path.lower().endswith(self.extensions) and bool(_POST.search(head))

    def charset(self, data: bytes) -> str | None:
        """JSON is Unicode."""
        return None

    def read(self, text: str, role: Role, locale: str) -> Document:
        """All texts, in file order."""
        root = scan(text)
        if root.kind not in ("object", "array"):
            raise DocumentError("a post is an object, not a single value", line=1)
        held = tuple(_held(root))
        blocks = {}
        for each in held:
            at = string_offsets(text, each.value)
            for piece in each.pieces:
                key = each.prefix + piece.key
                blocks[key] = Block(
                    key,
                    piece.text,
                    (Span(at(piece.span.start), at(piece.span.end)),),
                    syntax="html" if piece.is_markup else "none",
                    note=piece.note or next(name for name in reversed(each.path) if name != "raw"),
                )
        return Document(self.name, text, tuple(blocks.values()), role, locale, extras={"held": held})

    def write(
        self, base: Document, source: Document, translations: Mapping[str, Text], locale: str
    ) -> Writing:
        """The source with its texts replaced; `base` is the source."""
        spelling = spelling_of(base.text)
        edits: list[Edit] = []
        written: dict[str, Text] = {}
        for each in _strings(base):
            at = string_offsets(base.text, each.value)
            values = {
                piece.key: _one(key, translations[key])
                for piece in each.pieces
                if (key := each.prefix + piece.key) in translations
            }
            for span, raw, key, read in _changes(each, values):
                written |= {each.prefix + name: found for name, found in read.items()}
                if span:
                    place = Span(at(span.start), at(span.end))
                    edits.append(Edit(place, spelling.inner(raw), "value", each.prefix + key))
        return Writing(splice(base.text, edits), tuple(edits), (), written)

    def second_opinion(self, before: Document, after: Document) -> str:
        """The standard library must find our texts, the same tags, blocks and attributes, and all else."""
        old, new = (json.loads(document.text) for document in (before, after))
        for one, other in zip(_strings(before), _strings(after), strict=True):
            earlier, later = (_Reading(_taken(root, one.path)) for root in (old, new))
            if one.path != other.path or earlier.kept != later.kept:
                changed = next(iter((earlier.kept - later.kept) + (later.kept - earlier.kept)), one.path[-1])
                return f"a tag, a block or an attribute would change: {changed[:120]}"
            for piece in other.pieces:
                words = _Reading(piece.text).words if piece.is_markup else "".join(piece.text.split())
                if words not in (later.words if piece.is_markup else later.attributes):
                    return f"another parser finds another text at {other.prefix + piece.key!r}"
        return "" if old == new else "something that is no text would change"


def _changes(
    each: _Held, values: Mapping[str, str]
) -> Iterator[tuple[Span | None, str, str, dict[str, str]]]:
    """For each text with a translation: what to put where, under which key, and what will then be read."""
    done: set[str] = set()
    behind = 0
    for piece in each.pieces:
        if piece.key in done or piece.key not in values:
            continue
        if piece.span.start < behind:
            raise DragomanError(
                f"{each.prefix + piece.key!r} lost its tag in the text around it", "verify_failed"
            )
        if values[piece.key] == piece.text:
            yield None, "", piece.key, {piece.key: piece.text}
            continue
        raw, read = gutenberg.put(each.value.text, piece, values[piece.key], values)
        yield piece.span, raw, piece.key, read
        done |= set(read)
        behind = piece.span.end


def _held(root: Value) -> Iterator[_Held]:
    """The strings of one post, or of a list of them, that hold texts."""
    if root.kind == "array":
        for member in root.members:
            for each in _held(member.value):
                yield _Held(
                    (member.name, *each.path), each.value, each.pieces, f"{member.name}/{each.prefix}"
                )
        return
    for member in root.members:
        inside = member.value
        if member.name in _FIELDS:
            yield from _string((member.name,), inside)
        elif member.name == "meta":
            for other in inside.members if inside.kind == "object" else ():
                if _META.fullmatch(other.name):
                    yield from _string((member.name, other.name), other.value)
        elif member.name == "acf":
            yield from _fields((member.name,), inside)


def _string(path: tuple[str, ...], value: Value) -> Iterator[_Held]:
    """A string, the `raw` one of an object, or the items of an array."""
    if value.kind == "object":
        raw = value.member("raw")
        if raw and raw.value.kind == "string":
            yield _place((*path, "raw"), raw.value)
    elif value.kind == "array":
        for member in value.members:
            yield from _string((*path, member.name), member.value)
    elif value.kind == "string":
        yield _place(path, value)


def _fields(path: tuple[str, ...], value: Value) -> Iterator[_Held]:
    """The strings below ACF's fields that people wrote."""
    for member in value.members:
        where = (*path, member.name)
        if member.value.kind == "string" and _is_written(member.value.text):
            yield _place(where, member.value)
        elif member.value.kind in ("object", "array"):
            yield from _fields(where, member.value)


def _place(path: tuple[str, ...], value: Value) -> _Held:
    prefix = "/".join(name.replace("~", "~0").replace("/", "~1") for name in path if name != "raw")
    found = gutenberg.pieces(value.text, _is_text)
    return _Held(path, value, found, prefix if found and not found[0].key else f"{prefix}/")


def _is_text(block: str, name: str, text: str) -> bool:
    """Whether an attribute of a block is for people; ACF's blocks hold fields."""
    if block.startswith("acf/"):
        return not name.startswith("_") and _is_written(text) and (name in _ATTRIBUTES or " " in text.strip())
    return name in _ATTRIBUTES and is_spoken(text)


def _is_written(text: str) -> bool:
    return is_spoken(text) and not _CODE.fullmatch(text.strip())


def _one(key: str, value: Text) -> str:
    if isinstance(value, str):
        return value
    raise DragomanError(f"{key!r} is one text, and its translation has plural forms", "verify_failed")


def _strings(document: Document) -> tuple[_Held, ...]:
    return cast(tuple[_Held, ...], document.extras["held"])


def _taken(root: Any, path: tuple[str, ...]) -> str:
    """The string at a path, which is emptied."""
    *above, last = path
    for name in above:
        root = root[int(name)] if isinstance(root, list) else root[name]
    index: Any = int(last) if isinstance(root, list) else last
    found, root[index] = str(root[index]), ""
    return found


class _Reading(HTMLParser):
    """A value as the standard library sees it: words, spoken attributes, and what must be kept."""

    def __init__(self, value: str) -> None:
        super().__init__(convert_charrefs=True)
        self.attributes: set[str] = set()
        self.kept: Counter[str] = Counter()
        self._parts: list[str] = []
        self.feed(value)
        self.close()
        self.words = "".join("".join(self._parts).split())

    def handle_data(self, data: str) -> None:
        """Words."""
        self._parts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag is kept, but for what is read out."""
        self.attributes |= {"".join((value or "").split()) for name, value in attrs if name in READ_OUT}
        self.kept[f"<{tag} {[(name, '' if name in READ_OUT else value) for name, value in attrs]}>"] += 1

    def handle_endtag(self, tag: str) -> None:
        """Kept."""
        self.kept[f"</{tag}>"] += 1

    def handle_comment(self, data: str) -> None:
        """Kept; of a block's attributes, the texts are not."""
        head, brace, tail = data.partition("{")
        try:
            attributes = (
                json.loads(brace + tail.strip().removesuffix("/")) if head.startswith(" wp:") else None
            )
        except ValueError:
            attributes = None
        if isinstance(attributes, dict):
            data = head + json.dumps(self._blanked(head.removeprefix(" wp:").strip(), "", attributes))
        self.kept[f"<!--{data}-->"] += 1

    def _blanked(self, block: str, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {each: self._blanked(block, each, inside) for each, inside in value.items()}
        if isinstance(value, list):
            return [self._blanked(block, name, inside) for inside in value]
        if isinstance(value, str) and _is_text(block, name, value):
            self.attributes.add("".join(value.split()))
            return ""
        return value
