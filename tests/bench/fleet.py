"""Links as a creation leaves them, appended in batches, with what the network told of each."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

import msgspec

from app.bootstrap.container import Container
from domain.accounts.wallet import Charge, Reference, Wallet, wallet_id
from domain.catalogue.plan import SponsorProfile
from domain.links.bought_plan import BoughtPlan
from domain.links.link import Link
from domain.links.network import AddonUsage, Endpoint, Usage
from domain.months import month_of
from projections.engine.database import to_micros
from tests.bench.installation import cause

BATCH = 250  # Links in one transaction; only the building depends on it.
PATIENCE = timedelta(seconds=15)
PROFILE = SponsorProfile("sp-1", "Profile 1", "#1F6FEB")
CHARGE_MICROS = 1_000
PLAN = BoughtPlan(  # Free, so that links carry no prices of their own.
    plan_id=UUID(int=1),
    provider_plan_id="europe-1-gb",
    name="Europe 1 GB",
    price_micros=0,
    data_mb=1_000,
    validity_days=30,
    countries=["DE", "FR", "IT"],
)


def append_links(container: Container, organization: UUID, count: int) -> None:
    """Append active links: five events each, and one charge. No worker may run meanwhile."""
    wallet = container.log.get(Wallet, wallet_id(organization))
    for start in range(0, count, BATCH):
        serials = range(start, min(start + BATCH, count))
        links = [_activated(container, organization, serial) for serial in serials]
        for link in links:
            wallet.charge(_charge_of(link.id), cause())
        container.log.append(*links, wallet)
        _keep_usage(container, links)
    container.readings.mend()


def charge_often(container: Container, organization: UUID, link_id: UUID, count: int) -> None:
    """Append more charges of one link."""
    wallet = container.log.get(Wallet, wallet_id(organization))
    for _ in range(count):
        wallet.charge(_charge_of(link_id), cause())
    container.log.append(wallet)


def name_of(serial: int) -> str:
    """Return the name of a link, by its place in the fleet."""
    return f"Device {serial:06d}"


def number_of(container: Container, link_id: UUID) -> str:
    """Return the digits of a link's phone number."""
    usage = container.readings.find([link_id])[link_id].usage
    assert usage is not None
    return str(usage.msisdn).removeprefix("+")


def _charge_of(link_id: UUID) -> Charge:
    about = {"link_id": str(link_id), "plan_name": PLAN.name}
    reference = Reference("link", str(link_id))
    return Charge(uuid4(), "activation", CHARGE_MICROS, "USD", reference, "Activation", about)


def _activated(container: Container, organization: UUID, serial: int) -> Link:
    now = cause()
    iccid = f"8988{uuid4().int % 10**15:015d}"  # By chance, so that few hold the same digits.
    link = Link.request(
        uuid4(),
        now,
        organization_id=organization,
        name=name_of(serial),
        plan=PLAN,
        sponsor_profiles=[PROFILE],
        currency=container.settings.currency,
        deadline=now.at + PATIENCE,
    )
    link.reserve_esim(iccid, PROFILE, now)
    link.request_endpoint(now.at + PATIENCE, now)
    code = f"LPA:1$rsp.example${iccid}".encode()
    lpa = container.vault.seal(organization, month_of(now.at), link.id, code)
    link.activate(
        Endpoint(f"ep-{iccid}", iccid, str(link.id), f"ad-{iccid}"), lpa, now, adopted=False
    )
    return link


def _keep_usage(container: Container, links: Sequence[Link]) -> None:
    """Write what the store of readings would hold, in one transaction for all of them."""
    (table,) = container.readings.metadata.tables.values()
    now = cause().at
    rows = []
    for link in links:
        addon = AddonUsage(str(link.addon_id), PLAN.provider_plan_id, 250.5, 749.5)
        usage = msgspec.json.encode(Usage("active", [addon], now))
        number = f"+883{uuid4().int % 10**12:012d}"
        rows.append(
            {
                "link_id": link.id,
                "organization_id": link.organization_id,
                "msisdn": number,
                "usage": usage,
                "usage_as_of": to_micros(now),
            }
        )
    with container.stores.writing() as connection:
        connection.execute(table.insert(), rows)
