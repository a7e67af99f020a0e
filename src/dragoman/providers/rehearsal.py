"""A provider for tests and drills: does on cue what providers do in bad weather.

Answers late, twice, wrongly, cut short or never, refuses, and asks to slow down. Every call's move is decided
by the script, then by seed, attempt and body alone, so a run repeats exactly. Each request that reached it is
kept with its move: the oracle of what was accepted. Waits by `asyncio.sleep` only, so virtual time drives it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from dragoman.model.completions import CompletionRequest, Finish, ProviderAnswer, Reply, Usage
from dragoman.providers import exchange, failures
from dragoman.providers.codes import Choose, LocaleCodes

Move = Literal[
    "answer",  # as it should be
    "late",  # after `late_seconds`, which may be past the deadline
    "twice",  # the whole reply two times in one body
    "missing",  # without the first item
    "duplicate",  # the first item two times, with different texts
    "broken",  # the first text without its markers, or with one too many
    "empty",  # the first text empty
    "length",  # a length stop: the first half of the items
    "cut",  # the body breaks off in its middle
    "garbage",  # 200, and no JSON
    "refuse",  # a content refusal, in the answer
    "filter",  # a content refusal, as an error
    "reject",
    "slow_down",  # 429 with a time
    "spend_limit",  # 429 without money
    "lost",  # done and paid, and the connection breaks
    "never",  # done and paid, and no answer before the deadline
    "unreachable",
]
MOVES: tuple[Move, ...] = get_args(Move)

_REJECTIONS: Mapping[str, tuple[int, str]] = {
    "filter": (400, "content_refused"),
    "reject": (400, "PROVIDER_REJECTED"),
    "slow_down": (429, "PROVIDER_RATE_LIMITED"),
    "spend_limit": (429, "PROVIDER_SPEND_LIMIT"),
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request that reached the provider. `accepted` ones were worked, and paid for where one pays."""

    attempt_id: str
    body: bytes
    move: Move
    accepted: bool
    answer: bytes = b""


def prefixed(text: str, target: str) -> str:
    """The translation that a rehearsal gives when nobody hands it another: `Hello` as `fr Hello`."""
    return f"{target} {text}"


class RehearsalProvider:
    """Scripted first, then weather.

    `script` holds the moves of the first calls, `weather` the share (0 to 1) of each move afterwards; what is
    left over is `answer`. A question with a text that contains one of `refuses` is refused whatever the
    script says. `microusd_per_token` above 0 makes it priced; `askable` makes it keep answers by attempt.
    """

    texts_max: int | None = None

    def __init__(
        self,
        name: str,
        choose_code: Choose,
        *,
        seed: int | str = 0,
        script: Iterable[Move] = (),
        weather: Mapping[Move, float] | None = None,
        refuses: Sequence[str] = (),
        translate: Callable[[str, str], str] = prefixed,
        microusd_per_token: int = 0,
        askable: bool = False,
        answer_seconds: float = 0.0,
        late_seconds: float = 30.0,
        retry_after_seconds: float = 1.0,
    ) -> None:
        self.name = name
        self.model = "rehearsal"
        self.account = name
        self.priced = microusd_per_token > 0
        self.askable = askable
        self.calls: list[Call] = []
        self._codes = LocaleCodes(name, choose_code)
        self._seed = seed
        self._script = iter(script)
        self._weather = dict(weather or {})
        self._refuses = tuple(refuses)
        self._translate = translate
        self._microusd_per_token = microusd_per_token
        self._answer_seconds = answer_seconds
        self._late_seconds = late_seconds
        self._retry_after_seconds = retry_after_seconds

    @property
    def accepted(self) -> tuple[Call, ...]:
        """The calls that were worked: what was really spent."""
        return tuple(call for call in self.calls if call.accepted)

    def target_code(self, locale: str) -> str:
        """Any locale, under its own name. Raises `LocaleError` for what is none."""
        return self._codes.code(locale)

    def render(self, request: CompletionRequest) -> bytes:
        """The question itself."""
        source, target = self._codes.code(request.source_locale), self._codes.code(request.target_locale)
        return exchange.question(request, source, target).encode()

    def reserve(self, body: bytes) -> tuple[int, int]:
        """Worst case, with `translate` growing no text to more than three times its bytes."""
        count = 4 * len(body)
        return count, count * self._microusd_per_token

    async def send(self, body: bytes, attempt_id: str, deadline_seconds: float) -> ProviderAnswer:
        """Plays one move. What was accepted is on record before the first wait."""
        move = self._next_move(body, attempt_id)
        if move == "unreachable":
            return failures.not_started(f"{self.name} cannot be reached")
        if move in _REJECTIONS:
            self.calls.append(Call(attempt_id, body, move, accepted=False))
            return self._rejection(move)
        answer = self._answer(move, body)
        self.calls.append(Call(attempt_id, body, move, accepted=True, answer=answer))
        wait = self._late_seconds if move == "late" else self._answer_seconds
        if move == "never" or wait > deadline_seconds:
            await asyncio.sleep(deadline_seconds)
            return _unknown(failures.TIMEOUT_UNKNOWN)
        await asyncio.sleep(wait)
        if move == "lost":
            return _unknown(failures.CONNECTION_UNKNOWN)
        if move in ("cut", "garbage"):
            return replace(_unknown(failures.INVALID_RESPONSE_UNKNOWN), body=answer, status=200)
        return ProviderAnswer(failures.SUCCEEDED, body=answer, status=200, provider_ref=attempt_id)

    async def ask(self, attempt_id: str, deadline_seconds: float) -> ProviderAnswer | None:
        """The kept answer of an accepted attempt, where answers are kept."""
        kept = [call.answer for call in self.accepted if call.attempt_id == attempt_id and self.askable]
        if not kept:
            return None
        return ProviderAnswer(failures.SUCCEEDED, body=kept[0], status=200, provider_ref=attempt_id)

    def read(self, answer: bytes) -> Reply:
        """The reply in kept bytes. Never raises."""
        return exchange.read_answer(answer)

    async def close(self) -> None:
        """Nothing is held; what was accepted stays on record."""

    def _next_move(self, body: bytes, attempt_id: str) -> Move:
        scripted = next(self._script, None)
        if any(phrase in text for _, text in exchange.read_question(body).items for phrase in self._refuses):
            return "refuse"
        if scripted is not None:
            return scripted
        digest = hashlib.sha256(f"{self._seed}:{attempt_id}:".encode() + body).digest()
        fraction = int.from_bytes(digest[:6], "big") / 2**48
        for move, share in self._weather.items():
            if fraction < share:
                return move
            fraction -= share
        return "answer"

    def _answer(self, move: Move, body: bytes) -> bytes:
        asked = exchange.read_question(body)
        items = _spoiled([(name, self._translate(text, asked.target)) for name, text in asked.items], move)
        prompt, output = len(body) // 4, sum(len(text.encode()) for _, text in items) // 4
        usage = Usage(prompt, output, microusd=(prompt + output) * self._microusd_per_token)
        finish: Finish = "length" if move == "length" else "refused" if move == "refuse" else "complete"
        answer = exchange.answer(items, usage, finish)
        if move == "twice":
            return answer + answer
        if move == "garbage":
            return b"<html>upstream had a bad day</html>"
        return answer[: len(answer) // 2] if move == "cut" else answer

    def _rejection(self, move: Move) -> ProviderAnswer:
        status, code = _REJECTIONS[move]
        return ProviderAnswer(
            failures.REJECTED,
            status=status,
            code=code,
            message=f"{self.name} plays {move}",
            retry_after_seconds=self._retry_after_seconds if move == "slow_down" else None,
            spend_limit=move == "spend_limit",
        )


def _spoiled(items: list[tuple[str, str]], move: Move) -> list[tuple[str, str]]:
    (name, text), rest = items[0], items[1:]
    match move:
        case "missing":
            return rest
        case "duplicate":
            return [(name, text), (name, f"{text} {text}"), *rest]
        case "broken":
            bare = exchange.MARKER.sub("", text)
            return [(name, bare if bare != text else f"{text} ⟦99⟧"), *rest]
        case "empty":
            return [(name, ""), *rest]
        case "length":
            return items[: len(items) // 2]
        case "refuse":
            return []
        case _:
            return items


def _unknown(outcome: str) -> ProviderAnswer:
    return ProviderAnswer(outcome, code=failures.CODES[outcome], message="the rehearsal wants it so")
