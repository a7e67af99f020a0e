from pathlib import Path

from tests.tidy import linter, rooms
from tests.tidy.paths import SOURCE
from tests.tidy.plugins import CONTRACTS, implementers
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


def test_a_protocol_exists_where_two_members_do() -> None:
    """[M-363]: what only one class can do is called by its name."""
    found = implementers(modules(SOURCE))
    assert len(found) > 8
    assert {protocol: sorted(has) for protocol, has in found.items() if len(has) < 2} == {}


def test_a_protocol_of_one_member_would_be_seen(tmp_path: Path) -> None:
    """Fields count as methods do, in the class, its ancestors and on `self`."""
    package = tmp_path / "dragoman"
    (package / "model").mkdir(parents=True)
    contract = "class Queue:\n    size: int\n    def close(self): ..."
    (package / "model" / "contracts.py").write_text(contract)
    half = "class Half:\n    def close(self): ...\nclass Whole(Half):\n"
    (package / "queues.py").write_text(half + "    def __init__(self):\n        self.size = 1")
    assert implementers(modules(package)) == {"Queue": frozenset({"dragoman.queues.Whole"})}
