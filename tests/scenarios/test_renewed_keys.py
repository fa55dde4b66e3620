"""A key of each kind leaks, and is renewed and revoked by docs/operations.md; two machines work on.

One machine is restarted, process by process, between the renewal and the end of the old keys, the
other one after it. So a key ends in processes that began with its successor, that saw it come, and
that never knew the old one.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from shutil import copytree
from threading import Lock
from time import time
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from app.bootstrap.container import Container
from app.settings import Settings
from domain.accounts.wallet import Wallet
from projections.engine.reader import read_events
from tests.house.load import GOES_ON_S, at_work
from tests.house.partner import Partner, Reply
from tests.house.system import PROCESSES, Release
from tests.installation import wait_until
from tests.net.net import Receiver, signed_by
from tests.scenarios.rolling import Roll, assert_that_nothing_is_lost, two_systems
from tests.servers.databases import Databases

KINDS = ("signing", "pepper", "webhooks", "checkpoints")
# "They follow within a second of the change"; another one for a crowded machine.
WITHIN_S = 2.0
OUT_WITHIN_S = 60.0  # "and go out within a minute".
GOOD, REFUSED = [HTTPStatus.OK] * 2, [HTTPStatus.UNAUTHORIZED] * 2
THREADS = 3  # Of `at_work`; each may have sent a request with the old token.
RIGHTS = "keys,money,catalogue,audit"

pytestmark = [
    pytest.mark.soak,  # Ten processes, each started twice; quicker: test_leaked_keys.
    pytest.mark.timeout(1_200),
]


class Client(Partner):
    """A partner in front of both machines in turn, who asks for another token at a 401."""

    def __init__(self, urls: Sequence[str], client: tuple[str, str]) -> None:
        super().__init__(urls[0], *client)
        self._turns, self._renewing = itertools.cycle(urls), Lock()
        self.refused = list[str]()

    def ask(self, *request: Any, **others: Any) -> Reply:
        used = self.headers()
        reply = super().ask(*request, **others)
        if reply.status == HTTPStatus.UNAUTHORIZED and used:
            self.refused.append(reply.json["error"]["message"])
            with self._renewing:
                if self.headers() == used:
                    wait_until(lambda: self.authorize().status == HTTPStatus.OK)
            reply = super().ask(*request, **others)
        return reply

    def _send(self, *request: Any) -> Reply:
        self.url = next(self._turns)
        return super()._send(*request)


class Machines:
    """Two machines with every process of the Procfile each, and their operator."""

    def __init__(self, roll: Roll, home: Path) -> None:
        self.roll, self.both, self.home = roll, (roll.old, roll.new), home
        self.urls = [each.url for each in self.both]
        self.told = roll.old.json

    def begin(self) -> None:
        self.roll.begin()
        self.running = [self.roll.running, self.both[1].start_all()]
        key = self.told("operator", "create", "boss", "--may", RIGHTS)["key"]
        for each in self.both:
            each.environment["OPERATOR_KEY"] = key

    def restart(self, machine: int) -> None:
        """Replace its processes one after the other; partners go on after each."""
        for name in PROCESSES:
            ending = self.running[machine][name]
            assert ending.stop() == 0, ending.said()[-3000:]
            self.both[machine].start(name).comes_up()
            self.roll.goes_on()

    def newest(self) -> dict[str, dict[str, str]]:
        """Return the key in use of each kind."""
        return {each["kind"]: each for each in self.told("keys", "list")["data"]}

    def statuses(self, token: str) -> list[int]:
        """Show a token to both machines."""
        head = {"Authorization": f"Bearer {token}"}
        return [Partner(u, "", "").ask("GET", "/v1/wallet", headers=head).status for u in self.urls]

    def logins(self, client: tuple[str, str]) -> list[int]:
        """Ask both machines for a token."""
        return [Partner(url, *client).authorize().status for url in self.urls]

    def note(self, name: str) -> str:
        file = str(self.home / name)
        self.told("audit", "checkpoint", "--out", file)
        return file

    def trusts(self, note: str, *key: str) -> bool:
        """Audit what came after a kept note, which is quick; tell whether all is well."""
        return self.both[0].run("audit", "verify", *key, "--from", note).returncode == 0


@pytest.fixture
def machines(tmp_path: Path, databases: Databases, broker_url: str) -> Iterator[Machines]:
    changes = {"WEBHOOKS_ALLOW_PRIVATE": "true", "CHECKPOINT_LAG_S": "0"}
    with two_systems(tmp_path, databases, broker_url, Release(), **changes) as roll:
        yield Machines(roll, tmp_path)


class Leak:
    """Partners at work, and a thief with a copy of all keys of before."""

    def __init__(self, machines: Machines, receiver: Receiver) -> None:
        self.machines, self.receiver, roll = machines, receiver, machines.roll
        self.names = [roll.client, roll.new_client(roll.organization)]
        self.idle = roll.new_client(roll.organization)
        roll.partners = self.partners = [Client(machines.urls, each) for each in self.names]
        self.endpoints, self.secrets = list[str](), list[list[str]]()
        for number, each in enumerate(self.partners):
            each.authorize()
            body = {"url": f"{receiver.url}/{number}"}
            made = each.ask("POST", "/v1/webhooks", body).data
            self.endpoints.append(made["id"])
            self.secrets.append([made["secret"]])
        assert machines.logins(self.idle) == GOOD
        self.note = machines.note("old.txt")
        assert machines.trusts(self.note)
        self.keys = machines.newest()
        stolen = copytree(machines.home / "keys", machines.home / "stolen")
        changed = {**machines.both[0].environment, "SIGNING_KEYS": str(stolen)}
        self.thief = Container(Settings.from_env(changed))

    def forged(self) -> list[int]:
        """Show both machines a token that the thief makes now."""
        organization = UUID(self.machines.roll.organization)
        return self.machines.statuses(
            self.thief.issuer.issue(self.names[0][0], organization, ["wallet"])
        )

    def rotate_secret(self, number: int) -> None:
        path = f"/v1/webhooks/{self.endpoints[number]}/rotate-secret"
        self.secrets[number].append(self.partners[number].ask("POST", path).data["secret"])

    def waiting(self, number: int) -> list[str | None]:
        """Return why each delivery to an endpoint waits."""
        parts = self.machines.both[0].container
        rows = parts.webhook_deliveries.metadata.tables["webhook_deliveries"]
        wanted = (rows.c.endpoint_id == UUID(self.endpoints[number])) & (rows.c.status == "pending")
        with parts.views.reading() as connection:
            return [*connection.execute(select(rows.c.error).where(wanted)).scalars()]

    def come(self, number: int) -> list[tuple[int, str, str | None, list[bool]]]:
        """Return the webhooks of an endpoint: when, id, finished job, which secrets signed."""
        found = []
        for path, headers, body in [*self.receiver.came]:
            if path == f"/{number}":
                given, fits = signed_by(headers, body, *self.secrets[number])
                assert given == sum(fits), "each signature is of a secret that the partner has"
                told = json.loads(body)
                job = told["data"]["job_id"] if told["type"] == "job.finished" else None
                found.append((int(headers["webhook-timestamp"]), headers["webhook-id"], job, fits))
        return found


def test_a_key_of_each_kind_is_renewed_and_revoked_while_two_machines_work(
    machines: Machines, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    machines.begin()
    leak = Leak(machines, receiver)
    assert leak.forged() == GOOD
    with ExitStack() as load:
        for each in leak.partners:
            load.enter_context(at_work(each))
        machines.roll.goes_on()
        renewed_at = renew(leak)
        machines.restart(0)
        check_renewed(leak)
        revoked_at, ended_at = revoke(leak)
        machines.restart(1)
        assert leak.forged() == REFUSED
        leak.rotate_secret(1)
        machines.roll.goes_on()
    wait_until(lambda: any(fits == [False, True] for *_, fits in leak.come(1)), OUT_WITHIN_S)
    wait_until(lambda: not leak.waiting(1), GOES_ON_S)
    leak.thief.close()
    assert_that_nothing_is_lost(machines.roll, capsys)
    with capsys.disabled():
        print("401 seen by the partner without a new token:", len(leak.partners[1].refused))  # noqa: T201  # A figure for whoever measures.
    check_notes(leak)
    check_tokens(leak)
    check_webhooks(leak, (renewed_at, revoked_at), ended_at)
    check_money(machines)


def renew(leak: Leak) -> float:
    for kind in KINDS:
        leak.machines.told("keys", "rotate", kind)
    leak.rotate_secret(0)
    return time()


def check_renewed(leak: Leak) -> None:
    """All that was good is good; what is used now outlives the end of the old keys."""
    machines = leak.machines
    assert leak.forged() == GOOD
    assert machines.trusts(leak.note)
    for each in leak.names:
        assert machines.logins(each) == GOOD
    assert [each.refused for each in leak.partners] == [[], []]
    leak.partners[0].authorize()


def revoke(leak: Leak) -> tuple[float, float]:
    """End the old keys; what they made ends on both machines, and nothing else does."""
    machines, began_at, ends = leak.machines, time(), dict[str, Any]()
    for kind in KINDS:
        ends[kind] = machines.told("keys", "revoke", leak.keys[kind]["kid"], "--yes")
        if kind == "signing":
            wait_until(lambda: leak.forged() == REFUSED, WITHIN_S)
    ended_at = time() + WITHIN_S
    wait_until(lambda: machines.logins(leak.idle) == REFUSED, WITHIN_S)
    assert (ends["pepper"]["clients"], ends["pepper"]["operators"]) == ([leak.idle[0]], [])
    assert ends["webhooks"]["endpoints"] == leak.endpoints[1:]
    for each in leak.names:
        assert machines.logins(each) == GOOD
    given = machines.told("client", "rotate-secret", leak.idle[0])["client_secret"]
    assert machines.logins((leak.idle[0], given)) == GOOD
    wait_until(lambda: "secret_revoked" in leak.waiting(1), OUT_WITHIN_S)
    return began_at, ended_at


def check_notes(leak: Leak) -> None:
    """The page's last steps: the old note is worth what its keeper vouches for."""
    machines, new = leak.machines, leak.machines.note("new.txt")
    assert machines.trusts(new)
    assert not machines.trusts(leak.note)
    assert machines.trusts(leak.note, "--key", leak.keys["checkpoints"]["verifier"])
    done = machines.both[0].run("audit", "verify", "--json", "--against", leak.note, new)
    (failure,) = json.loads(done.stdout)["failures"]
    assert "was revoked" in failure["reason"]


def check_tokens(leak: Leak) -> None:
    """Who had a token of the new key saw no 401; who had none saw one, and why, and no other."""
    got_new, got_none = leak.partners
    assert got_new.refused == []
    assert 0 < len(got_none.refused) <= THREADS
    assert all("revoked" in why for why in got_none.refused)


def check_webhooks(leak: Leak, overlap: tuple[float, float], ended_at: float) -> None:
    """Each job is told each endpoint once, signed by what the guide promises at that moment."""
    promised = {job for each in leak.partners for job in each.promised.jobs}
    for number in range(2):
        wait_until(lambda number=number: {each[2] for each in leak.come(number)} >= promised)
        told = {(id_, job) for _, id_, job, _ in leak.come(number) if job}
        assert len(told) == len({job for _, job in told})
    for at, *_, fits in leak.come(0):
        if overlap[0] + 1 < at < overlap[1] - 1:
            assert fits == [True, True], "both sign while a secret is changed"
        elif at > ended_at:
            assert fits == [False, True]
    for at, *_, fits in leak.come(1):
        assert fits == ([True, False] if at < ended_at else [False, True])


def check_money(machines: Machines) -> None:
    """Each promise was charged once, and nothing else but perhaps what was given up."""
    log, partners = machines.both[0].container.log, machines.roll.partners
    moved = read_events(log, (Wallet.Event,))
    charged = sum(isinstance(each.event, Wallet.Charged) for each in moved)
    kinds = ("charges", "jobs", "links", "topups")
    promised = sum(len(getattr(each.promised, kind)) for each in partners for kind in kinds)
    assert promised <= charged <= promised + sum(each.given_up for each in partners)
