"""The log: one line an event, what it is about, and never what is secret or what is translated.

`logger(name)` works before any set-up (warnings then go to stderr); `setup` attaches the one handler, through
which the lines of libraries pass as well. Every line goes through `redact`: values named `text`, `body`,
`source` and the like are withheld, whatever looks like a key, a token or a password is taken out, and every
value is bounded. The journal is for people: nothing reads it back to decide.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, TextIO, TypedDict, Unpack, cast

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.types import EventDict, Processor, WrappedLogger

from dragoman.kernel import limits
from dragoman.kernel.clock import Clock, iso
from dragoman.kernel.errors import sanitize

Style = Literal["json", "console"]

WITHHELD = "[withheld]"
REDACTED = "[redacted]"


class Subject(TypedDict, total=False):
    """What a line is about. These names and no others are bound for the length of a step."""

    manifest: str
    intent: str
    submission: str
    job: str
    fence: int
    attempt: str
    transition: str
    duration: float
    """Seconds."""
    code: str


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger whose events are named by constants: `log.info("submission.accepted", code=…)`."""
    wrapped = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            *_COMMON,
            ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        context_class=dict,
        cache_logger_on_first_use=True,
    )
    return cast(structlog.stdlib.BoundLogger, wrapped)


def about(**subject: Unpack[Subject]) -> AbstractContextManager[None]:
    """Names the subject of every line written inside, in this task and in the work that it offloads."""
    return structlog.contextvars.bound_contextvars(**subject)


def setup(clock: Clock, style: Style = "json", level: str = "INFO", stream: TextIO | None = None) -> None:
    """Sends every line of this process to `stream` (stderr), stamped by `clock`; again to do it anew."""
    target = stream or sys.stderr
    handler = _Handler(target)
    renderer: Processor = structlog.processors.JSONRenderer(ensure_ascii=False)
    if style == "console":
        renderer = structlog.dev.ConsoleRenderer(colors=target.isatty())
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=_COMMON,
            processors=[_stamp(clock), ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [one for one in root.handlers if not isinstance(one, _Handler)] + [handler]
    root.setLevel(level)


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """A structlog processor: the same event without texts and secrets, its values bounded."""
    return {key: value if key.startswith("_") else _value(key, value) for key, value in event.items()}


class _Handler(logging.StreamHandler[TextIO]):
    """Ours, so that a second set-up finds the first."""


def _stamp(clock: Clock) -> Processor:
    def stamp(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {"timestamp": iso(clock.now()), **event}

    return stamp


_COMMON: list[Processor] = [
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.format_exc_info,
    redact,
]

_TEXT_NAMES = frozenset(
    ("text", "texts", "body", "source", "content", "payload", "prompt", "answer", "translation", "fields")
)
_SECRET_NAME = re.compile(
    r"(?i)authorization|cookie|secret|passw|api[-_]?key|private[-_]?key|sealing|signature|(^|[-_])token$"
)
_SECRET_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)", REDACTED),
        (r"(://[^/\s:@]*:)[^/\s@]+@", rf"\1{REDACTED}@"),
        (r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}", rf"\1 {REDACTED}"),
        (
            r"(?i)\b((?:[\w-]{0,40}[-_])?(?:api[-_]?key|secret|password|passwd|authorization|token|signature)"
            r"[\"']?\s*[:=]\s*[\"']?)(?!\[redacted)(?!bearer\b|basic\b)[^\s\"',;&]+",
            rf"\1{REDACTED}",
        ),
        # what `identity.secret` makes, and its kind; hexadecimal fingerprints and UUIDs mix no cases
        (r"(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[A-Za-z0-9_-]{40,}", REDACTED),
        (
            r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,}|\bwhsec_[A-Za-z0-9+/=_-]+|\bgh[a-z]_[A-Za-z0-9]{20,}",
            REDACTED,
        ),
        (r"\bAKIA[0-9A-Z]{12,}|\bAIza[0-9A-Za-z_-]{20,}|\bxox[a-z]-[A-Za-z0-9-]{8,}", REDACTED),
        (r"(?<![\w-])eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,2}", REDACTED),
    )
)


# what is cut off before the search is cut off widely enough that no half of a secret stays in what is shown
_TRACE_CHARS_SEEN = 2 * limits.JOURNAL_TRACE_CHARS_MAX


def _value(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if name in _TEXT_NAMES:
        return WITHHELD
    if _SECRET_NAME.search(name):
        return REDACTED
    if isinstance(value, Mapping):
        return {str(key): _value(str(key), inner) for key, inner in _few(value.items())}
    if isinstance(value, list | tuple | set | frozenset):
        return [_value("", inner) for inner in _few(value)]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    text = str(value)
    if name == "exception":
        return _without_secrets(text[-_TRACE_CHARS_SEEN:])[-limits.JOURNAL_TRACE_CHARS_MAX :]
    return sanitize(_without_secrets(text[: limits.JOURNAL_TRACE_CHARS_MAX]))


def _few(items: Any) -> list[Any]:
    return list(items)[: limits.JOURNAL_ITEMS_MAX]


def _without_secrets(text: str) -> str:
    for shape, replacement in _SECRET_SHAPES:
        text = shape.sub(replacement, text)
    return text
