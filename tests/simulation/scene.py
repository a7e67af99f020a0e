"""What people in a world have to do with: what they may ask, see and write down."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol

from dragoman.flow.site.admission import Caller
from dragoman.wiring.services import Services
from tests.simulation.ground import Database
from tests.simulation.processes import Side
from tests.simulation.settings import Setting
from tests.simulation.vendors import Vendor

CALLER = Caller("default", "mia")
Ask = Callable[[Services], Coroutine[Any, Any, Any]]


class Scene(Protocol):
    """What people have to do with."""

    setting: Setting
    database: Database
    engines: Database
    """The engine's; the same where that is not far."""
    folder: Path
    receiver_says: int
    """The status that the receiver of events answers to each of them; 0 where it is well."""

    @property
    def vendors(self) -> Mapping[str, Vendor]:
        """Everybody who translates here, by name."""
        ...

    async def as_client(self, ask: Ask, *forgiven: str, side: Side = "site") -> Any:
        """Ask a process of that side that lives, again when it dies; errors with a forgiven code count as an
        answer.
        """
        ...

    async def settled(self) -> None:
        """Wait until nothing is open."""
        ...

    def problem(self, text: str) -> None:
        """Write down what must not be."""
        ...

    def note(self, text: str) -> None:
        """Tell what somebody did."""
        ...

    def look_back(self) -> None:
        """Judge what there is, before some of it goes."""
        ...

    async def put_engine_back(self, seconds: float) -> None:
        """After a while the far engine's database is lost, and what it was before that while is put back."""
        ...

    def change_secret(self) -> None:
        """Restart a site under another callback secret; the one before is kept beside it."""
        ...

    def set_clock_on(self, seconds: float) -> None:
        """Set the wall clock, as if so much time had passed."""
        ...

    async def pass_time(self, seconds: float) -> None:
        """Wait so long."""
        ...
