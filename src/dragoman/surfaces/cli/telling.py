"""How a person is told: the files, what failed and why, the sums, and what to do next.

On a terminal failures stand in a table as wide as it is; elsewhere each has lines of its own, uncut.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from dragoman.kernel.errors import DragomanError
from dragoman.surfaces.cli.report import Report

_SHOWN = 25
_FIELDS_SHOWN = 3


def terminal(*, stderr: bool = False) -> Console:
    """A console that prints texts as they are: square brackets in them are no markup."""
    return Console(stderr=stderr, markup=False, highlight=False)


def tell(report: Report, as_json: bool) -> int:
    """Print a report for machines or people; gives its exit code.

    With JSON, standard output holds the object and nothing else; what to do next goes to standard error.
    """
    if as_json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
        _say(terminal(stderr=True), report.next_steps())
    else:
        show(terminal(), report)
    return report.exit_code


def tell_error(error: DragomanError, as_json: bool) -> None:
    """What, where and what to do."""
    if as_json:
        told = {"code": error.code, "message": error.message, "place": error.place, "remedy": error.remedy}
        print(json.dumps({"error": told}, ensure_ascii=False))
        return
    place = f" ({error.place})" if error.place else ""
    _say(terminal(stderr=True), [f"{error.code}{place}: {error.message}", error.remedy])


def show(console: Console, report: Report) -> None:
    """Tell a person: where the files are, what failed and what waits, what it cost, what to do next."""
    _say(console, _outputs("wrote", report.outputs))
    _say(console, _outputs("would write", report.planned))
    if report.failures and console.is_terminal:
        console.print(_table(report))
    elif report.failures:
        _say(console, _listed(report))
    if len(report.failures) > _SHOWN:
        _say(console, [f"… and {len(report.failures) - _SHOWN} more failures, all of them with --json"])
    _say(console, [_counted(report), _paid(report.cost), *report.next_steps()])


def _say(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(line, soft_wrap=True)


def _outputs(verb: str, paths: Sequence[str]) -> list[str]:
    lines = [f"  {verb} {path}" for path in paths[:_SHOWN]]
    return lines + ([f"  … and {len(paths) - _SHOWN} more files"] if len(paths) > _SHOWN else [])


def _table(report: Report) -> Table:
    title = f"{len(report.failures)} failed"
    table = Table("document", "locale", "code", "why", title=title, title_justify="left")
    for failure in report.failures[:_SHOWN]:
        why = "\n".join([_why(failure), *_fields(failure)])
        table.add_row(failure["document"], failure["locale"], failure["code"], why)
    return table


def _listed(report: Report) -> list[str]:
    lines = [f"{len(report.failures)} failed:"]
    for failure in report.failures[:_SHOWN]:
        lines.append(f"  {failure['document']} {failure['locale']} {failure['code']}: {_why(failure)}")
        lines += [f"    {line}" for line in _fields(failure)]
    return lines


def _why(failure: Mapping[str, Any]) -> str:
    return str(failure["message"] or failure["remedy"])


def _fields(failure: Mapping[str, Any]) -> Iterator[str]:
    for field in failure["fields"][:_FIELDS_SHOWN]:
        yield f"{field['key']}: {field['check'] or field['code']} {field['message']}"
    if len(failure["fields"]) > _FIELDS_SHOWN:
        yield f"… and {len(failure['fields']) - _FIELDS_SHOWN} more fields"


def _counted(report: Report) -> str:
    counts = report.counts
    ends = ("completed", "failed", "protected", "skipped")
    named = [f"{counts[name]} {name}" for name in ends if counts[name]]
    if still_open := counts["preparing"] + counts["queued"] + counts["processing"]:
        named.append(f"{still_open} open")
    return f"{report.status}: {', '.join(named) or 'nothing to do'} of {counts['total']}"


def _paid(cost: Mapping[str, Any]) -> str:
    told = f"{cost['memory_fields']} fields from memory, {cost['provider_fields']} from the provider"
    told += f"; {cost['paid_tokens']} tokens, ${cost['paid_usd']:.4f}"
    if cost["wasted_tokens"]:
        told += f"; wasted {cost['wasted_tokens']} tokens"
    if cost["at_risk_calls"]:
        told += f"; at risk {cost['at_risk_calls']} calls, {cost['at_risk_tokens']} tokens"
        told += f", ${cost['at_risk_usd']:.4f}"
    if cost["lost_jobs"]:
        told += f"; nobody knows what {cost['lost_jobs']} lost jobs cost"
    return told
