"""Ctrl-C: once ends the run in order, twice at once; nothing is lost, and the rerun finishes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.doubles.chat_server import ChatServer
from tests.surfaces.cli.desk import Desk, answering, sent, until

WORDS = ("translate", "docs", "--to", "fr", "--provider", "hired", "--out", "out/{path}{ext}")


@pytest.fixture
def tree(desk: Desk) -> Desk:
    """Four catalogues of one text each, which are asked for one by one."""
    for number in range(4):
        desk.write(f"docs/{number}.json", {"k": f"Hello number {number}"})
    return desk


def hire(desk: Desk, server: ChatServer) -> None:
    desk.hire(server.url, more="batch_size = 1\nconcurrency = 1")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_ctrl_c_begins_no_further_call_keeps_the_answer_and_says_how_to_go_on(
    tree: Desk, number: signal.Signals
) -> None:
    """Exit code 130; the rerun asks for what was not answered yet, and for nothing else."""
    with answering("hang") as server:
        hire(tree, server)
        run = tree.start(*WORDS, "--json")
        until(lambda: server.calls)
        run.send_signal(number)
        until(lambda: stops(run))
        server.release()
        told = tree.end(run)
        assert told.code == 130, told
        assert told.object["status"] in ("queued", "processing")
        assert len(told.object["waiting"]) + told.object["counts"]["completed"] == 4
        assert "Interrupted; nothing is lost. To go on: dragoman translate docs --to fr" in told.err
        assert len(server.calls) == 1
        again = tree.run(*WORDS, "--json")
        assert (again.code, again.object["manifest_id"]) == (0, told.object["manifest_id"])
        assert sorted(sent(server)) == [[f"Hello number {n}"] for n in range(4)]
    assert [tree.texts(f"out/{n}.json") for n in range(4)] == [
        {"k": f"fr Hello number {n}"} for n in range(4)
    ]


def stops(run: subprocess.Popen[str]) -> bool:
    """Whether the process has taken the signal: none of it is pending any more."""
    status = Path(f"/proc/{run.pid}/status").read_text("ascii").splitlines()
    pending = [line.split()[1] for line in status if line.startswith(("ShdPnd", "SigPnd"))]
    return all(int(mask, 16) == 0 for mask in pending)


def test_a_second_ctrl_c_ends_at_once_and_the_rerun_finishes(tree: Desk) -> None:
    """Though a call hangs: it is lost, and its repeat is on record."""
    with answering("silent") as server:
        hire(tree, server)
        run = tree.start(*WORDS)
        until(lambda: server.calls)
        run.send_signal(signal.SIGINT)
        until(lambda: stops(run))
        began = time.monotonic()
        run.send_signal(signal.SIGINT)
        told = tree.end(run)
        assert time.monotonic() - began < 5
        assert told.code == 130
        assert "interrupted twice" in told.err
        assert "run the same command again to go on" in told.err
        again = tree.run(*WORDS, "--json")
        assert (again.code, len(again.object["outputs"])) == (0, 4)
        assert len(server.calls) == 5
        outcomes = sorted(row.outcome for row in tree.rows("attempts", "outcome", "provider") if row.provider)
        assert outcomes.count("CONNECTION_UNKNOWN") == 1


def test_a_run_that_has_not_begun_ends_with_130_too(tree: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_main: object) -> None:
        _main.close()  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setattr(asyncio, "run", interrupted)
    told = tree.run("translate", "docs", "--to", "fr")
    assert (told.code, told.out) == (130, "")
