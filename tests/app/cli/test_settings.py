"""`settings`: works without tables, keys or a place to keep them."""

from tests.app.cli.shell import SETTINGS, Shell


def test_every_setting_is_told_with_value_default_and_meaning(nowhere: Shell) -> None:
    told = nowhere.having(PRICE_PER_LOOKUP="0.0100").json("settings")["data"]
    assert [each["name"] for each in told] == SETTINGS
    assert all([*each] == ["name", "value", "default", "meaning"] for each in told)
    [price] = [each for each in told if each["name"] == "PRICE_PER_LOOKUP"]
    assert (price["value"], price["default"]) == ("0.01", "0")
    assert [*nowhere.home.iterdir()] == []


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


def test_so_is_a_provider_that_nobody_knows(nowhere: Shell) -> None:
    wrong = nowhere.having(LOOKUP_PROVIDER="oracle")
    for command in (["settings"], ["org", "list"], ["migrate"], ["keys", "list"], ["serve"]):
        assert wrong.refusal(*command) == "LOOKUP_PROVIDER must be one of: offline, telnyx, twilio"
