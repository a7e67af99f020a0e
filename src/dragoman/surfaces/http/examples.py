"""One example of every body in the contract, and the refusals that several routes share."""

from __future__ import annotations

from typing import Any

from dragoman.surfaces.http.shapes import EXAMPLE_ID

_MANIFEST_URL = f"/v1/workspaces/default/manifests/{EXAMPLE_ID}"
_JOB_URL = f"/v1/jobs/{EXAMPLE_ID}"
_NEXT = "ZmFpbHVyZXMgMjU"
_MOMENT = "2026-11-29T20:45:00.000+00:00"

MANIFEST_REQUEST: dict[str, Any] = {
    "request_id": "0199d3ef-9d77-7a41-8b0e-5d1f0c7b2a33",
    "project": "docs",
    "pairs": [
        {"document": "guide/install.md", "locale": "he"},
        {"document": "guide/install.md", "locale": "zh-Hant"},
    ],
    "mode": "missing",
    "publish": "auto",
}
MANIFEST_ACCEPTED: dict[str, Any] = {
    "manifest_id": EXAMPLE_ID,
    "status": "preparing",
    "total": 2,
    "total_known": True,
    "status_url": _MANIFEST_URL,
}
FAILURE_PAGE: dict[str, Any] = {
    "items": [
        {
            "intent_id": EXAMPLE_ID,
            "document": "guide/install.md",
            "locale": "zh-Hant",
            "code": "checks_failed",
            "message": "1 of 12 fields failed its checks",
            "remedy": "Retry, or translate the fields named by hand.",
            "retryable": True,
            "attempts": 1,
            "fields": [
                {
                    "key": "p7",
                    "code": "checks_failed",
                    "check": "placeholders",
                    "message": "{name} is missing",
                }
            ],
        }
    ],
    "next": _NEXT,
    "total": 1,
}
MANIFEST_STATUS: dict[str, Any] = {
    "manifest_id": EXAMPLE_ID,
    "status": "failed",
    "total_known": True,
    "enumeration": {"phase": "done", "ignored_without_id": 0, "unavailable": []},
    "canary": {"limit": 0, "promotes": None, "promoted_to": None},
    "counts": {
        "total": 2,
        "preparing": 0,
        "queued": 0,
        "processing": 0,
        "completed": 1,
        "failed": 1,
        "protected": 0,
        "skipped": 0,
    },
    "retryable_failed": 1,
    "cost": {
        "paid_usd": 0.0123,
        "paid_tokens": 4100,
        "reserved_usd": 0.0,
        "at_risk_usd": 0.0,
        "memory_fields": 9,
    },
    "publication": {"state": "in_place", "executor": "files:v1", "written": 12, "steps": {"succeeded": 1}},
    "health": {
        "next_due_at": _MOMENT,
        "oldest_due_at": _MOMENT,
        "scheduling_delayed": False,
        "stale_claims": 0,
        "engine_told": True,
        "last_error": {"code": "backend_unavailable", "message": "the engine answers HTTP 502"},
    },
    "failures": FAILURE_PAGE,
    "created_at": _MOMENT,
    "started_at": _MOMENT,
    "updated_at": _MOMENT,
    "completed_at": _MOMENT,
}
RESULT_PAGE: dict[str, Any] = {
    "items": [
        {
            "document": "guide/install.md",
            "locale": "he",
            "state": "completed",
            "fields": {
                "title": {"state": "translated", "text": "התקנה", "via": "ai"},
                "lead": {"state": "review", "text": "שלום", "via": "ai", "review": ["punctuation"]},
            },
        }
    ],
    "next": _NEXT,
}
CHOSEN: dict[str, Any] = {"intent_ids": [EXAMPLE_ID]}
STEERED: dict[str, Any] = {"manifest_id": EXAMPLE_ID, "intents": 1, "status_url": _MANIFEST_URL}
DECIDED: dict[str, Any] = {
    "manifest_id": EXAMPLE_ID,
    "changed": True,
    "control": "told",
    "status_url": _MANIFEST_URL,
}
REVERTED: dict[str, Any] = {"manifest_id": EXAMPLE_ID, "executions": [EXAMPLE_ID]}
EXECUTION_PAGE: dict[str, Any] = {
    "items": [{"id": EXAMPLE_ID, "action": "execute", "state": "SUCCEEDED", "steps": {"succeeded": 2}}],
    "next": _NEXT,
}

BULK_REQUEST: dict[str, Any] = {
    "submissionId": EXAMPLE_ID,
    "clientJobId": EXAMPLE_ID,
    "sourceLang": "en",
    "callbackUrl": "https://site.example/v1/callbacks/submission",
    "options": {"provider_config": "openai", "batch_size": 20},
    "items": [
        {
            "ref": f"dragoman:{EXAMPLE_ID}:g1",
            "targetLang": "fr",
            "fields": {
                "title": "Install",
                "body": {"text": "Run <code>%s</code> twice.", "syntax": "printf", "note": "A command line"},
                "files": {"plural": {"one": "{count} file", "other": "{count} files"}},
            },
        }
    ],
}
JOB_ACCEPTED: dict[str, Any] = {
    "job_id": EXAMPLE_ID,
    "submissionId": EXAMPLE_ID,
    "status": "queued",
    "created": True,
    "status_url": _JOB_URL,
}
JOB_FOUND: dict[str, Any] = {**JOB_ACCEPTED, "status": "processing", "created": False}
TRANSLATE_REQUEST: dict[str, Any] = {
    "sourceLang": "en",
    "targetLang": "fr",
    "item": "banner",
    "fields": {"title": "Welcome back"},
}
JOB: dict[str, Any] = {
    "job_id": EXAMPLE_ID,
    "submissionId": EXAMPLE_ID,
    "clientJobId": EXAMPLE_ID,
    "status": "processing",
    "progress": 40,
    "usage": {"paid": {"tokens": 900, "microusd": 310}, "via_memory": 4, "via_ai": 8, "passed_through": 1},
}
JOB_PAGE: dict[str, Any] = {"jobs": [JOB], "next_cursor": ""}
ITEM_PAGE: dict[str, Any] = {
    "items": [
        {
            "ref": f"dragoman:{EXAMPLE_ID}:g1",
            "status": "completed",
            "code": "",
            "fields": {"title": {"text": "Installer", "via": "memory"}},
        }
    ],
    "next_cursor": "",
}
USAGE: dict[str, Any] = {
    "period_start": "2026-11-01T00:00:00.000+00:00",
    "period_end": "2026-12-01T00:00:00.000+00:00",
    "monthly_tokens": 10_000_000,
    "used": 4100,
    "reserved": 0,
    "remaining": 9_995_900,
}
CONTROL_REQUEST: dict[str, Any] = {"revision": 2, "paused": True, "canceled": False}
CAPACITY: dict[str, Any] = {
    "account": "site",
    "workspace": "default",
    "items_max": 100,
    "body_bytes_max": 1_048_576,
    "fields_per_item_max": 100,
    "field_chars_max": 100_000,
    "batch_size_max": 200,
    "concurrency_max": 64,
}
CONTROL: dict[str, Any] = {"revision": 2, "applied": True}
DELIVERY_PAGE: dict[str, Any] = {
    "items": [
        {
            "id": EXAMPLE_ID,
            "job_id": EXAMPLE_ID,
            "event": "job.completed",
            "state": "dead",
            "attempts": 14,
            "response_status": 503,
            "dead_at": _MOMENT,
        }
    ],
    "next": _NEXT,
}
REDRIVEN: dict[str, Any] = {"id": EXAMPLE_ID, "state": "pending"}
JOB_REDRIVEN: dict[str, Any] = {"id": EXAMPLE_ID, "status": "queued"}
EVENT: dict[str, Any] = {
    "event": "job.completed",
    "submission_id": EXAMPLE_ID,
    "job_id": EXAMPLE_ID,
    "clientJobId": EXAMPLE_ID,
    "event_sequence": 1,
    "status": "completed",
    "results": "link",
    "items": [{"ref": f"dragoman:{EXAMPLE_ID}:g1", "status": "completed", "sha256": "0" * 64}],
}

SUBMISSION_REFUSALS = (
    "submission_id_conflict",
    "invalid_fields",
    "payload_too_large",
    "source_is_target",
    "unsupported_locale",
    "provider_unknown",
    "provider_credentials_missing",
)
"""What is wrong with a submission, whichever route it came by."""

_ESTIMATED = {
    "documents": 1,
    "fields": 12,
    "passed_through": 1,
    "repeated": 0,
    "from_memory": 4,
    "to_translate": 7,
    "characters": 420,
    "calls": 1,
    "likely": {"tokens": 980, "usd": 0.000213},
    "at_most": {"tokens": 5200, "usd": 0.001804},
}
ESTIMATE = {
    "provider": "openai",
    "model": "gpt-4o-mini",
    "priced": True,
    "locales": [{"locale": "fr", **_ESTIMATED, "refused": ""}],
    "total": _ESTIMATED,
    "unreadable": [],
}
_RUN_URL = f"/v1/workspaces/default/projects/docs/runs/{EXAMPLE_ID}"
RUN_REQUEST = {"trigger": "push", "push_id": "3f1c2a9"}
FILE_PAGE = {
    "source_locale": "en",
    "items": [{"path": "locales/en.json", "sha256": "a" * 64}],
    "next": "locales/en.json",
}
RUN_STARTED = {"run_id": EXAMPLE_ID, "joined": False, "status_url": _RUN_URL}
RUN_STATUS: dict[str, Any] = {
    "run_id": EXAMPLE_ID,
    "project": "docs",
    "trigger": "push",
    "push_id": "3f1c2a9",
    "state": "complete",
    "passes": [
        {
            "manifest_id": EXAMPLE_ID,
            "wanted": 12,
            "completed": 2,
            "failed": 0,
            "canceled": 0,
            "via_memory": 4,
            "via_ai": 8,
            "tokens": 980,
            "microusd": 213,
            "wasted_microusd": 0,
            "at_risk_microusd": 0,
        }
    ],
    "fields": {"done": 12, "via_memory": 4, "via_ai": 8},
    "cost": {"paid_tokens": 980, "paid_usd": 0.000213, "wasted_usd": 0.0, "at_risk_usd": 0.0},
    "created_at": _MOMENT,
    "ended_at": _MOMENT,
    "last_error": None,
}

METRICS = """\
# HELP dragoman_outbox Events of ended jobs on their way out
# TYPE dragoman_outbox gauge
dragoman_outbox{state="due"} 0.0
dragoman_outbox{state="delivered"} 412.0
dragoman_outbox{state="dead"} 1.0
"""
