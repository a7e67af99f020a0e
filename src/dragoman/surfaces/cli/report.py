"""How a run is told: the object for machines, the table for people, and the exit code for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

COULD_NOT_RUN, FAILED, WAITING, INTERRUPTED = 1, 3, 4, 130
_SHOWN = 25


@dataclass(slots=True)
class Report:
    """What a run came to; `as_json` is the documented object of `--json`."""

    manifest_id: str
    status: str
    counts: Mapping[str, int]
    cost: Mapping[str, Any]
    outputs: Sequence[str] = ()
    failures: Sequence[Mapping[str, Any]] = ()
    waiting: Sequence[Mapping[str, Any]] = ()
    edits: Mapping[str, Any] | None = None
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """Of several, the first of 130, 1, 4, 3, 0."""
        if self.interrupted:
            return INTERRUPTED
        if self.waiting:
            return WAITING
        return FAILED if self.failures else 0

    def as_json(self) -> dict[str, Any]:
        """`{manifest_id, status, counts, outputs, failures, waiting, cost}`, and `edits` where they were
        asked for.
        """
        told: dict[str, Any] = {
            "manifest_id": self.manifest_id,
            "status": self.status,
            "counts": dict(self.counts),
            "outputs": list(self.outputs),
            "failures": [
                {name: failure[name] for name in ("document", "locale", "code", "message", "fields")}
                for failure in self.failures
            ],
            "waiting": [
                {name: item[name] for name in ("document", "locale", "reason", "due_at")}
                for item in self.waiting
            ],
            "cost": dict(self.cost),
        }
        if self.edits is not None:
            told["edits"] = dict(self.edits)
        return told


def show(console: Console, report: Report) -> None:
    """Tell a person: where the files are, what failed and what waits, what it cost, what to do next."""
    _show_outputs(console, report)
    _show_failures(console, report)
    _show_waiting(console, report)
    _show_summary(console, report)
    for note in report.notes:
        console.print(note, markup=False)


def _show_outputs(console: Console, report: Report) -> None:
    for path in report.outputs[:_SHOWN]:
        console.print(f"  wrote {path}", markup=False, highlight=False)
    if len(report.outputs) > _SHOWN:
        console.print(f"  … and {len(report.outputs) - _SHOWN} more files", markup=False)


def _show_failures(console: Console, report: Report) -> None:
    if not report.failures:
        return
    table = Table(
        "document", "locale", "code", "why", title=f"{len(report.failures)} failed", title_justify="left"
    )
    for failure in report.failures[:_SHOWN]:
        why = failure["message"] or failure.get("remedy", "")
        for field_ in failure["fields"][:3]:
            why += f"\n{field_['key']}: {field_['check'] or field_['code']} {field_['message']}"
        table.add_row(failure["document"], failure["locale"], failure["code"], why)
    console.print(table)
    if len(report.failures) > _SHOWN:
        console.print(f"… and {len(report.failures) - _SHOWN} more", markup=False)
    if any(failure["retryable"] for failure in report.failures):
        console.print(f"Retry them: dragoman retry {report.manifest_id}", markup=False)


def _show_waiting(console: Console, report: Report) -> None:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for item in report.waiting:
        groups.setdefault(str(item["reason"]), []).append(item)
    for reason, items in groups.items():
        due = min((str(item["due_at"]) for item in items if item["due_at"]), default="")
        when = f", until {due}" if due else ""
        console.print(f"{len(items)} waiting: {reason}{when}. {_RELEASE.get(reason, '')}", markup=False)


_RELEASE = {
    "waiting_unknown": "Nobody knows whether they were paid; --on-unknown resend:unlimited pays them again.",
    "waiting_budget": "Raise the budget; the work goes on by itself.",
    "waiting_provider": "The provider asks to wait; the work goes on by itself, or stay with --wait.",
}


def _show_summary(console: Console, report: Report) -> None:
    counts, cost = report.counts, report.cost
    named = [
        f"{counts[name]} {name}" for name in ("completed", "failed", "protected", "skipped") if counts[name]
    ]
    still_open = counts["preparing"] + counts["queued"] + counts["processing"]
    if still_open:
        named.append(f"{still_open} open")
    console.print(
        f"{report.status}: {', '.join(named) or 'nothing to do'} of {counts['total']}", markup=False
    )
    told = f"{cost['memory_fields']} fields from memory, {cost['provider_fields']} from the provider"
    told += f"; paid {cost['paid_tokens']} tokens, ${cost['paid_usd']:.4f}"
    if cost["wasted_tokens"]:
        told += f"; wasted {cost['wasted_tokens']} tokens"
    if cost["at_risk_calls"]:
        told += f"; at risk {cost['at_risk_calls']} calls, {cost['at_risk_tokens']} tokens"
        told += f", ${cost['at_risk_usd']:.4f}"
    console.print(told, markup=False)
