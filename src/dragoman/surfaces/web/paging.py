"""Cursors: where a list goes on, as a text that only we read.

A cursor names its list, so that one of another list is refused instead of leading somewhere.
"""

from __future__ import annotations

import base64
import re

from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import CURSOR_CHARS_MAX

_TOO_GREAT = re.compile(r"\d{19}")  # more than a database's whole numbers hold


def seal(list_name: str, position: str | int | None) -> str | None:
    """The cursor behind `position`; None where the list ends."""
    if position is None or position == "":
        return None
    return base64.urlsafe_b64encode(f"{list_name} {position}".encode()).decode("ascii").rstrip("=")


def position(list_name: str, cursor: str | None) -> str:
    """What `seal` was given for this list, '' without a cursor. Raises `CallerError` invalid_request."""
    if not cursor:
        return ""
    name, _, found = _opened(cursor).partition(" ")
    if name != list_name or not found or _TOO_GREAT.search(found):
        raise _unknown()
    return found


def ordinal(list_name: str, cursor: str | None, before_first: int = -1) -> int:
    """As `position`, for lists in the order of whole numbers; `before_first` without a cursor."""
    found = position(list_name, cursor)
    if not found:
        return before_first
    if not found.isdecimal():
        raise _unknown()
    return int(found)


def _opened(cursor: str) -> str:
    if len(cursor) > CURSOR_CHARS_MAX:
        raise _unknown()
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode(
            "ascii"
        )
    except ValueError:
        raise _unknown() from None
    if not text.isprintable():
        raise _unknown()
    return text


def _unknown() -> CallerError:
    return CallerError(
        "cursor: none of this list; take it from `next` of the page before", place="query.cursor"
    )
