"""Whether the stored sums of money are what attempts and usage say. Reads only."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.model.scopes import System
from dragoman.store.rows import budgets
from dragoman.store.transaction import Tx


class Difference(NamedTuple):
    """One budget that does not hold what it must, in words."""

    workspace: str
    scope: str
    key: str
    stored: str
    counted: str


def money_differences(tx: Tx, _system: System) -> list[Difference]:
    """Every budget whose sums differ from a recount; none in a healthy database."""
    stored, counted = budgets.stored(tx), budgets.recount(tx)
    return [
        Difference(*key, stored=str(stored.get(key)), counted=str(counted.get(key)))
        for key in sorted(stored.keys() | counted.keys())
        if stored.get(key, budgets.NOTHING) != counted.get(key, budgets.NOTHING)
    ]
