"""Whether one process keeps a provider busy that takes 200 ms an answer, and what a call costs it."""

from __future__ import annotations

from bench.children import helper, measured
from bench.measures import Spread, Table, ratio

ANSWER_SECONDS = 0.2
IN_FLIGHT = (50, 400)
_ROUNDS = 20


def bench(runs: int, scale: float) -> list[Table]:
    """The chat provider beside bare aiohttp on the same server."""
    rows = []
    for in_flight in IN_FLIGHT:
        ideal = in_flight / ANSWER_SECONDS
        shares: dict[str, list[float]] = {"bare": [], "ours": []}
        cpu: dict[str, list[float]] = {"bare": [], "ours": []}
        for _ in range(runs):
            for kind in shares:
                with helper("chat_double", ANSWER_SECONDS) as url:
                    told = measured("provider_calls", kind, url, in_flight, int(in_flight * _ROUNDS * scale))
                shares[kind].append(told["calls_per_second"] / ideal * 100)
                cpu[kind].append(told["cpu_ms"])
        reached = {kind: Spread(tuple(values)) for kind, values in shares.items()}
        spent = {kind: Spread(tuple(values)) for kind, values in cpu.items()}
        for kind, name in (("bare", "bare aiohttp"), ("ours", "ChatProvider")):
            relative = ratio(reached[kind], reached["bare"])
            rows.append([name, in_flight, f"{ideal:,.0f}", reached[kind], relative, spent[kind]])
    heads = ["client", "in flight", "ideal calls/s", "% of ideal", "× bare aiohttp", "CPU ms a call"]
    return [Table(f"Provider calls, {ANSWER_SECONDS * 1000:.0f} ms answers, {20} fields a call", heads, rows)]
