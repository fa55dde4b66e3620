"""Reading links: one by its id or its ICCID, all of them as a list."""

import pytest

from app.adapters.networks.simulated.network import Fault
from tests.app.http.buying import FREE, LINKS, MISSING, Buyer, buyer
from tests.app.http.service import Service, code_of


@pytest.fixture(scope="module")
def acme(service: Service) -> Buyer:
    return buyer(service)


def test_what_names_no_link_is_a_404(acme: Buyer) -> None:
    link = acme.link(FREE)
    for wrong in (
        MISSING,
        str(acme.id),
        acme.plans[FREE],
        link["activations"][0]["id"],
        link["id"].replace("-", ""),
        "{" + link["id"] + "}",
        f"urn:uuid:{link['id']}",
        f"{link['id']}%20",
        "1" * 17,
        "1" * 18,
        "1" * 22,
        "1" * 23,
        f"{link['iccid']}%0A",
        f"+{link['iccid']}",
        "".join(chr(0x660 + int(digit)) for digit in link["iccid"]),
        "none",
    ):
        reply = acme.get(f"{LINKS}/{wrong}")
        assert (reply.status_code, code_of(reply)) == (404, "NOT_FOUND"), wrong


@pytest.mark.any_database
def test_a_link_that_is_not_active_does_not_exist(acme: Buyer) -> None:
    assert acme.create(Fault.NO_ENDPOINT.value).status_code == 502
    link_id = acme.transactions(kind="refund")[0]["reference"]["id"]
    assert acme.get(f"{LINKS}/{link_id}").status_code == 404
