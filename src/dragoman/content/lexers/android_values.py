"""Values of Android's string resources: what an app shows of a raw value, and how to spell a text as one.

Promises what aapt2 does: outside of double quotes white space collapses, `\\n`, `\\'` and `\\u0041` are
escapes, and a CDATA section keeps its spaces and quotes. A value with elements, or with CDATA beside text, is
*markup*: its tags, sections and entities stay as they are, and only the words between them are read. What is
written reads back letter by letter, whatever the text. Knows no entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dragoman.content.lexers.escaping_habits import habits
from dragoman.content.lexers.xml_places import cdata, is_cdata, unescaped

_CODE = re.compile(
    r"<!\[CDATA\[.*?\]\]>|<!--.*?-->|<\?.*?\?>|</?[A-Za-z_:](?:[^\"'<>]|\"[^\"]*\"|'[^']*')*+>", re.DOTALL
)
_SECTION = "<![CDATA["
_OWN_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)[A-Za-z_][\w.-]*;")
_PARTS = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|\"|[ \t\r\n]+|[^\\\" \t\r\n]+|\\", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SPELLED = re.compile(rf"{_ESCAPE.pattern}|&(?:#\d{{1,7}}|#[xX][0-9A-Fa-f]{{1,6}}|\w+);", re.DOTALL)
_LINE_END = re.compile(r"\r\n|\r")
_PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_BARE = re.compile(r"&(?!#?\w+;)|<(?![A-Za-z_:/!?])")
_BARE_SPELLED = re.compile(r"&amp;(?!#?\w+;)|&lt;(?![A-Za-z_:/!?])")
"""`&` and `<` that no reader takes for code: between markup they show as they are."""
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_SHORT = {"n": "\n", "t": "\t"}
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_MUST = {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_MUST_IN_XML = {"&": "&amp;", "<": "&lt;"}
_APOSTROPHE = re.compile(r"(?<!\\)'")
_CUTS = re.compile(r"^ | $| (?= )")


def is_markup(raw: str) -> bool:
    """Whether a raw value holds elements, comments, CDATA beside text, or entities of the file's own."""
    return ("<" in raw and not is_cdata(raw)) or bool(_OWN_ENTITY.search(raw))


def shown(raw: str) -> str:
    """What an app shows of a raw value without markup."""
    if is_cdata(raw):
        return _joined(_ESCAPE.sub(_character, _LINE_END.sub("\n", unescaped(raw))))
    return _joined(_collapsed([(unescaped(raw), False)]))


def shown_markup(raw: str) -> str:
    """A raw value with its markup, and the words between it as an app shows them."""
    pieces = _pieces(_LINE_END.sub("\n", raw))
    return _joined(
        _collapsed((piece if code else _BARE_SPELLED.sub(_entity, piece), code) for piece, code in pieces)
    )


class Spelling:
    """How one file spells what it could also write plainly: `\\u00a0`, `&#8230;`, `&gt;`."""

    def __init__(self, raws: Iterable[str], elsewhere: Iterable[str], newline: str) -> None:
        self._newline = newline
        own = habits(raws, elsewhere, _SPELLED, _read)
        self._plain = _MUST | _MUST_IN_XML | own
        self._markup = _MUST | {char: form for char, form in own.items() if form[0] == "\\"}

    def plain(self, text: str, like: str) -> str:
        """A text as a raw value that looks like the raw value `like`: quoted, CDATA, or neither."""
        if is_cdata(like) and "]]>" not in text:
            return self._section(text, like)
        spelled = "".join(self._plain.get(char, char) for char in text)
        spelled = spelled.replace("]]>", "]]&gt;")
        if _QUOTED.fullmatch(like):
            if _APOSTROPHE.search(like):
                spelled = spelled.replace("\\'", "'")
            return f'"{_safe(spelled)}"'
        if _CUTS.search(text):
            return f'"{_safe(spelled)}"'
        return _safe(f"\\{spelled}" if spelled[:1] in ("@", "?") else spelled)

    def markup(self, text: str) -> str:
        """A text with markup as a raw value."""
        pieces = list(_pieces(text))
        left = sum(len(piece) for piece, code in pieces if not code or piece.startswith(_SECTION))
        out: list[str] = []
        space = True
        for piece, code in pieces:
            if code:
                out.append(piece.replace("\n", self._newline))
                if piece.startswith(_SECTION):
                    left, space = left - len(piece), False
                continue
            words: list[str] = []
            for char in piece:
                left -= 1
                kept = char == " " and (space or not left)
                words.append("\\u0020" if kept else self._markup.get(char, char))
                space = char == " " and not kept
            out.append(_BARE.sub(lambda match: _MUST_IN_XML[match[0]], "".join(words)))
        spelled = "".join(out)
        return _safe(f"\\{spelled}" if spelled[:1] in ("@", "?") else spelled)

    def _section(self, text: str, like: str) -> str:
        """As CDATA, where quotes and spaces are what they are; apostrophes only as long as older ones are."""
        spelled = text.replace("\\", "\\\\")
        if not _APOSTROPHE.search(like):
            spelled = spelled.replace("'", "\\'")
        if '\\"' in like:
            spelled = spelled.replace('"', '\\"')
        spelled = spelled.replace("\n", self._newline if "\n" in like else "\\n")
        return cdata(_safe(spelled))


def _pieces(raw: str) -> Iterator[tuple[str, bool]]:
    """Words and code, each with whether it is code."""
    at = 0
    for match in _CODE.finditer(raw):
        if match.start() > at:
            yield raw[at : match.start()], False
        yield match[0], True
        at = match.end()
    if at < len(raw):
        yield raw[at:], False


def _collapsed(pieces: Iterable[tuple[str, bool]]) -> str:
    """The pieces as aapt2 puts them together; quotes and spaces reach across code."""
    out: list[str] = []
    quoted, space, ending = False, True, -1
    for piece, code in pieces:
        if code:
            out.append(piece)
            if piece.startswith(_SECTION):
                space, ending = False, -1
            continue
        for part in _PARTS.findall(piece):
            if part == '"':
                quoted = not quoted
                continue
            if part[0] in " \t\r\n" and not quoted:
                if not space:
                    ending = len(out)
                    out.append(" ")
                space = True
                continue
            out.append(_character_of(part) if part[0] == "\\" else _LINE_END.sub("\n", part))
            space, ending = False, -1
    if ending >= 0:
        del out[ending]
    return "".join(out)


def _entity(match: re.Match[str]) -> str:
    return unescaped(match[0])


def _character_of(escape: str) -> str:
    if len(escape) > 2:
        return chr(int(escape[2:], 16))
    return _SHORT.get(escape[1:], escape[1:])


def _character(match: re.Match[str]) -> str:
    return _character_of(match[0])


def _read(form: str) -> str:
    """The character of one escape or entity; none for quotes, which are no characters here."""
    if form[0] == "\\":
        return _character_of(form)
    char = unescaped(form)
    return char if len(char) == 1 and char not in "\"'" else ""


def _joined(text: str) -> str:
    """Halves of surrogate pairs, written one by one, are one character."""
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16-be", "surrogatepass").decode("utf-16-be"), text)


def _safe(raw: str) -> str:
    """What XML cannot hold, or would change, as escapes."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", raw)
