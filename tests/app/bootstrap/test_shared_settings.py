"""What all processes of an installation share is recorded by the first; the others compare."""

from pathlib import Path

import pytest

from app.bootstrap.container import Container
from app.processes.background import listen
from app.processes.lives import Lives
from app.settings import WrongSetting
from tests.app.cli.shell import Shell
from tests.app.http.over_http import send
from tests.installation import wait_until
from tests.servers.running import free_port

ONE, TWO = "https://one.example", "https://two.example"


@pytest.fixture(name="shell")
def beside_a_broker(shell: Shell) -> Shell:
    return shell.having(BROKER_URL="amqp://127.0.0.1:1", PUBLIC_URL=ONE)


def start(shell: Shell, role: str) -> Container:
    """Start a process as far as it compares."""
    container = shell.container()
    container.role = role
    try:
        container.shared_settings.agree(container.clock())
    finally:
        container.close()
    return container


def refusal(shell: Shell, role: str) -> str:
    with pytest.raises(WrongSetting) as refused:
        start(shell, role)
    return str(refused.value)


def test_a_process_that_differs_does_not_start_and_says_in_what(shell: Shell) -> None:
    for role in ("web", "web", "worker", "dispatcher", "clock"):
        start(shell, role)
    for name, role in (
        ("PUBLIC_URL", "web"),
        ("AUTH_URL", "worker"),
        ("TOKEN_ISSUER", "dispatcher"),
        ("TOKEN_ISSUER", "clock"),
    ):
        told = f"TOKEN_ISSUER (from {name}) is {TWO} here and {ONE} for all: "
        assert refusal(shell.having(**{name: TWO}), role).startswith(told)
    for name, value, known in (
        ("TOKEN_AUDIENCE", "other", "carrier-links"),
        ("CURRENCY", "EUR", "USD"),
        ("TOKEN_ALGORITHM", "RS256", "ES256"),
        ("PATH_PREFIX", "/api", "empty"),
    ):
        for role in ("web", "worker", "dispatcher", "clock"):
            told = f"{name} is {value} here and {known} for all: "
            assert refusal(shell.having(**{name: value}), role).startswith(told)


def test_the_address_of_a_web_without_public_url_is_an_issuer_and_that_of_a_worker_is_not(
    shell: Shell,
) -> None:
    unset = shell.having(PUBLIC_URL="")
    start(unset.having(PORT="5100"), "worker")
    start(unset.having(PORT="5000"), "web")
    start(unset.having(PORT="5200"), "worker")
    told = refusal(unset.having(PORT="5001"), "web")
    assert told.startswith(
        "TOKEN_ISSUER (from HOST and PORT, as PUBLIC_URL is not set) is http://127.0.0.1:5001 here "
        "and http://127.0.0.1:5000 for all: "
    )


def test_a_projector_without_a_broker_changes_nothing_for_the_others(shell: Shell) -> None:
    served = shell.having(PATH_PREFIX="/api", TOKEN_AUDIENCE="partners")
    web = start(served, "web")
    alone = shell.having(BROKER_URL="")
    assert refusal(alone, "projector").startswith("TOKEN_AUDIENCE is carrier-links here and ")
    start(alone.having(PATH_PREFIX="/api", TOKEN_AUDIENCE="partners"), "projector")
    assert web.shared_settings.own == served.container().shared_settings.recorded()


def test_two_processes_that_differ_do_not_both_begin(shell: Shell) -> None:
    one, two = shell.container(), shell.having(PUBLIC_URL=TWO).container()
    assert one.shared_settings.recorded() == two.shared_settings.recorded() == {}
    one.shared_settings.agree(one.clock())
    with pytest.raises(WrongSetting):
        two.shared_settings.agree(two.clock())
    for each in (one, two):
        each.close()


def test_who_adopts_other_values_makes_those_that_run_unready(shell: Shell) -> None:
    start(shell, "web")
    port = free_port()
    running = shell.having(METRICS_PORT=str(port)).container()
    running.role = "worker"
    server = listen(Lives(running), "projector")
    assert server is not None
    ready = b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"
    wait_until(lambda: send(port, ready).status == 200)  # It answers for its needs within 1.5 s.
    wanted = shell.having(PUBLIC_URL=TWO, TOKEN_AUDIENCE="other")
    changed = {row["setting"]: row for row in wanted.json("settings", "--adopt")["data"]}
    assert changed["TOKEN_ISSUER"] == {"setting": "TOKEN_ISSUER", "before": ONE, "recorded": TWO}
    assert changed["CURRENCY"]["before"] == changed["CURRENCY"]["recorded"] == "USD"
    told = f"is {ONE} here and {TWO} for all; TOKEN_AUDIENCE is carrier-links here"
    wait_until(lambda: told in "".join(send(port, ready).json()["missing"]))
    assert send(port, ready).status == 503
    server.close()
    running.close()
    start(wanted, "web")
    assert "settings --adopt" in refusal(shell, "worker")
    faults = [
        each for each in shell.json("doctor", status=1)["data"] if "for all" in each["message"]
    ]
    assert [each["check"] for each in faults] == ["settings"]


def test_an_issuer_that_is_not_set_is_not_adopted_and_no_currency_but_that_of_the_log(
    shell: Shell,
) -> None:
    start(shell, "web")
    shell.run("org", "set", shell.new_organization("--no-wallet"), "--wallet")
    shell.having(PUBLIC_URL="", PATH_PREFIX="/api").run("settings", "--adopt")
    start(shell.having(PATH_PREFIX="/api"), "web")
    assert "USD" in shell.having(CURRENCY="EUR").refusal("settings", "--adopt")


def test_commands_use_what_is_recorded(shell: Shell) -> None:
    start(shell, "web")
    other = shell.having(TOKEN_ALGORITHM="RS256", CURRENCY="EUR", PUBLIC_URL=TWO)
    organization = other.new_organization()
    assert other.json("wallet", "show", organization)["currency"] == "USD"
    other.run("keys", "rotate", "signing")
    assert {key.algorithm for key in shell.container().keys.current().values()} == {"ES256"}


def test_one_process_alone_adopts_its_settings(shell: Shell) -> None:
    start(shell, "web")
    alone = shell.having(BROKER_URL="memory://", PUBLIC_URL=TWO)
    start(alone, "serve")
    assert ONE in refusal(shell, "web")
    assert shell.container().shared_settings.recorded()["TOKEN_ISSUER"] == TWO


def test_a_restored_copy_has_issuer_audience_and_prefix_of_its_own(
    shell: Shell, tmp_path: Path
) -> None:
    start(shell, "web")
    shell.run("keys", "rotate", "signing")
    shell.run("backup", tmp_path / "backup")
    home = tmp_path / "copy"
    copy = Shell(home).having(**{**shell.changes, "PUBLIC_URL": TWO, "PATH_PREFIX": "/b"})
    copy.run("restore", tmp_path / "backup")
    recorded = copy.container().shared_settings.recorded()
    assert recorded == {"CURRENCY": "USD", "TOKEN_ALGORITHM": "ES256"}
    start(copy, "web")
    assert TWO in refusal(copy.having(PUBLIC_URL=ONE), "web")


def test_a_web_that_differs_ends_with_one_line(shell: Shell) -> None:
    start(shell, "web")
    status, output, errors = shell.having(PUBLIC_URL=TWO, PORT=str(free_port())).process("web")
    assert (status, output) == (1, "")
    assert errors.splitlines()[-1].startswith("Error: TOKEN_ISSUER (from PUBLIC_URL) is ")
