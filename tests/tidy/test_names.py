from tests.tidy import names
from tests.tidy.paths import REPOSITORY, SOURCE


def test_every_module_has_a_name_of_its_own_that_says_something() -> None:
    found = names.problems(SOURCE)
    assert not found, "\n".join(found)


def test_tests_and_bench_have_names_that_say_something() -> None:
    found = [name for folder in ("tests", "bench") for name in names.vague(REPOSITORY / folder)]
    assert not found, "\n".join(found)
