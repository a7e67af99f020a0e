"""What a run was charged, in three places that must agree."""

from __future__ import annotations

from tests.surfaces.cli.desk import Desk, ThreadedServer, Told

HIRED = ("--provider", "hired")


def assert_the_ledger_is_exact(desk: Desk, told: Told, server: ThreadedServer, wasted: int = 0) -> None:
    """What was charged is what the report says and what stands in the books, to the token."""
    cost = told.object["cost"]
    usage = desk.rows("ai_usage", "attempt_id", "total_tokens", "wasted")
    assert sum(server.charged) == cost["paid_tokens"] == sum(row.total_tokens for row in usage)
    assert cost["wasted_tokens"] == sum(row.total_tokens for row in usage if row.wasted) == wasted
    assert len({row.attempt_id for row in usage}) == len(usage) == len(server.charged)
    assert desk.run("doctor").code == 0
