"""A client that reads from the first event on, and is killed on the way, has each of them once."""

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from uuid import UUID

import pytest

from domain.money import parse_amount
from domain.webhooks.endpoint import WebhookRequest
from domain.webhooks.messages import types_of
from tests.app.http.over_http import HOST, serving
from tests.app.http.service import Service, Tenant
from tests.installation import wait_until

IS_LONG = os.environ.get("SOAK") == "1"
EVENTS = 140_000 if IS_LONG else 3_000  # Three of four are those of the client.
AT_ONCE = EVENTS // 150  # Of one commit.
PAUSE_S = 0.02  # Between commits, so that the client is killed among them.
KILLS = 40 if IS_LONG else 8
# Keeps events and cursor in one transaction; an event that comes twice ends it with an error.
CLIENT = """
import json, sqlite3, sys, urllib.request

url, token, path = sys.argv[1:]
kept = sqlite3.connect(path, timeout=30)
while True:
    (after,) = kept.execute("SELECT after FROM cursor").fetchone()
    asked = urllib.request.Request(f"{url}/v1/events?limit=97&wait=5&after={after}")
    asked.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(asked, timeout=30) as reply:
        page = json.load(reply)["data"]
    with kept:
        told = [(each["id"], each["body"]["data"]["position"]) for each in page["data"]]
        kept.executemany("INSERT INTO told VALUES (?, ?)", told)
        kept.execute("UPDATE cursor SET after = ?", [page["next"]])
"""


class Kept:
    """What the client has kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE told (id TEXT PRIMARY KEY, position INTEGER UNIQUE)")
            connection.execute("CREATE TABLE cursor (after TEXT)")
            connection.execute("INSERT INTO cursor VALUES ('')")

    def positions(self) -> list[int]:
        """Return the positions in the order in which they came."""
        with closing(sqlite3.connect(self.path, timeout=30)) as connection:
            found = connection.execute("SELECT position FROM told ORDER BY rowid").fetchall()
        return [position for (position,) in found]


def write(tenant: Tenant, rival: Tenant) -> None:
    """Let much happen to two organizations, in commits of both."""
    parts, cause = tenant.service.container, tenant.service.cause()
    owners = (tenant, rival, tenant, tenant)
    endpoints = {
        each: parts.webhooks.get(each.id, UUID(each.webhook(events=["link.failed"])))
        for each in (tenant, rival)
    }
    pause = Event()
    for start in range(0, EVENTS, AT_ONCE):
        requests = [
            WebhookRequest.make(
                WebhookRequest.TestAsked, parts.new_id(), endpoints[owners[index % 4]], cause
            )
            for index in range(start, start + AT_ONCE)
        ]
        parts.log.append(*requests)
        for each in (tenant, rival):
            parts.accounts.move("deposit", each.id, parse_amount("1.00"), f"more-{start}", cause)
        pause.wait(PAUSE_S)


def expected(tenant: Tenant) -> list[int]:
    log, after, found = tenant.service.container.log, 0, list[int]()
    while events := log.read(after, 10_000):
        after = events[-1].position
        found += [
            position
            for position, event in events
            if types_of(event) and getattr(event, "organization_id", None) == tenant.id
        ]
    return found


def client(url: str, tenant: Tenant, kept: Kept) -> subprocess.Popen[bytes]:
    token = tenant.headers["Authorization"].removeprefix("Bearer ")
    command = [sys.executable, "-c", CLIENT, url, token, str(kept.path)]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


@pytest.fixture
def url(service: Service) -> Iterator[str]:
    with serving(service.container) as port:
        yield f"http://{HOST}:{port}"


@pytest.mark.soak  # That pages have each event once is a rule of test_events.
def test_a_client_that_is_killed_on_the_way_has_every_event_once(
    service: Service, url: str, tmp_path: Path
) -> None:
    tenant, rival, dice = service.tenant(), service.tenant(), random.Random(7)
    kept = Kept(tmp_path / "kept.db")
    writer = Thread(target=write, args=(tenant, rival))
    writer.start()
    pause = Event()
    for _ in range(KILLS):
        reader = client(url, tenant, kept)
        pause.wait(dice.uniform(0.15, 0.6))  # Wherever it is then.
        assert reader.poll() is None, reader.communicate()[1].decode()
        reader.kill()
        reader.communicate()
    reader = client(url, tenant, kept)
    writer.join()
    wanted = expected(tenant)
    assert len(wanted) > EVENTS * 3 // 4
    wait_until(lambda: reader.poll() is not None or kept.positions()[-1:] == wanted[-1:], 120)
    assert reader.poll() is None, reader.communicate()[1].decode()
    reader.kill()
    reader.communicate()
    assert kept.positions() == wanted
