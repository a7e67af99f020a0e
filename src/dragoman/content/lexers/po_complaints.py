"""What is wrong with a PO file, and on which line: asked only where its entries could not be read.

Promises one clear sentence. Walks line by line and knows what gettext allows to follow what.
"""

from __future__ import annotations

import re
from typing import NoReturn

from dragoman.content.spans import line_at, line_spans
from dragoman.kernel.errors import DocumentError

_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d{1,3})\])?(?![\w\[])[ \t]*")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"[ \t\f\v]*')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3}|x[0-9a-fA-F]{1,2})|(.))")
_KNOWN = frozenset('ntr"\\abfv')


def complain(text: str, at: int) -> NoReturn:
    """Raise `DocumentError` for the first fault from an entry's beginning on."""
    walk = _Walk(line_at(text, at))
    for start, end, _ in line_spans(text[at:]):
        walk.step(text[at + start : at + end].strip(" \t\f\v"))
    walk.close()
    raise DocumentError("this entry cannot be read: a byte of an escape is no UTF-8", walk.first)


class _Walk:
    """The keywords of one entry so far."""

    def __init__(self, line: int) -> None:
        self._line = line - 1
        self.first = line
        self._seen: list[str] = []
        self._forms = 0
        self._strings = 0
        self._keyword = ""
        self._place = line

    def step(self, line: str) -> None:
        """One line, blanks around it taken away."""
        self._line += 1
        keyword = _KEYWORD.match(line)
        begins = keyword and keyword[1] in ("msgctxt", "msgid")
        if self._seen and (line.startswith("#~") or (self._forms and (begins or line.startswith("#")))):
            self.close()
            self._seen, self._forms = [], 0
        if line.startswith("#") or not line:
            return
        if keyword:
            self._ended()
            self._begun(keyword)
        if not self._keyword:
            self._refuse("a comment or a keyword (msgid, msgstr …) is expected here")
        self._read(line, keyword.end() if keyword else 0)

    def close(self) -> None:
        """The end of an entry, or of the file."""
        self._ended()
        if self._seen and not self._forms:
            self._refuse("this entry has no msgstr", self.first)

    def _begun(self, keyword: re.Match[str]) -> None:
        name, index, seen = keyword[1], keyword[2], self._seen
        plural = "msgid_plural" in seen
        allowed = {
            "msgctxt": not seen,
            "msgid": "msgid" not in seen,
            "msgid_plural": "msgid" in seen and not plural and not self._forms,
            "msgstr": "msgid" in seen and (index == str(self._forms) if plural else not self._forms),
        }[name]
        if not allowed or (name == "msgstr" and plural) != (index is not None):
            self._refuse(f"{keyword[0].strip()} is not expected here")
        if not seen:
            self.first = self._line
        seen.append(name)
        self._forms += name == "msgstr"
        self._keyword, self._place, self._strings = name, self._line, 0

    def _read(self, line: str, at: int) -> None:
        while at < len(line):
            string = _STRING.match(line, at)
            if not string:
                self._refuse("a string in double quotes that ends on its line is expected here")
            for escape in _ESCAPE.finditer(string[1]):
                if escape[2] and escape[2] not in _KNOWN:
                    self._refuse(f"in this {self._keyword}: {escape[0]} is no escape that gettext knows")
            self._strings += 1
            at = string.end()

    def _ended(self) -> None:
        if self._keyword and not self._strings:
            self._refuse(f"this {self._keyword} has no string", self._place)
        self._keyword = ""

    def _refuse(self, reason: str, line: int = 0) -> NoReturn:
        raise DocumentError(reason, line or self._line)
