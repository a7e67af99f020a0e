"""Prints the pages that come from tables. `make docs` writes them; a test compares them with the disk."""

from __future__ import annotations

import ast
import inspect
import json
from itertools import pairwise
from pathlib import Path

from dragoman.content.checks import CHECKS
from dragoman.content.inspection import FILE_CHECKS
from dragoman.kernel import errors, limits
from dragoman.machines.machine import Machine
from dragoman.machines.tables import ALL
from dragoman.surfaces.http.app import open_api

DOCS = Path(__file__).resolve().parent
PRINTED = "<!-- Printed by `make docs`; change the code instead. -->"


def pages() -> dict[str, str]:
    """Path relative to this folder, and the page's text."""
    return {
        "internals/states.md": states_page(),
        "openapi.json": contract(),
        "reference/checks.md": checks_page(),
        "reference/errors.md": errors_page(),
        "reference/limits.md": limits_page(),
    }


def states_page() -> str:
    """Every state machine: its diagram, who moves each state on, and the named groups that queries use."""
    head = f"""{PRINTED}

# States

All state machines of Dragoman, from `src/dragoman/machines/tables.py`. The database's CHECKs, the groups that
queries name and the property tests come from the same tables. Nothing leaves a terminal state, except by the
explicit acts of a person that are listed as *reopens*.
"""
    return head + "".join(_machine(machine) for machine in ALL)


def contract() -> str:
    """The HTTP contract, as it is served at /openapi.json."""
    return json.dumps(open_api(), ensure_ascii=False, indent=1) + "\n"


def checks_page() -> str:
    """Every check, of a text and of a file."""
    lines = [
        PRINTED,
        "",
        "# Checks",
        "",
        "An *error* blocks a translation of ours: it is repaired, or the text fails as `checks_failed`. A",
        "*warning* marks it for review. *By certainty*: an error where there is no doubt. This is also what",
        "`dragoman check` tells.",
        "",
        "| check | severity | what must hold | syntaxes | locales |",
        "|---|---|---|---|---|",
    ]
    for name, check in CHECKS.items():
        syntaxes = ", ".join(sorted(check.syntaxes)) or "all"
        lines.append(f"| `{name}` | {check.severity} | {check.about} | {syntaxes} | {check.locales} |")
    lines += ["", "Of whole files, by `dragoman check`:", "", "| check | what must hold |", "|---|---|"]
    lines += [f"| `{name}` | {about} |" for name, about in FILE_CHECKS.items()]
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    """Every stable code with its HTTP status, whether it may be retried, and what to do."""
    head = f"""{PRINTED}

# Error codes

No other code appears in an answer, a row or a log line. *Status* is the HTTP status of a request that is
answered with the code; *retry* says whether doing the same again may help.
"""
    kinds = dict.fromkeys(code.kind for code in errors.CODES.values())
    return head + "".join(_codes(kind) for kind in kinds)


def limits_page() -> str:
    """Every number that bounds something, in the order and under the headings of `kernel/limits.py`."""
    lines = [PRINTED, "", "# Limits", "", "From `src/dragoman/kernel/limits.py`; units are in the names."]
    source = inspect.getsource(limits)
    headings = {
        number: line.removeprefix("# ")
        for number, line in enumerate(source.splitlines(), 1)
        if line.startswith("# ")
    }
    rows = [("", 0, ""), *_assignments(source)]
    for (_, before, _), (name, number, value) in pairwise(rows):
        heading = next((text for at, text in headings.items() if before < at < number), "")
        if heading:
            lines += ["", f"## {heading[0].upper()}{heading[1:]}", "", "| limit | value |", "|---|---|"]
        lines.append(f"| `{name}` | {value} |")
    return "\n".join(lines) + "\n"


def _machine(machine: Machine) -> str:
    movers = [f"| `{state}` | {mover} |" for state, mover in machine.movers.items()]
    groups = [
        f"- `{group}`: {', '.join(f'`{state}`' for state in sorted(members))}"
        for group, members in machine.groups.items()
    ]
    reopens = [f"- `{before}` → `{after}` by `{event}`" for before, event, after in machine.reopens]
    return "\n".join(
        [
            f"\n## {machine.name}\n",
            "```mermaid",
            machine.mermaid(),
            "```\n",
            *(["| state | who moves it on |", "|---|---|", *movers, ""] if movers else []),
            *(["Groups:\n", *groups, ""] if groups else []),
            *(["Reopens:\n", *reopens, ""] if reopens else []),
        ]
    )


def _codes(kind: str) -> str:
    rows = [
        f"| `{code.name}` | {code.status} | {'yes' if code.retryable else 'no'} | {code.remedy} |"
        for code in errors.CODES.values()
        if code.kind == kind
    ]
    return "\n".join(
        [
            "",
            f"## {kind.capitalize()}",
            "",
            "| code | status | retry | what to do |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _assignments(source: str) -> list[tuple[str, int, str]]:
    """(name, line, value) of every constant."""
    found = []
    for node in ast.parse(source).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name):
            value = getattr(limits, target.id)
            found.append((target.id, node.lineno, f"{value:,}" if isinstance(value, int) else _plain(value)))
    return found


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, tuple | frozenset) else str(value)


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
        print(f"docs/{name}")
