"""ICU messages with plurals and selects: the code is kept and rebuilt, only sentences are translated.

Promises that no argument name, selector or offset passes through a translator, and that a rebuilt message has
exactly the categories of its locale, beside the source's exact ones (`=1`). A sentence is a branch with the
text around it, so that each is translated as a whole; nested choices give one sentence a combination.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from dragoman.content import locales

_SENTENCES_MAX = 48
_CHOICE = re.compile(
    r"\{\s*([\w-]+)\s*,\s*(plural|selectordinal|select)\s*,(?:\s*offset\s*:\s*(\d+))?", re.ASCII
)
_SELECTOR = re.compile(r"\s*(=\d{1,9}|[\w-]+)\s*\{", re.ASCII)
_CHOICE_END = re.compile(r"\s*\}")
_QUOTED = re.compile(r"''|'[{}](?:[^']|'')*+(?:'|\Z)")
_QUOTED_NUMBER = re.compile(r"'#(?:[^']|'')*+(?:'|\Z)")
_APOSTROPHES = re.compile(r"''|'[{}#](?:[^']|'')*+(?:'|\Z)|'")
_PLAIN = re.compile(r"[^'{}#]+|'")
_SEPARATOR = "/"
_SAMPLE = range(201)


@dataclass(frozen=True, slots=True)
class Choice:
    """One plural or select: its argument, what it chooses by, and the source's selectors in order."""

    argument: str
    kind: str
    offset: str
    selectors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The choices of a message, outermost first; each sentence's key names one selector of each."""

    choices: tuple[Choice, ...]

    @property
    def number(self) -> str:
        """The argument that `#` stands for in the sentences; empty without a plural."""
        return next((choice.argument for choice in reversed(self.choices) if choice.kind != "select"), "")


def split_icu(text: str) -> tuple[Skeleton, dict[str, str]] | None:
    """Cut a message into its skeleton and its sentences, by key (`=1`, `other`, `female/one`).

    None where it holds no plural or select, is not well formed, or would give too many sentences.
    """
    if "{" not in text:
        return None
    try:
        parts, end = _message(text, 0, None)
    except (_Malformed, RecursionError):
        return None
    choices = tuple(dict.fromkeys(_choices(parts)))
    skeleton = Skeleton(choices)
    if end != len(text) or not choices or len({choice.argument for choice in choices}) != len(choices):
        return None
    if any(choice.offset and choice.argument != skeleton.number for choice in choices):
        return None  # `#` minus an offset cannot be written as an argument
    if prod(len(choice.selectors) for choice in choices) > _SENTENCES_MAX:
        return None
    keys = product(*(choice.selectors for choice in choices))
    return skeleton, {_SEPARATOR.join(key): _sentence(skeleton, parts, key) for key in keys}


def is_well_formed(text: str) -> bool:
    """Whether a text reads as an ICU message: braces closed, each choice with its `other`."""
    try:
        return _message(text, 0, None)[1] == len(text)
    except (_Malformed, RecursionError):
        return False


def target_sentences(skeleton: Skeleton, sentences: Mapping[str, str], locale: str) -> dict[str, str]:
    """Which sentence of the source each sentence of the target is translated from: key → source text.

    A category that the source does not have is translated from its `other`.
    """
    wanted: dict[str, str] = {}
    for key in product(*(_target_selectors(choice, locale) for choice in skeleton.choices)):
        known = [
            selector if selector in choice.selectors else "other"
            for selector, choice in zip(key, skeleton.choices, strict=True)
        ]
        wanted[_SEPARATOR.join(key)] = sentences[_SEPARATOR.join(known)]
    return wanted


def join_icu(skeleton: Skeleton, sentences: Mapping[str, str], locale: str) -> str:
    """Build the message for a locale out of its sentences. Raises `KeyError` where one of them is missing."""

    def built(chosen: tuple[str, ...]) -> str:
        if len(chosen) == len(skeleton.choices):
            return _closed(sentences[_SEPARATOR.join(chosen)])
        choice = skeleton.choices[len(chosen)]
        offset = f" offset:{choice.offset}" if choice.offset else ""
        selectors = _target_selectors(choice, locale)
        branches = " ".join(f"{selector} {{{built((*chosen, selector))}}}" for selector in selectors)
        return f"{{{choice.argument}, {choice.kind},{offset} {branches}}}"

    return built(())


def icu_gaps(source: str, target: str, locale: str) -> tuple[str, ...] | None:
    """What a translated message lacks of its source's choices, in words; None where the source has none."""
    wanted, found = split_icu(source), split_icu(target)
    if wanted is None:
        return None
    if found is None:
        return ("a well-formed plural or select",)
    gaps: list[str] = []
    present = {(choice.argument, choice.kind, choice.offset): choice for choice in found[0].choices}
    for choice in wanted[0].choices:
        head = f"{choice.argument}, {choice.kind}" + (f", offset:{choice.offset}" if choice.offset else "")
        there = present.pop((choice.argument, choice.kind, choice.offset), None)
        if there is None:
            gaps.append(f"{{{head}}}")
            continue
        selectors = _target_selectors(choice, locale)
        lacking = [name for name in selectors if name not in there.selectors]
        gaps += [f"{{{head}: {name}}}" for name in lacking if not _is_exact(name, there, locale)]
    gaps += [f"no further choice {{{argument}, {kind}}}" for argument, kind, _ in present]
    return tuple(gaps)


class _Malformed(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class _Number:
    """A `#`: the number of the plural that it stands in, or only a sign (no argument)."""

    argument: str


@dataclass(frozen=True, slots=True)
class _Branches:
    choice: Choice
    messages: Mapping[str, tuple[_Part, ...]]


_Part = str | _Number | _Branches


def _message(text: str, at: int, plural: str | None) -> tuple[tuple[_Part, ...], int]:
    """Read a message up to its end or to the brace that closes it: (parts, offset there)."""
    parts: list[_Part] = []
    while at < len(text) and text[at] != "}":
        if found := _QUOTED.match(text, at) or (plural and _QUOTED_NUMBER.match(text, at)):
            parts.append(found[0])
            at = found.end()
        elif found := _CHOICE.match(text, at):
            branches, at = _branches(text, found, plural)
            parts.append(branches)
        elif text[at] == "{":
            end = _argument_end(text, at)
            parts.append(text[at:end])
            at = end
        elif text[at] == "#":
            parts.append(_Number(plural or ""))
            at += 1
        else:
            found = _PLAIN.match(text, at)
            raw = found[0] if found else ""
            at += len(raw)
            parts.append("''" if raw == "'" and text.startswith("#", at) else raw)
    return tuple(parts), at


def _branches(text: str, head: re.Match[str], plural: str | None) -> tuple[_Branches, int]:
    argument, kind, offset, at = head[1], head[2], head[3] or "", head.end()
    inner = plural if kind == "select" else argument
    messages: dict[str, tuple[_Part, ...]] = {}
    while selector := _SELECTOR.match(text, at):
        parts, at = _message(text, selector.end(), inner)
        if not text.startswith("}", at) or selector[1] in messages:
            raise _Malformed
        messages[selector[1]] = parts
        at += 1
    end = _CHOICE_END.match(text, at)
    if end is None or "other" not in messages:
        raise _Malformed
    return _Branches(Choice(argument, kind, offset, tuple(messages)), messages), end.end()


def _argument_end(text: str, at: int) -> int:
    depth = 0
    while at < len(text):
        if quoted := _QUOTED.match(text, at):
            at = quoted.end()
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at
    raise _Malformed


def _choices(parts: tuple[_Part, ...]) -> Iterator[Choice]:
    for part in parts:
        if isinstance(part, _Branches):
            yield part.choice
            for message in part.messages.values():
                yield from _choices(message)


def _sentence(skeleton: Skeleton, parts: tuple[_Part, ...], key: tuple[str, ...]) -> str:
    chosen = {choice.argument: selector for choice, selector in zip(skeleton.choices, key, strict=True)}

    def flat(parts: tuple[_Part, ...]) -> Iterator[str]:
        for part in parts:
            if isinstance(part, str):
                yield part
            elif isinstance(part, _Branches):
                yield from flat(part.messages[chosen[part.choice.argument]])
            elif not part.argument:
                yield "'#'" if skeleton.number else "#"
            else:
                yield "#" if part.argument == skeleton.number else f"{{{part.argument}, number}}"

    return "".join(flat(parts))


def _target_selectors(choice: Choice, locale: str) -> tuple[str, ...]:
    if choice.kind == "select":
        return choice.selectors
    exact = tuple(selector for selector in choice.selectors if selector.startswith("="))
    ordinal = choice.kind == "selectordinal"
    return exact + (locales.ordinal_categories(locale) if ordinal else locales.plural_categories(locale))


def _is_exact(category: str, choice: Choice, locale: str) -> bool:
    """Whether a plural's exact selectors speak for every number of a category (`=1` for German `one`)."""
    if choice.kind != "plural" or choice.offset or category.startswith("="):
        return False
    numbers = {number for number in _SAMPLE if locales.plural_category(locale, number) == category}
    return bool(numbers) and numbers <= {int(name[1:]) for name in choice.selectors if name.startswith("=")}


def _closed(sentence: str) -> str:
    """A sentence that its branch's brace may follow: a lone apostrophe at its end would quote that brace."""
    lone = any(found[0] == "'" and found.end() == len(sentence) for found in _APOSTROPHES.finditer(sentence))
    return sentence + "'" if lone else sentence
