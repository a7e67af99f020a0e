"""An owner is gone only where that is proved: on this host, since this boot."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.kernel import processes
from dragoman.kernel.limits import OBJECTS_BETWEEN_COLLECTIONS
from dragoman.kernel.processes import is_gone, owner

_SAY_OWNER = "from dragoman.kernel.processes import owner; print(owner(), flush=True); input()"

pytestmark = pytest.mark.skipif("unknown" in owner(), reason="no /proc here: nothing can be proved")


@pytest.fixture
def child() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _SAY_OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_this_process_is_not_gone_and_signs_within_the_column() -> None:
    assert not is_gone(owner())
    assert len(owner()) <= 160
    assert owner() == owner()


def test_a_killed_process_is_gone_before_and_after_it_is_buried(child: subprocess.Popen[str]) -> None:
    with child:
        assert child.stdout is not None
        name = child.stdout.readline().strip()
        assert not is_gone(name)
        child.kill()
        while child.poll() is None and not is_gone(name):
            pass
        assert is_gone(name)
        child.wait()
        assert is_gone(name)


def test_a_number_that_another_process_has_now_is_gone() -> None:
    host, boot, pid, start = owner().split("/")
    assert is_gone(f"{host}/{boot}/{pid}/{int(start) + 1}")


@pytest.mark.parametrize("part, other", [(0, "elsewhere"), (1, "an-earlier-boot"), (2, "x"), (3, "x")])
def test_another_host_or_boot_or_an_unreadable_name_proves_nothing(part: int, other: str) -> None:
    parts = owner().split("/")
    parts[2] = "999999999"
    assert is_gone("/".join(parts))
    parts[part] = other
    assert not is_gone("/".join(parts))
    assert not is_gone("")
    assert not is_gone("a/b/c")


def test_where_there_is_no_proc_nothing_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PROC", Path("/nowhere"))
    host, boot, _, _ = owner().split("/")
    assert boot == "unknown"
    assert not is_gone(f"{host}/{boot}/999999999/1")


def test_the_collector_comes_by_less_often_and_still_comes() -> None:
    before = gc.get_threshold()
    try:
        processes.collect_less_often()
        assert gc.isenabled()
        assert gc.get_threshold() == (OBJECTS_BETWEEN_COLLECTIONS, *before[1:])
    finally:
        gc.set_threshold(*before)
