"""Without a projector replies say since when they are old, but not while nothing happens."""

from datetime import timedelta
from typing import Any

import pytest

from app.http.edge import replies
from projections.engine.shape import format_time
from tests.app.http.buying import FREE, Buyer
from tests.app.http.service import Service, Tenant
from tests.installation import numbers

PATHS = ["/v1/links", "/v1/transactions", "/v1/plans", "/number-lookup/bulk/{job}"]


def look_at_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projections.engine.freshness.REFRESH_S", 0.0)


def project(service: Service, ago: timedelta) -> str:
    parts = service.container
    parts.projector.catch_up()
    then = parts.clock() - ago
    with parts.views.writing() as connection:
        places = [*parts.positions.all(parts.views).values()]
        parts.positions.caught_up(connection, places, then)
    return format_time(then)


def test_a_reply_says_that_it_is_old_once_there_is_something_newer(
    still: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_at_each_request(monkeypatch)
    tenant: Tenant = still.tenant()
    job = tenant.create_job(numbers(1)).json["data"]["job_id"]

    def ages() -> set[tuple[object, object]]:
        metas = [tenant.get(path.format(job=job)).json["meta"] for path in PATHS]
        return {(each.get("stale"), each.get("as_of")) for each in metas}

    then = project(still, timedelta(seconds=10))
    assert ages() == {(None, None)}
    assert tenant.create_job(numbers(1)).status_code == 202
    assert ages() == {(True, then)}
    balance = tenant.get("/v1/wallet").json
    assert (balance["data"]["balance"], "stale" in balance["meta"]) == ("99.99", False)
    still.container.projector.catch_up()
    assert ages() == {(None, None)}


@pytest.mark.each_database
def test_a_heartbeat_from_the_future_does_not_make_old_replies_new(
    still: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_at_each_request(monkeypatch)
    tenant = still.tenant()
    parts = still.container
    project(still, timedelta(hours=-1))
    assert tenant.create_job(numbers(1)).status_code == 202
    assert tenant.get("/v1/transactions").json["meta"]["stale"] is True
    lags, newest = parts.observed.follower_lags(), parts.log.head()
    behind = {lag.name: seconds for lag, seconds in lags if lag.position < newest}
    assert behind["transactions"]


# What each read of a read model waits for, so that it shows what its caller has just done.
WAITS = {
    "/v1/links": "links",
    "/v1/links/{link}/history": "transactions",
    "/v1/links/{link}/topup-plans": "plans",
    "/v1/plans": "plans",
    "/v1/plans/{plan}": "plans",
    "/v1/transactions": "transactions",
    "/v1/transactions/{link}": "transactions",
    "/v1/usage": "usage",
    "/v1/statements": "statements",
    "/v1/statements/2026-01": "statements",
    "/number-lookup/bulk": "jobs",
}


def test_every_read_of_a_read_model_waits_for_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, waited, wait = Buyer(service.tenant()), list[str](), replies.wait_until_projected
    known = {"link": shop.link(FREE)["id"], "plan": shop.plans[FREE]}

    def noted(*given: Any) -> bool:
        waited.extend(given[1])
        return wait(*given)

    monkeypatch.setattr(replies, "wait_until_projected", noted)
    for path, name in WAITS.items():
        waited.clear()
        shop.get(path.format(**known))
        assert waited == [name], path
