"""How much something may cost, as people and programs say it: bounds in tokens, in money, or both.

Promises that nothing is ever bounded to nothing: 0 is refused, absent and null mean unbounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from dragoman.kernel.errors import CallerError

Bounds = tuple[int | None, int | None]
"""(tokens, micro-USD); None is unbounded."""

UNBOUNDED: Bounds = (None, None)

_MICROUSD = 1_000_000
_USD_MAX = 10**9
_TOKENS_MAX = 2**53
_SPELLED = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*(usd|\$|tokens?)", re.IGNORECASE)


def read(said: Any, place: str) -> Bounds:
    """The bounds in a JSON value: null, or an object of `tokens` and `usd`. Raises `CallerError`."""
    if said is None:
        return UNBOUNDED
    if not isinstance(said, Mapping) or set(said) - {"tokens", "usd"}:
        raise CallerError(f"{place}: an object of `tokens` and `usd`, or null, is wanted here", place=place)
    return _tokens(said.get("tokens"), f"{place}.tokens"), _microusd(said.get("usd"), f"{place}.usd")


def spelled(text: str, place: str) -> dict[str, Any]:
    """`5usd` or `100000tokens`, or both with a comma, as that JSON value. Raises `CallerError`."""
    said: dict[str, Any] = {}
    for part in text.split(","):
        found = _SPELLED.fullmatch(part.strip())
        name = "" if found is None else "tokens" if found[2].lower().startswith("token") else "usd"
        if found is None or name in said or (name == "tokens" and "." in found[1]):
            raise CallerError(
                f"{place}: `5usd` or `100000tokens` is wanted, or both with a comma", place=place
            )
        said[name] = int(found[1]) if name == "tokens" else float(Decimal(found[1]))
    read(said, place)
    return said


def _tokens(said: Any, place: str) -> int | None:
    if said is None:
        return None
    if isinstance(said, float) and said.is_integer():
        said = int(said)
    if isinstance(said, bool) or not isinstance(said, int) or not 0 < said < _TOKENS_MAX:
        raise CallerError(f"{place}: a whole number above 0 is wanted here", place=place)
    return said


def _microusd(said: Any, place: str) -> int | None:
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int | float) or not _MICROUSD**-1 <= said < _USD_MAX:
        raise CallerError(f"{place}: dollars above 0 are wanted here", place=place)
    return round(said * _MICROUSD)
