from tests.tidy import transactions
from tests.tidy.paths import SOURCE


def test_only_acts_are_handed_to_the_database_and_each_table_is_filled_in_one_place() -> None:
    """[M-166, M-370] and history is only added to, but for retention."""
    found = transactions.problems(SOURCE)
    assert not found, "\n".join(found)
