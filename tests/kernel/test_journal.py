"""The log: what a line carries, and what no line ever carries."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.kernel import identity, journal, limits

SECRETS = [
    "sk-proj-AbCdEf0123456789",
    "whsec_MDEyMzQ1Njc4OWFiY2RlZg==",
    "ghp_abcdefghij0123456789ABCD",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrs",
    "xoxb-1234567890-abcdefghij",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----",
    "Zm9vYmFyYmF6cXV4QUJDREVGR0hJSktMTU5PUFFSU1Q1",
]


class StoppedClock:
    def now(self) -> int:
        return 1_790_000_000_123_456

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    written = io.StringIO()
    journal.setup(StoppedClock(), level="DEBUG", stream=written)
    yield written
    root.handlers = before
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


log = journal.logger("dragoman.flow.site.submission")


def test_a_line_is_one_json_object_with_time_level_and_logger(stream: io.StringIO) -> None:
    log.info("submission.accepted", items=20)
    assert lines(stream) == [
        {
            "timestamp": "2026-09-21T14:13:20.123+00:00",
            "level": "info",
            "logger": "dragoman.flow.site.submission",
            "event": "submission.accepted",
            "items": 20,
        }
    ]


def test_lines_carry_the_subject_that_was_bound(stream: io.StringIO) -> None:
    """All nine names, and nothing of them once the step is over."""
    subject = journal.Subject(
        manifest="m",
        intent="i",
        submission="s",
        job="j",
        fence=4,
        attempt="a",
        transition="t",
        duration=0.25,
        code="c",
    )
    with journal.about(**subject):
        log.info("step.done")
    log.info("idle")
    inside, outside = lines(stream)
    assert {name: inside[name] for name in subject} == subject
    assert not subject.keys() & outside.keys()


def test_tasks_do_not_see_each_others_subject(stream: io.StringIO) -> None:
    async def step(name: str) -> None:
        with journal.about(manifest=name):
            await asyncio.sleep(0)
            log.info("step", own=name)

    async def both() -> None:
        await asyncio.gather(step("a"), step("b"))

    asyncio.run(both())
    assert [(line["manifest"], line["own"]) for line in lines(stream) if "own" in line] == [
        ("a", "a"),
        ("b", "b"),
    ]


@pytest.mark.parametrize(
    "name", ["text", "body", "source", "content", "payload", "prompt", "answer", "translation"]
)
def test_texts_are_withheld_by_their_name_at_any_depth(stream: io.StringIO, name: str) -> None:
    log.info("event", **{name: "Guten Tag", "item": {name: ["Guten", "Tag"]}})
    assert "Guten" not in stream.getvalue()
    (line,) = lines(stream)
    assert line[name] == line["item"][name] == journal.WITHHELD


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "Authorization",
        "api_key",
        "openai-api-key",
        "callback_secret",
        "password",
        "token",
        "cookie",
    ],
)
def test_secrets_are_redacted_by_their_name_at_any_depth(stream: io.StringIO, name: str) -> None:
    log.info("event", **{name: "harmless looking", "headers": {name: "harmless looking"}})
    assert "harmless" not in stream.getvalue()


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    ("before", "after"), [("", ""), ("key=", "&x=1"), ("'", "'"), ("the key ", " was refused")]
)
def test_secrets_are_redacted_by_their_shape(
    stream: io.StringIO, secret: str, before: str, after: str
) -> None:
    """In values, in lists, in the event's own name, in a library's line and in a traceback."""
    shown = before + secret + after
    log.info("event", note=shown, notes=[{"n": shown}])
    log.info(shown)
    logging.getLogger("a.library").warning("said %s", shown)
    try:
        raise ValueError(shown)
    except ValueError:
        log.exception("step.failed")
    written = "\n".join(str(line) for line in lines(stream))
    assert secret not in written
    assert secret.splitlines()[-1][4:] not in written
    assert written.count(journal.REDACTED) == 5


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer [redacted]"),
        ("authorization='Basic dXNlcjpwYXNz'", "authorization='Basic [redacted]'"),
        ("postgresql://user:pass@host/db", "postgresql://user:[redacted]@host/db"),
        ("GET /x?access_token=abc&page=2", "GET /x?access_token=[redacted]&page=2"),
        ('{"api_key": "abc"}', '{"api_key": "[redacted]"}'),
        ("OPENAI_API_KEY=abc", "OPENAI_API_KEY=[redacted]"),
    ],
)
def test_what_stands_around_a_secret_stays_readable(stream: io.StringIO, text: str, left: str) -> None:
    log.info("event", note=text)
    assert lines(stream)[0]["note"] == left


@pytest.mark.parametrize(
    "value",
    [
        identity.sha256("x"),
        "0190f7a0-0000-7000-8000-000000000001",
        "dragoman:0190f7a0-0000-7000-8000-000000000001:g1",
        "docs/getting-started/installation-on-a-fresh-machine.md",
        "tokens_used: 512, basic checks passed, token expired",
        "COMPLETION:default:0190f7a0-0000-7000-8000-000000000001:3",
        "http://127.0.0.1:8080/v1/jobs",
    ],
)
def test_what_is_no_secret_is_left_alone(stream: io.StringIO, value: str) -> None:
    log.info("event", note=value, tokens_used=512, secret_present=True)
    (line,) = lines(stream)
    assert line["note"] == value
    assert line["tokens_used"] == 512
    assert line["secret_present"] is True


def test_a_fresh_secret_of_identity_is_recognised(stream: io.StringIO) -> None:
    fresh = [identity.secret() for _ in range(limits.JOURNAL_ITEMS_MAX)]
    log.info("event", notes=fresh)
    assert not [secret for secret in fresh if secret in stream.getvalue()]


@given(st.text())
def test_a_value_is_one_bounded_line_whatever_it_holds(value: str) -> None:
    (shown,) = journal.redact(None, "info", {"note": value}).values()
    assert len(shown.splitlines()) <= 1
    assert len(shown.encode()) <= limits.MESSAGE_BYTES


def test_long_lists_bytes_and_traces_are_bounded(stream: io.StringIO) -> None:
    log.info("event", many=list(range(1_000)), data=b"\x00" * 9, table={n: n for n in range(1_000)})
    try:
        raise ValueError("x" * 50_000)
    except ValueError:
        log.exception("step.failed")
    bounded, failed = lines(stream)
    assert len(bounded["many"]) == len(bounded["table"]) == limits.JOURNAL_ITEMS_MAX
    assert bounded["data"] == "[9 bytes]"
    assert len(failed["exception"]) == limits.JOURNAL_TRACE_CHARS_MAX


@pytest.mark.parametrize("run", ["a-", "eyJaaaaaaaa-", "secret-", "://a:", "Bearer ", "sk-", "-----BEGIN "])
def test_no_text_however_long_holds_the_program(stream: io.StringIO, run: str) -> None:
    """Each shape is found in one pass: a search that goes back and forth would not end today."""
    log.info("event", note=run * 500_000)
    try:
        raise ValueError(run * 500_000)
    except ValueError:
        log.exception("step.failed")
    assert len(stream.getvalue()) < 2 * limits.JOURNAL_TRACE_CHARS_MAX


def test_a_secret_that_the_bound_would_cut_is_not_shown_by_half(stream: io.StringIO) -> None:
    for room in range(limits.MESSAGE_BYTES - 60, limits.MESSAGE_BYTES):
        log.info("event", note="x" * room + " " + SECRETS[-1])
    assert SECRETS[-1][:6] not in stream.getvalue()


def test_a_second_setup_takes_the_place_of_the_first(stream: io.StringIO) -> None:
    again = io.StringIO()
    journal.setup(StoppedClock(), level="WARNING", stream=again)
    log.info("too quiet")
    log.warning("heard")
    assert stream.getvalue() == ""
    assert [line["event"] for line in lines(again)] == ["heard"]


def test_the_console_style_is_plain_text_when_the_stream_is_no_terminal(stream: io.StringIO) -> None:
    plain = io.StringIO()
    journal.setup(StoppedClock(), style="console", stream=plain)
    log.info("job.finished", job="j", api_key="sk-abcdefgh1234")
    written = plain.getvalue()
    assert "job.finished" in written
    assert "job=j" in written
    assert "2026-09-21T14:13:20.123+00:00" in written
    assert "sk-abc" not in written
    assert "\x1b" not in written
