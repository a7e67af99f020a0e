"""What is handed out: the wheel holds the package whole, and answers where nothing of this tree is."""

import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.tidy.paths import REPOSITORY, committed_files


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_carries_every_module_the_migrations_among_them_and_the_licence(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())

    package = {file.removeprefix("src/") for file in committed_files() if file.startswith("src/")}
    assert package <= packed
    assert any(file.startswith("dragoman/store/migrations/") for file in package)
    assert [file for file in packed if file.endswith("licenses/LICENSE")]


def installed_alone(wheel: Path, folder: Path) -> Path:
    """The Python of an environment that holds the wheel, and by a path what it depends on: not this tree."""
    venv.create(folder, with_pip=False)
    packages = next(folder.glob("lib/python*/site-packages"))
    zipfile.ZipFile(wheel).extractall(packages)
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


def test_the_wheel_alone_migrates_and_serves(wheel: Path, tmp_path: Path) -> None:
    """[M-360] in an empty folder, without network and without this tree."""
    python = installed_alone(wheel, tmp_path / "environment")
    home = tmp_path / "home"
    home.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    where = subprocess.check_output(
        [python, "-c", "import dragoman; print(dragoman.__file__)"], cwd=home, env=environment, text=True
    )
    assert Path(where.strip()).is_relative_to(tmp_path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    served = subprocess.Popen(
        [python, "-m", "dragoman", "serve", "--port", str(port)],
        cwd=home,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        answers = [answer_of(served, f"{url}{path}") for path in ("/readyz", "/openapi.json")]
        assert answers[0]["ready"] is True
        assert "/v1/workspaces/{workspace}/manifests" in str(answers[1]["paths"])
        served.terminate()
        _, told = served.communicate(timeout=60)
        assert (served.returncode, "first token" in told) == (0, True)
    finally:
        served.kill()
        served.communicate()
        shutil.rmtree(tmp_path / "environment")


def answer_of(served: subprocess.Popen[str], url: str) -> dict[str, object]:
    """What a server answers, once it listens."""
    until = time.monotonic() + 60
    while time.monotonic() < until and served.poll() is None:
        with suppress(OSError), urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
            told = json.loads(answer.read())
            assert isinstance(told, dict)
            return told
        time.sleep(0.05)
    raise AssertionError(f"nobody answers at {url}: {served.poll()}")
