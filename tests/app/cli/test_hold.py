"""A copy beside the living installation acts on nothing until an operator releases it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.settings import Settings
from tests.app.cli.serving import NUMBER, Serving
from tests.app.cli.shell import Shell
from tests.app.cli.test_backup import as_written, documented, finished_job
from tests.installation import Process, wait_until
from tests.servers.databases import Databases
from tests.workers.webhooks.receiver import Receiver

HELD = "This installation is a held copy: it answers reads only, until it is released."


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().running() as made:
        yield made


def living(home: Shell, receiver: Receiver) -> Serving:
    """Return a service that has told an endpoint of a job and of a link."""
    made = Serving(home.having(WEBHOOKS_ALLOW_PRIVATE="true"))
    json_of = made.authorized(made.demo) | {"Content-Type": "application/json"}
    asked = json.dumps({"url": receiver.url("/told")}).encode()
    assert made.call("POST", "/v1/webhooks", json_of, asked)[0] == 201
    finished_job(made)
    bought(made, json_of)
    wait_until(lambda: {"job.finished", "link.activated"} <= types(receiver))
    return made


def bought(serving: Serving, headers: dict[str, str]) -> str:
    """Buy a link and return its id."""
    json_of = headers | {"Content-Type": "application/json"}
    plans = serving.call("GET", "/v1/plans?country=FR", json_of)[1]["data"]["data"]
    wanted = json.dumps({"plan_id": plans[0]["id"]}).encode()
    status, reply = serving.call("POST", "/v1/links", json_of, wanted)
    assert status == 201, reply
    return str(reply["data"]["id"])


def types(receiver: Receiver) -> set[str]:
    return {each.type for each in receiver.got["/told"]}


def seen_by_the_clock(place: Shell) -> bool:
    """Tell whether the clock of a copy has come to its first turn at the tree, after 5 s."""
    process = Process(Settings.from_env(place.environment))
    try:
        with process.views.reading() as connection:
            at = process.positions.get(connection, "audit_tree")
        return at is not None and at.position == process.log.head()
    finally:
        process.close()


def check_the_copy(place: Shell, serving: Serving, receiver: Receiver) -> None:
    """Run a restored copy beside the living one: it reads and sells nothing, until released."""
    told, end = len(receiver.got["/told"]), place.json("audit", "verify")["position"]
    copy = Serving(place)
    try:
        headers = copy.authorized(serving.demo)
        wait_until(lambda: seen_by_the_clock(place))
        status, reply = copy.call("POST", NUMBER, headers)
        assert (status, reply["error"]["message"]) == (503, HELD)
        (link,) = copy.call("GET", "/v1/links", headers)[1]["data"]["data"]
        assert copy.call("GET", f"/v1/links/{link['id']}", headers)[0] == 200
        assert copy.call("GET", "/readyz", {})[0] == 200
        assert copy.call("GET", "/readyz", {})[1]["held"] is True
        held = place.json("doctor", status=1)["data"]
        assert [each["severity"] for each in held if each["check"] == "hold"] == ["fault"]
        assert len(receiver.got["/told"]) == told
        assert place.json("audit", "verify")["position"] == end, "nothing was written"
        assert place.json("installation", "release") == {"held": False, "changed": True}
        wait_until(lambda: copy.call("POST", NUMBER, headers)[0] == 200)
        finished_job(copy)
        wait_until(lambda: len(receiver.got["/told"]) > told)
    finally:
        copy.stop()
    assert "this installation is held" in (place.home / "serve.log").read_text("utf-8")
    assert place.json("audit", "verify")["ok"]


@pytest.mark.soak
def test_a_restored_copy_beside_the_living_one_acts_on_nothing(
    nowhere: Shell, tmp_path: Path, receiver: Receiver
) -> None:
    backup, restore = documented("README.md", "app backup").split("\n", 1)
    serving = living(nowhere, receiver)
    try:
        as_written(serving.shell, backup, tmp_path)
        as_written(serving.shell, restore, tmp_path)
        place = serving.shell.having(
            DATABASE_URL=f"sqlite:///{tmp_path}/restored/service.db",
            SIGNING_KEYS=str(tmp_path / "restored" / "keys"),
        )
        shutil.copy(tmp_path / "var" / "service-demo.json", tmp_path / "restored")
        check_the_copy(place, serving, receiver)
    finally:
        serving.stop()


@pytest.mark.soak
def test_so_it_is_with_a_copy_that_the_tools_of_the_database_made_and_an_operator_holds(
    nowhere: Shell, tmp_path: Path, receiver: Receiver, databases: Databases
) -> None:
    backup = "\n" + documented("docs/deployment.md", "pg_dump")
    named, dumped, _ = documented("docs/deployment.md", "pg_restore").split("\n", 2)
    restore = f"{backup.split(chr(10))[1]}\n{named}\n"
    assert "pg_restore" in named, dumped
    url, target = databases.new(), databases.new()
    serving = living(nowhere.having(DATABASE_URL=url), receiver)
    try:
        as_written(serving.shell, backup, tmp_path)
        place = serving.shell.having(DATABASE_URL=target)
        as_written(place, restore, tmp_path)
        place.run("installation", "hold")
        check_the_copy(place, serving, receiver)
    finally:
        serving.stop()
        for each in (url, target):
            databases.drop(each)


def test_a_hold_is_honoured_and_ended_without_a_restart(nowhere: Shell) -> None:
    serving = Serving(nowhere)
    try:
        headers = serving.authorized(serving.demo)
        assert serving.call("POST", NUMBER, headers)[0] == 200
        link = bought(serving, headers)
        for command, changed in (("hold", True), ("hold", False)):
            done = nowhere.json("installation", command)
            assert done == {"held": True, "changed": changed}
        wait_until(lambda: serving.call("POST", NUMBER, headers)[0] == 503)
        assert HELD in nowhere.refusal("wallet", "deposit", owner(nowhere), "1", "--reference", "r")
        assert HELD in nowhere.refusal("providers", "check")
        for command in ("suspend", "reactivate", "end"):
            assert HELD in nowhere.refusal("links", command, link)
        nowhere.run("installation", "release")
        wait_until(lambda: serving.call("POST", NUMBER, headers)[0] == 200)
    finally:
        serving.stop()


def owner(shell: Shell) -> str:
    return str(shell.json("org", "list")["data"][0]["id"])
