"""Executor `dry-run:v1`: says what would be written, and touches nothing."""

from __future__ import annotations

import json

from dragoman.kernel.identity import sha256
from dragoman.model.effects import Answer, Outgoing


class DryRun:
    """Answers every step with its intention; what is on record of the target stays as it was."""

    name = "dry-run:v1"

    async def run(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        """No call, no write."""
        removes = outgoing.facts["act"] == "remove"
        wanted = "" if removes else sha256(outgoing.body)
        receipt = {
            "executor": self.name,
            "target": outgoing.facts["target"],
            "applied": False,
            "would": "nothing" if wanted == outgoing.facts["expected"] else outgoing.facts["act"],
            "sha256": wanted,
            "bytes": len(outgoing.body),
        }
        return Answer("SUCCEEDED", body=json.dumps(receipt).encode())
