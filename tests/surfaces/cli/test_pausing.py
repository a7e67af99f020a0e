"""`dragoman pause`, `resume` and `watch`: a manifest rests, goes on where it stood, and is looked at."""

from __future__ import annotations

import json
import signal

import pytest

from tests.surfaces.cli.desk import Desk, answering, until
from tests.surfaces.cli.test_interrupting import WORDS, hire, stops


@pytest.fixture
def tree(desk: Desk) -> Desk:
    """Four catalogues of one text each, which are asked for one by one."""
    for number in range(4):
        desk.write(f"docs/{number}.json", {"k": f"Hello number {number}"})
    return desk


def test_a_paused_manifest_waits_for_its_resume_and_ends_alike(tree: Desk) -> None:
    """Nothing is asked of the provider between the two, also not by the same command run again."""
    with answering("hang") as server:
        hire(tree, server)
        run = tree.start(*WORDS, "--json")
        until(lambda: server.calls)
        run.send_signal(signal.SIGTERM)
        until(lambda: stops(run))
        server.release()
        manifest = tree.end(run).object["manifest_id"]
        paused = tree.run("pause", manifest, "--json")
        assert paused.object["status"] == "paused"
        calls = len(server.calls)
        again = tree.run(*WORDS, "--json")
        assert (again.object["manifest_id"], again.object["status"]) == (manifest, "paused")
        assert {item["reason"] for item in again.object["waiting"]} == {"waiting_resume"}
        assert len(server.calls) == calls
        resumed = tree.run("resume", manifest, "--json")
        assert (resumed.code, resumed.object["status"]) == (0, "completed")
        assert len(server.calls) == 4
        watched = tree.run("watch", manifest, "--json")
        *statuses, report = [json.loads(line) for line in watched.out.splitlines()]
        assert [status["status"] for status in statuses] == ["completed"]
        assert (watched.code, report["status"]) == (0, "completed")
    assert [tree.texts(f"out/{n}.json") for n in range(4)] == [
        {"k": f"fr Hello number {n}"} for n in range(4)
    ]
