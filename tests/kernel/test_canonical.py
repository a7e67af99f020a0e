"""Canonical JSON against RFC 8785: its own examples, an independent implementation, and every refusal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from dragoman.kernel import canonical, limits
from dragoman.kernel.errors import CallerError

SAFE = 2**53 - 1

texts = st.text(st.characters(codec="utf-8"))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=25,
)
objects = st.dictionaries(texts, values, max_size=6)
# what a request holds: whole numbers only, so that its canonical bytes can be read and written again
plain_objects = st.dictionaries(texts, st.integers(-SAFE, SAFE) | texts | st.lists(texts), max_size=6)


def reading(data: bytes) -> dict[str, Any] | CallerError:
    try:
        return canonical.parse(data)
    except CallerError as refusal:
        return refusal


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@given(values)
def test_the_bytes_are_those_of_an_independent_implementation(value: Any) -> None:
    assert canonical.encode(value) == rfc8785.dumps(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_double_is_written_as_ecmascript_writes_it(number: float) -> None:
    assert canonical.encode(number) == rfc8785.dumps(number)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (-1.7976931348623157e308, "-1.7976931348623157e+308"),
        (9007199254740992.0, "9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (999999999999999900000.0, "999999999999999900000"),
        (1e21, "1e+21"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (0.000001, "0.000001"),
        (9.5e-7, "9.5e-7"),
        (333333333.33333329, "333333333.3333333"),
        (-0.0000033333333333333333, "-0.0000033333333333333333"),
        (1424953923781206.2, "1424953923781206.2"),
    ],
)
def test_numbers_of_the_rfc_are_written_as_it_says(number: float, text: str) -> None:
    """Appendix B of RFC 8785."""
    assert canonical.encode(number) == text.encode()


def test_keys_are_ordered_by_utf16_units_as_the_rfc_shows() -> None:
    """The example of RFC 8785 section 3.2.3: code points would put the emoji after the Hebrew letter."""
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    written = json.loads(canonical.encode(dict.fromkeys(keys, 0)), object_pairs_hook=list)
    assert [key for key, _ in written] == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


def test_strings_escape_only_what_must_be_escaped() -> None:
    text = '\u20ac$\u000f\nA\'B"\\\\"/\x7f\u2028'
    assert canonical.encode(text) == '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/\x7f\u2028"'.encode()


def test_enumerations_and_tuples_are_their_plain_values() -> None:
    assert canonical.encode({"c": Colour.RED, "l": Level.HIGH, "t": (1, 2)}) == b'{"c":"red","l":3,"t":[1,2]}'


@given(objects)
def test_what_was_encoded_reads_back_equal_unless_a_number_is_too_long(value: dict[str, Any]) -> None:
    read = reading(canonical.encode(value))
    # a double beyond 2^53 is written as a whole number, which a reader must not take for exact
    assert "2^53" in read.message if isinstance(read, CallerError) else read == value


@given(plain_objects)
def test_canonical_bytes_are_a_fixed_point(value: dict[str, Any]) -> None:
    data = canonical.encode(value)
    assert canonical.encode(canonical.parse(data)) == data


@given(plain_objects, st.randoms())
def test_the_fingerprint_does_not_depend_on_the_order_of_keys(value: dict[str, Any], order: Any) -> None:
    """One meaning, one SHA-256 over the canonical bytes."""
    keys = list(value)
    order.shuffle(keys)
    assert canonical.fingerprint({key: value[key] for key in keys}) == canonical.fingerprint(value)
    assert canonical.fingerprint(value) == hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "place", "why"),
    [
        ({"a": {"b": [0, 2**53]}}, "$.a.b[1]", "2^53"),
        ({"a": -(2**53)}, "$.a", "2^53"),
        ([1, float("nan")], "$[1]", "nan"),
        ({"x": [float("-inf")]}, "$.x[0]", "inf"),
        ({"pairs": [{"locale": "a\ud800"}]}, "$.pairs[0].locale", "surrogate"),
        ({"a": {"b\udc00": 1}}, '$.a["b\\udc00"]', "surrogate"),
        ({"a": {1: 2}}, "$.a", "the key 1 is not text"),
        ({"a b": [None, {None: 1}]}, '$["a b"][1]', "the key None is not text"),
        ({"é": {"x": b"bytes"}}, '$["\\u00e9"].x', "bytes"),
        ({"a": {1, 2}}, "$.a", "set"),
        (nested(limits.JSON_DEPTH_MAX + 1), "$" + "[0]" * limits.JSON_DEPTH_MAX, "nested deeper than 64"),
    ],
)
def test_a_value_without_a_canonical_form_is_refused_by_its_place(value: Any, place: str, why: str) -> None:
    with pytest.raises(CallerError) as refusal:
        canonical.encode(value)
    assert refusal.value.code == "invalid_request"
    assert refusal.value.place == place
    assert refusal.value.message.startswith(place)
    assert why in refusal.value.message


def test_a_cycle_is_refused_as_too_deep() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(CallerError, match="nested deeper"):
        canonical.encode(loop)


def test_the_bounds_themselves_are_accepted() -> None:
    assert canonical.encode([SAFE, -SAFE]) == b"[9007199254740991,-9007199254740991]"
    assert canonical.encode(nested(limits.JSON_DEPTH_MAX)) == rfc8785.dumps(nested(limits.JSON_DEPTH_MAX))


def test_a_place_stays_short_whatever_the_keys_are_called() -> None:
    value: Any = float("nan")
    for _ in range(60):
        value = {"k" * 10_000: value}
    with pytest.raises(CallerError) as refusal:
        canonical.encode(value)
    assert len(refusal.value.place) <= 201
    assert "not a number" in refusal.value.message


@pytest.mark.parametrize(
    ("data", "place", "why"),
    [
        (b'{"a": 1, "a": 1}', "$", 'the key "a" stands here twice'),
        (b'{"pairs": [{}, {"x": 1, "b c": 2, "b c": 3}]}', "$.pairs[1]", 'the key "b c" stands here twice'),
        (b'{"a": {"b": 1, "b": 2}, "a": 3}', "$", 'the key "a" stands here twice'),
        (b'{"a":\n 1,}', "line 2, column 4", "property name"),
        (b'{"a": "tab\there"}', "line 1, column 11", "control character"),
        (b'{"a": 1} x', "line 1, column 10", "Extra data"),
        (b"", "line 1, column 1", "Expecting value"),
        (b'{"a": "\xff"}', "byte 7", "not UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "byte 7", "not UTF-8"),
        (b"\xef\xbb\xbf{}", "line 1, column 1", "BOM"),
        (b"[1]", "$", "one JSON object"),
        (b'"text"', "$", "one JSON object"),
        (b'{"a": NaN}', "$.a", "nan"),
        (b'{"a": [-Infinity]}', "$.a[0]", "inf"),
        (b'{"a": 1e400}', "$.a", "inf"),
        (b'{"a": 9007199254740992}', "$.a", "2^53"),
        (b'{"a": ' + b"9" * 100_000 + b"}", "$.a", "2^53"),
        (b'{"a": "\\ud800"}', "$.a", "surrogate"),
        (b'{"\\uDC00": 1}', '$["\\udc00"]', "surrogate"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "$" + ".a" * 64, "nested deeper than 64"),
        (b'{"a":' + b"[" * 200_000, "$", "nested deeper than 64"),
    ],
)
def test_what_is_not_one_clean_object_is_refused_by_its_place(data: bytes, place: str, why: str) -> None:
    with pytest.raises(CallerError) as refusal:
        canonical.parse(data)
    assert refusal.value.code == "invalid_json"
    assert refusal.value.place == place
    assert refusal.value.message.startswith(place)
    assert why.lower() in refusal.value.message.lower()


def test_a_pair_of_surrogate_escapes_is_one_character() -> None:
    assert canonical.parse(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


def test_numbers_keep_their_kind() -> None:
    value = canonical.parse(b'{"i": 9007199254740991, "f": 1.5, "e": 1e2, "z": -0, "s": "007"}')
    assert value == {"i": SAFE, "f": 1.5, "e": 100.0, "z": 0, "s": "007"}
    assert [type(value[key]) for key in "ifez"] == [int, float, float, int]


json_texts = st.recursive(
    st.sampled_from(["1", "-0", "1e400", "9007199254740992", "NaN", '"a"', '"\\ud800"', "null", "1.5"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]")
        | st.lists(st.tuples(st.sampled_from(['"a"', '"b"', '"\\udfff"']), inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f"{key}:{item}" for key, item in pairs) + "}"
        )
    ),
    max_leaves=10,
)


@given(json_texts.map(str.encode) | st.binary(max_size=40))
def test_whatever_parse_accepts_encode_accepts(data: bytes) -> None:
    read = reading(data)
    if isinstance(read, CallerError):
        assert read.code == "invalid_json"
        assert read.place
    else:
        assert json.loads(canonical.encode(read)) == json.loads(data)


def test_a_hostile_body_costs_no_more_than_its_length() -> None:
    """A hundred thousand keys, the last one twice: found by counting, not by comparing all with all."""
    keys = [*(f'"{n}":0' for n in range(100_000)), '"99999":1']
    with pytest.raises(CallerError, match='"99999"'):
        canonical.parse(("{" + ",".join(keys) + "}").encode())


@pytest.mark.parametrize("act", [canonical.encode, canonical.fingerprint])
def test_fingerprint_refuses_what_encode_refuses(act: Callable[[object], object]) -> None:
    with pytest.raises(CallerError, match=r"\$\.a"):
        act({"a": 2**60})
