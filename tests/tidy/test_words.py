from tests.tidy import words
from tests.tidy.paths import REPOSITORY, committed_files


def test_no_committed_file_names_a_registry_or_a_machine() -> None:
    found = words.problems(REPOSITORY, committed_files())
    assert not found, "\n".join(found)
