"""People of a world: they ask, cancel, pause, spare, meddle, ask again, retry and take back.

What they were answered they rely on, and each notes what must hold from then on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.flow.site.steering import Steered
from dragoman.kernel.identity import key_hash
from dragoman.model.scopes import Workspace
from dragoman.model.walks import Walk
from dragoman.store.acts import compensating, steering
from dragoman.wiring.services import Services
from tests.simulation.operators import Operators
from tests.simulation.scene import CALLER, Scene
from tests.simulation.shelves import LOCALES, SHARED, SHELVES, edited
from tests.simulation.verdict import targets_of

THEIRS = "Theirs, and to stay"
"""What somebody writes into a target by hand."""
TAKEN, SPOKEN_FOR = LOCALES
"""The locale that is taken back alone, and the one in which somebody writes into shared files by hand."""
_SPARE_TOKENS = 3_000
_SAMPLE = 2
_OPEN = "SELECT id FROM manifests WHERE phase = 'open' ORDER BY id"
_HELD_FAR = (
    "SELECT DISTINCT client_job_id FROM jobs WHERE state = 'queued' AND parked_for = 'unknown' ORDER BY 1"
)
"""What an engine that was put back holds once more may be over at the site."""
_UNSENT = """
    SELECT manifest_id, id FROM intents WHERE state = 'failed' AND retryable
    AND error_code IN ('retry_exhausted', 'backend_unavailable', 'backend_rate_limited', 'job_lost')
    AND manifest_id IN (SELECT id FROM manifests WHERE NOT canceled) ORDER BY id
"""


class People:
    """Everybody who acts in one world; `dice` decide when."""

    def __init__(self, scene: Scene, dice: random.Random) -> None:
        self._scene = scene
        self._dice = dice
        self._manifests: dict[str, str] = {}
        self.wrote = dict(targets_of(scene.folder))
        """What people wrote at targets, before the world began or in it; shared ones as they began."""
        self._operators = Operators(scene, dice, self._ask)
        if "allow" in scene.setting.people:
            scene.engines.set_quota(CALLER.workspace, _SPARE_TOKENS)
        if "owner" in scene.setting.people:
            self._write("de/shop.json")

    async def live(self) -> None:
        """Ask; do beside the work what is to be done meanwhile, and the rest when it has settled."""
        deeds = self._scene.setting.people
        await self._begin()
        meanwhile = {"cancel": self._cancel, "pause": self._pause, "spare": self._spare, "word": self._say,
                     "rival": self._rival, "meddle": self._meddle, "edit": self._edit,
                     "rest": self._rest, "allow": self._allow, "redrive": self._operators.look,
                     "restore": self._lose_the_engine, "rotate": self._change_the_secret}  # fmt: skip
        await asyncio.gather(*(act() for deed, act in meanwhile.items() if deed in deeds))
        await self._settled()
        if self._scene.setting.asks == "canary":
            await self._promote()
        afterwards = {
            "redrive": self._operators.redrive,
            "retry": self._retry,
            "part": self._take_part_back,
            "again": self._again,
            "correct": self._correct,
            "edit": self._catch_up,
            "revert": self._revert,
            "reprint": self._reprint,
            "run": self._operators.find_nothing,
            "retain": self._operators.retain,
        }
        for deed, act in afterwards.items():
            if deed in deeds:
                await act()
                await self._settled()

    async def _settled(self) -> None:
        """Wait until nothing is open; what an engine that was away for too long never took, or has lost, is
        asked for once more.
        """
        await self._scene.settled()
        while self._scene.setting.far and (unsent := self._scene.database.all(_UNSENT)):
            self._scene.note(f"{len(unsent)} intents were not taken, or lost, and are retried")
            for manifest in sorted({manifest for manifest, _ in unsent}):
                mine = [intent for its, intent in unsent if its == manifest]
                await self._scene.as_client(
                    lambda services, manifest=manifest, mine=mine: services.steering.retry(  # type: ignore[misc]
                        CALLER.workspace, manifest, CALLER.actor, mine
                    )
                )
            await self._scene.settled()

    async def let_go(self) -> None:
        """Look at the held calls, and let them be sent once more."""
        self._scene.note("held calls are let go")
        held = _HELD_FAR if self._scene.setting.far else _OPEN
        for (manifest,) in self._scene.engines.all(held):
            await self._scene.as_client(
                lambda services, manifest=manifest: services.controls.release(  # type: ignore[misc]
                    Workspace(CALLER.workspace), manifest, CALLER.actor, "looked"
                ),
                side="engine",
            )

    async def give_up(self) -> None:
        """What an engine has lost is given up; what it still knows ends by itself."""
        self._scene.note("lost jobs are given up")
        for manifest in self._manifests.values():
            await self._scene.as_client(
                lambda services, manifest=manifest: services.losses.give_up(  # type: ignore[misc]
                    CALLER.workspace, manifest, CALLER.actor
                ),
                "nothing_lost",
                "backend_unavailable",
                "backend_rate_limited",
            )

    async def _lose_the_engine(self) -> None:
        await self._wait(20.0)
        await self._scene.put_engine_back(self._dice.random() * 60.0)

    async def _change_the_secret(self) -> None:
        await self._wait(20.0)
        self._scene.change_secret()
        self._scene.note("the callback secret is changed")

    async def _begin(self) -> None:
        """The first request; by pairs, by a scope or by a run, it is for the same."""
        if "run" in self._scene.setting.people:
            await asyncio.gather(self._operators.run(), self._operators.run())
            return
        if "apart" in self._scene.setting.people:
            await asyncio.gather(*(self._ask(f"r-1 {locale}", locales=(locale,)) for locale in LOCALES))
            return
        if self._scene.setting.asks == "pairs":
            await self._ask("r-1")
            return
        walk = Walk(collections=("files",), globals=(), documents=(), locales=LOCALES)
        limit = _SAMPLE if self._scene.setting.asks == "canary" else 0

        async def ask(services: Services) -> str:
            frozen = self._frozen("missing")
            admitted = await services.admission.admit_scope(
                CALLER, "docs", "r-1", walk, frozen, canary_limit=limit
            )
            return admitted.manifest_id

        self._manifests["r-1"] = await self._scene.as_client(ask)

    async def _promote(self) -> None:
        """A canary has started no more than its sample; what it left out is taken up once."""
        canary = self._manifests["r-1"]
        states = "SELECT count(*) FROM intents WHERE manifest_id = ? AND error_code {} 'canary_not_sampled'"
        kept = self._scene.database.one(states.format("IS NOT"), canary)
        if "cancel" not in self._scene.setting.people:
            self._demand(kept == _SAMPLE, f"{kept} of a canary of {_SAMPLE} were started")

        async def promote(services: Services) -> str:
            admitted = await services.promotion.promote(CALLER.workspace, canary, CALLER.actor)
            return admitted.manifest_id

        promoted = await self._scene.as_client(promote, "nothing_to_promote")
        if isinstance(promoted, str):
            self._manifests["promoted"] = promoted
            await self._scene.settled()

    async def _ask(self, request_id: str, mode: str = "missing", locales: Sequence[str] = LOCALES) -> None:
        """One request for everything; whoever asks twice under one id is answered the same."""
        documents = SHELVES[self._scene.setting.shelf]
        pairs = sorted((document, locale) for document in documents for locale in locales)
        frozen = self._frozen(mode)

        async def ask(services: Services) -> str:
            admitted = await services.admission.admit_pairs(CALLER, "docs", request_id, pairs, frozen)
            return admitted.manifest_id

        self._manifests[request_id] = await self._scene.as_client(ask)

    def _frozen(self, mode: str) -> Mapping[str, Any]:
        return {
            "project": "docs",
            "source_locale": "en",
            "mode": mode,
            "provider": "vendor",
            "root": str(self._scene.folder),
            "out": "{locale}/{path}{ext}",
            "executor": "files:v1",
            "partial": "auto",
            "publish": "auto",
            "on_unknown": self._scene.setting.on_unknown,
            "speed": "batch" if self._scene.setting.batched else "standard",
            "batch_size": 4,
            "concurrency": 2,
        }

    async def _cancel(self) -> None:
        """Once a cancel is answered, nothing more is asked of the vendor, and nothing more is written."""
        await self._wait(6.0)
        manifest = self._manifests["r-1"]

        async def cancel(services: Services) -> Steered:
            return await services.steering.cancel(CALLER.workspace, manifest, CALLER.actor)

        answer = await self._scene.as_client(cancel)
        self._scene.note(f"cancel is answered {answer}")
        if self._told("CONTROL"):
            begun, planned = self._begun(manifest), self._planned(manifest)
            await self._scene.settled()
            self._demand(self._begun(manifest) == begun, "a call was begun after the cancel was answered")
            more = self._planned(manifest) - planned
            self._demand(not more, f"{more} publications were planned after the cancel was answered")

    async def _pause(self) -> None:
        """Between a pause and the going on nothing is asked of the vendor."""
        await self._wait(3.0)
        if not await self._control({"revision": 1, "paused": True}):
            return
        begun = self._begun(self._manifests["r-1"])
        await self._wait(200.0)
        now = self._begun(self._manifests["r-1"])
        self._demand(now == begun, f"{now - begun} calls were begun during a pause")
        await self._control({"revision": 2, "paused": False})

    async def _rest(self) -> None:
        """Once a pause is told, nothing is begun until the manifest goes on; what was begun is kept. One that
        was canceled before rests no more: its cancel has its own law.
        """
        await self._wait(6.0)
        manifest = self._manifests.get("r-1", "")
        paused = await self._scene.as_client(
            lambda services: services.steering.pause(CALLER.workspace, manifest, CALLER.actor)
        )
        self._scene.note(f"a pause is answered {paused}")
        begun = self._begun(manifest)
        await self._wait(400.0)
        rests = self._scene.database.one("SELECT paused FROM manifests WHERE id = ?", manifest)
        if paused is not None and paused.told and rests:
            more = self._begun(manifest) - begun
            self._demand(not more, f"{more} calls were begun while the manifest rested")
        resumed = await self._scene.as_client(
            lambda services: services.steering.resume(CALLER.workspace, manifest, CALLER.actor)
        )
        self._scene.note(f"going on is answered {resumed}")

    async def _allow(self) -> None:
        """More than the month holds is spent at no time; then somebody raises it."""
        await self._wait(900.0)
        month = "SELECT reserved_tokens + spent_tokens FROM budgets WHERE scope = 'month'"
        spent = self._scene.engines.one(month) or 0
        self._demand(spent <= _SPARE_TOKENS, f"{spent} of the month's {_SPARE_TOKENS} tokens are spent")
        self._scene.engines.set_quota(CALLER.workspace, 10_000_000)
        self._scene.note("the month's tokens are raised")

    async def _spare(self) -> None:
        """A small budget first, none later: never is more spent and reserved than allowed."""
        await self._control({"revision": 1, "budget": {"tokens": _SPARE_TOKENS}})
        await self._wait(600.0)
        spent = self._scene.engines.one(
            "SELECT reserved_tokens + spent_tokens FROM budgets WHERE scope = 'client_job' AND scope_key = ?",
            self._manifests["r-1"],
        )
        self._demand((spent or 0) <= _SPARE_TOKENS, f"{spent} tokens of {_SPARE_TOKENS} are spent")
        await self._control({"revision": 2, "budget": None})

    async def _control(self, said: Mapping[str, Any]) -> bool:
        async def put(services: Services) -> bool:
            scope = Workspace(CALLER.workspace)
            answer = await services.controls.put(scope, self._manifests["r-1"], said)
            return bool(answer["applied"])

        applied: bool = await self._scene.as_client(put, side="engine")
        self._scene.note(f"control {dict(said)} is applied: {applied}")
        return True

    async def _rival(self) -> None:
        """Somebody asks for the same while it is under way."""
        await self._wait(3.0)
        await self._ask("r-2")

    async def _meddle(self) -> None:
        """Somebody writes a target by hand, whatever stands there."""
        await self._wait(4.0)
        self._write("fr/shop.json")
        self._scene.note("somebody writes fr/shop.json by hand")

    async def _say(self) -> None:
        """Somebody writes a text into each shared file, whoever else writes in it."""
        await self._wait(4.0)
        self._write_words()

    def _write_words(self) -> list[str]:
        """Write the text; the files in which it stands now."""
        written = sorted(SHARED.keys() & SHELVES[self._scene.setting.shelf].keys())
        for name in written:
            file = self._scene.folder / name
            said = SHARED[name].write(file.read_bytes(), SPOKEN_FOR, SHARED[name].key, THEIRS)
            file.write_bytes(said)
            self._scene.note(f"somebody writes a text of {name} in {SPOKEN_FOR}")
        return written

    async def _correct(self) -> None:
        """What somebody makes of a text in place is on record as theirs, once anybody has looked."""
        written = self._write_words()
        await self._ask("r-5", "all")
        await self._scene.settled()
        whose = "SELECT origin FROM entries WHERE document = ? AND locale = ? AND key_hash = ?"
        for name in written:
            origin = self._scene.database.one(whose, name, SPOKEN_FOR, key_hash(SHARED[name].key))
            self._demand(origin != "ours", f"a person's text of {name} is called ours")

    def _write(self, name: str) -> None:
        target = self._scene.folder / name
        target.parent.mkdir(exist_ok=True)
        self.wrote[name] = f'{{\n  "title": "{THEIRS}"\n}}\n'.encode()
        target.write_bytes(self.wrote[name])

    async def _edit(self) -> None:
        """Somebody edits sources while they are translated."""
        await self._wait(8.0)
        for name in SHELVES[self._scene.setting.shelf]:
            source = self._scene.folder / name
            source.write_bytes(edited({name: source.read_bytes()})[name])
        self._scene.note("somebody edits sources")

    async def _catch_up(self) -> None:
        """Asked for again, what was edited is translated as it now is."""
        if "run" in self._scene.setting.people:
            await self._operators.run()
        else:
            await self._ask("r-4", "changed")

    async def _retry(self) -> None:
        """In fair weather, whatever failed is asked for once more."""
        for vendor in self._scene.vendors.values():
            vendor.clear_up()
        for manifest in self._manifests.values():

            async def retry(services: Services, manifest: str = manifest) -> int:
                return await services.steering.retry(CALLER.workspace, manifest, CALLER.actor)

            await self._scene.as_client(retry, "nothing_to_retry")

    async def _again(self) -> None:
        """All of it is asked for anew: what is in place is bought no second time."""
        states = {state for (state,) in self._scene.database.all("SELECT state FROM intents")}
        await self._ask("r-3")
        await self._scene.settled()
        if states == {"completed"}:
            more = self._begun(self._manifests["r-3"])
            self._demand(not more, f"{more} calls for what was in place")

    async def _revert(self) -> None:
        """What was put in place is taken back, all of it; what people wrote stays."""
        for manifest in reversed(list(self._manifests.values())):
            await self._take_back(manifest)
        self._scene.note("all is taken back")

    async def _reprint(self) -> None:
        """What was taken back is put in place once more, all of it."""
        manifest = self._manifests["r-1"]
        await self._take_back(manifest)

        async def publish(services: Services) -> int:
            scope = Workspace(CALLER.workspace)
            return await services.database.run(steering.request_publication, scope, manifest, None)

        self._scene.note(f"{await self._scene.as_client(publish)} are to be published again")

    async def _take_part_back(self) -> None:
        """What was put in place in one locale is taken back; the other stays whole."""
        await self._take_back(self._manifests[f"r-1 {TAKEN}"])
        self._scene.note(f"{TAKEN} is taken back")

    async def _take_back(self, manifest: str) -> None:
        async def revert(services: Services) -> Any:
            scope = Workspace(CALLER.workspace)
            return await services.database.run(compensating.revert, scope, manifest, CALLER.actor)

        await self._scene.as_client(revert, "already_ended", "lease_held")
        await self._scene.settled()

    async def _wait(self, most_seconds: float) -> None:
        await asyncio.sleep(self._dice.random() * most_seconds)

    def _planned(self, manifest: str) -> int:
        """How many publications of a manifest were planned."""
        count: int = self._scene.database.one("SELECT count(*) FROM plans WHERE manifest_id = ?", manifest)
        return count

    def _begun(self, manifest: str) -> int:
        """How many attempts at calls were begun for a manifest."""
        count: int = self._scene.engines.one(
            "SELECT count(*) FROM attempts a JOIN effects e ON e.id = a.effect_id"
            " WHERE e.family = 'completion' AND a.correlation_id = ?",
            manifest,
        )
        return count

    def _told(self, what: str) -> bool:
        """Whether the engine is on record as having heard of a decision."""
        state = self._scene.database.one(
            "SELECT state FROM effects WHERE family = 'submission' AND effect_key LIKE ?", f"{what}:%"
        )
        return bool(state == "SUCCEEDED")

    def _demand(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self._scene.problem(otherwise)
