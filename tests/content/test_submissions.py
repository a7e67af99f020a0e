"""The wire form of a submission: what is let through is bounded and canonical, the rest names its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.submissions import identity, new_fields, read
from dragoman.kernel.errors import CallerError
from dragoman.model.jobs import Capacity, SubmittedField

ID = "018f0000-0000-7000-8000-000000000001"


def body(**changes: Any) -> bytes:
    said: dict[str, Any] = {
        "submissionId": ID,
        "clientJobId": "manifest-1",
        "sourceLang": "en",
        "callbackUrl": "https://site.example/callbacks",
        "items": [{"ref": "a", "targetLang": "fr", "fields": {"t": "Hello"}}],
        **changes,
    }
    return json.dumps({name: value for name, value in said.items() if value is not ...}).encode()


def item(**changes: Any) -> list[dict[str, Any]]:
    return [{"ref": "a", "targetLang": "fr", "fields": {"t": "Hello"}} | changes]


def field(value: Any) -> list[dict[str, Any]]:
    return item(fields={"t": value})


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"submissionId": "x"}, "$.submissionId", "invalid_request"),
    ({"submissionId": ...}, "$.submissionId", "invalid_request"),
    ({"clientJobId": ""}, "$.clientJobId", "invalid_request"),
    ({"clientJobId": "x" * 192}, "$.clientJobId", "invalid_request"),
    ({"sourceLang": 5}, "$.sourceLang", "invalid_request"),
    ({"tone": 5}, "$.tone", "invalid_request"),
    ({"surprise": 1}, "$", "invalid_request"),
    ({"callbackUrl": "ftp://x"}, "$.callbackUrl", "invalid_request"),
    ({"callbackUrl": "https://ada:secret@x/callbacks"}, "$.callbackUrl", "invalid_request"),
    ({"callbackUrl": "https://"}, "$.callbackUrl", "invalid_request"),
    ({"callbackUrl": "local:callbacks"}, "$.callbackUrl", "invalid_request"),
    ({"items": []}, "$.items", "invalid_request"),
    ({"items": {}}, "$.items", "invalid_request"),
    ({"items": [5]}, "$.items[0]", "invalid_request"),
    ({"items": item(ref="")}, "$.items[0].ref", "invalid_request"),
    ({"items": item(extra=1)}, "$.items[0]", "invalid_request"),
    ({"items": item() + item()}, "$.items", "invalid_request"),
    ({"items": item(targetLang="en")}, "$.items[0].targetLang", "source_is_target"),
    ({"items": item(targetLang="EN")}, "$.items[0].targetLang", "source_is_target"),
    ({"items": item(targetLang="qq-nonsense-")}, "$.items[0].targetLang", "unsupported_locale"),
    ({"items": item(fields={})}, "$.items[0].fields", "invalid_fields"),
    ({"items": item(fields=[])}, "$.items[0].fields", "invalid_fields"),
    ({"items": item(fields={"a b": "x"})}, '$.items[0].fields["a b"]', "invalid_fields"),
    ({"items": item(fields={"k" * 65: "x"})}, f'$.items[0].fields["{"k" * 64}"]', "invalid_fields"),
    ({"items": item(title="x", fields={"title": "y"})}, "$.items[0]", "invalid_fields"),
    ({"items": field(5)}, '$.items[0].fields["t"]', "invalid_fields"),
    ({"items": field({})}, '$.items[0].fields["t"]', "invalid_fields"),
    ({"items": field({"text": "x", "plural": {"other": "y"}})}, '$.items[0].fields["t"]', "invalid_fields"),
    ({"items": field({"text": "x", "syntax": "perl"})}, '$.items[0].fields["t"].syntax', "invalid_fields"),
    ({"items": field({"text": "a\0b"})}, '$.items[0].fields["t"].text', "invalid_fields"),
    ({"items": field({"plural": {"one": "x"}})}, '$.items[0].fields["t"].plural', "invalid_fields"),
    ({"items": field({"plural": {"other": 1}})}, '$.items[0].fields["t"].plural.other', "invalid_fields"),
    (
        {"items": field({"plural": {"other": "x", "dual": "y"}})},
        '$.items[0].fields["t"].plural',
        "invalid_fields",
    ),
    (
        {"items": field({"text": "x", "max_length": 0})},
        '$.items[0].fields["t"].max_length',
        "invalid_request",
    ),
    ({"options": []}, "$.options", "invalid_request"),
    ({"options": {"speed": "fast"}}, "$.options.speed", "invalid_request"),
    ({"options": {"batch_size": 0}}, "$.options.batch_size", "invalid_request"),
    ({"options": {"batch_size": 201}}, "$.options.batch_size", "invalid_request"),
    ({"options": {"batch_size": True}}, "$.options.batch_size", "invalid_request"),
    ({"options": {"concurrency": 65}}, "$.options.concurrency", "invalid_request"),
    ({"options": {"on_unknown": "gamble"}}, "$.options.on_unknown", "invalid_request"),
    ({"options": {"force": "yes"}}, "$.options.force", "invalid_request"),
    ({"options": {"provider": "x"}}, "$.options", "invalid_request"),
    ({"style": "x" * 2_001}, "$.style", "invalid_request"),
    ({"glossary": {}}, "$.glossary", "invalid_request"),
    ({"glossary": [{}]}, "$.glossary[0].source", "invalid_request"),
    ({"glossary": [{"source": "a", "status": "loved"}]}, "$.glossary[0].status", "invalid_request"),
    (
        {"glossary": [{"source": "a", "targetLang": "no"}, {"source": "a", "targetLang": "?"}]},
        "$.glossary[1].targetLang",
        "unsupported_locale",
    ),
    ({"glossary": [{"source": "a", "caseSensitive": 1}]}, "$.glossary[0].caseSensitive", "invalid_request"),
    ({"glossary": [{"source": "a"}] * 1_001}, "$.glossary", "invalid_request"),
]


@pytest.mark.parametrize("changes, place, code", REFUSED)
def test_what_is_wrong_is_refused_at_its_place(changes: dict[str, Any], place: str, code: str) -> None:
    """M-206, M-207, M-223, M-227: the message begins with the place, and the code says what kind it is."""
    with pytest.raises(CallerError) as refused:
        read(body(**changes), Capacity())
    assert (refused.value.code, refused.value.place) == (code, place)
    assert place in refused.value.message


def test_duplicate_keys_are_refused() -> None:
    """M-226: a key that stands twice names nothing."""
    with pytest.raises(CallerError, match="twice"):
        read(body().replace(b'"t": "Hello"', b'"t": "Hello", "t": "World"'), Capacity())


@pytest.mark.parametrize(
    "bounds, changes",
    [
        (Capacity(items_max=1), {"items": item() + item(ref="b")}),
        (Capacity(body_bytes_max=100), {}),
        (Capacity(fields_per_item_max=1), {"items": item(fields={"a": "x", "b": "y"})}),
        (Capacity(field_chars_max=4), {}),
    ],
)
def test_what_is_too_large_is_refused_by_name(bounds: Capacity, changes: dict[str, Any]) -> None:
    """M-228: over a capacity the request is refused, and the number is told."""
    with pytest.raises(CallerError) as refused:
        read(body(**changes), bounds)
    assert refused.value.code == "payload_too_large"


def test_control_characters_do_not_count() -> None:
    """M-228: characters are counted after sanitizing."""
    read(body(items=field("\x01\x02abcd")), Capacity(field_chars_max=4))


def test_aliases_become_fields() -> None:
    """M-222: `title`, `excerpt` and `content` beside `fields` are accepted as fields of that name."""
    submission, _ = read(body(items=item(title="T", content="C", fields={"x": "X"})), Capacity())
    assert {field.wire_key: field.value for field in submission.items[0].fields} == {
        "title": "T",
        "content": "C",
        "x": "X",
    }


def test_options_have_defaults_and_are_bounded_by_settings() -> None:
    """J-015, J-016, GJ-12."""
    submission, _ = read(body(), Capacity(batch_size_max=5, concurrency_max=2))
    assert (submission.options.batch_size, submission.options.concurrency) == (5, 2)
    submission, _ = read(body(), Capacity())
    assert (submission.options.batch_size, submission.options.concurrency) == (20, 5)


def test_locales_are_canonical_inside() -> None:
    """One spelling, whatever the caller's."""
    submission, _ = read(body(sourceLang="EN", items=item(targetLang="pt_br")), Capacity())
    assert (submission.source_locale, submission.items[0].target_locale) == ("en", "pt-BR")


def test_the_format_alias_is_the_syntax() -> None:
    """A field's `format` is another spelling of its `syntax`."""
    submission, _ = read(body(items=field({"text": "%s", "format": "printf"})), Capacity())
    assert submission.items[0].fields[0].syntax == "printf"


def test_blank_and_coded_texts_pass_through_and_repeats_are_found() -> None:
    """J-013: the totals are fixed at acceptance."""
    fields = {
        "a": "Hello",
        "b": " ",
        "c": "Hello",
        "d": None,
        "e": "42",
        "f": {"text": "Hello", "context": "x"},
    }
    submission, _ = read(body(items=item(fields=fields) + item(ref="b", targetLang="de")), Capacity())
    found = new_fields(submission)
    assert [field.passes for field in found] == [False, True, False, True, True, False, False]
    assert [field.repeat_of for field in found] == [None, None, 0, None, None, None, None]
    assert [field.ordinal for field in found] == list(range(7))


def test_a_plural_that_passes_through_has_the_forms_of_its_target() -> None:
    """Nothing to translate, and still the categories that the target needs."""
    plural = {"plural": {"one": "1", "other": "2"}}
    submission, _ = read(body(items=item(targetLang="pl", fields={"n": plural})), Capacity())
    [field] = new_fields(submission)
    assert field.passes
    assert field.result == {"one": "1", "few": "2", "many": "2", "other": "2"}


@given(st.text(), st.text())
def test_equal_texts_and_only_these_have_one_identity(one: str, other: str) -> None:
    """Memory stands on it; the normal form and blanks at the ends are no difference, the context is."""
    import unicodedata

    first, second = (identity(SubmittedField("k", text)) for text in (one, other))
    same = [unicodedata.normalize("NFC", text).strip() for text in (one, other)]
    assert (first == second) == (same[0] == same[1])
    assert first == identity(SubmittedField("k", f" {one}\n"))
    assert identity(SubmittedField("k", one, context=other + "x")) != identity(
        SubmittedField("k", one, context=other)
    )


@given(
    st.dictionaries(st.sampled_from(["t", "u"]), st.text().filter(lambda text: "\0" not in text), min_size=1)
)
def test_every_text_that_json_can_hold_is_let_through_as_it_is(texts: dict[str, str]) -> None:
    """Byte for byte: nothing is trimmed, normalized or escaped at the door."""
    submission, _ = read(body(items=item(fields=texts)), Capacity())
    assert {field.wire_key: field.value for field in submission.items[0].fields} == texts
