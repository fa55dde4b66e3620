"""One number, one lookup, one job, one link and a month are erased beside a running service.

What was erased is then in no reply, no list, no search, no table, no export and no new backup.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import inspect, text

from domain.accounts.operator_acts import Erasure
from domain.lookups.ports import CachedFacts, NumberFacts
from domain.lookups.single import NumberLookup
from domain.months import next_month
from tests.app.cli.shell import Shell
from tests.app.http.buying import FREE, LINKS, Buyer, buyer
from tests.app.http.conftest import run_service
from tests.app.http.service import Service, Tenant
from tests.installation import this_month
from tests.seeds import Seed
from tests.servers.install import newest

ANNA, BEN, CARL, DORA, EVE = (f"+49157000000{index}7" for index in range(5))
NAME, OTHER_NAME = "Frieda Muster", f"phone of {ANNA[:4]} {ANNA[4:8]}-{ANNA[8:]}"
BULK, LOOKUPS = "/number-lookup/bulk", "/number-lookup/lookups"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, migrated: Seed) -> Iterator[Service]:
    """A service of its own: the whole log is verified, and other tests write odd entries."""
    yield from run_service(tmp_path_factory.mktemp("erasure"), migrated)


@pytest.fixture
def shop(service: Service) -> Buyer:
    return buyer(service)


@pytest.fixture
def shell(service: Service) -> Shell:
    return service.shell()


def look_up(tenant: Tenant, number: str) -> str:
    """Look a number up, keep its answer as of a remote provider; return the lookup."""
    parts = tenant.service.container
    told = str(tenant.look_up(number).json["meta"]["lookup_id"])
    kept = CachedFacts(NumberFacts(number, valid=True), "remote", parts.clock())
    parts.lookup_cache.save(tenant.id, [kept])
    return told


def statuses(tenant: Tenant, *paths: str) -> list[int]:
    return [tenant.get(path).status_code for path in paths]


def erase(shell: Shell, *words: object) -> Any:
    return shell.json("privacy", "erase", *words)


def stored(service: Service, shell: Shell, place: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what an installation holds: tables and files, exports, a new backup."""
    parts = service.container
    for database in (parts.vault.database, parts.views, parts.stores):
        with database.reading() as connection:
            for table in inspect(connection).get_table_names():
                rows = connection.execute(text(f'SELECT * FROM "{table}"')).all()  # noqa: S608  # A table of ours.
                cells = [
                    bytes(each) if isinstance(each, bytes | memoryview) else str(each).encode()
                    for row in rows
                    for each in row
                ]
                yield table, b"\n".join(cells)
    if parts.settings.database_url.startswith("sqlite:"):
        for file in parts.settings.database_path.parent.glob("*.db*"):
            yield file.name, file.read_bytes()
    for form in ("jsonl", "csv", "beancount"):
        out = place / f"export.{form}"
        shell.run("audit", "export", "--format", form, "--out", out)
        yield out.name, out.read_bytes()
    shell.run("backup", place / "backup")
    if not parts.settings.database_url.startswith("sqlite:"):
        dump = newest("usr/lib/postgresql/*/bin/pg_dump")
        plain = [dump, "--format=plain", f"--file={place}/dump", parts.settings.database_url]
        subprocess.run(plain, check=True, capture_output=True)  # As an operator does.
        yield "dump", (place / "dump").read_bytes()
    for file in (place / "backup").rglob("*"):
        yield file.name, file.read_bytes() if file.is_file() else b""


def key_of(service: Service, lookup: str) -> bytes:
    """Return the key of the month of a lookup, before it is opened out."""
    answer = service.container.log.get(NumberLookup, UUID(lookup)).answer
    named = {"owner": answer.organization_id.hex, "name": answer.personal.month}
    found = "SELECT key FROM personal_keys WHERE month = :name AND organization_id = :owner"
    if not service.container.settings.database_url.startswith("sqlite:"):
        named["owner"] = str(answer.organization_id)
    with service.container.vault.database.reading() as connection:
        return bytes(connection.execute(text(found), named).scalar_one())


class Town:
    """A shop in which some are forgotten: Anna's number, Carl's job and Frieda's link."""

    def __init__(self, shop: Buyer) -> None:
        self.shop = shop
        self.lookups = {number: look_up(shop, number) for number in (ANNA, BEN, EVE)}
        asked = ([ANNA, BEN], [CARL, DORA], [EVE, BEN])
        self.jobs = [shop.finished_job(numbers)["job_id"] for numbers in asked]
        names = (OTHER_NAME, NAME, "Gisela")
        self.named, self.frieda, self.gisela = (shop.link(FREE, name=each) for each in names)
        self.kept = [*(f"{LOOKUPS}/{self.lookups[number]}" for number in (BEN, EVE))]
        self.kept.append(f"{BULK}/{self.jobs[2]}")
        self.key, self.shown = key_of(shop.service, self.lookups[ANNA]), self.show()

    def show(self) -> list[Any]:
        return [self.shop.balance(), *(self.shop.get(path).json["data"] for path in self.kept)]

    def erase(self, shell: Shell) -> None:
        number = ("--org", self.shop.id, "--number", ANNA)
        listed = erase(shell, *number, "--dry-run")["data"]
        goes = {self.lookups[ANNA], self.jobs[0], self.named["id"]}
        assert {each["id"] for each in listed} == goes
        assert self.shop.get(f"{LOOKUPS}/{self.lookups[ANNA]}").status_code == 200
        erased = erase(shell, *number)
        assert (erased["erased_keys"], erased["forgotten_answers"]) == (3, 1)
        assert erase(shell, "--org", self.shop.id, "--job", self.jobs[1])["erased_keys"] == 1
        assert erase(shell, "--link", self.frieda["iccid"])["erased_keys"] == 1
        assert erase(shell, *number)["erased_keys"] == 0

    @property
    def gone(self) -> list[str]:
        jobs = [f"{BULK}/{self.jobs[0]}", f"{BULK}/{self.jobs[1]}?fields=summary"]
        return [f"{LOOKUPS}/{self.lookups[ANNA]}", *jobs, f"{BULK}/{self.jobs[0]}/results"]


def test_one_person_is_forgotten_and_all_others_stay(
    service: Service, shop: Buyer, shell: Shell
) -> None:
    town = Town(shop)
    town.erase(shell)
    service.until(lambda: statuses(shop, *town.gone) == [404] * 4)  # Keys are held for a second.
    page = shop.get(BULK).json["data"]
    assert [each["job_id"] for each in page["data"]] == [town.jobs[2]]
    assert page["meta"]["total"] == 1
    for link in (town.named, town.frieda):
        shown = shop.read(link).json["data"]
        assert (shown["name"], shown["lpa_profile"]) == (None, None)
    assert shop.read(town.gisela).json["data"]["name"] == "Gisela"
    found = [shop.get(LINKS, query_string={"search": each}).json for each in ("frieda", "gisela")]
    assert [each["data"]["meta"]["total"] for each in found] == [0, 1]
    assert town.show() == town.shown
    parts = service.container
    report = parts.audit()
    assert report.ok, report.failures
    for event in parts.events(Erasure.Made):
        assert (event.organization_id, str(event.actor)[:3]) == (shop.id, "os:")
        assert not [each for each in (ANNA, NAME) if each in repr(event)]


@pytest.mark.each_database
def test_what_was_erased_is_nowhere_any_more(
    service: Service, shop: Buyer, shell: Shell, tmp_path: Path
) -> None:
    town = Town(shop)
    town.erase(shell)
    sought = [each.encode() for each in (ANNA, CARL, NAME, NAME.casefold(), OTHER_NAME)]
    sought += [town.frieda["lpa_profile"].encode(), town.key, town.key.hex().encode()]
    found = dict(stored(service, shell, tmp_path))
    assert [place for place, data in found.items() if b"Gisela" in data]  # It finds what is there.
    for place, data in found.items():
        assert [each for each in sought if each in data] == [], place


def names_in_history(shell: Shell, link: dict[str, Any]) -> list[str | None]:
    told = shell.json("links", "show", link["id"])["timeline"]
    return [each["facts"]["name"] for each in told if each["what"] == "link.renamed"]


def test_a_month_is_erased_while_it_is_written(service: Service, shell: Shell) -> None:
    end = next_month(this_month())
    shop, rival = buyer(service), service.tenant()
    path, other = (f"{LOOKUPS}/{look_up(each, EVE)}" for each in (shop, rival))
    link = shop.link(FREE, name=NAME)
    erased = erase(shell, "--before", end, "--org", shop.id)
    assert (erased["erased_keys"], erased["forgotten_answers"]) == (1, 1)
    later = look_up(shop, BEN)
    renamed = shop.open("PATCH", f"{LINKS}/{link['id']}", json={"name": "Hans"})
    assert renamed.status_code == 200
    service.until(lambda: shop.get(path).status_code == 404)
    assert statuses(rival, other) == [200]
    assert statuses(shop, f"{LOOKUPS}/{later}") == [200]
    assert shop.read(link).json["data"]["name"] == "Hans"
    assert names_in_history(shell, link) == ["Hans"]
    erase(shell, "--link", link["id"])
    assert names_in_history(shell, link) == [None]
    too_late = next_month(end)
    assert too_late in shell.refusal("privacy", "erase", "--before", too_late)


def test_a_key_of_a_link_that_lost_its_name_still_replays(
    service: Service, shop: Buyer, shell: Shell
) -> None:
    first = shop.create(FREE, key="k-1", name=NAME).json["data"]
    assert shop.create(FREE, key="k-1", name="Another").status_code == 422
    erase(shell, "--link", first["id"])
    service.until(lambda: shop.read(first).json["data"]["name"] is None)
    again = shop.create(FREE, key="k-1", name=NAME)
    assert (again.status_code, again.json["data"]["id"]) == (201, first["id"])
