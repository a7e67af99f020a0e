"""What is imported is declared, and what is declared is locked with hashes."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from typing import Any

from tests.tidy.paths import REPOSITORY, SOURCE
from tests.tidy.rules import PACKAGE
from tests.tidy.source import modules

LOCKS = ("runtime.txt", "dev.txt")


def _project() -> dict[str, Any]:
    read: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    return read["project"]  # type: ignore[no-any-return]


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]).lower()


def _declared() -> set[str]:
    project = _project()
    extras = project["optional-dependencies"].values()
    return {_name(line) for line in (*project["dependencies"], *(line for extra in extras for line in extra))}


def _locked(file: str) -> dict[str, str]:
    text = (REPOSITORY / "requirements" / file).read_text(encoding="utf-8")
    pins = re.findall(r"^([\w.-]+)==([^\s\\]+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)", text, re.MULTILINE)
    assert len(pins) == len(re.findall(r"^[a-zA-Z]", text, re.MULTILINE)), f"{file}: a line without hashes"
    return {_name(name): version for name, version, _ in pins}


def test_the_package_imports_only_what_it_declares() -> None:
    distributions = packages_distributions()
    outside = {
        target.partition(".")[0]
        for module in modules(SOURCE)
        for target, _ in module.imports()
        if target.partition(".")[0] not in {*sys.stdlib_module_names, PACKAGE, "__future__"}
    }
    declared = _declared()

    # a namespace (`azure`) is of several distributions: one of them must be declared
    assert {name for name in outside if declared.isdisjoint(map(_name, distributions[name]))} == set()


def test_every_requirement_is_locked_with_hashes_in_one_version() -> None:
    runtime, everything = (_locked(file) for file in LOCKS)

    assert _declared() <= runtime.keys()
    assert runtime.items() <= everything.items()
