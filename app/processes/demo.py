"""The demo installation: one organization with money and a client, and sample plans."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from app.bootstrap.container import Container
from app.security.key_file import write_file
from app.security.secrets import new_client_secret
from app.settings import Settings, WrongSetting
from domain.accounts.organization import ApiClient, Organization
from domain.accounts.wallet import Wallet, wallet_id
from domain.catalogue.commands import PlanEntry
from domain.cause import Cause
from domain.errors import refuse
from domain.ids import derive_id
from domain.money import format_amount

NAME = "Demo Telecom"
DEPOSIT_MICROS = 100_000_000
PRICE_MICROS = 5_000  # Of a lookup, unless PRICE_PER_LOOKUP or an operator has set another one.
DEMO_CLIENT_ID = "cl_" + derive_id("demo", "client").hex[:24]
REQUEST_ID = "serve-demo"
PLANS = Path(__file__).parents[1] / "data" / "demo_plans.json"


@dataclass(frozen=True, slots=True)
class Demo:
    """What a newcomer needs to call this service."""

    url: str
    organization: UUID
    client_id: str
    client_secret: str
    balance: str
    currency: str


def prepare_demo(container: Container, plans: Sequence[PlanEntry]) -> Demo:
    """Create the missing parts of the demo, and reset its `plans` to the samples of `PLANS`.

    The secret of its client is kept in a file.
    """
    cause = Cause(container.clock(), REQUEST_ID)
    organization_id = derive_id("demo", "organization")
    secret = _saved_secret(container.settings)
    container.prices.set(PRICE_MICROS, cause, only_first=True)
    _ensure_organization(container, organization_id, cause)
    container.accounts.move("deposit", organization_id, DEPOSIT_MICROS, "demo", cause)
    wallet = container.accounts.wallet(organization_id)
    _ensure_client(container, secret, organization_id, cause)
    container.catalogue.import_plans(plans, cause)
    return Demo(
        url=container.settings.public,
        organization=organization_id,
        client_id=DEMO_CLIENT_ID,
        client_secret=secret,
        balance=format_amount(wallet.balance_micros),
        currency=wallet.currency,
    )


def _ensure_organization(container: Container, organization_id: UUID, cause: Cause) -> None:
    log = container.log
    if container.operators.exist() and log.find(Wallet, wallet_id(organization_id)) is None:
        refuse("--demo gives money away, and there are operators: use an installation of its own")
    if log.find(Organization, organization_id) is None:
        log.append(Organization.register(organization_id, cause, name=NAME))
    container.accounts.open_wallet(organization_id, cause)


def _ensure_client(container: Container, secret: str, organization_id: UUID, cause: Cause) -> None:
    secret_hash = container.secret_hasher.hash(secret)
    client = container.log.find(ApiClient, ApiClient.id_of(DEMO_CLIENT_ID))
    if client is None:
        container.accounts.register_client(
            cause,
            client_id=DEMO_CLIENT_ID,
            secret_hash=secret_hash,
            organization_id=organization_id,
            scopes=[],
        )
    elif not container.secret_hasher.matches(secret, client.hashes_at(cause.at)):
        # The database is not the one for which the file was written, or the pepper has changed.
        container.accounts.change_client(
            DEMO_CLIENT_ID, lambda held: held.rotate_secret(secret_hash, cause)
        )


def credentials_file(settings: Settings) -> Path:
    """Return the file of the demo's credentials: beside the SQLite database, or else the keys."""
    if settings.is_on_files:
        database = settings.database_path
        return database.with_name(f"{database.stem}-demo.json")
    return settings.signing_keys.with_name("service-demo.json")


def _saved_secret(settings: Settings) -> str:
    file = credentials_file(settings)
    try:
        secret: str = json.loads(file.read_bytes())["client_secret"]
    except FileNotFoundError:
        secret = new_client_secret()
        saved = {"client_id": DEMO_CLIENT_ID, "client_secret": secret}
        write_file(file, json.dumps(saved).encode() + b"\n")
    except (ValueError, TypeError, KeyError):
        message = f"{file}: holds no client_secret; remove it, and a new one is made"
        raise WrongSetting(message) from None
    return secret
