"""An API process without workers, stepped by `dragoman run` on demand; callbacks come twice and late."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

from dragoman.kernel.limits import RECONCILE_POLL_SECONDS
from dragoman.kernel.signing import sign
from tests.surfaces.cli.desk import Desk
from tests.surfaces.cli.test_draining import MANIFESTS
from tests.surfaces.cli.test_serving import ask, listening

PAIRS = [{"document": "a.json", "locale": locale} for locale in ("de", "fr", "it")]


def counts(url: str, token: str, manifest_id: str) -> dict[str, int]:
    """What stands, but for what nothing stands in."""
    status: dict[str, Any] = ask(f"{url}{MANIFESTS}/{manifest_id}", token)
    return {name: number for name, number in status["counts"].items() if number}


def send(desk: Desk, url: str, body: bytes, delivery_id: str) -> object:
    """Post an event as the engine would."""
    secret = (desk.folder / ".dragoman" / "callback.key").read_text().strip()
    now = int(time.time())
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{url}/v1/callbacks/submission",
        body,
        {"Content-Type": "application/json", **sign(secret, delivery_id, now, body)},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        return json.loads(answer.read())["receipt"]


def test_every_state_can_be_looked_at_between_two_steps(desk: Desk) -> None:
    """[M-332] the engine's event is doubled, and an older one comes after it: nothing moves by them."""
    desk.write("a.json", {"hello": "Hello"})
    token = str(desk.run("tokens", "create", "ada").object["token"])
    assert desk.run("run", "--time-budget", "5").code == 0
    with listening(desk, "api") as (url, _):
        asked = {"request_id": "r-1", "pairs": PAIRS}
        manifest_id = str(ask(f"{url}{MANIFESTS}", token, asked)["manifest_id"])
        assert counts(url, token, manifest_id) == {"total": 3, "preparing": 3}
        assert desk.rows("intents", "id") == []

        desk.run("run", "--role", "site")
        assert counts(url, token, manifest_id) == {"total": 3, "queued": 3}
        desk.run("run", "--role", "engine")
        [delivery] = desk.rows("outbox", "id", "payload", "state")
        assert delivery.state == "delivered"
        assert counts(url, token, manifest_id) == {"total": 3, "completed": 3}

        event = json.loads(bytes(delivery.payload))
        settled = [row.state for row in desk.rows("intents", "state")]
        assert send(desk, url, bytes(delivery.payload), delivery.id) == "applied"
        failed = [
            {**item, "status": "failed", "code": "checks_failed", "fields": {}} for item in event["items"]
        ]
        late = {**event, "event_sequence": 0, "items": failed}
        assert send(desk, url, json.dumps(late).encode(), "0199d3f0-4a1b-7c55-9c1e-3a7f6f2b8d10") == "applied"
        assert [row.state for row in desk.rows("intents", "state")] == settled == ["completed"] * 3
        assert counts(url, token, manifest_id) == {"total": 3, "completed": 3}
        assert ask(f"{url}{MANIFESTS}", token, asked)["manifest_id"] == manifest_id
        assert desk.run("run").code == 0
        assert counts(url, token, manifest_id) == {"total": 3, "completed": 3}


def test_a_run_asks_about_what_no_event_told(desk: Desk) -> None:
    """[M-267] in the same run as all other work; standing workers ask every ten seconds."""
    desk.write("a.json", {"hello": "Hello"})
    token = str(desk.run("tokens", "create", "ada").object["token"])
    assert desk.run("run", "--time-budget", "5").code == 0
    with listening(desk, "api") as (url, _):
        manifest_id = str(ask(f"{url}{MANIFESTS}", token, {"request_id": "r", "pairs": PAIRS})["manifest_id"])
        desk.run("run", "--role", "site")
        desk.execute("UPDATE jobs SET callback_url = ''")
        desk.run("run", "--role", "engine")
        desk.run("run", "--role", "site")
        assert counts(url, token, manifest_id) == {"total": 3, "queued": 3}
        desk.execute("UPDATE submissions SET reconcile_at = 1")
        desk.run("run", "--role", "site")
        assert counts(url, token, manifest_id) == {"total": 3, "completed": 3}
    assert RECONCILE_POLL_SECONDS <= 300
