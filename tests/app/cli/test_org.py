"""`org`: what operators see and change of organizations."""

from uuid import UUID, uuid4

import pytest

from domain.accounts.organization import Organization
from tests.app.cli.shell import Shell


def test_a_new_organization_is_active_and_has_an_empty_wallet(shell: Shell) -> None:
    made = shell.json("org", "create", "--name", " Acme ")
    assert UUID(made.pop("id")).version == 4
    assert made == {
        "name": "Acme",
        "status": "active",
        "price_per_lookup": None,
        "monthly_link_fee": "0.00",
        "lookup_enabled": True,
        "rate_limit": None,
        "spending_limit": None,
        "wallet": {"balance": "0.00", "currency": "USD"},
    }


def test_an_organization_may_have_its_own_terms_and_no_wallet(shell: Shell) -> None:
    terms = ["--price", "0.0125", "--monthly-link-fee", "1.5", "--no-wallet"]
    made = shell.json("org", "create", "--name", "Acme", *terms)
    assert (made["price_per_lookup"], made["monthly_link_fee"]) == ("0.0125", "1.50")
    assert made["wallet"] is None


def test_the_list_shows_what_was_done_a_moment_ago_oldest_first(shell: Shell) -> None:
    assert shell.json("org", "list") == {"data": []}
    first = shell.json("org", "create", "--name", "First")
    second = shell.json("org", "create", "--name", "Second", "--no-wallet")
    assert shell.json("org", "list") == {"data": [first, second]}
    shell.run("wallet", "deposit", first["id"], "7", "--reference", "r")
    suspended = shell.json("org", "suspend", second["id"])
    listed = shell.json("org", "list")["data"]
    assert listed[0]["wallet"] == {"balance": "7.00", "currency": "USD"}
    assert listed[1] == suspended


@pytest.mark.parametrize(
    ("command", "status"),
    [("suspend", "suspended"), ("deactivate", "inactive"), ("activate", "active")],
)
def test_a_status_can_be_set_twice(shell: Shell, command: str, status: str) -> None:
    organization = shell.new_organization()
    for _ in range(2):
        assert shell.json("org", command, organization)["status"] == status


def test_a_price_can_be_set_and_given_up_again(shell: Shell) -> None:
    organization = shell.new_organization()
    assert shell.json("org", "set", organization, "--price", "0")["price_per_lookup"] == "0.00"
    back = shell.json("org", "set", organization, "--price", "default")
    assert back["price_per_lookup"] is None


def test_several_terms_change_at_once_and_the_others_stay(shell: Shell) -> None:
    organization = shell.new_organization("--price", "0.5")
    changed = shell.json("org", "set", organization, "--lookup", "off", "--monthly-link-fee", "2")
    assert changed["price_per_lookup"] == "0.50"
    assert (changed["lookup_enabled"], changed["monthly_link_fee"]) == (False, "2.00")
    assert shell.json("org", "set", organization, "--lookup", "on")["lookup_enabled"] is True


def test_limits_can_be_set_and_given_up_again(shell: Shell) -> None:
    organization = shell.new_organization()
    both = ["--rate-limit", "600", "--spending-limit", "50"]
    changed = shell.json("org", "set", organization, *both)
    assert (changed["rate_limit"], changed["spending_limit"]) == (600, "50.00")
    assert shell.json("org", "list")["data"] == [changed]
    both = ["--rate-limit", "default", "--spending-limit", "none"]
    changed = shell.json("org", "set", organization, *both)
    assert (changed["rate_limit"], changed["spending_limit"]) == (None, None)
    assert shell.json("org", "set", organization, "--spending-limit", "0")["spending_limit"] == (
        "0.00"
    )


def test_a_change_says_which_request_caused_it(shell: Shell) -> None:
    organization = shell.new_organization()
    container = shell.container()
    event = container.log.read(1, 1)[0].event  # The first one opens the ledger.
    container.close()
    assert isinstance(event, Organization.Registered)
    assert event.originator_id == organization
    assert event.request_id.startswith("cli-")
    assert UUID(event.request_id.removeprefix("cli-")).version == 4


@pytest.mark.parametrize("command", ["suspend", "activate", "deactivate"])
def test_an_unknown_organization_is_refused(shell: Shell, command: str) -> None:
    stranger = uuid4()
    assert str(stranger) in shell.refusal("org", command, stranger)
    assert str(stranger) in shell.refusal("org", "set", stranger, "--lookup", "on")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["create"], "--name"),
        (["create", "--name", " "], "--name"),
        (["create", "--name", "two\nlines"], "--name"),
        (["create", "--name", "n" * 256], "--name"),
        (["create", "--name", "Acme", "--price", "0.0000001"], "--price"),
        (["create", "--name", "Acme", "--monthly-link-fee", "-1"], "--monthly-link-fee"),
        (["suspend", "acme"], "'ID'"),
        (["set", str(uuid4())], "--rate-limit and --spending-limit"),
        (["set", str(uuid4()), "--lookup", "maybe"], "--lookup"),
    ],
)
def test_a_wrong_argument_is_named(shell: Shell, arguments: list[str], named: str) -> None:
    assert named in shell.refusal("org", *arguments, status=2)


def test_people_get_lines_and_tables(shell: Shell) -> None:
    organization = shell.new_organization("--no-wallet")
    table = shell.run("org", "list").stdout.splitlines()
    assert table[0].split()[:3] == ["ID", "NAME", "STATUS"]
    row = [str(organization), "Acme", "active", "-", "0.00", "yes", "-", "-", "-"]
    assert table[1].split() == row
    assert "status            suspended\n" in shell.run("org", "suspend", organization).stdout
