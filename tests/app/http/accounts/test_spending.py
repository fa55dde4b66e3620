"""Beyond the spending limit of the month nothing is sold, and the reply says why."""

from werkzeug.test import TestResponse

from domain.money import parse_amount
from tests.app.http.buying import Buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Tenant, code_of

NUMBER = "+14155552671"


def limited(tenant: Tenant, amount: str) -> None:
    accounts, cause = tenant.service.container.accounts, tenant.service.cause()
    accounts.set_spending_limit(tenant.id, parse_amount(amount), cause)


def refusal(reply: TestResponse) -> dict[str, str]:
    """Return what a reply tells of the limit."""
    assert (reply.status_code, code_of(reply)) == (402, "SPENDING_LIMIT"), reply.text
    details: dict[str, str] = reply.json["error"]["details"]
    return details


def test_a_limit_is_told_before_the_balance_and_what_is_not_configured(
    make_service: MakeService,
) -> None:
    service = make_service(NETWORK_BASE_PLAN="")
    partner = Buyer(service.tenant("0.01"))
    service.container.projector.catch_up()
    limited(partner, "0.001")
    assert refusal(partner.create())["spent"] == "0.00"
    assert refusal(partner.look_up(NUMBER))["required"] == "0.005"
    assert refusal(partner.create_job([NUMBER, "+14155552673"]))["required"] == "0.01"
    limited(partner, "100")
    assert code_of(partner.create()) == "CONFIG_ERROR"
