"""Canonical JSON: one value, one string of bytes (RFC 8785), and the strict reading of JSON from outside.

`encode` promises the bytes of RFC 8785, or a refusal that names the place as a JSON path: integers that a
double cannot hold, NaN and infinities, lone surrogates, keys that are not text, values that JSON does not
have, nesting too deep. `parse` promises one object in UTF-8 with unique keys, and `encode` refuses nothing
that `parse` gave.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import chain
from json.encoder import encode_basestring
from typing import Any

from dragoman.kernel import limits
from dragoman.kernel.errors import CallerError
from dragoman.kernel.identity import sha256

SAFE_INTEGER_MAX = 2**53 - 1

_SAFE_DIGITS = len(str(SAFE_INTEGER_MAX))
_BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")

_TOO_DEEP = f"nested deeper than {limits.JSON_DEPTH_MAX} levels"
_PATH_CHARS_MAX = 200

_CONTAINERS = frozenset({dict, list, tuple})
_AGREED = _CONTAINERS | {str, int, bool, type(None)}
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, check_circular=False)

_Put = Callable[[str], None]


def encode(value: object) -> bytes:
    """The canonical bytes of a JSON value. Raises `CallerError` invalid_request; its place is a JSON path."""
    return _encode(value, "invalid_request")


def fingerprint(value: object) -> str:
    """SHA-256 over the canonical bytes, 64 hexadecimal characters. Refuses what `encode` refuses."""
    return sha256(encode(value))


def parse(data: bytes) -> dict[str, Any]:
    """The one object that `data` holds. Raises `CallerError` invalid_json, placed by path, line or byte."""
    text = _decode(data)
    reading = _Reading()
    try:
        value = json.loads(
            text,
            object_pairs_hook=reading.members,
            parse_int=reading.integer,
            parse_float=reading.real,
            parse_constant=reading.real,
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise CallerError(f"{place}: {error.msg}", "invalid_json", place) from None
    except RecursionError:
        raise CallerError(f"$: {_TOO_DEEP}", "invalid_json", "$") from None
    if not isinstance(value, dict):
        raise CallerError("$: one JSON object is wanted here, its members in braces", "invalid_json", "$")
    if reading.doubtful or _SURROGATE_ESCAPE.search(text) or _depth(value) > limits.JSON_DEPTH_MAX:
        _thorough(value, "invalid_json")
    return value


class _Fault(Exception):
    """Why a value has no canonical form; the keys and indices that lead to it gather while it rises."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.way: list[object] = []

    def path(self) -> str:
        whole = "$" + "".join(_step(step) for step in reversed(self.way))
        return whole if len(whole) <= _PATH_CHARS_MAX else "…" + whole[-_PATH_CHARS_MAX:]


class _Doubled(dict[str, Any]):
    """An object that was written with one key twice."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs)
        self.key = next(key for key in counts if counts[key] > 1)


class _Reading:
    """The parser's hooks. They note that something may be wrong; the writer then finds out what and where."""

    def __init__(self) -> None:
        self.doubtful = False

    def members(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        self.doubtful = True
        return _Doubled(pairs)

    def integer(self, digits: str) -> int:
        # the first twenty digits of a longer number are beyond the bound already, and cost no quadratic time
        self.doubtful = self.doubtful or len(digits) >= _SAFE_DIGITS
        return int(digits[:20])

    def real(self, digits: str) -> float:
        number = float(digits)
        self.doubtful = self.doubtful or not math.isfinite(number)
        return number


def _encode(value: object, code: str) -> bytes:
    quick = _quick(value)
    return quick if quick is not None else _thorough(value, code)


def _quick(value: object) -> bytes | None:
    """The same bytes from the standard library's C encoder, for values about which it agrees with RFC 8785.

    None for all others, also for those that are to be refused: who is thorough then says where and why.
    """
    level: list[Any] = [value]
    for _ in range(limits.JSON_DEPTH_MAX):
        kinds = set(map(type, level))
        if not kinds <= _AGREED:
            return None
        if int in kinds and any(abs(one) > SAFE_INTEGER_MAX for one in level if type(one) is int):
            return None
        if kinds.isdisjoint(_CONTAINERS):
            return _written(value)
        objects = [one for one in level if type(one) is dict] if dict in kinds else []
        if not all(type(key) is str and key.isascii() for key in set(chain.from_iterable(objects))):
            return None
        arrays = [one for one in level if type(one) is list or type(one) is tuple]
        level = [*chain.from_iterable(one.values() for one in objects), *chain.from_iterable(arrays)]
    return None


def _written(value: object) -> bytes | None:
    try:
        return _COMPACT.encode(value).encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair
        return None


def _thorough(value: object, code: str) -> bytes:
    pieces: list[str] = []
    try:
        _write(value, 0, pieces.append)
    except _Fault as fault:
        path = fault.path()
        raise CallerError(f"{path}: {fault.why}", code, path) from None
    return "".join(pieces).encode("utf-8")


def _write(value: object, depth: int, put: _Put) -> None:
    if isinstance(value, str):
        put(_text(value))
    elif isinstance(value, dict):
        _write_object(value, depth + 1, put)
    elif isinstance(value, list | tuple):
        _write_array(value, depth + 1, put)
    else:
        put(_scalar(value))


def _write_object(value: dict[Any, object], depth: int, put: _Put) -> None:
    if isinstance(value, _Doubled):
        raise _Fault(f"the key {_quoted(value.key)} stands here twice")
    lead = _opening("{", depth)
    for key in _sorted_keys(value):
        try:
            put(f"{lead}{_text(key)}:")
            _write(value[key], depth, put)
        except _Fault as fault:
            fault.way.append(key)
            raise
        lead = ","
    put("}" if value else "{}")


def _write_array(value: Sequence[object], depth: int, put: _Put) -> None:
    lead = _opening("[", depth)
    for index, item in enumerate(value):
        try:
            put(lead)
            _write(item, depth, put)
        except _Fault as fault:
            fault.way.append(index)
            raise
        lead = ","
    put("]" if value else "[]")


def _opening(bracket: str, depth: int) -> str:
    if depth > limits.JSON_DEPTH_MAX:
        raise _Fault(_TOO_DEEP)
    return bracket


def _sorted_keys(value: dict[Any, object]) -> list[str]:
    """RFC 8785 section 3.2.3: by UTF-16 code units, which differ from code points beyond the basic plane."""
    for key in value:
        if not isinstance(key, str):
            raise _Fault(f"the key {key!r} is not text")
    if all(map(str.isascii, value)):
        return sorted(value)
    return sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))


def _text(value: str) -> str:
    if not value.isascii() and _SURROGATE.search(value):
        raise _Fault("text with half of a surrogate pair, which is no character")
    return encode_basestring(value)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if abs(value) > SAFE_INTEGER_MAX:
            raise _Fault("an integer beyond ±(2^53 − 1), which JSON readers round; send it as text")
        return int.__repr__(value)
    if isinstance(value, float):
        return _real(value)
    raise _Fault(f"a value of type {type(value).__name__}, which JSON does not have")


def _real(value: float) -> str:
    """ECMA-262 Number::toString: the shortest digits that read back equal, which Python's repr finds too."""
    if not math.isfinite(value):
        raise _Fault(f"{value} is not a number that JSON has")
    if value == 0:
        return "0"
    sign, figures, exponent = Decimal(float.__repr__(value)).as_tuple()
    point = len(figures) + int(exponent)  # where the decimal point stands, counted from the first figure
    digits = "".join(map(str, figures)).rstrip("0")
    if 0 < point <= 21:
        whole = digits[:point].ljust(point, "0")
        text = f"{whole}.{digits[point:]}" if digits[point:] else whole
    elif -6 < point <= 0:
        text = f"0.{'0' * -point}{digits}"
    else:
        mantissa = f"{digits[0]}.{digits[1:]}" if digits[1:] else digits
        text = f"{mantissa}e{point - 1:+d}"
    return f"-{text}" if sign else text


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = f"byte {error.start}"
        raise CallerError(f"{place}: this is not UTF-8", "invalid_json", place) from None


def _depth(value: object) -> int:
    """How many containers stand inside one another; level by level, so that no depth exhausts the stack."""
    depth = 0
    level = [value] if isinstance(value, dict | list) else []
    while level:
        depth += 1
        inner = chain.from_iterable(
            outer.values() if isinstance(outer, dict) else outer for outer in level if outer
        )
        level = [one for one in inner if isinstance(one, dict | list)]
    return depth


def _step(step: object) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    key = str(step)
    return f".{key}" if _BARE_KEY.fullmatch(key) else f"[{_quoted(key)}]"


def _quoted(key: str) -> str:
    """A key as JSON text in ASCII; one that no field may have is cut, for a message is bounded."""
    whole = len(key) <= limits.FIELD_KEY_CHARS_MAX
    return json.dumps(key if whole else key[: limits.FIELD_KEY_CHARS_MAX] + "…")
