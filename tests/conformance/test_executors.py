"""What every executor promises, and what the one over files promises beside."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import resource
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.families.publication.dry_run import DryRun
from dragoman.families.publication.files import Files
from dragoman.families.publication_step import PublicationStep
from dragoman.kernel.identity import sha256
from dragoman.kernel.offload import InlineOffload
from dragoman.model.contracts import Executor
from dragoman.model.effects import Answer, Outgoing

executors = pytest.mark.parametrize("make", [lambda: Files(Path, InlineOffload()), DryRun])
OLD, NEW = b"old\n", "neu und schön\n".encode()


def order(
    root: Path, body: bytes | None = NEW, expected: bytes | None = None, target: str = "fr/a.json"
) -> Outgoing:
    facts: dict[str, str | int] = {
        "executor": "files:v1",
        "root": str(root),
        "target": target,
        "act": "remove" if body is None else "write",
        "expected": "" if expected is None else sha256(expected),
        "step_key": "plan:1:forward",
    }
    return Outgoing("a", "e", "default", 1, "files:v1", 0, body or b"", facts)


def run(executor: Executor, what: Outgoing) -> Answer:
    return asyncio.run(executor.run(what, 5))


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def put(root: Path, data: bytes, target: str = "fr/a.json") -> Path:
    place = root / target
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return place


@executors
@pytest.mark.parametrize("stood", [None, OLD, NEW])
@pytest.mark.parametrize("wanted", [None, NEW, b""])
def test_the_same_step_twice_has_one_effect_and_equal_receipts(
    make: Callable[[], Executor], stood: bytes | None, wanted: bytes | None, tmp_path: Path
) -> None:
    """[T-039, T-063, T-068]"""
    if stood is not None:
        put(tmp_path, stood)
    executor, what = make(), order(tmp_path, wanted, stood)
    first = run(executor, what)
    after = tree(tmp_path)
    marks = {path: (tmp_path / path).stat().st_mtime_ns for path in after}
    second = run(executor, replace(what, attempt_id="b", number=2))
    assert (first.outcome, first.body) == (second.outcome, second.body)
    assert first.outcome == "SUCCEEDED"
    assert tree(tmp_path) == after
    assert {path: (tmp_path / path).stat().st_mtime_ns for path in after} == marks
    receipt = json.loads(first.body or b"")
    assert (receipt["executor"], receipt["target"]) == (executor.name, "fr/a.json")
    if receipt["applied"]:
        assert after == ({} if wanted is None else {"fr/a.json": wanted})
    else:
        assert after == ({} if stood is None else {"fr/a.json": stood})


@executors
def test_a_step_is_reached_by_the_name_that_settings_use(
    make: Callable[[], Executor], tmp_path: Path
) -> None:
    executor = make()
    family = PublicationStep({executor.name: executor})
    what = order(tmp_path)
    known = asyncio.run(family.deliver(replace(what, facts={**what.facts, "executor": executor.name}), 5))
    assert known.outcome == "SUCCEEDED"
    unknown = asyncio.run(family.deliver(replace(what, facts={**what.facts, "executor": "sql:v9"}), 5))
    assert (unknown.outcome, unknown.code) == ("REJECTED", "invalid_settings")


def files() -> Files:
    return Files(Path, InlineOffload())


@pytest.mark.parametrize("wanted", [None, NEW])
@pytest.mark.parametrize("stands, expected", [(OLD, None), (OLD, b"else"), (None, OLD)])
def test_what_is_not_as_expected_is_a_lost_race_and_stays(
    wanted: bytes | None, stands: bytes | None, expected: bytes | None, tmp_path: Path
) -> None:
    if stands is not None:
        put(tmp_path, stands)
    before = tree(tmp_path)
    answer = run(files(), order(tmp_path, wanted, expected))
    if wanted is None and stands is None:
        assert answer.outcome == "SUCCEEDED", "what shall be gone is gone"
    else:
        assert (answer.outcome, answer.code) == ("REJECTED", "target_raced")
    assert tree(tmp_path) == before


def test_a_file_keeps_its_mode_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    place = put(tmp_path, OLD)
    place.chmod(0o640)
    assert run(files(), order(tmp_path, NEW, OLD)).outcome == "SUCCEEDED"
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    assert os.listdir(place.parent) == ["a.json"]


def test_what_a_vanished_writer_left_beside_is_taken_up_by_the_next_try(tmp_path: Path) -> None:
    place = put(tmp_path, OLD)
    executor = files()
    with pytest.raises(RuntimeError, match="killed"), _dying_before_the_rename():
        run(executor, order(tmp_path, NEW, OLD))
    assert place.read_bytes() == OLD
    assert run(executor, order(tmp_path, NEW, OLD)).outcome == "SUCCEEDED"
    assert tree(tmp_path) == {"fr/a.json": NEW}


@contextmanager
def _dying_before_the_rename() -> Iterator[None]:
    """As kill -9 would: no cleaning up."""

    def die(self: Path, target: Path) -> Path:
        raise RuntimeError("killed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", die)
        patch.setattr(Path, "unlink", lambda self, missing_ok=False: None)
        yield


def test_a_reader_sees_the_old_file_or_the_new_one_and_never_a_part(tmp_path: Path) -> None:
    versions = [bytes([letter]) * 200_000 for letter in b"abcdefghij"]
    place = put(tmp_path, versions[0])
    seen: set[bytes] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(place.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for old, new in itertools.pairwise(versions):
        assert run(files(), order(tmp_path, new, old)).outcome == "SUCCEEDED"
    done.set()
    reader.join()
    assert seen <= set(versions)


def test_of_many_writers_at_once_one_wins_each_round(tmp_path: Path) -> None:
    put(tmp_path, OLD)
    wanted = [f"writer {number}".encode() for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda body: run(files(), order(tmp_path, body, OLD)), wanted))
    won = [body for body, answer in zip(wanted, answers, strict=True) if answer.outcome == "SUCCEEDED"]
    assert len(won) == 1
    assert tree(tmp_path) == {"fr/a.json": won[0]}
    assert {answer.code for answer in answers} == {"", "target_raced"}


def test_a_file_that_would_grow_too_large_is_refused_and_the_old_one_stays(tmp_path: Path) -> None:
    """As on a full disk: the write breaks off in the middle."""
    put(tmp_path, OLD)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limit[1]))
    try:
        answer = run(files(), order(tmp_path, b"x" * 100_000, OLD))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert (answer.outcome, answer.code) == ("REJECTED", "target_refused")
    assert answer.message == "fr/a.json: the file would be larger than allowed"
    assert tree(tmp_path) == {"fr/a.json": OLD}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_refused_and_says_so(tmp_path: Path) -> None:
    put(tmp_path, OLD)
    real = Path.open

    def full(self: Path, mode: str = "r") -> object:
        return real(Path("/dev/full") if "w" in mode else self, mode, buffering=0 if "b" in mode else -1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", full)
        patch.setattr(os, "fchmod", lambda descriptor, mode: None)
        answer = run(files(), order(tmp_path, NEW, OLD))
    assert (answer.code, answer.message) == ("target_refused", "fr/a.json: the disk is full")
    assert tree(tmp_path) == {"fr/a.json": OLD}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    place = put(tmp_path, OLD)
    place.parent.chmod(0o555)
    try:
        answer = run(files(), order(tmp_path, NEW, OLD))
    finally:
        place.parent.chmod(0o755)
    assert (answer.code, answer.message) == ("target_refused", "fr/a.json: the process may not write there")
    assert tree(tmp_path) == {"fr/a.json": OLD}


@pytest.mark.skipif(
    not Path("/sys/kernel").is_dir(), reason="no folder here in which not even root may write"
)
def test_a_folder_in_which_nobody_may_write_is_refused_whoever_asks() -> None:
    answer = run(files(), order(Path("/sys/kernel"), target="a.json"))
    assert (answer.outcome, answer.code) == ("REJECTED", "target_refused")
    assert answer.message in (
        "a.json: the process may not write there",
        "a.json: the file system is read-only",
    )


def test_a_path_that_leads_outside_is_refused(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "link").symlink_to(outside)
    for target in ("../outside/a.json", "link/a.json", ".", str(outside / "a.json")):
        answer = run(files(), order(root, NEW, None, target))
        assert (answer.outcome, answer.code) == ("REJECTED", "target_refused")
    assert tree(tmp_path) == {}


def test_a_part_of_the_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    put(tmp_path, OLD, "fr")
    answer = run(files(), order(tmp_path))
    assert (answer.code, answer.message) == ("target_refused", "fr/a.json: a part of the path is a file")
    (tmp_path / "de" / "a.json").mkdir(parents=True)
    answer = run(files(), order(tmp_path, target="de/a.json"))
    assert (answer.code, answer.message) == ("target_refused", "de/a.json: a folder stands there")


def test_a_file_system_that_does_not_answer_leaves_the_end_unknown(tmp_path: Path) -> None:
    class Hung:
        async def call(self, fn: object, *args: object) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError

        def close(self) -> None:
            """Nothing is held."""

    answer = asyncio.run(Files(Path, Hung()).run(order(tmp_path), 0.05))  # type: ignore[arg-type]
    assert (answer.outcome, answer.code) == ("TIMEOUT_UNKNOWN", "PROVIDER_TIMEOUT_UNKNOWN")
