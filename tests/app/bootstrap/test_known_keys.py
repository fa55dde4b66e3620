"""New keys beside existing clients are recognized as new at every start."""

import shutil
from pathlib import Path

import pytest

from app.bootstrap.known_keys import ensure_keys, lost_keys, record_keys, record_pepper
from app.security.key_file import SigningKeysError
from app.security.keys import FIRST, WEBHOOK_KEY
from domain.accounts.organization import ApiClient
from domain.webhooks.commands import Draft
from domain.webhooks.endpoint import WebhookEndpoint
from projections.stores.notes import Notes
from tests.installation import Installation, Process, SetClock


@pytest.fixture
def started(installation: Installation, clock: SetClock) -> Process:
    """A process of an installation that has been at work for a month, with two clients."""
    process = installation.process(clock)
    record_pepper(process)
    process.client(process.organization())
    process.client(None)
    assert start(process) == []
    clock.forward(days=30)
    return process


def start(process: Process) -> list[str]:
    """Start as `web` and `serve` do."""
    process.projector.catch_up()
    forget_keys(process)
    ensure_keys(process)
    return record_keys(process)


def keys_of(process: Process) -> Path:
    return process.settings.signing_keys


def forget_keys(process: Process) -> None:
    """Let a process read its keys again, as a new one does."""
    for name in ("keys", "pepper", "secret_hasher", "webhook_key", "webhook_signer", "webhooks"):
        process.__dict__.pop(name, None)


def lose_keys(process: Process) -> None:
    shutil.rmtree(keys_of(process))
    forget_keys(process)


def test_a_rotation_is_no_loss(started: Process, clock: SetClock) -> None:
    for _ in range(3):
        started.keys.rotate()
        clock.forward(days=1)
    assert start(started) == []


def test_a_directory_of_a_release_that_did_not_name_its_first_key_is_no_loss(
    started: Process,
) -> None:
    (keys_of(started) / FIRST).unlink()
    started.keys.rotate()
    assert start(started) == []


def test_a_start_without_keys_says_what_clients_have_lost(
    started: Process, clock: SetClock
) -> None:
    shutil.rmtree(keys_of(started))
    tokens, secrets = start(started)
    assert "signing keys were made anew" in tokens
    assert "secrets of 2 clients" in secrets
    assert lost_keys(started) == [tokens, secrets]
    clock.forward(seconds=started.settings.token_ttl_s + 31)
    assert start(started) == [secrets], "every token of before would have ended by now"


def test_a_start_that_dies_before_it_notes_its_keys_leaves_the_warning_to_the_next(
    started: Process,
) -> None:
    lose_keys(started)
    ensure_keys(started)
    tokens, secrets = start(started)
    assert "signing keys were made anew" in tokens
    assert "secrets of 2 clients" in secrets


def test_a_client_with_a_new_secret_has_lost_nothing(started: Process, clock: SetClock) -> None:
    shutil.rmtree(keys_of(started))
    clock.forward(days=1)
    start(started)
    clock.forward(days=1)
    clients = [row.client_id for row in started.read(started.clients.all)]
    started.accounts.change_client(clients[0], lambda each: each.revoke(started.cause()))
    started.accounts.change_client(
        clients[1], lambda each: each.rotate_secret("1" * 64, started.cause())
    )
    assert started.log.history(ApiClient.id_of(clients[1]))
    assert start(started) == []


def test_a_directory_that_comes_back_ends_the_loss(
    started: Process, tmp_path: Path, clock: SetClock
) -> None:
    away = keys_of(started).rename(tmp_path / "away")
    assert len(start(started)) == 2
    clock.forward(days=1)
    shutil.rmtree(keys_of(started))
    away.rename(keys_of(started))
    assert start(started) == []


@pytest.mark.usefixtures("started")
def test_another_pepper_by_setting_is_noticed(installation: Installation, clock: SetClock) -> None:
    installation.environment["SECRET_PEPPER"] = "another"
    other = installation.process(clock)
    (told,) = start(other)
    assert "pepper" in told
    assert "another" not in told


def test_two_machines_that_note_the_first_keys_at_once_have_lost_none(
    installation: Installation, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = installation.process(clock)
    process.client(process.organization())
    with monkeypatch.context() as both:
        both.setattr(Notes, "all", lambda *_: [])  # Each looks before the other one writes.
        start(process)
        clock.forward(seconds=0.01)
        start(process)
    assert lost_keys(process) == []


def register_webhook(process: Process) -> WebhookEndpoint:
    (owner,) = process.read(process.organizations.all)
    draft = Draft(owner.id, "https://hooks.example/", None, None, None)
    made, _ = process.webhooks.register(draft, process.cause())
    process.projector.catch_up()
    return made


def test_a_new_key_of_webhooks_is_a_loss_until_the_secret_is_rotated(
    started: Process, tmp_path: Path, clock: SetClock
) -> None:
    endpoint = register_webhook(started)
    first = started.webhook_signer.secret(endpoint.id, endpoint.secrets[0])
    clock.forward(days=1)
    away = (keys_of(started) / WEBHOOK_KEY).rename(tmp_path / "away")
    forget_keys(started)
    with pytest.raises(SigningKeysError, match="missing, and secrets of webhooks need it"):
        started.webhook_signer.secret(endpoint.id, endpoint.secrets[0])
    (told,) = start(started)
    assert "refuse what 1 endpoints are told" in told
    assert started.webhook_signer.secret(endpoint.id, endpoint.secrets[0]) != first
    away.replace(keys_of(started) / WEBHOOK_KEY)
    clock.forward(days=1)
    assert start(started) == []
    assert started.webhook_signer.secret(endpoint.id, endpoint.secrets[0]) == first
    (keys_of(started) / WEBHOOK_KEY).unlink()
    clock.forward(days=1)
    assert len(start(started)) == 1
    clock.forward(days=1)
    started.webhooks.rotate_secret(endpoint, None, started.cause())
    assert lost_keys(started) == []
