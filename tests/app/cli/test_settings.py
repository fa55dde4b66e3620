"""`settings`: works without tables, keys or a place to keep them."""

from tests.app.cli.shell import Shell


def test_a_secret_is_masked(nowhere: Shell) -> None:
    secretive = nowhere.having(SECRET_PEPPER="horse-battery-staple")
    assert "horse" not in secretive.run("settings").output
    assert "horse" not in secretive.run("settings", "--json").output
    shown = secretive.run("settings").stdout.splitlines()
    assert ["SECRET_PEPPER", "********"] in [line.split()[:2] for line in shown]


def test_a_wrong_value_is_one_line_that_names_its_setting(nowhere: Shell) -> None:
    wrong = nowhere.having(PORT="http")
    for command in (["settings"], ["org", "list"], ["migrate"], ["keys", "list"], ["serve"]):
        assert wrong.refusal(*command) == "PORT must be a whole number from 0 to 65535"
