"""What a run came to: the exit code, the object for machines, and what there is to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

COULD_NOT_RUN, FAILED, WAITING, INTERRUPTED = 1, 3, 4, 130

_LOST_SHOWN = 5
_ENDED = ("completed", "failed", "canceled")
_RELEASE = {
    "waiting_budget": "Raise the budget; the work goes on by itself",
    "waiting_provider": "The provider has them wait; the work goes on by itself, here with --wait",
    "waiting_pair": "Another manifest translates them; they go on when it ends",
}


@dataclass(slots=True)
class Report:
    """What a run came to; `as_json` is the documented object of `--json`.

    `planned` are targets that a dry run would have written. `again` is the command that was typed, empty
    where nobody knows it any more; `flags` is what of it says where the work is done.
    """

    manifest_id: str
    status: str
    counts: Mapping[str, int]
    cost: Mapping[str, Any]
    outputs: Sequence[str] = ()
    planned: Sequence[str] = ()
    failures: Sequence[Mapping[str, Any]] = ()
    waiting: Sequence[Mapping[str, Any]] = ()
    lost: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """File written → texts in it that its source has not any more."""
    edits: Mapping[str, Any] | None = None
    interrupted: bool = False
    again: str = ""
    flags: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """Of several, the first of 130, 1, 4, 3, 0."""
        if self.interrupted:
            return INTERRUPTED
        if self.waiting or not self.has_ended:
            return WAITING
        return FAILED if self.failures else 0

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it is open any more. What is, may be held by a claim that has to run out."""
        return self.status in _ENDED

    def as_json(self) -> dict[str, Any]:
        """`{manifest_id, status, counts, outputs, failures, waiting, cost}`, `lost` where there is any, and
        `edits` where they were asked for.
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
        if self.lost:
            told["lost"] = {target: list(keys) for target, keys in self.lost.items()}
        if self.edits is not None:
            told["edits"] = dict(self.edits)
        return told

    def next_steps(self) -> list[str]:
        """What to do about what failed and what waits, each with the command; one line each."""
        steps = [*self._waits(), *self._remedies(), *self._leftovers(), *self.notes]
        if not self.waiting and not self.has_ended and not self.interrupted:
            steps.append(f"The rest is claimed by somebody whose claim has to run out: {self._again}")
        if self.interrupted:
            steps.append(f"Interrupted; nothing is lost. To go on: {self._again}")
        return steps

    @property
    def _again(self) -> str:
        return self.again or "run the same command again"

    def _remedies(self) -> list[str]:
        retryable = sum(bool(failure["retryable"]) for failure in self.failures)
        rest = {str(failure["remedy"]) for failure in self.failures if not failure["retryable"]}
        steps = []
        if retryable:
            steps.append(f"To retry {retryable} of them: dragoman retry {self.manifest_id}{self.flags}")
        if rest:
            steps.append(f"{' '.join(sorted(rest))} Then: {self._again}")
        return steps

    def _leftovers(self) -> list[str]:
        """Texts that were left in place although their source lost them, file by file."""
        return [
            f"{target}: {', '.join(keys[:_LOST_SHOWN])}{' …' if len(keys) > _LOST_SHOWN else ''}: "
            "not in the source any more, and left as they are"
            for target, keys in sorted(self.lost.items())
        ]

    def _waits(self) -> list[str]:
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for item in self.waiting:
            groups.setdefault(str(item["reason"]), []).append(item)
        return [self._wait(reason, items) for reason, items in groups.items()]

    def _wait(self, reason: str, items: Sequence[Mapping[str, Any]]) -> str:
        due = min((str(item["due_at"]) for item in items if item["due_at"]), default="")
        when = f", until {due}" if due else ""
        if reason == "waiting_unknown":
            risk = f"{self.cost['at_risk_tokens']} tokens, ${self.cost['at_risk_usd']:.4f}"
            how = f"Nobody knows whether {self.cost['at_risk_calls']} calls were paid ({risk}). "
            how += f"To pay them again: {self._again} --on-unknown resend:unlimited"
        else:
            how = f"{_RELEASE.get(reason, 'The work goes on')}: {self._again}"
        return f"{len(items)} waiting: {reason}{when}. {how}"
