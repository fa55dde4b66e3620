"""`settings`: works without tables, keys or a place to keep them."""

from tests.app.cli.shell import Shell


def test_a_wrong_value_is_one_line_that_names_its_setting(nowhere: Shell) -> None:
    wrong = nowhere.having(PORT="http")
    for command in (["settings"], ["org", "list"], ["migrate"], ["keys", "list"], ["serve"]):
        assert wrong.refusal(*command) == "PORT must be a whole number from 0 to 65535"
