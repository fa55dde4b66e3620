"""The service's role adds events and reads them; it can change none, and works all the same."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from app.processes.doctor import examine
from app.processes.migrate import migrate
from app.processes.readiness import wait_until_reached, what_is_missing
from domain.errors import NotPossible
from domain.lookups.bulk_job import BulkJob
from projections.audit.auditor import verify
from projections.engine.rebuild import rebuild_all
from tests.domain.buying import Buyer
from tests.installation import Installation
from tests.projections.histories import DOWN
from tests.support.erasing import erase_months

PASSWORD = "a-password-of-this-test"
CRIMES = (
    "UPDATE log_events SET state = '{}'",
    "DELETE FROM log_events",
    "TRUNCATE log_events",
    "TRUNCATE log_events_servers",
    "DROP TABLE log_events",
    "ALTER TABLE log_events RENAME TO others",
    "ALTER TABLE log_events DISABLE TRIGGER ALL",
    "ALTER TABLE log_events OWNER TO CURRENT_USER",
    "CREATE RULE gone AS ON INSERT TO log_events DO INSTEAD NOTHING",
    "CREATE TRIGGER t AFTER INSERT ON log_events EXECUTE FUNCTION gen_random_uuid()",
    "INSERT INTO log_events TABLE log_events ON CONFLICT (notification_id) DO UPDATE SET topic=''",
)


class Roles:
    """A database with an owner, and the role of the service."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.owner, self.service = (f"{name}_{uuid4().hex[:8]}" for name in ("owner", "service"))
        self._admin = psycopg.connect(url, autocommit=True)
        database = urlsplit(url).path[1:]
        for role in (self.owner, self.service):
            self._run(f"CREATE ROLE {{}} LOGIN PASSWORD '{PASSWORD}'", role)
        self._run("GRANT {} TO {}", self.service, self.owner)
        self._run("ALTER DATABASE {} OWNER TO {}", database, self.owner)

    def url_of(self, role: str) -> str:
        parts = urlsplit(self._url)
        place = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{role}:{PASSWORD}@{place}"))

    def close(self) -> None:
        self._run("ALTER DATABASE {} OWNER TO CURRENT_USER", urlsplit(self._url).path[1:])
        for role in (self.service, self.owner):
            self._run("DROP OWNED BY {} CASCADE", role)
            self._run("DROP ROLE {}", role)
        self._admin.close()

    def _run(self, statement: str, *names: str) -> None:
        self._admin.execute(SQL(statement).format(*map(Identifier, names)))


@pytest.fixture
def roles(database_url: str) -> Iterator[Roles]:
    made = Roles(database_url)
    yield made
    made.close()


@pytest.fixture(params=["from the start", pytest.param("later", marks=pytest.mark.soak)])
def served(roles: Roles, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Installation]:
    """An installation whose processes run as the service; one had but one role at first."""
    environment = {"DATABASE_URL": roles.url_of(roles.owner)}
    if request.param == "later":
        before = Installation(tmp_path, **environment)
        before.process().organization()
        before.close()
    made = Installation(tmp_path, **environment, SERVICE_ROLE=roles.service)
    migrate(made.process())  # A second time changes nothing.
    made.environment["DATABASE_URL"] = roles.url_of(roles.service)
    yield made
    made.close()


def test_the_service_works_and_cannot_change_events(served: Installation) -> None:
    buyer = Buyer(served)
    process = buyer.process
    buyer.hire()
    link, _ = buyer.create(buyer.sell())
    buyer.change(link.id, add=[buyer.sell("More", "1.00")])
    process.look_up(buyer.organization_id)
    job = process.create_job(buyer.organization_id, ["+14155550101", DOWN])
    process.finish_job(job)
    buyer.dismiss()
    assert process.log.get(BulkJob, job).finished_at is not None
    process.projector.catch_up()
    parts = (process.source, process.models)
    rebuild_all(*parts)
    assert erase_months(process.vault, "9999-12") == 1
    head = process.log.head()
    with psycopg.connect(served.environment["DATABASE_URL"], autocommit=True) as thief:
        thief.execute("GRANT ALL ON log_events TO CURRENT_USER")  # Only a warning, and no effect.
        for crime in CRIMES:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                thief.execute(crime)
    assert process.log.head() == head
    assert verify(*parts).ok
    assert "roles" not in {each.check for each in examine(process)}
    buyer.close()


def test_a_role_that_comes_later_keeps_no_migration_waiting(roles: Roles, tmp_path: Path) -> None:
    made = Installation(tmp_path, DATABASE_URL=roles.url_of(roles.owner))
    for role in (roles.service, "misspelt"):
        made.environment |= {"DATABASE_URL": roles.url_of(roles.service), "SERVICE_ROLE": role}
        assert "`migrate` of the owner with SERVICE_ROLE" in str(what_is_missing(made.process()))
    own = {"DATABASE_URL": roles.url_of(roles.owner), "SERVICE_ROLE": roles.service}
    made.environment |= own
    release = made.process()
    assert release.gate.query() is not None
    assert wait_until_reached(release, Event())
    migrate(release)
    made.environment["DATABASE_URL"] = roles.url_of(roles.service)
    assert what_is_missing(made.process()) is None
    made.close()


def test_one_role_alone_can_change_events_and_is_told_so(roles: Roles, tmp_path: Path) -> None:
    made = Installation(tmp_path, DATABASE_URL=roles.url_of(roles.owner))
    assert "roles" in {each.check for each in examine(made.process())}
    made.environment["SERVICE_ROLE"] = roles.owner
    with pytest.raises(NotPossible, match="let another role own the log"):
        migrate(made.process())
    made.close()
