"""Findings as SARIF 2.1.0, which code hosts show beside the lines that they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from dragoman import __version__
from dragoman.content.checks import CHECKS, Check
from dragoman.content.inspection import FILE_CHECKS, Remark
from dragoman.flow.site.inspection import Inspected

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
_ORDINALS = {name: at for at, name in enumerate((*CHECKS, *FILE_CHECKS))}


def sarif(inspected: Sequence[Inspected]) -> dict[str, Any]:
    """One log with one run: every check as a rule, every finding as a result at its line."""
    rules = [_rule(name, check.about, _help(check)) for name, check in CHECKS.items()]
    rules += [_rule(name, about, about) for name, about in FILE_CHECKS.items()]
    results = [_result(one, remark) for one in inspected for remark in one.remarks]
    driver = {"name": "dragoman", "semanticVersion": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(name: str, about: str, help_text: str) -> Mapping[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": about},
        "help": {"text": help_text},
        "defaultConfiguration": {"level": "error" if name in _ERRORS else "warning"},
    }


_ERRORS = {name for name, check in CHECKS.items() if check.severity == "error"} | {"unreadable", "empty"}


def _help(check: Check) -> str:
    syntaxes = f" Syntaxes: {', '.join(sorted(check.syntaxes))}." if check.syntaxes else ""
    return f"{check.about}{syntaxes} Languages: {check.locales}."


def _result(one: Inspected, remark: Remark) -> Mapping[str, Any]:
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(one.path), "uriBaseId": _ROOT},
            "region": {"startLine": remark.line},
        }
    }
    if remark.key:
        place["logicalLocations"] = [{"fullyQualifiedName": remark.key, "kind": "resource"}]
    finding = remark.finding
    return {
        "ruleId": finding.check,
        "ruleIndex": _ORDINALS[finding.check],
        "level": finding.severity,
        "message": {"text": f"{remark.key}: {finding.message}" if remark.key else finding.message},
        "locations": [place],
        "properties": {"locale": one.locale},
    }
