"""The image and the composition agree with the Procfile, the settings and the tree."""

import json
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import yaml

from app.processes.doctor import examine
from app.processes.migrate import migrate
from app.settings import Settings, name_of
from tests.app.cli.shell import ROOT, Shell
from tests.house.running import COMES_UP_S, Served
from tests.installation import Installation, wait_until
from tests.servers.postgres import PostgresServer
from tests.servers.running import newest

PROCFILE = (ROOT / "Procfile").read_text("utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SETTINGS = {name_of(each.name) for each in fields(Settings)}
FOLLOWERS_AND_WORKER = {"worker", "dispatcher", "projector", "clock"}
OWNERS = {"migrate", "owner"}  # `owner` runs single commands as the role that owns the log.
SERVERS = {"postgres", "rabbitmq"}
OURS = SERVICES.keys() - SERVERS
# Where things are inside of a container. Of all other settings an installation decides.
OF_THE_CONTAINER = {"DATABASE_URL_FILE", "BROKER_URL_FILE", "SERVICE_ROLE", "REDO_DIR"}
VERSION = r"\d+\.\d+(\.\d+)?"


def instructions(name: str) -> list[str]:
    """Return what follows an instruction of the Dockerfile, each time it stands there."""
    return re.findall(rf"^{name} +(.*)$", DOCKERFILE, re.MULTILINE)


def commands_of_the_procfile() -> set[str]:
    return set(re.findall(r"\bexec python -m app ([a-z]+)$", PROCFILE, re.MULTILINE))


def test_every_path_that_the_image_copies_exists() -> None:
    copied = [
        source
        for line in instructions("COPY")
        if not line.startswith("--from")
        for source in shlex.split(line)[:-1]
    ]
    rooms = {"app", "docs/partners", "docs/verifier", "domain", "projections", "workers"}
    assert {*rooms, "requirements.lock"} == set(copied)
    assert [each for each in copied if not (ROOT / each).exists()] == []
    kept = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert kept[0] == "*"
    assert {each[1:] for each in kept if each.startswith("!")} == set(copied)


def test_the_image_sets_only_settings_and_no_secret() -> None:
    named = set(re.findall(r"([A-Z_]+)=", instructions("ENV")[0]))
    assert named - SETTINGS == {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
    assert not named & {"SECRET_PEPPER", "DATABASE_URL", "BROKER_URL"}


def test_the_image_names_its_user_by_number_its_packages_by_version_and_itself() -> None:
    (user,) = instructions("USER")
    assert re.fullmatch(r"\d+:\d+", user), "Kubernetes refuses a name as runAsNonRoot"
    assert f"--uid {user.partition(':')[0]} " in DOCKERFILE
    installed = re.findall(r"--no-install-recommends (.*?) *&&", DOCKERFILE)
    versions = dict(line.split("=") for line in instructions("ARG"))
    for package in " ".join(installed).split():
        assert re.match(VERSION, versions[package.partition("=$")[2]])
    labels = set(re.findall(r"org\.opencontainers\.image\.(\w+)=", instructions("LABEL")[0]))
    assert labels == {"title", "version"}
    assert SERVICES["web"]["build"]["args"] == {"RELEASE": "${RELEASE:-local}"}


def test_a_container_is_not_healthy_while_its_process_lacks_its_broker(shell: Shell) -> None:
    with closing(Served(shell, "worker", BROKER_URL="amqp://127.0.0.1:1")) as worker:
        wait_until(lambda: worker.get("/readyz")[0] == 503, COMES_UP_S)
        assert not is_healthy(worker)


def is_healthy(process: Served) -> bool:
    """Run the command of the image against a process."""
    command = json.loads(instructions("HEALTHCHECK")[0].partition("CMD ")[2])
    port = {"METRICS_PORT": str(process.metrics_port)}
    return subprocess.run(command, env=port, capture_output=True, check=False).returncode == 0


def test_the_composition_runs_each_process_of_the_procfile() -> None:
    ours = commands_of_the_procfile()
    assert ours | {"owner"} == OURS
    assert {name: SERVICES[name]["command"] for name in ours} == {name: [name] for name in ours}
    twice = {name for name in OURS if SERVICES[name].get("deploy", {}).get("replicas") == 2}
    assert twice == FOLLOWERS_AND_WORKER
    grace = {int(SERVICES[name]["stop_grace_period"].removesuffix("s")) for name in OURS}
    assert min(grace) > 30


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_is_pinned_limited_and_watched(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(
        rf"\w+:{VERSION}(-trixie)?|carrier-links:\$\{{RELEASE:-local}}", service["image"]
    )
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    if name in SERVERS:
        assert {"healthcheck", "restart", "volumes"} <= service.keys()
    assert service["cap_drop"] == ["ALL"]
    assert ("cap_add" in service) == (name in SERVERS)
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["logging"]["options"] == {"max-size": "20m", "max-file": "5"}
    assert ("ports" in service) == (name == "web")
    assert service.get("healthcheck", {}).get("disable", False) == (name in OWNERS)


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_setting_reaches_every_process(name: str) -> None:
    """A container gets the image's own, then those of env_file, then those of `environment`."""
    service = SERVICES[name]
    assert service["env_file"] == ["settings.env"]
    assert set(service["environment"]) == OF_THE_CONTAINER
    assert {each.removesuffix("_FILE") for each in OF_THE_CONTAINER} <= SETTINGS
    mounted = {_target(each) for each in service["secrets"]}
    urls = {service["environment"][each] for each in ("DATABASE_URL_FILE", "BROKER_URL_FILE")}
    assert urls == mounted
    assert "./secrets/settings:/run/settings:ro" in service["volumes"]


def test_only_the_owner_of_the_log_can_be_its_owner_and_no_environment_has_a_password() -> None:
    as_owner = {name for name in OURS if "owner_database_url" in str(SERVICES[name]["secrets"])}
    assert as_owner == OWNERS
    assert {SERVICES[name]["environment"]["SERVICE_ROLE"] for name in OURS} == {"carrier"}
    assert "POSTGRES_USER" not in SERVICES["postgres"]["environment"]  # So it is the superuser.
    told = [str(service.get("environment", "")) for service in SERVICES.values()]
    assert not re.findall(r"PASS(?:WORD)?['\"]?:|://", " ".join(told))
    files = {each["file"] for each in COMPOSE["secrets"].values()}
    assert files == {f"./secrets/{name}" for name in SECRETS}


SECRETS = {"postgres_password", "roles.sql", "rabbitmq.conf", "broker_url"}
SECRETS |= {"database_url", "owner_database_url"}


def _target(secret: str | dict[str, str]) -> str:
    name = secret if isinstance(secret, str) else secret["target"]
    return name if name.startswith("/") else f"/run/secrets/{name}"


def make_secrets(place: Path, status: int = 0) -> None:
    (place / "ops").mkdir(exist_ok=True)
    shutil.copy(ROOT / "ops" / "secrets.sh", place / "ops")
    command = ["sh", "ops/secrets.sh"]  # As people do.
    assert subprocess.run(command, cwd=place, capture_output=True, check=False).returncode == status


def test_secrets_are_made_once_and_others_on_the_machine_cannot_reach_them(tmp_path: Path) -> None:
    make_secrets(tmp_path)
    secrets = tmp_path / "secrets"
    assert {each.name for each in secrets.iterdir()} == SECRETS | {"settings"}
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    # Each is read by another user of a container, and mounted alone.
    assert {stat.S_IMODE((secrets / name).stat().st_mode) for name in SECRETS} == {0o444}
    assert (tmp_path / "settings.env").is_file()
    before = (secrets / "database_url").read_text()
    make_secrets(tmp_path, status=1)
    assert (secrets / "database_url").read_text() == before
    told = dict(re.findall(r"default_(user|pass) = (\w+)", (secrets / "rabbitmq.conf").read_text()))
    broker = urlsplit((secrets / "broker_url").read_text())
    assert (broker.username, broker.password) == (told["user"], told["pass"])


@contextmanager
def made_roles(place: Path, postgres: PostgresServer) -> Iterator[dict[str, str]]:
    """Make the roles of `ops/secrets.sh` on a server; yield the URL of each."""
    make_secrets(place)
    psql = [newest("usr/lib/postgresql/*/bin/psql"), "--quiet", "-v", "ON_ERROR_STOP=1"]
    roles = place / "secrets" / "roles.sql"
    subprocess.run([*psql, f"--file={roles}", postgres.url()], check=True)
    try:
        server = urlsplit(postgres.url()).netloc.rpartition("@")[2]
        files = {"owner": "owner_database_url", "service": "database_url"}
        told = {name: (place / "secrets" / file).read_text() for name, file in files.items()}
        yield {name: url.replace("@postgres/", f"@{server}/") for name, url in told.items()}
    finally:
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            connection.execute("DROP DATABASE carrier WITH (FORCE)")
            connection.execute("DROP OWNED BY carrier, carrier_owner")
            connection.execute("DROP ROLE carrier, carrier_owner")


@pytest.mark.server
def test_the_roles_that_are_made_are_those_of_the_handbook(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    with made_roles(tmp_path, postgres) as urls:
        made = Installation(tmp_path, DATABASE_URL=urls["owner"], SERVICE_ROLE="carrier")
        migrate(made.process())
        made.environment["DATABASE_URL"] = urls["service"]
        process = made.process()
        process.organization()
        assert "roles" not in {each.check for each in examine(process)}
        made.close()
