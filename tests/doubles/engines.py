"""An engine that takes submissions in and says what the test tells it to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.model.effects import Answer


class CaptureEngine:
    """Create-or-return by submission id, as the contract has it. `weather` gives outcomes for the next
    sends; `judge` may refuse the newest body.
    """

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.marks: list[str] = []
        self.jobs: dict[str, str] = {}
        self.weather: list[Answer] = []
        self.judge: Callable[[], Answer | None] | None = None
        self.controls: list[tuple[str, dict[str, Any]]] = []
        self.views: dict[str, dict[str, Any]] = {}

    async def submit(
        self,
        workspace: str,
        submission_id: str,
        body: bytes,
        deadline_seconds: float,
        secret_mark: str = "",
    ) -> Answer:
        self.bodies.append(body)
        self.marks.append(secret_mark)
        created = submission_id not in self.jobs
        job_id = self.jobs.setdefault(submission_id, f"job-{len(self.jobs) + 1}")
        if self.weather:
            return self.weather.pop(0)
        refusal = self.judge() if self.judge else None
        if refusal is not None:
            return refusal
        told = {"job_id": job_id, "status": "queued", "submissionId": submission_id, "created": created}
        return Answer("SUCCEEDED", json.dumps(told).encode(), 201 if created else 200)

    async def control(
        self, workspace: str, client_job_id: str, body: bytes, deadline_seconds: float
    ) -> Answer:
        self.controls.append((client_job_id, json.loads(body)))
        return Answer("SUCCEEDED", b"{}", 200)

    async def job(
        self, workspace: str, remote_job_id: str, deadline_seconds: float
    ) -> Mapping[str, Any] | None:
        return self.views.get(remote_job_id)

    async def items(
        self, workspace: str, remote_job_id: str, cursor: str, deadline_seconds: float
    ) -> Mapping[str, object]:
        return {"items": self.views[remote_job_id]["items"], "next_cursor": ""}

    async def close(self) -> None:
        """Nothing is held."""

    def submissions(self) -> list[dict[str, Any]]:
        """The bodies taken in, parsed, each submission once."""
        return list({body["submissionId"]: body for body in map(json.loads, self.bodies)}.values())


def event(
    body: Mapping[str, Any], job_id: str, sequence: int = 1, fail: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The event of a job that translated everything by writing `«locale» ` before each text; `fail`: ref →
    code.
    """
    failed = fail or {}
    return {
        "event": "job.completed",
        "submission_id": body["submissionId"],
        "job_id": job_id,
        "clientJobId": body["clientJobId"],
        "event_sequence": sequence,
        "status": "completed",
        "results": "inline",
        "items": [
            {
                "ref": item["ref"],
                "status": "failed" if item["ref"] in failed else "completed",
                "code": failed.get(item["ref"], ""),
                "fields": {
                    key: {"code": failed[item["ref"]], "check": "", "message": "told to"}
                    if item["ref"] in failed
                    else {"text": f"«{item['targetLang']}» {field.get('text', '')}", "via": "ai"}
                    for key, field in item["fields"].items()
                },
            }
            for item in body["items"]
        ],
    }
