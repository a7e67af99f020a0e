"""What may be spent is said on the command line, and what was spent is told as the ledger has it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.surfaces.cli.desk import Desk, answering, sent

WORDS = {name: f"A sentence about {name}" for name in ("apples", "bears", "clouds", "doors")}


def _hire(desk: Desk, base_url: str, model: str = "gpt-4o-mini") -> None:
    desk.configure(
        f'batch_size = 1\nconcurrency = 1\n[providers.hired]\nprotocol = "chat"\nmodel = "{model}"\n'
        f'base_url = "{base_url}"\nkey_variable = "HIRED_KEY"\npriced = true\n'
    )


def test_a_budget_stops_the_work_and_a_rerun_with_more_goes_on(desk: Desk) -> None:
    """`--budget`: what does not fit waits with reason `budget`; more money goes on with what waits only."""
    desk.write("locales/en.json", WORDS)
    with answering() as server:
        _hire(desk, server.url)
        order = ("locales/en.json", "--to", "fr", "--provider", "hired")
        first = desk.translate(*order, "--budget", "1tokens")
        assert first.code == 4
        assert [item["reason"] for item in first.object["waiting"]] == ["waiting_budget"]
        assert sent(server) == []
        for tokens in range(2_500, 20_000, 500):  # until the worst case of one call fits
            some = desk.translate(*order, "--budget", f"{tokens}tokens")
            if sent(server):
                break
        assert (some.code, len(sent(server))) == (4, 1), "what one call has used leaves no room for another"
        rest = desk.translate(*order, "--budget", "1usd, 10000000 tokens")
        assert rest.code == 0, rest
        assert sorted(sent(server)) == sorted([text] for text in WORDS.values())
        assert rest.object["manifest_id"] == first.object["manifest_id"]
        assert rest.object["cost"] == _ledger(desk, rest.object["manifest_id"])


def _ledger(desk: Desk, manifest_id: str) -> dict[str, Any]:
    """What the tables say that the cost report must say."""
    rows = [row for row in desk.rows("ai_usage") if row.client_job_id == manifest_id]
    results = desk.rows("results", "via")
    ours = sum(row.via == "ai" for row in results)
    memory = sum(row.via == "memory" for row in results)
    paid = sum(row.microusd for row in rows)
    wasted = sum(row.microusd for row in rows if row.wasted)
    return {
        "paid_usd": paid / 1_000_000,
        "paid_tokens": sum(row.total_tokens for row in rows),
        "wasted_usd": wasted / 1_000_000,
        "wasted_tokens": sum(row.total_tokens for row in rows if row.wasted),
        "at_risk_usd": 0.0,
        "at_risk_tokens": 0,
        "at_risk_calls": 0,
        "reserved_usd": 0.0,
        "reserved_tokens": 0,
        "lost_jobs": 0,
        "saved_usd": round((paid - wasted) * memory / ours) / 1_000_000 if ours else 0.0,
        "memory_fields": memory,
        "provider_fields": ours,
    }


def test_the_cost_report_equals_the_ledger_to_the_cent(desk: Desk) -> None:
    """Paid, wasted (a length stop), and saved by memory; every usage row names its list of prices."""
    desk.write("locales/en.json", WORDS)
    with answering({"act": "length", "index": 0}) as server:
        _hire(desk, server.url)
        told = desk.translate("locales/en.json", "--to", "fr", "--provider", "hired")
        assert told.code == 0, told
        cost = told.object["cost"]
        assert cost == _ledger(desk, told.object["manifest_id"])
        assert cost["wasted_usd"] > 0
        assert {row.prices.split()[0] for row in desk.rows("ai_usage", "prices")} == {"genai-prices"}
        desk.write("other/en.json", WORDS | {"eggs": "A sentence about eggs"})
        again = desk.translate("other/en.json", "--to", "fr", "--provider", "hired").object["cost"]
        assert (again["memory_fields"], again["provider_fields"]) == (4, 1)
        assert again["saved_usd"] == pytest.approx(4 * again["paid_usd"])


@pytest.mark.parametrize("said", ["0usd", "0tokens", "5", "5eur", "-1usd", "1.5tokens", "1usd,2usd", "usd"])
def test_a_budget_that_is_none_is_refused(desk: Desk, said: str) -> None:
    """0 is refused: absent is unlimited, and nothing is bounded to nothing."""
    desk.write("locales/en.json", WORDS)
    told = desk.translate("locales/en.json", "--to", "fr", "--budget", said)
    assert (told.code, told.error["place"].split(".")[0]) == (1, "--budget")
