"""A file of links is read whole, or refused with a line for every mistake in it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from app.cli.import_files import read_link_file
from domain.catalogue.file_errors import FileRefused
from domain.links.importing import LINKS_MAX
from domain.links.network import NO_CODE

ID = "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"
SOLD = {"plan_id": ID, "bought_at": "2025-11-01T11:00:00+01:00"}
ICCID = "8988211000000000001"
LINK = {"organization_id": ID, "iccid": ICCID, "endpoint_id": "e-1", "plans": [SOLD]}
TWICE = "is the same as links[0]"


def lines(*links: Any) -> list[str]:
    with pytest.raises(FileRefused) as refused:
        read_link_file(json.dumps({"links": links}).encode(), ["far", "simulated"])
    return refused.value.lines


def test_what_a_file_leaves_out_is_none_and_its_network_the_first() -> None:
    (link,) = read_link_file(json.dumps({"links": [LINK]}).encode(), ["far", "simulated"])
    assert (link.network, link.name, link.sponsor_profile, link.lpa) == ("far", None, None, None)
    assert link.plans[0].bought_at == datetime(2025, 11, 1, 10, tzinfo=UTC)
    assert link.plans[0].addon_id is None


def test_a_wrong_member_is_named_with_its_link_and_its_rule() -> None:
    for member, value, why in (
        ("iccid", "89x", "iccid: must be 18 to 22 digits"),
        ("iccid", int(ICCID), "iccid: must be 18 to 22 digits"),
        ("organization_id", "acme", "organization_id: must be a UUID"),
        ("network", "bics", "network: must be one of: far, simulated"),
        ("lpa", "code", f"lpa: {NO_CODE}"),
        ("lpa", 1, f"lpa: {NO_CODE}"),
        (
            *("confirmation_code", "a b"),
            "confirmation_code: must be 1 to 64 visible ASCII characters",
        ),
        ("name", " ", "name: must be text of 1 to 255 printable characters, no space around it"),
        ("sponsor_profile", [], "sponsor_profile: must be an object"),
        ("plans", [], "plans: must have at least one plan"),
        ("plans", [{"bought_at": SOLD["bought_at"]}], "plans[0].plan_id: is missing"),
        (
            *("plans", [SOLD | {"bought_at": "2025-11-01"}]),
            "plans[0].bought_at: must be a time with its offset, such as 2026-12-01T00:00:00Z",
        ),
        ("colour", "red", "colour: is unknown"),
    ):
        assert lines(LINK, LINK | {member: value}) == [f"links[1]: {why}"]


def test_links_of_one_network_share_neither_esim_nor_endpoint() -> None:
    assert lines(LINK, LINK) == [
        f"links[1].{name}: {TWICE}.{name}" for name in ("iccid", "endpoint_id")
    ]
    other = LINK | {"iccid": "8988211000000000002"}
    assert lines(LINK, other) == [f"links[1].endpoint_id: {TWICE}.endpoint_id"]
    elsewhere = [LINK, LINK | {"network": "simulated"}]
    assert len(read_link_file(json.dumps({"links": elsewhere}).encode(), ["far", "simulated"])) == 2


def test_too_many_links_are_refused_in_one_line() -> None:
    told = f"must be at most {LINKS_MAX}: divide the file, what it lacks stays as it is"
    assert lines(*[{}] * (LINKS_MAX + 1)) == [f"links: {told}"]


CODES = """
LPA:1$smdp.example.com$
LPA:1$smdp.example.com$$1.3.6.1.4.1.31746
LPA:1$smdp.example.com$04386-AGYFT-A74Y8-3F815$1.3.6.1.4.1.31746
LPA:1$smdp.example.com$04386-AGYFT-A74Y8-3F815$1.3.6.1.4.1.31746$1
LPA:1$SMDP.GSMA.COM$04386-AGYFT-A74Y8-3F815$$1
"""


def test_every_activation_code_of_sgp_22_is_taken() -> None:
    for code in CODES.split():
        (link,) = read_link_file(json.dumps({"links": [LINK | {"lpa": code}]}).encode(), ["far"])
        assert link.lpa == code


@pytest.mark.parametrize(
    "written",
    [
        "1$smdp.example.com$TOKEN",
        "lpa:1$smdp.example.com$TOKEN",
        "LPA:2$smdp.example.com$TOKEN",
        " LPA:1$smdp.example.com$TOKEN",
        "LPA:1$smdp.example.com$TOKEN\n",
        "https://esimsetup.apple.com/esim_qrcode_provisioning?carddata=LPA:1$a.b$C",
        "LPA:1$https://smdp.example.com$TOKEN",
        "LPA:1$smdp.example.com:443$TOKEN",
        "LPA:1$smdp.example.com",
        "LPA:1$$TOKEN",
        "LPA:1\\$smdp.example.com\\$TOKEN",
        "LPA:1%24smdp.example.com%24TOKEN",
        "LPA:1$smdp.example.com$T_O",
        "LPA:1$host$" + "M" * 245,
        "",
        5,
    ],
)
def test_what_else_is_written_for_a_code_is_refused(written: object) -> None:
    assert lines(LINK, LINK | {"lpa": written})[0] == f"links[1]: lpa: {NO_CODE}"


def test_what_is_wrong_can_be_left_out() -> None:
    other = LINK | {"iccid": "8988211000000000002", "endpoint_id": "e-2"}
    wrong = LINK | {"iccid": "1"}
    sent = json.dumps({"links": [LINK, wrong, other, LINK | {"endpoint_id": "e-3"}]})
    left: list[str] = []
    found = read_link_file(sent.encode(), ["far"], left)
    assert [(each.index, each.iccid) for each in found] == [(0, ICCID), (2, other["iccid"])]
    assert left[0] == "links[1]: iccid: must be 18 to 22 digits"
    assert {each.partition(":")[0] for each in left[1:]} == {"links[3].iccid"}
