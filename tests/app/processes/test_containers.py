"""The image and the composition agree with the Procfile, the settings and the tree."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import fields

import pytest

from app.cli.root import COMMANDS
from app.settings import Settings, name_of
from tests.app.cli.shell import ROOT

PROCFILE = (ROOT / "Procfile").read_text("utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
COMPOSE = (ROOT / "compose.yaml").read_text("utf-8")
SETTINGS = {name_of(each.name) for each in fields(Settings)}
FOLLOWERS_AND_WORKER = {"worker", "dispatcher", "projector", "clock"}


def instructions(name: str) -> list[str]:
    """Return what follows an instruction of the Dockerfile, each time it stands there."""
    return re.findall(rf"^{name} +(.*)$", DOCKERFILE, re.MULTILINE)


def services() -> Iterator[tuple[str, str]]:
    """Yield each service of the composition with the lines of its own."""
    block = COMPOSE.partition("\nservices:\n")[2].partition("\nvolumes:\n")[0]
    for part in re.split(r"^  (?=[a-z]+:$)", block, flags=re.MULTILINE)[1:]:
        name, _, lines = part.partition(":\n")
        yield name, lines


def commands_of_the_procfile() -> set[str]:
    return set(re.findall(r"-m app ([a-z]+)$", PROCFILE, re.MULTILINE))


def test_every_path_that_the_image_copies_exists() -> None:
    copied = [
        source
        for line in instructions("COPY")
        if not line.startswith("--from")
        for source in shlex.split(line)[:-1]
    ]
    rooms = {"app", "docs/partners", "domain", "projections", "workers"}
    assert {*rooms, "requirements.lock"} == set(copied)
    assert [each for each in copied if not (ROOT / each).exists()] == []
    kept = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert kept[0] == "*"
    assert {each[1:] for each in kept if each.startswith("!")} == set(copied)


def test_the_image_runs_a_process_of_the_procfile_as_nobody_special() -> None:
    assert instructions("ENTRYPOINT") == ['["python", "-m", "app"]']
    assert instructions("CMD") == ['["web"]']
    assert instructions("USER") == ["service"]
    assert instructions("STOPSIGNAL") == ["SIGTERM"]
    assert "/readyz" in instructions("HEALTHCHECK")[0]
    assert "--require-hashes" in DOCKERFILE
    assert {"web", *commands_of_the_procfile()} <= set(COMMANDS)


def test_the_image_sets_only_settings_and_no_secret() -> None:
    named = set(re.findall(r"([A-Z_]+)=", instructions("ENV")[0]))
    assert named - SETTINGS == {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
    assert not named & {"SECRET_PEPPER", "DATABASE_URL", "BROKER_URL"}


def test_the_composition_runs_each_process_of_the_procfile() -> None:
    found = dict(services())
    ours = commands_of_the_procfile()
    assert found.keys() == ours | {"postgres", "rabbitmq"}
    for name in ours:
        assert "<<: *process" in found[name]
        assert f"command: [{name}]" in found[name]
    twice = {name for name, lines in found.items() if "replicas: 2" in lines}
    assert twice == FOLLOWERS_AND_WORKER


@pytest.mark.parametrize("name", ["postgres", "rabbitmq"])
def test_a_server_is_watched_kept_and_not_published(name: str) -> None:
    lines = dict(services())[name]
    assert "healthcheck:" in lines
    assert "restart: unless-stopped" in lines
    assert "volumes:" in lines
    assert "ports:" not in lines


def test_the_composition_names_real_settings_and_holds_no_password() -> None:
    environment = COMPOSE.partition("environment: &environment\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"^    ([A-Z_]+):", environment, re.MULTILINE)) <= SETTINGS
    passwords = re.findall(r"PASSWORD(?=[:}])[^\n]*|PASS: [^\n]*", COMPOSE)
    assert passwords
    assert all("${" in each or each.startswith("PASSWORD:?") for each in passwords)
    grace = re.search(r"stop_grace_period: (\d+)s", COMPOSE)
    assert grace is not None
    assert int(grace[1]) > 30
