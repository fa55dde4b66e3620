"""Two cells on one machine, as the deployment book begins a second one: nothing joins them."""

import sys
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from subprocess import run

import pytest

from tests.house.system import ROOT, System
from tests.scenarios.conftest import partner_of
from tests.servers.databases import Databases
from tests.servers.rabbitmq import RabbitServer

pytestmark = pytest.mark.soak

VERIFIER = ROOT / "docs/verifier/verify.py"
INCOME = "Income:Lookup"
LOOKUP = "/number-lookup?phone_number=%2B14155550100"


@pytest.fixture
def cells(tmp_path: Path, databases: Databases, rabbitmq: RabbitServer) -> Iterator[list[System]]:
    """Two installations with nothing in common but the machine and its servers."""
    made = []
    for name in ("a", "b"):
        (home := tmp_path / name).mkdir()
        servers = databases.new(), rabbitmq.new_vhost()
        made.append(System(home, *servers, PUBLIC_URL=f"https://{name}.example"))
    yield made
    for each in made:
        url = each.environment["DATABASE_URL"]
        each.close()
        databases.drop(url)


def test_a_second_cell_takes_the_next_organizations(cells: list[System]) -> None:
    partners = []
    for cell in cells:
        cell.command("migrate")
        partners.append(partner_of(cell))
        cell.start_all()
        partners[-1].authorize()
    for partner, count in zip(partners, (2, 3), strict=True):
        for _ in range(count):
            assert partner.ask("POST", LOOKUP).status == HTTPStatus.OK
    first, second = partners
    first.url, second.url = second.url, first.url
    for astray in partners:
        reply = astray.ask("GET", "/v1/wallet")
        assert reply.status == HTTPStatus.UNAUTHORIZED
        assert astray.authorize().status == HTTPStatus.UNAUTHORIZED
    books = [cell.json("audit", "trial-balance")["data"] for cell in cells]
    income = [each["credit"] for book in books for each in book if each["account"] == INCOME]
    assert income == ["0.01", "0.015"]
    for cell in cells:
        cell.command("audit", "verify")
        export = cell.home / "export.jsonl"
        cell.command("audit", "export", "--format", "jsonl", "--out", str(export))
        checked = run(
            [sys.executable, VERIFIER, export], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stdout
