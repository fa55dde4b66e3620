"""What has to be true between our log and the books of the scripted Airalo."""

from collections import Counter
from collections.abc import Mapping

from domain.links.link import Link, Stage
from tests.app.adapters.networks.esimgo.esimgo_lab import left_over
from tests.support.providers.airalo import CLIENT_ID, CLIENT_SECRET, AiraloServer
from tests.workers.link_checks import Books


def check_sales(server: AiraloServer, books: Books, strays: int) -> None:
    """Expect that what was sold is a plan of an active link, an incident, or a stray."""
    delivered = Counter(
        (link.iccid, each.plan.provider_plan_id)
        for link in books.every(Link)
        if link.stage is Stage.ACTIVE and link.requested.plan.network == "airalo"
        for each in link.current_activations
    )
    incidents = left_over(books, "airalo")
    assert incidents <= {sale.code for sale in server.sales}
    sold = Counter((s.iccid, s.offer.id) for s in server.sales if s.code not in incidents)
    assert delivered <= sold
    assert (sold - delivered).total() <= strays


def environment_of(server: AiraloServer) -> Mapping[str, str]:
    """Return the settings of an installation that sells on this account."""
    return {
        "AIRALO_URL": server.url,
        "AIRALO_CLIENT_ID": CLIENT_ID,
        "AIRALO_CLIENT_SECRET": CLIENT_SECRET,
    }
