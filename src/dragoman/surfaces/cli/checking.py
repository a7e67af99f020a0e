"""`dragoman check`: translations that stand already, held against their sources. Spends and writes nothing.

Needs no database. Exits 0 where nothing reaches the bar of `--fail-on`, 3 where something does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.content import locales
from dragoman.flow.site.inspection import Inspected
from dragoman.kernel.errors import CallerError, LocaleError
from dragoman.surfaces.cli.report import FAILED
from dragoman.surfaces.cli.sarif import sarif
from dragoman.surfaces.cli.telling import terminal
from dragoman.wiring.checkable import find_checkable
from dragoman.wiring.settings import Settings

FORMATS = ("text", "json", "sarif")
BARS: Mapping[str, frozenset[str]] = {
    "error": frozenset(("error",)),
    "warning": frozenset(("error", "warning")),
    "never": frozenset(),
}
"""`--fail-on` → the severities that make the exit code 3."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The arguments as they came."""

    paths: tuple[str, ...]
    locales: tuple[str, ...] = ()
    source_locale: str = ""
    out: str = ""
    format: str = "text"
    errors_only: bool = False
    fail_on: str = "error"


async def check(settings: Settings, wanted: Wanted) -> int:
    """Check, print, and give the exit code."""
    _refuse_choice("--format", wanted.format, FORMATS)
    _refuse_choice("--fail-on", wanted.fail_on, tuple(BARS))
    inspected = inspect(settings, wanted)
    _TELL[wanted.format](inspected)
    severities = {remark.finding.severity for found in inspected for remark in found.remarks}
    return FAILED if severities & BARS[wanted.fail_on] else 0


def inspect(settings: Settings, wanted: Wanted) -> list[Inspected]:
    """What was found in each target, by path. Raises `CallerError` where there is nothing to look at."""
    source_locale = _locale(wanted.source_locale or settings.source_locale, "--from")
    targets = [_locale(locale, "--to") for locale in wanted.locales]
    paths = [Path(path) for path in wanted.paths]
    found = find_checkable(settings, paths, wanted.out, source_locale, targets)
    inspected = [found.inspecting.translation(*pair) for pair in found.translations]
    inspected += [found.inspecting.bilingual(*pair) for pair in found.bilingual]
    if wanted.errors_only:
        inspected = [_errors_of(one) for one in inspected]
    return sorted(inspected, key=lambda one: (one.path, one.locale))


def _errors_of(one: Inspected) -> Inspected:
    errors = tuple(remark for remark in one.remarks if remark.finding.severity == "error")
    return replace(one, remarks=errors)


def _locale(tag: str, flag: str) -> str:
    try:
        return locales.canonical(tag)
    except LocaleError as error:
        raise LocaleError(error.message, place=flag) from None


def _refuse_choice(flag: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise CallerError(f"{flag} must be one of {', '.join(choices)}", place=flag)


def _tell_text(inspected: Sequence[Inspected]) -> None:
    """One paragraph a file: `line:key severity check: message`; then the sum."""
    console = terminal()
    for one in inspected:
        if one.remarks:
            console.print(f"{one.path} ({one.locale})", soft_wrap=True)
        for remark in one.remarks:
            said = f"{remark.finding.severity} {remark.finding.check}: {remark.finding.message}"
            console.print(f"  {remark.line}:{remark.key} {said}", soft_wrap=True)
    counts = _counts(inspected)
    console.print(
        f"{counts['files']} files checked: {counts['error']} errors, {counts['warning']} warnings",
        soft_wrap=True,
    )


def _tell_json(inspected: Sequence[Inspected]) -> None:
    print(json.dumps({"counts": _counts(inspected), "findings": _findings(inspected)}, ensure_ascii=False))


def _tell_sarif(inspected: Sequence[Inspected]) -> None:
    print(json.dumps(sarif(inspected), ensure_ascii=False, indent=2))


def _counts(inspected: Sequence[Inspected]) -> dict[str, int]:
    met = Counter(remark.finding.severity for one in inspected for remark in one.remarks)
    return {"files": len(inspected), "error": met["error"], "warning": met["warning"]}


def _findings(inspected: Sequence[Inspected]) -> list[dict[str, Any]]:
    return [
        {
            "path": one.path,
            "locale": one.locale,
            "line": remark.line,
            "key": remark.key,
            "check": remark.finding.check,
            "severity": remark.finding.severity,
            "message": remark.finding.message,
            "missing": list(remark.finding.missing),
        }
        for one in inspected
        for remark in one.remarks
    ]


_TELL: Mapping[str, Callable[[Sequence[Inspected]], None]] = {
    "text": _tell_text,
    "json": _tell_json,
    "sarif": _tell_sarif,
}
