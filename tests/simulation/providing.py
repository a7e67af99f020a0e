"""How the processes of a world are set up: their settings, and the vendors that they all call."""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping
from pathlib import Path

from dragoman.families.completion import Completion
from dragoman.wiring.settings import EngineSettings, Settings, SubmissionSettings
from tests.simulation.processes import Side
from tests.simulation.scene import CALLER
from tests.simulation.settings import Setting
from tests.simulation.vendors import Vendor, named
from tests.simulation.wire import CALLBACK_URL, ENGINE_URL

TOKEN = "the site's token"
SECRETS: Mapping[str, str] = {
    "DRAGOMAN_ENGINE_TOKEN": TOKEN,
    "DRAGOMAN_CALLBACK_SECRET": "a callback secret of worlds",
    "DRAGOMAN_SEALING_KEY": base64.b64encode(bytes(32)).decode(),
}
"""What the environment of hosts holds where the engine is far."""
SECRETS_AFTERWARDS: Mapping[str, str] = {
    "DRAGOMAN_CALLBACK_SECRET": "another callback secret of worlds",
    "DRAGOMAN_CALLBACK_SECRET_BEFORE": SECRETS["DRAGOMAN_CALLBACK_SECRET"],
}
"""What it holds while the secret is changed."""


def completion_of(vendors: Mapping[str, Vendor]) -> Completion:
    """A process's own way to vendors that outlive it, at either speed."""
    makers = {name: functools.partial(_given, vendor) for name, vendor in vendors.items()}
    return Completion(makers, "vendor", makers)


def settings_of(setting: Setting, folder: Path, side: Side) -> Settings:
    """What all processes of a world, or of one side, read."""
    small = setting.is_small
    callback_url = "" if setting.asks_only else CALLBACK_URL
    return Settings(
        workspace=CALLER.workspace,
        engine=EngineSettings(url=ENGINE_URL, callback_url=callback_url)
        if side == "site"
        else EngineSettings(),
        prepare_per_step=2 if small else 100,
        submit_per_step=1 if small else 4,
        submissions=SubmissionSettings(items=2) if small else SubmissionSettings(),
        state_folder=folder / ".dragoman",
        root=folder,
        provider="vendor",
        providers=named(with_heirs=setting.heirs),
        executor="files:v1",
        jobs_per_process=2,
        calls_per_process=4,
    )


def _given(vendor: Vendor, _model: str) -> Vendor:
    return vendor
