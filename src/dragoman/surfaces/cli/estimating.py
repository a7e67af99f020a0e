"""`dragoman estimate`: what `translate` with the same words would cost; calls nobody and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from dragoman.surfaces.cli.ordering import plan, reach
from dragoman.surfaces.cli.report import FAILED
from dragoman.surfaces.cli.typed import Asked
from dragoman.wiring.rounds import opened
from dragoman.wiring.settings import Settings


async def estimate(settings: Settings, asked: Asked) -> int:
    """Print the price by locale; exit code 3 where a document or a locale could not be reckoned."""
    order = plan(settings, asked)
    async with opened(settings, roles=(), base_url=asked.base_url) as services:
        told = await services.estimating.estimate(
            settings.workspace, order.project, reach(settings, order), order.frozen
        )
    if asked.as_json:
        print(json.dumps(told, ensure_ascii=False))
    else:
        _print(Console(), told)
    refused = any(locale["refused"] for locale in told["locales"])
    return FAILED if refused or told["unreadable"] else 0


def _print(console: Console, told: Mapping[str, Any]) -> None:
    lines = [_line(locale["locale"], locale) for locale in told["locales"]]
    lines.append(_line("all", told["total"]))
    lines += [f"{one['locale']}: {one['refused']}" for one in told["locales"] if one["refused"]]
    lines += [f"{one['document']}: {one['message']}" for one in told["unreadable"]]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _line(name: str, sums: Mapping[str, Any]) -> str:
    return (
        f"{name}: {sums['to_translate']} of {sums['fields']} fields, {sums['from_memory']} from memory, "
        f"{sums['characters']} characters; likely {sums['likely']['tokens']} tokens, "
        f"${sums['likely']['usd']:.4f}; at most ${sums['at_most']['usd']:.4f}"
    )
