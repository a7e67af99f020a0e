"""Which processes a world has: how many, on which side, in which roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.wiring.rounds import ROLES
from tests.simulation.processes import Side
from tests.simulation.settings import Setting

_OF_SITES = [role for role in ROLES if role != "engine"]


class Post(NamedTuple):
    """A place at which one process lives after the other, all under one letter."""

    letter: str
    side: Side
    roles: Sequence[str]


def posts_of(setting: Setting) -> list[Post]:
    """All of them have all roles, or each its own; a far engine has posts of its own."""
    if not setting.far:
        roles = [[role] for role in ROLES] if setting.splits_roles else [ROLES] * setting.processes
        return [Post("abc"[n], "both", mine) for n, mine in enumerate(roles)]
    at_sites = [[role] for role in _OF_SITES] if setting.splits_roles else [_OF_SITES] * setting.processes
    sites = [Post("abc"[n], "site", mine) for n, mine in enumerate(at_sites)]
    return sites + [Post("ef"[n], "engine", ["engine"]) for n in range(setting.engines)]
