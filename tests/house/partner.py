"""A partner over HTTP who sends again what got no reply, and remembers every 2xx."""

import base64
import json
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from http.client import HTTPException
from threading import Event
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from tests.installation import wait_until

AGAIN_S = 0.2
SETTLES_S = 60.0  # The contract of the fault programme: all is terminal so long after healing.
NUMBER_PATH = "/number-lookup?phone_number="
NUMBER = f"{NUMBER_PATH}%2B14155552671"
IN_TROUBLE = {409, 429, 500, 502, 503}


@dataclass(frozen=True)
class Reply:
    """What came back; status 0: nothing did."""

    status: int
    json: Any
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Any:
        assert self.json["success"] is True, self.json
        return self.json["data"]

    @property
    def code(self) -> str:
        """What was wrong; empty if nothing was."""
        return str((self.json.get("error") or {}).get("code", "")) if self.status else "no reply"

    @property
    def replayed(self) -> bool:
        return self.headers.get("idempotency-replayed") == "true"


@dataclass
class Promised:
    """What 2xx replies have said: each must stay true for ever."""

    jobs: dict[str, int] = field(default_factory=dict)  # Numbers, by id.
    links: dict[str, str] = field(default_factory=dict)  # ICCID, by id.
    charges: dict[str, str] = field(default_factory=dict)  # Amount, by the id of the transaction.
    topups: dict[str, int] = field(default_factory=dict)  # Activations, by the id of the link.


class Partner:
    """One client; once it has a token several threads may use it."""

    reply_s = 30.0

    def __init__(self, url: str, client_id: str, secret: str) -> None:
        self.url = url  # Another one: a proxy sends it to another process from now on.
        pair = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
        self.basic = f"Basic {pair}"
        self._token = ""
        self.promised = Promised()
        self.troubles = Counter[str]()  # Replies after which a request was sent again.
        self.given_up = 0  # Requests without an outcome, because the load came to its end.

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """Send one request with a token, if there is one."""
        sent = None if body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if sent else {}
        return self._send(method, path, sent, given | self.headers() | (headers or {}))

    def headers(self) -> dict[str, str]:
        """Return what names the partner once it has a token."""
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def authorize(self) -> Reply:
        """Get a token."""
        headers = {
            "Authorization": self.basic,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        reply = self._send("POST", "/auth/token", b"grant_type=client_credentials", headers)
        if reply.status == HTTPStatus.OK:
            self._token = reply.json["access_token"]
        return reply

    def insist(self, method: str, path: str, body: object, stop: Event) -> Reply | None:
        """Send a request under one key until it has an outcome; None: it was stopped before."""
        key = {"Idempotency-Key": str(uuid4())}
        while True:
            reply = self.ask(method, path, body, key)
            if reply.status and reply.status not in IN_TROUBLE:
                return reply
            self.troubles[f"{reply.status} {reply.code}"] += 1
            if stop.wait(AGAIN_S):
                self.given_up += 1
                return None

    def look_up(self, number: str, stop: Event) -> None:
        reply = self.insist("POST", NUMBER_PATH + quote(number), None, stop)
        if reply is not None:
            assert reply.status == HTTPStatus.OK, reply
            charge = reply.json["meta"]["charge"]
            self.promised.charges[charge["transaction_id"]] = charge["amount"]

    def look_up_many(self, numbers: list[str], stop: Event) -> None:
        body = {"phone_numbers": numbers}
        reply = self.insist("POST", "/number-lookup/bulk", body, stop)
        if reply is not None:
            assert reply.status == HTTPStatus.ACCEPTED, reply
            self.promised.jobs[reply.data["job_id"]] = len(numbers)

    def buy(self, plan_id: str, stop: Event) -> None:
        reply = self.insist("POST", "/v1/links", {"plan_id": plan_id}, stop)
        if reply is not None:
            assert reply.status == HTTPStatus.CREATED, reply
            self.promised.links[reply.data["id"]] = reply.data["iccid"]

    def top_up(self, link_id: str, stop: Event) -> None:
        """Add a plan to a link that has one."""
        path = f"/v1/links/{link_id}"
        offered = self.insist("GET", f"{path}/topup-plans", None, stop)
        if offered is None:
            return
        assert offered.status == HTTPStatus.OK, offered
        reply = self.insist("PUT", f"{path}/plans", {"add": [offered.data[0]["id"]]}, stop)
        if reply is not None:
            assert reply.status == HTTPStatus.OK, reply
            self.promised.topups[link_id] = 2

    def check(self) -> None:
        """Fail unless every 2xx is still true and every job has ended."""
        for transaction_id, amount in self.promised.charges.items():
            assert self._read(f"/v1/transactions/{transaction_id}")["amount"] == amount
        for link_id, iccid in self.promised.links.items():
            assert self._read(f"/v1/links/{link_id}")["iccid"] == iccid
        for link_id, count in self.promised.topups.items():
            assert len(self._read(f"/v1/links/{link_id}")["activations"]) == count
        for job_id, count in self.promised.jobs.items():
            wait_until(lambda job_id=job_id: self.has_ended(job_id), SETTLES_S)
            job = self._read(f"/number-lookup/bulk/{job_id}")
            assert (job["status"], job["processed_count"]) == ("completed", count)

    def has_ended(self, job_id: str) -> bool:
        return self._read(f"/number-lookup/bulk/{job_id}")["finished_at"] is not None

    def _read(self, path: str) -> Any:
        reply = self.ask("GET", path)
        assert reply.status == HTTPStatus.OK, reply
        return reply.data

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Reply:
        request = urllib.request.Request(  # noqa: S310  # Our own URL.
            self.url + path, method=method, headers=headers, data=body
        )
        try:
            with urllib.request.urlopen(request, timeout=self.reply_s) as reply:  # noqa: S310  # As above.
                return Reply(reply.status, json.load(reply), lower(reply.headers))
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, json.load(error), lower(error.headers))
        except (OSError, HTTPException, ValueError):  # No reply, or half of one.
            return Reply(0, None)


def lower(headers: Message) -> dict[str, str]:
    """Return headers by their names in lower case, as one server writes them and another not."""
    return {name.lower(): value for name, value in headers.items()}
