from pathlib import Path

from tests.tidy import linter, rooms
from tests.tidy.paths import SOURCE
from tests.tidy.plugins import CONTRACTS
from tests.tidy.rules import LAYERS, PLUGINS
from tests.tidy.source import modules


def test_imports_go_down_and_every_power_has_one_door() -> None:
    found = rooms.problems(SOURCE)
    assert not found, "\n".join(found)


def test_import_linter_finds_no_chain_and_no_cycle(tmp_path: Path) -> None:
    found = linter.complaints(SOURCE, tmp_path)
    assert not found, found


def test_the_rules_speak_of_rooms_that_exist() -> None:
    house = {module.full_name: module for module in modules(SOURCE)}
    declared = {room for layers in LAYERS.values() for line in layers for room in line.split("|")}
    present = {name.split(".")[1] for name in house if "." in name}

    assert present <= declared
    assert all(f"class {protocol}(Protocol)" in house[CONTRACTS].text for protocol in PLUGINS.values())
