"""Apertium: a real offline engine, through its installed program. Rule-based, deterministic, free.

Texts go in as Apertium's own stream (`-f none`): markers, line breaks and what its tools would eat travel as
superblanks, reserved signs are escaped, items stand between numbered superblanks. One process translates a
whole question; where the items do not come back one for one, each is translated in a process of its own.
Knows its language pairs by listing them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Collection, Sequence

from dragoman.kernel.errors import SettingsError, sanitize
from dragoman.model.completions import CompletionRequest, ProviderAnswer, Reply, Usage
from dragoman.providers import exchange, failures
from dragoman.providers.codes import Choose, LocaleCodes

Pair = tuple[str, str]
"""Source and target as Apertium names them: ISO 639-3, perhaps with a region: `("eng", "spa")`."""

_LIST_SECONDS = 10
_BLANK = re.compile(exchange.MARKER.pattern + r"|[\x01-\x1f\x7f~]+|[\0\ufffe\uffff]")
_DEADLY = "\0\ufffe\uffff"
"""Signs at which the program hangs or stops, even in a superblank; they travel as `⟦&` and their number."""
_RESERVED = re.compile(r"[\[\]{}^$/\\@<>]")
_STREAM = re.compile(r"\\(?P<sign>.)|\[(?P<blank>(?:[^\]\\]|\\.)*)\]|(?P<char>.)", re.DOTALL)
_ITEM = re.compile(r"⟦#(\d+)⟧")
_NUMBERED = re.compile(r"⟦&(\d+)⟧")
_MODE = re.compile(r"\s*([a-z]{2,3}(?:_\w+)?)-([a-z]{2,3}(?:_\w+)?)\s*")
_SPACES = re.compile(r"(?<=\S) {2,}(?=\S)")
_ENDS = (".", "!", "?")


class _Failed(Exception):
    """A process that came to no translation, and what that means for the attempt."""

    def __init__(self, answer: ProviderAnswer) -> None:
        self.answer = answer
        super().__init__(answer.message)


def installed_pairs(program: str = "apertium") -> frozenset[Pair]:
    """The language pairs that the installed program offers. Raises `SettingsError` where it cannot be run."""
    try:
        listing = subprocess.run(
            [program, "-l"], capture_output=True, text=True, timeout=_LIST_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SettingsError(
            f"Apertium cannot be run ({type(error).__name__}): install it with a language pair, "
            "for example the packages apertium and apertium-eng-spa"
        ) from error
    modes = (_MODE.fullmatch(line) for line in listing.stdout.splitlines())
    return frozenset((mode[1], mode[2]) for mode in modes if mode)


class ApertiumProvider:
    """The installed program and the pairs that it has (`installed_pairs`)."""

    priced = False
    askable = False
    texts_max: int | None = None

    def __init__(
        self, name: str, pairs: Collection[Pair], choose_code: Choose, program: str = "apertium"
    ) -> None:
        self.name = name
        self.model = "apertium"
        self.account = name
        self._pairs = frozenset(pairs)
        self._choose = choose_code
        self._program = program

    def target_code(self, locale: str) -> str:
        """Apertium's code for a locale that some pair translates into. Raises `LocaleError`."""
        return self._codes({target for _, target in self._pairs}).code(locale)

    def render(self, request: CompletionRequest) -> bytes:
        """The question, in Apertium's codes. Raises `LocaleError` for a pair that is not installed."""
        source = self._codes({source for source, _ in self._pairs}).code(request.source_locale)
        reachable = {target for start, target in self._pairs if start == source}
        return exchange.question(request, source, self._codes(reachable).code(request.target_locale)).encode()

    def reserve(self, body: bytes) -> tuple[int, int]:
        """A token is a byte at least; no text grows to more than four times its bytes."""
        return 5 * len(body), 0

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """One process for the question, or one an item where the count of items does not survive."""
        asked = exchange.read_question(body)
        mode, texts = f"{asked.source}-{asked.target}", [text for _, text in asked.items]
        try:
            async with asyncio.timeout(deadline_seconds):
                translated = await self._translate(mode, texts)
        except TimeoutError:
            outcome = failures.TIMEOUT_UNKNOWN
            return ProviderAnswer(outcome, code=failures.CODES[outcome], message="Apertium took too long")
        except _Failed as failed:
            return failed.answer
        items = [(name, text) for (name, _), text in zip(asked.items, translated, strict=True) if text]
        usage = Usage(len(body) // 4, sum(len(text) for _, text in items) // 4)
        return ProviderAnswer(failures.SUCCEEDED, body=exchange.answer(items, usage), status=200)

    def read(self, answer: bytes) -> Reply:
        """The reply in kept bytes. Never raises."""
        return exchange.read_answer(answer)

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """Nothing is kept; the same question has the same answer."""
        return None

    async def close(self) -> None:
        """Nothing is held: each call ends its own process."""

    def _codes(self, offered: Collection[str]) -> LocaleCodes:
        return LocaleCodes(self.name, self._choose, offered)

    async def _translate(self, mode: str, texts: Sequence[str]) -> Sequence[str]:
        """The translations in order, "" for one that the program would not give back as one."""
        together = await self._run(mode, texts)
        if together is not None:
            return together
        return ["".join(await self._run(mode, [text]) or ()) for text in texts]

    async def _run(self, mode: str, texts: Sequence[str]) -> tuple[str, ...] | None:
        """One process; None where the texts did not come back one for one. Raises `_Failed`."""
        try:
            async with _process(self._program, "-u", "-f", "none", mode) as process:
                output, complaint = await process.communicate(to_stream(texts).encode())
        except OSError as error:
            raise _Failed(failures.not_started(f"Apertium cannot be run: {type(error).__name__}")) from error
        if process.returncode != 0:
            message = sanitize(complaint.decode("utf-8", "replace"))
            raise _Failed(ProviderAnswer(failures.REJECTED, code="PROVIDER_REJECTED", message=message))
        return from_stream(output.decode("utf-8", "replace"), texts)


@contextlib.asynccontextmanager
async def _process(*command: str) -> AsyncIterator[Process]:
    """A process that is gone afterwards with all that it started, also if we are stopped while it starts."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True)
    )
    try:
        yield await asyncio.shield(starting)
    finally:
        process = await starting
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if process.stdin is not None:
                process.stdin.close()
            await process.communicate()  # until the pipes of all that it started are closed


def to_stream(texts: Sequence[str]) -> str:
    """Texts as one Apertium stream: a numbered superblank before each, and each ended as a sentence."""
    return "".join(f"[⟦#{n}⟧]{_escaped(text)}{_end(text)}[]" for n, text in enumerate(texts)) + "[⟦#end⟧]\n"


def from_stream(stream: str, sources: Sequence[str]) -> tuple[str, ...] | None:
    """The translations of `sources` in order, None where they are not all there, once and in order."""
    pieces: list[list[str]] = []
    numbers: list[int] = []
    for token in _STREAM.finditer(stream.partition("[⟦#end⟧]")[0]):
        item = _ITEM.fullmatch(token["blank"] or "")
        if item:
            numbers.append(int(item[1]))
            pieces.append([])
        elif pieces:
            pieces[-1].append(token["sign"] or _unblanked(token["blank"] or "") or token["char"] or "")
    if numbers != list(range(len(sources))):
        return None
    return tuple(_tidy("".join(piece), source) for piece, source in zip(pieces, sources, strict=True))


def _escaped(text: str) -> str:
    """Markers, control signs and `~` as superblanks, reserved signs escaped."""
    written, at = [], 0
    for blank in _BLANK.finditer(text):
        sign = blank.group()
        content = f"⟦&{ord(sign)}⟧" if sign in _DEADLY else sign
        written += [_RESERVED.sub(r"\\\g<0>", text[at : blank.start()]), f"[{content}]"]
        at = blank.end()
    return "".join(written) + _RESERVED.sub(r"\\\g<0>", text[at:])


def _unblanked(blank: str) -> str:
    numbered = _NUMBERED.fullmatch(blank)
    return chr(int(numbered[1])) if numbered else blank


def _end(text: str) -> str:
    return "" if text.endswith(_ENDS) else "."


def _tidy(translated: str, source: str) -> str:
    """Without the sentence end that was lent, and the gaps that dropped words leave."""
    text = translated.removesuffix(_end(source)).strip(" ")
    return text if "  " in source else _SPACES.sub(" ", text)
