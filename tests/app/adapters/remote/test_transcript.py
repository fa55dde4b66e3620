"""A transcript shows the form of what was said, and nothing that must not be kept."""

import msgspec

from app.adapters.remote.exchange import Reply, Request
from app.adapters.remote.transcript import redacted

SENT = {"carrier": "Alice", "password": "open sesame", "iccid": "8934000000000000001"}
TOLD = {
    "state": "queued",
    "AccessToken": "abcdefgh",
    "carrier": "Scripted Mobile",
    "caller_name": "ALICE",
    "matchingId": "ABCD-EFGH",
    "number": "+34612345678",
    "8934000000000000001": {"mb": 1.5},
    "sims": [{"state": "new"}, {"state": "old"}, {"state": "x"}],
    "ok": True,
    "none": None,
}


def test_the_form_stays_and_the_content_goes() -> None:
    path = "/v2/numbers/+34612345678/sims/0123456789abcdef0123456789abcdef?key=abc&Fields=a"
    request = Request("POST", path, msgspec.json.encode(SENT), {"Authorization": "Basic c2Vj"})
    headers = {"content-type": "application/json", "set-cookie": "s=1"}
    first = redacted(request, Reply(200, headers, msgspec.json.encode(TOLD)), 0.1234)
    second = redacted(request, "lost", 2.0)
    assert first["path"] == "/v2/numbers/…/sims/…"
    assert first["query"] == ["Fields", "key"]
    sent = {"carrier": "text of 5", "password": "text of 11", "iccid": "text of 19"}
    assert first["request"] == sent
    assert first["reply"] == {
        "state": "queued",
        "AccessToken": "text of 8",
        "carrier": "Scripted Mobile",
        "caller_name": "text of 5",
        "matchingId": "text of 9",
        "number": "text of 12",
        "…": {"mb": "number"},
        "sims": [{"state": "new"}, {"state": "old"}, "and 1 more"],
        "ok": True,
        "none": None,
    }
    assert first["headers"] == {"content-type": "application/json"}
    assert (first["ms"], second["outcome"]) == (123, "lost")
    told = redacted(Request("GET", "/a", None, {}), Reply(502, {}, b"<html>secret"), 0.0)
    assert told["reply"] == "12 bytes that are no JSON"
