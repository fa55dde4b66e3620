"""Beyond the spending limit of the month nothing is sold, and the reply says why."""

from werkzeug.test import TestResponse

from domain.money import parse_amount
from tests.app.http.buying import BASIC, MORE, Buyer, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of

NUMBER = "+14155552671"


def limited(tenant: Tenant, amount: str) -> None:
    accounts, cause = tenant.service.container.accounts, tenant.service.cause()
    accounts.set_spending_limit(tenant.id, parse_amount(amount), cause)


def refusal(reply: TestResponse) -> dict[str, str]:
    """Return what a reply tells of the limit."""
    assert (reply.status_code, code_of(reply)) == (402, "SPENDING_LIMIT"), reply.text
    details: dict[str, str] = reply.json["error"]["details"]
    return details


def told(limit: str, spent: str, required: str) -> dict[str, str]:
    return {"limit": limit, "spent": spent, "required": required, "currency": "USD"}


def test_a_lookup_and_a_job_beyond_the_limit_take_nothing(service: Service) -> None:
    tenant = service.tenant()
    limited(tenant, "0.01")
    key = {"Idempotency-Key": "later"}
    assert tenant.look_up(NUMBER).status_code == 200
    assert refusal(tenant.create_job([NUMBER, "+14155552672"], **key)) == told(
        "0.01", "0.005", "0.01"
    )
    assert tenant.look_up(NUMBER, **key).status_code == 200
    assert refusal(tenant.look_up(NUMBER)) == told("0.01", "0.01", "0.005")
    assert tenant.balance() == "99.99"
    limited(tenant, "1")
    assert tenant.create_job([NUMBER], **key).status_code == 202, "the key is free"


def test_a_link_and_a_top_up_beyond_the_limit_take_nothing(service: Service) -> None:
    partner = buyer(service)
    limited(partner, "5.00")
    link = partner.link()
    spent = partner.transactions()[0]["amount"]
    limited(partner, spent)
    assert refusal(partner.create()) == told(spent, spent, spent)
    asked = partner.post("/v1/links?dry_run=true", json={"plan_id": partner.plans[BASIC]})
    assert refusal(asked) == told(spent, spent, spent)
    assert refusal(partner.change(link, add=[MORE])) == told(spent, spent, "2.00")
    assert partner.change(link, remove=[link["activations"][0]["id"]]).status_code == 200


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


def test_wrong_input_is_told_before_the_limit(service: Service) -> None:
    tenant = service.tenant()
    limited(tenant, "0")
    assert code_of(tenant.look_up("0")) == "VALIDATION_ERROR"
    assert code_of(tenant.create_job([])) == "VALIDATION_ERROR"
