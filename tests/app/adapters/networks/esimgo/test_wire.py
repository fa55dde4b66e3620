"""The examples of the provider's documents, in short, read as the adapter reads them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from app.adapters.networks.esimgo import wire
from app.adapters.networks.esimgo.wire import Notification
from app.adapters.networks.wire import entries, operators_by_country
from app.adapters.remote.exchange import Reply, balance_of, decode
from domain.catalogue.supplied import OddEntry
from domain.cost import Cost, ProviderBalance
from domain.links.network import AddonUsage
from tests.support.providers.esimgo import KEY, EsimGoServer
from tests.support.providers.server import Request

NOW = datetime(2024, 12, 20, tzinfo=UTC)
BUNDLE = "esim_1GB_7D_GB_V2"


def order_of(item: str, iccid: str, **more: Any) -> dict[str, Any]:
    """Return an order as the OpenAPI document of v2.5 has it (`Order`)."""
    smdp = {"matchingId": "MATCH-001", "smdpAddress": "http://smdp.example.com"}
    line = {"type": "bundle", "item": item, "quantity": 1, "subTotal": 9.99, "pricePerUnit": 9.99}
    line |= {"AllowReassign": False, "esims": [{"iccid": iccid, **smdp}], "iccids": [iccid]}
    told = {"order": [line], "total": 9.99, "currency": "USD", "status": "completed"}
    return {**told, "statusMessage": "Order completed: 1 eSIM assigned", "assigned": True, **more}


PLACED = order_of(
    "esim_data_plan_2",
    "8900000000000000001",
    orderReference="order-ref-002",
    createdDate="2023-06-14T15:45:00Z",
)
READ_AGAIN = order_of(
    "esim_5GB_30D_EU_V3",
    "8912345678901234567",
    orderReference="1a2b3c4d-5e6f-7g8h-9i10-11j12k13l14m",
    createdDate="2023-06-15T10:30:45.123456789Z",
)
ORDERED = "3a6e2e40-c674-45e9-b289-b35027bf72a9"
QUEUED = {
    "id": "215009266",
    "callTypeGroup": "data",
    "initialQuantity": 1000000000,
    "remainingQuantity": 1000000000,
    "assignmentDateTime": "2024-12-11T10:47:00.34523Z",
    "assignmentReference": f"{ORDERED}-0",
    "bundleState": "queued",
    "unlimited": False,
}
BUNDLES: dict[str, Any] = {
    "bundles": [{"name": BUNDLE, "description": "eSIM, 1GB, 7 Days", "assignments": [QUEUED]}]
}
DETAILS = {
    "iccid": "894123456789123456",
    "msisdn": "4471234131234",
    "pin": "0000",
    "puk": "123445678",
    "matchingId": "JQ-123456-ABCDEPFX",
    "smdpAddress": "http://rsp.example.com",
    "profileStatus": "Installed",
    "firstInstalledDateTime": 1723541877280,
    "customerRef": "",
    "profileName": "Profile 1",
    "state": "active",
}
INSTALL_DETAILS = {
    "iccid": "8944123456789012345",
    "matchingId": "A1B2-C3D4-E5F6-G7H8",
    "smdpAddress": "http://smdp.example.com",
    "profileStatus": "Released",
    "firstInstalledDateTime": "2023-06-15T14:30:00.000Z",
}
LOCATION = {
    "mobileNetworkCode": "FRAF1",
    "networkName": "Orange",
    "networkBrandName": "Orange France",
    "country": "FR",
    "lastSeen": "2024-07-27T00:25:07.382562Z",
}
ORGANISATION = {
    "name": "Acme Corp",
    "apiKey": "ak_1234567890abcdef",
    "currency": "USD",
    "balance": 10000,
    "testCredit": 500,
    "users": [{"firstName": "John", "phoneNumber": "+1 (555) 123-4567"}],
}
REVOKED = {"status": "Successfully Revoked Bundle, bundle has been refunded to inventory"}
SUSPENDED = {"status": "eSIM suspended successfully"}
# From the pages about callbacks; one of them has the ICCID as a number.
CALLBACKS: list[dict[str, Any]] = [
    {"iccid": "8944538532008160222", "alertType": "Utilisation", "bundle": {"id": "123456789"}},
    {"iccid": 8944538532008160000, "alertType": "FirstUse", "bundle": {"name": "A_BUNDLE_1GB"}},
    {"iccid": "8944538532008160222", "alertType": "FirstAttachment"},
]
CATALOGUED: dict[str, Any] = {
    "name": "esim_UL_7D_REUP_V2",
    "description": "eSIM, Unlimited, 7 Days, Europe+",
    "groups": ["Standard Unlimited Lite"],
    "countries": [{"name": "Europe+", "region": "Europe", "iso": "Europe+"}],
    "dataAmount": -1,
    "duration": 7,
    "speed": ["3G", "4G"],
    "autostart": True,
    "unlimited": True,
    "roamingEnabled": [{"name": "France", "region": "Europe", "iso": "FR"}],
    "price": 12.5,
    "billingType": "FixedCost",
    "profileName": "Profile 1",
    "allowances": [{"type": "DATA", "service": "STANDARD", "amount": -1, "unit": "MB"}],
}
NETWORK = {"name": "Orange F", "brandName": "Orange", "mcc": "208", "mnc": "01", "tagid": "FRAF1"}


def read(told: Any, kind: Any) -> Any:
    return decode(reply(told), kind)


def reply(told: Any) -> Reply:
    return Reply(200, {}, msgspec.json.encode(told))


def test_an_order_as_it_was_placed() -> None:
    order = read(PLACED, wire.Placed).read("esim_data_plan_2")
    assert order.iccid == "8900000000000000001"
    assert order.placed_at == datetime(2023, 6, 14, 15, 45, tzinfo=UTC)
    assert order.cost == Cost(9_990_000, "USD", "order-ref-002", estimated=False)
    for change in ({"total": -1}, {"currency": "dollars"}, {"total": None}, {"currency": None}):
        assert read({**PLACED, **change}, wire.Placed).read("esim_data_plan_2").cost is None


@pytest.mark.parametrize(
    "told", [[READ_AGAIN], {"orders": [READ_AGAIN], "pageCount": 1, "rows": 1}]
)
def test_the_list_of_orders_in_both_of_its_documented_forms(told: Any) -> None:
    orders = wire.listed_in(reply(told), list[Raw], "orders")
    day, night = (datetime(2023, 6, each, tzinfo=UTC) for each in (15, 16))
    (order,) = wire.matching(orders, "esim_5GB_30D_EU_V3", day, night, timedelta(0))
    assert order.order_reference == "1a2b3c4d-5e6f-7g8h-9i10-11j12k13l14m"
    assert order.placed_at == datetime(2023, 6, 15, 10, 30, 45, 123457, UTC)
    assert wire.matching(orders, "esim_5GB_30D_EU_V3", night, night, timedelta(0)) == []
    assert wire.matching(orders, "esim_5GB_30D_EU_V3", day, day, timedelta(0)) == []
    assert wire.matching(orders, "ESIM_5GB_30D_EU_V3", day, night, timedelta(0)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"status": "processing"},
        {"order": []},
        {"order": [PLACED["order"][0], PLACED["order"][0]]},
        {"order": [{**PLACED["order"][0], "quantity": 2}]},
        {"order": [{**PLACED["order"][0], "iccids": ["8900000000000000002"]}]},
        {"order": [{"type": "topup", "quantity": 1}]},
        {"order": [{"type": "bundle", "item": "esim_data_plan_2", "iccids": ["no digits"]}]},
        {"createdDate": ""},
    ],
)
def test_an_order_that_did_not_bring_one_esim_with_one_bundle_is_none(change: Any) -> None:
    assert read({**PLACED, **change}, wire.Placed).read("esim_data_plan_2") is None


def test_the_bundles_of_an_esim() -> None:
    bundles = read(BUNDLES, wire.Bundles)
    ((name, assignment),) = bundles.present
    assert assignment.usage(name, NOW) == AddonUsage(
        "215009266", BUNDLE, 0.0, 1000.0, order_reference=ORDERED
    )
    assert bundles.first_used_at is None


BEGAN = {"startTime": "2024-12-12T08:00:00Z", "endTime": "2024-12-19T08:00:00Z"}
ENDED = datetime(2024, 12, 19, 8, tzinfo=UTC)
ASSIGNED = datetime(2024, 12, 11, 10, 47, 0, 345230, UTC)
HALF = 500_000_000


@pytest.mark.parametrize(
    ("change", "used_mb", "remaining_mb", "expires_at"),
    [
        ({"bundleState": "processing"}, 0, 1000, None),
        ({"bundleState": "queued", "startTime": "", "endTime": ""}, 0, 1000, None),
        ({"bundleState": "active", "remainingQuantity": HALF, **BEGAN}, 500, 500, ENDED),
        ({"bundleState": "Active", "remainingQuantity": HALF, **BEGAN}, 500, 500, ENDED),
        ({"bundleState": "depleted", "remainingQuantity": 12, **BEGAN}, 1000, 0, ENDED),
        ({"bundleState": "expired", "remainingQuantity": HALF, **BEGAN}, 500, 500, ENDED),
        ({"bundleState": "lapsed", "endTime": "2024-12-18T08:00:00Z"}, 0, 0, ENDED - timedelta(1)),
        ({"bundleState": "lapsed"}, 0, 0, NOW),
        ({"bundleState": "active", "remainingQuantity": -5, **BEGAN}, 1000, 0, ENDED),
        ({"bundleState": "active", "remainingQuantity": 2_000_000_000, **BEGAN}, 0, 1000, ENDED),
        ({"unlimited": True, "remainingQuantity": 0, **BEGAN}, 1000, 1000, ENDED),
        ({"bundleState": "a state of the future", **BEGAN}, 0, 1000, ENDED),
    ],
)
def test_each_state_of_a_bundle(
    change: Any, used_mb: float, remaining_mb: float, expires_at: datetime | None
) -> None:
    usage = read({**QUEUED, **change}, wire.Assignment).usage(BUNDLE, NOW)
    assert usage == AddonUsage("215009266", BUNDLE, used_mb, remaining_mb, expires_at, ORDERED)


def test_what_was_revoked_is_not_there_and_the_first_use_is_that_of_what_began_first() -> None:
    lapsed = read({**QUEUED, "bundleState": "lapsed"}, wire.Assignment)
    later = NOW + timedelta(days=999)
    assert lapsed.usage(BUNDLE, later).expires_at == ASSIGNED + timedelta(365), "after a year"
    revoked = {**QUEUED, "bundleState": "revoked"}
    put = [QUEUED, {**QUEUED, "startTime": "2025-01-01T00:00:00Z"}, {**QUEUED, **BEGAN}]
    told = {"bundles": [{"name": BUNDLE, "assignments": [*put, revoked]}]}
    bundles = read(told, wire.Bundles)
    assert len([*bundles.present]) == 3
    assert bundles.first_used_at == datetime(2024, 12, 12, 8, tzinfo=UTC)


def test_an_esim() -> None:
    esim = read(DETAILS, wire.EsimDetails)
    assert esim.status == "active"
    assert esim.installed_at == datetime(2024, 8, 13, 9, 37, 57, 280_000, UTC)
    assert esim.lpa == "LPA:1$rsp.example.com$JQ-123456-ABCDEPFX"
    assert esim.number == "+4471234131234"
    other = read(INSTALL_DETAILS, wire.EsimDetails)
    assert other.lpa == "LPA:1$smdp.example.com$A1B2-C3D4-E5F6-G7H8"
    assert other.installed_at == datetime(2023, 6, 15, 14, 30, tzinfo=UTC)
    for nothing in (0, "", None, 10**18):
        told = {**DETAILS, "firstInstalledDateTime": nothing, "msisdn": ""}
        assert read(told, wire.EsimDetails).installed_at is None
        assert read(told, wire.EsimDetails).number is None


def test_where_an_esim_was_seen() -> None:
    seen = read(LOCATION, wire.Location)
    assert seen.last_seen_at == datetime(2024, 7, 27, 0, 25, 7, 382562, UTC)
    assert (seen.serving.country_code, seen.serving.operator) == ("FR", "Orange France")
    assert seen.serving.mcc is None
    empty = read({"country": "", "lastSeen": ""}, wire.Location)
    assert (empty.last_seen_at, empty.serving) == (None, None)


def test_the_catalogue() -> None:
    # Its document tells the fields but has no example; this one is made of them.
    told = {**CATALOGUED, "roamingEnabled": [*CATALOGUED["roamingEnabled"], "DE"]}
    told["allowances"] = [{"type": "DATA"}, {"type": "VOICE"}]
    for form in ([told], {"bundles": [told], "pageCount": 1, "rows": 1}):
        listed, odd = wire.listed_in(reply(form), list[Any], "bundles"), list[OddEntry]()
        ((at, bundle),) = entries(listed, wire.CatalogueBundle, "$", odd)
        plan = bundle.supplied("USD", {"FR": (("Orange", ("4G",)),)}, at, odd)
        assert odd == []
        assert (plan.data_mb, plan.validity_days) == (None, 7)
        assert [each.country_code for each in plan.coverage] == ["DE", "FR"]
        assert plan.coverage[1].operators == (("Orange", ("4G",)),)
        assert plan.cost == Cost(12_500_000, "USD")
        assert plan.notices == (wire.VOICE,)


def test_the_operators_of_a_country() -> None:
    for name in ("speed", "speeds"):
        country = {"name": "FR", "networks": [{**NETWORK, name: ["4G"]}]}
        assert operators_by_country([country], "$", []) == {"FR": (("Orange", ("4G",)),)}


def test_the_account_what_changes_answer_and_callbacks() -> None:
    account = read(ORGANISATION, wire.Organisation)
    told = balance_of(account.balance, account.currency)
    assert told == ProviderBalance(10_000_000_000, "USD")
    assert "refunded" in decode(reply(REVOKED), str, "status")
    assert decode(reply(SUSPENDED), str, "status")
    for callback in CALLBACKS:
        assert str(read(callback, Notification).iccid).startswith("89445385320081")
    assert read({"alertType": "LowBalance"}, Notification).iccid is None


# What the document tells beside the examples.
BEGUN_TOO = {**QUEUED, **BEGAN}
DOCUMENTED = {
    "order": {**PLACED, "sourceIP": "127.0.0.1", "runningBalance": "10.00"},
    "orders": [{**PLACED, "sourceIP": "127.0.0.1"}],
    "bundles": {"bundles": [{**BUNDLES["bundles"][0], "assignments": [BEGUN_TOO]}]},
    "esim": DETAILS,
    "location": LOCATION,
    "organisation": ORGANISATION,
    "revoke": REVOKED,
    "suspend": SUSPENDED,
    "catalogue": [CATALOGUED],
    "networks": {"countryNetworks": [{"name": "FR", "networks": [{**NETWORK, "speed": ["4G"]}]}]},
}


def test_the_scripted_server_speaks_as_the_documents_do(server: EsimGoServer) -> None:
    server.offer(BUNDLE)
    line = {"type": "bundle", "quantity": 1, "item": BUNDLE}
    body = msgspec.json.encode({"type": "transaction", "assign": True, "order": [line]})
    told = {"order": answer(server, "POST", "/orders", body)}
    (iccid,) = server.held
    server.use(iccid, 1_000)
    for route, method, path, sent in (
        ("orders", "GET", "/orders", b""),
        ("bundles", "GET", f"/esims/{iccid}/bundles", b""),
        ("esim", "GET", f"/esims/{iccid}", b""),
        ("location", "GET", f"/esims/{iccid}/location", b""),
        ("organisation", "GET", "/organisation", b""),
        ("suspend", "POST", f"/esims/{iccid}/suspend", b'{"suspend": true}'),
        ("catalogue", "GET", "/catalogue", b""),
        ("networks", "GET", "/networks", b""),
        ("revoke", "DELETE", f"/esims/{iccid}/bundles/{BUNDLE}/assignments/200000001", b""),
    ):
        told[route] = answer(server, method, path, sent)
    assert told.keys() == DOCUMENTED.keys()
    for route, reply in told.items():
        assert strangers(reply, DOCUMENTED[route], route) == []


def answer(server: EsimGoServer, method: str, path: str, body: bytes) -> Any:
    request = Request(method, f"{server.prefix}{path}", {}, {"x-api-key": KEY}, body)
    handle, _ = server.take(request)
    status, told, _ = handle(request)
    assert status in {200, 201}, (path, told)
    return told


def strangers(told: Any, documented: Any, where: str) -> list[str]:
    """Name what a reply has that the document does not tell, or tells as something else."""
    if isinstance(told, dict) and isinstance(documented, dict):
        unknown = [f"{where}.{name}" for name in told.keys() - documented.keys()]
        for name in told.keys() & documented.keys():
            unknown += strangers(told[name], documented[name], f"{where}.{name}")
        return unknown
    if isinstance(told, list) and isinstance(documented, list):
        return [each for item in told for each in strangers(item, documented[0], f"{where}[]")]
    numbers = (int, float)
    same = type(told) is type(documented)
    return [] if same or (type(told) in numbers and type(documented) in numbers) else [where]
