"""The table of errors for partners is that of the code, and has nothing else."""

from tests.docs.errors_page import MEANINGS, PAGE, page, rows


def test_the_table_is_that_of_the_code() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m tests.docs.errors_page"


def test_only_codes_that_are_sent_are_explained() -> None:
    assert MEANINGS.keys() == {each.code for each in rows()}
