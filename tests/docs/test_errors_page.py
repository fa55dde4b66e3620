"""The table of errors for partners is that of the code, and has nothing else."""

from tests.docs.errors_page import PAGE, page, rows


def test_the_table_is_that_of_the_code() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m tests.docs.errors_page"


def test_every_code_says_what_a_partner_can_do() -> None:
    assert [each.code for each in rows() if not each.advice] == []
