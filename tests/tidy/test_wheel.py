import subprocess
import sys
import zipfile
from pathlib import Path

from tests.tidy.paths import REPOSITORY, committed_files


def test_the_wheel_carries_every_module_the_migrations_among_them_and_the_licence(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())

    package = {file.removeprefix("src/") for file in committed_files() if file.startswith("src/")}
    assert package <= packed
    assert any(file.startswith("dragoman/store/migrations/") for file in package)
    assert [file for file in packed if file.endswith("licenses/LICENSE")]
