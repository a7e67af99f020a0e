"""What one world is made of, beside its faults: drawn from its seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tests.simulation.faults import Place, Plan, drawn
from tests.simulation.shelves import Shelf

Deed = Literal[
    "owner", "cancel", "pause", "spare", "rival", "meddle", "edit", "retry", "again", "revert",
    "apart",  # each locale is asked for by a manifest of its own
    "part",  # one of the two is taken back
    "word",  # somebody writes one text of each shared file by hand
    "reprint",  # all is taken back, and published again
    "correct",  # the same, once all is in place; and all is asked for anew
    "rest",  # the manifest rests for a while, and goes on
    "allow",  # the workspace's month is nearly used up, and somebody buys more
    "redrive",  # events die of their receiver, jobs of one lost worker; somebody gives both another chance
    "run",  # everything is asked for by a run of convergence, which two people start
    "rotate",  # the secret that signs a far engine's events is changed, with an overlap
    "restore",  # a far engine's database is lost, and an older copy is put back
    "retain",  # months pass: what has had its time goes while something new is asked for
]  # fmt: skip

_PLACES: dict[Place, int] = {"point": 260, "commit": 90, "call": 20}
"""About as many points, commits and calls as a calm process has: faults are drawn among so many."""
_WIRES = 8
"""About as many requests as go over the network in a calm world."""
_FAR_SHARE = 0.15
"""How many of the seeds have a far engine."""
_LOSS_SHARE = 0.2
"""How many of these lose its database."""
_ROTATION_SHARE = 0.25
"""How many of them change their secret."""
_LOSS_PEOPLE: tuple[tuple[Deed, ...], ...] = (("restore",), ("restore",), ("restore", "again"))

_FORMATS_SHARE = 0.4
"""How many of the seeds have several formats, shared files among them."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One world. `frees` says that leases of vanished owners are known to be free, as on one host."""

    seed: int
    shelf: Shelf = "usual"
    plan: Plan = field(default_factory=Plan)
    processes: int = 1
    groups: bool = True
    frees: bool = True
    priced: bool = True
    askable: bool = False
    background: bool = False
    """Whether the provider works in the background, and is known by a reference of its own."""
    batched: bool = False
    """Whether calls go out as batches, which take their time, and of which some expire."""
    heirs: bool = False
    """Whether others go on where the provider refuses to serve; the first of them has a list of its own."""
    on_unknown: str = "resend"
    weather: Mapping[str, float] = field(default_factory=dict)
    restart_seconds: float = 1.0
    people: tuple[Deed, ...] = ()
    """What people do beside asking once."""
    splits_roles: bool = False
    """Whether each of three processes has one role; else each has all."""
    is_small: bool = False
    """Whether pages, shards, submissions and inline results are tiny, so that there are many of each."""
    asks: Literal["pairs", "scope", "canary"] = "pairs"
    """How the first request says what is wanted: by pairs, or by a scope, which a canary samples first."""
    has_queue: bool = False
    """Whether processes wake each other over a queue server, which has bad days of its own."""
    far: bool = False
    """Whether the engine stands elsewhere, on a database of its own, and is spoken to over a network."""
    engines: int = 1
    """How many processes a far engine has."""
    asks_only: bool = False
    """Whether a far engine has no address to send its events to: the site asks."""
    patience_seconds: float = 3 * 86_400.0
    """Virtual time in which everything has to settle."""
    is_shuffled: bool = False
    """Whether the seed decides how long every step takes; else all of them take the same."""

    @property
    def bounds(self) -> Mapping[str, int]:
        """Limits of the product that this world sets anew."""
        return {
            **(_SMALL if self.is_small else {}),
            **(_FRAIL if "redrive" in self.people else {}),
            **(_RETAINED if "retain" in self.people else {}),
        }

    @property
    def may_fail(self) -> bool:
        """Whether the vendor may answer a text so badly, so often, that its field fails."""
        return bool(self.weather.keys() & _SPOILS)

    def struck(self, plan: Plan) -> Setting:
        """The same world under another plan."""
        return replace(self, plan=plan)

    @property
    def _engine(self) -> str:
        told = "that only answers" if self.asks_only else "that calls back"
        return f"a far engine of {self.engines} processes {told}, " if self.far else ""

    def __str__(self) -> str:
        answers = "background" if self.background else "askable" if self.askable else "dumb"
        answers = "batch" if self.batched else answers
        heirs = " with heirs" if self.heirs else ""
        money = "priced" if self.priced else "free"
        weather = ", ".join(f"{move} {share:.0%}" for move, share in self.weather.items()) or "fair"
        return (
            f"seed {self.seed}: {self.shelf} documents, {self.processes} processes, "
            f"{'group' if self.groups else 'single'} commits, "
            f"leases of the dead {'freed' if self.frees else 'run out'}, a {money} {answers} provider{heirs} "
            f"in {weather} weather, {'a queue server, ' if self.has_queue else ''}"
            f"unknown calls: {self.on_unknown}, "
            f"{self._engine}asked by {self.asks}, people: {', '.join(self.people) or 'quiet'}, "
            f"{'split roles, ' if self.splits_roles else ''}{'small' if self.is_small else 'usual'} bounds; "
            f"plan: {self.plan}"
        )


CALM = Setting(seed=0)
"""The world whose every point is struck once."""
SCOPE = Setting(seed=0, asks="scope")
"""The calm world, whose documents are walked to."""
CANARY = Setting(seed=0, asks="canary")
"""The same, sampled first and promoted then."""
BATCHES = Setting(seed=0, shelf="shared", batched=True, on_unknown="hold")
"""The world of one file at the lower price: every call is a batch."""
ONE_FILE = Setting(seed=0, shelf="shared", people=("apart", "part"))
"""The world of one file for all locales, struck wherever something is put in or taken out."""

FAR = Setting(seed=0, far=True)
"""The calm world, whose engine is far."""
FAR_ASKED = Setting(seed=0, far=True, asks_only=True)
"""The same, where nobody calls back."""
FAR_CANCELED = Setting(seed=6, far=True, people=("cancel",))
"""The same as the first, where somebody cancels while the engine works."""

_SMALL: Mapping[str, int] = {
    "SHARD_INTENTS": 4,
    "FIELD_SUM_INTENTS": 2,
    "EXPAND_PER_TRANSACTION": 3,
    "LIST_PAGE": 1,
    "PAIRS_PER_PAGE": 5,
    "ITEMS_PER_SUBMISSION": 2,
    "OUTBOX_INLINE_BYTES_MAX": 300,
    "PLAN_INTENTS_MAX": 2,
    "PUBLISH_LOOK_STEPS": 2,
    "RETRY_PER_TRANSACTION": 2,
    "CANCEL_INTENTS": 1,
    "REVERT_PLANS": 1,
}
RETAINED_PARTS = 2
_RETAINED: Mapping[str, int] = {
    "RETENTION_POLL_SECONDS": 2,
    "RETENTION_MANIFESTS_PER_RUN": 2,
    "RETENTION_PAGE": 3,
    "RETENTION_PART": RETAINED_PARTS,
}
"""Bounds under which retention looks often, and takes little at a time."""
_FRAIL: Mapping[str, int] = {"JOB_STARTS_MAX": 1, "OUTBOX_WINDOW_SECONDS": 120}
"""Bounds under which jobs and events give up soon."""
_PEOPLE: tuple[tuple[Deed, ...], ...] = (
    (), (), (), ("retry",), ("cancel",), ("pause",), ("spare",), ("rival",), ("meddle",), ("again",),
    ("revert",), ("retry", "revert"), ("spare", "retry"), ("meddle", "revert"), ("cancel", "again"),
    ("pause", "rival"), ("cancel", "retry"), ("again", "revert"), ("edit",), ("edit",), ("edit", "revert"),
    ("owner",), ("owner", "again", "revert"), ("owner", "rival"),
)  # fmt: skip

_PEOPLE_OF_FORMATS: tuple[tuple[Deed, ...], ...] = (
    (), ("apart",), ("apart", "part"), ("apart", "part"), ("apart", "word"), ("apart", "word", "part"),
    ("apart", "revert"), ("revert",), ("word", "revert"), ("edit",), ("apart", "edit"), ("edit", "revert"),
    ("apart", "part", "again"), ("apart", "word", "revert"), ("retry",), ("cancel",), ("rival",), ("meddle",),
)  # fmt: skip

_SPOILS = frozenset({"cut", "garbage", "missing", "duplicate", "broken", "empty", "length", "twice"})

_WEATHERS: tuple[Mapping[str, float], ...] = (  # the first three spoil no text
    {},
    {"lost": 0.15, "late": 0.1},
    {"never": 0.1, "unreachable": 0.1, "slow_down": 0.1},
    {"cut": 0.1, "garbage": 0.1, "lost": 0.1},
    {"missing": 0.1, "duplicate": 0.1, "broken": 0.1, "empty": 0.05, "length": 0.1, "twice": 0.1},
    {"slow_down": 0.2, "spend_limit": 0.05, "lost": 0.1, "broken": 0.1},
)
_DENIALS: tuple[Mapping[str, float], ...] = (
    {"spend_limit": 0.2},
    {"unreachable": 0.3, "lost": 0.1},
    {"spend_limit": 0.15, "never": 0.1, "lost": 0.1},
)
"""Weather of those that have heirs."""
_MONEY_PEOPLE: tuple[tuple[Deed, ...], ...] = (
    (), (), ("cancel",), ("cancel",), ("rest",), ("rest",), ("allow",), ("allow", "rival"), ("pause",),
    ("spare",), ("rest", "cancel"), ("cancel", "retry"), ("rest", "again"),
)  # fmt: skip
_MONEY_SHARE = 0.4
"""How many of the seeds that ask for plain documents have batches, heirs, or people who hold things up."""

_CARE_PEOPLE: tuple[tuple[Deed, ...], ...] = (
    ("redrive",), ("redrive",), ("redrive", "again"), ("redrive", "cancel"), ("redrive", "rival"),
    ("run",), ("run",), ("run",), ("run", "edit"),
    ("retain",), ("retain",), ("retain", "redrive"), ("retain", "cancel"), ("retain", "retry"),
)  # fmt: skip
_CARE_SHARE = 0.3
"""How many of the seeds that ask for plain documents have operators."""


def of_seed(seed: int) -> Setting:
    """The world of a seed: everything about it, and its faults."""
    is_far = random.Random(f"distance of {seed}").random() < _FAR_SHARE
    return far_of_seed(seed) if is_far else _near(seed)


def far_of_seed(seed: int) -> Setting:
    """The world of a seed with a far engine, and faults of the network beside its own."""
    setting, dice = _near(seed), random.Random(f"network of {seed}")
    people = setting.people
    if random.Random(f"loss of {seed}").random() < _LOSS_SHARE:
        people = dice.choice(_LOSS_PEOPLE)
    if random.Random(f"secret of {seed}").random() < _ROTATION_SHARE:
        people = (*people, "rotate")
    on_the_wire = drawn(dice, {"wire": _WIRES}, dice.choice((0, 1, 2, 3, 4, 6)), ("wire",))
    return replace(
        setting,
        far=True,
        people=people,
        engines=dice.choice((1, 1, 2)),
        asks_only=dice.random() < 0.25,
        plan=Plan({**setting.plan.faults, **on_the_wire.faults}),
    )


def _near(seed: int) -> Setting:
    """A world of one database, and up to six faults."""
    dice = random.Random(seed)
    splits_roles = dice.random() < 0.2
    processes = 3 if splits_roles else dice.choice((1, 2, 2))
    most = {place: count * processes for place, count in _PLACES.items()}
    people = dice.choice(_PEOPLE)
    if not people and seed % 4 == 0:
        people = ("reprint",)
    has_formats = random.Random(f"shelf of {seed}").random() < _FORMATS_SHARE
    if has_formats:
        people = dice.choice(_PEOPLE_OF_FORMATS)
        if not {"part", "revert", "cancel", "edit"} & set(people) and seed % 3 == 0:
            people = (*people, "correct")
    setting = Setting(
        seed=seed,
        shelf="formats" if has_formats else "usual",
        plan=drawn(dice, most, dice.randint(0, 6)),
        processes=processes,
        groups=dice.random() < 0.5,
        frees=dice.random() < 0.5,
        priced=dice.random() < 0.7,
        askable=dice.random() < 0.4,
        on_unknown=dice.choice(("resend", "resend", "resend:unlimited", "hold")),
        weather=dice.choice(_WEATHERS[:3] if "edit" in people else _WEATHERS),
        restart_seconds=dice.choice((0.1, 1.0, 30.0, 150.0)),
        people=people,
        splits_roles=splits_roles,
        is_small=dice.random() < 0.4,
        is_shuffled=True,
        background=dice.random() < 0.2,
        asks="pairs" if "apart" in people else dice.choice(("pairs", "pairs", "scope", "canary")),
        has_queue=dice.random() < 0.4,
    )
    care = random.Random(f"care of {seed}")
    if not has_formats and care.random() < _CARE_SHARE:
        return _of_care(setting, care)
    money = random.Random(f"money of {seed}")
    return setting if has_formats or money.random() > _MONEY_SHARE else _of_money(setting, money)


def _of_money(setting: Setting, dice: random.Random) -> Setting:
    """The same world with another provider, and people who decide about money meanwhile."""
    kind = dice.choice(("batched", "batched", "background", "plain"))
    heirs = dice.random() < 0.5
    return replace(
        setting,
        people=dice.choice(_MONEY_PEOPLE),
        priced=True,
        batched=kind == "batched",
        background=kind == "background",
        heirs=heirs,
        weather=dice.choice(_DENIALS) if heirs else setting.weather,
    )


def _of_care(setting: Setting, dice: random.Random) -> Setting:
    """The same world, in which somebody looks after the installation."""
    people = dice.choice(_CARE_PEOPLE)
    fair = setting.weather if "edit" not in people else dice.choice(_WEATHERS[:3])
    return replace(setting, people=people, weather=fair, asks="pairs" if "run" in people else setting.asks)
