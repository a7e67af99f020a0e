from tests.tidy import sizes
from tests.tidy.paths import REPOSITORY, SOURCE


def test_files_and_functions_of_the_package_are_short() -> None:
    found = sizes.problems(SOURCE)
    assert not found, "\n".join(found)


def test_files_of_tests_and_bench_are_short() -> None:
    found = [file for folder in ("tests", "bench") for file in sizes.long_files(REPOSITORY / folder)]
    assert not found, "\n".join(found)
