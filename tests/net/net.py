"""What a scenario plays with: partners who call, commands, a receiver of webhooks, a recording."""

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.installation import wait_until
from tests.net.house import PATIENCE_S, House
from tests.net.masking import Moment
from tests.net.recording import SAFE, Recording, told_body, told_headers, told_json
from tests.support.providers.server import Request, ScriptedServer


@dataclass(frozen=True)
class Reply:
    """What came back; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        return self.json["data"]


class Net:
    """One scenario on a house. What it does is recorded unless a method says otherwise."""

    def __init__(self, house: House, file: Path) -> None:
        self.recording = Recording(file)
        self.masks = self.recording.masks
        self.enter(house)

    def enter(self, house: House) -> None:
        """Play on in this house, whose clock may tell another time."""
        self.house = house
        database = urlsplit(house.database)
        named = f"{database.path[1:]} on {database.hostname}:{database.port}"
        self.masks.plain |= {
            house.database: "database",
            str(house.home / "service.db"): "place of the database",
            named: "place of the database",
            str(house.home): "home",
            f"127.0.0.1:{house.port}": "service",
        }
        self.masks.moments.clear()
        self.begin("now")

    def begin(self, name: str, at: datetime | None = None) -> None:
        """Begin a moment of the story under a name for recordings; perhaps move the clock."""
        if self.masks.moments:
            self.masks.moments[-1].end = self.house.clock.now
        if at is not None:
            self.house.move(at)
        now = self.house.clock.now
        self.masks.moments.append(Moment(name, now, now))

    def note(self, title: str, *parts: str) -> None:
        self.masks.moments[-1].end = self.house.clock.now
        self.recording.note(title, *parts)

    # Commands.

    def run(self, *arguments: object, **options: Any) -> Any:
        """Run a command with --json, record it, and return what it printed."""
        return self._run(arguments, recorded=True, **options)

    def quietly(self, *arguments: object, **options: Any) -> Any:
        """Run a command that must succeed and is not recorded."""
        status, out, err = self.house.command(*arguments, "--json", **options)
        assert status == 0, (arguments, out, err)
        return json.loads(out)

    def print(self, *arguments: object, **options: Any) -> str:
        """Run a command as people do, without --json."""
        return str(self._run(arguments, recorded=True, as_json=False, **options))

    def _run(
        self, arguments: tuple[object, ...], *, recorded: bool, as_json: bool = True, **options: Any
    ) -> Any:
        words = [*arguments, *(["--json"] if as_json else [])]
        status, out, err = self.house.command(*words, **options)
        if recorded:
            title = " ".join(f'"{word}"' if " " in str(word) else str(word) for word in words)
            given = [f"{name}={value}" for name, value in options.items() if name.isupper()]
            complaint = "".join(f"stderr: {line}\n" for line in err.splitlines())
            self.note(
                title,
                *given,
                f"-> {status}",
                told_json(out, self.masks) if as_json else out,
                complaint,
            )
        return json.loads(out) if as_json and out.startswith("{") else out

    # Requests.

    def partner(self, balance: str = "100.00", *options: str, name: str = "Acme") -> "Partner":
        """Return the client of a new organization; balance "": without a wallet. Not recorded."""
        more = [] if balance else ["--no-wallet"]
        made = self.quietly("org", "create", "--name", name, *more, *options)
        if balance:
            self.quietly("wallet", "deposit", made["id"], balance, "--reference", "bank-1")
        client = self.quietly("client", "create", "--org", made["id"])
        partner = Partner(self, name, client, made["id"])
        if balance:
            partner.until_seen("bank-1")
        return partner

    def demo(self) -> "Partner":
        """Return the client of the demo, whose ids are the same in every installation."""
        demo = self.house.printed
        return Partner(self, "demo", demo, demo["organization"])

    def stranger(self) -> "Partner":
        """Return somebody who has no token."""
        return Partner(self, "nobody", {}, "")

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> Reply:
        """Send a request as it is given; not recorded."""
        connection = self.house.connect()
        try:
            connection.request(method, path, body, dict(headers))
            return _read(connection.getresponse())
        finally:
            connection.close()

    def send(self, title: str, sent: bytes, *, half: bool = False) -> bytes:
        """Send bytes that no client would, and record what comes back."""
        received = self.house.send(sent, half=half)
        head, _, body = received.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        pairs = [
            (name.lower(), value) for name, _, value in (each.partition(": ") for each in fields)
        ]
        assert SAFE in pairs or not received, title
        status = " ".join(line.split(" ")[1:2])
        told = told_body(dict(pairs), body, self.masks)
        self.note(title, f"-> {status or 'closed without a reply'}", told_headers(pairs), told)
        return received

    def until(self, condition: Callable[[], Any], what: str = "it") -> Any:
        return wait_until(condition, PATIENCE_S, what)

    def file(self, name: str, content: str) -> Path:
        """Write a file that a command reads."""
        path = self.house.home / name
        path.write_text(content)
        return path


class Partner:
    """One client of one organization."""

    def __init__(self, net: Net, name: str, client: Mapping[str, Any], organization: str) -> None:
        self.net = net
        self.name = name
        self.id = organization
        self.client_id = str(client.get("client_id", ""))
        self.secret = str(client.get("client_secret", ""))
        self.headers: dict[str, str] = {}  # Sent with each request, and recorded.
        self._token: tuple[str, Moment] | None = None

    def token(self, **form: str) -> Reply:
        """Ask for a token; not recorded."""
        sent = {
            "grant_type": "client_credentials",
            "client_id": self.client_id,
            "client_secret": self.secret,
            **form,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.net.ask("POST", "/auth/token", headers, urlencode(sent).encode())

    def authorization(self) -> dict[str, str]:
        if not self.client_id:
            return {}
        moment = self.net.masks.moments[-1]
        if self._token is None or self._token[1] is not moment:  # It ends when the clock is moved.
            reply = self.token()
            assert reply.status == 200, reply.body
            self._token = reply.json["access_token"], moment
        return {"Authorization": f"Bearer {self._token[0]}"}

    def ask(self, method: str, path: str, json: Any = None, **headers: str) -> Reply:
        """Send a request that is not recorded."""
        return self._call(method, path, json, None, headers)[0]

    def call(
        self,
        method: str,
        path: str,
        json: Any = None,
        *,
        body: str | bytes | None = None,
        **headers: str,
    ) -> Reply:
        """Send a request and record it; `Content_Type="text/plain"` is a header."""
        sent = body.encode() if isinstance(body, str) else body
        reply, shown = self._call(method, path, json, sent, headers)
        masks = self.net.masks
        asked = told_headers(shown.items())
        said = told_json(_dumped(json), masks) if json is not None else _short(sent)
        told = told_body(reply.headers, reply.body, masks)
        came = told_headers(reply.headers.items())
        title = f"{method} {path} ({self.name})"
        assert SAFE in reply.headers.items(), title
        self.net.note(title, asked, said, f"-> {reply.status}", came, told)
        return reply

    def _call(
        self, method: str, path: str, json: Any, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[Reply, dict[str, str]]:
        shown = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        sent = self.authorization() | {"X-Request-Id": f"net-{self.name.lower()}"} | shown
        if json is not None:
            body = _dumped(json).encode()
            sent = {"Content-Type": "application/json"} | sent
        for name in [name for name, value in sent.items() if value == "none"]:
            del sent[name]
        return self.net.ask(method, path, sent, body), shown

    # Short forms.

    def get(self, path: str, **headers: str) -> Reply:
        return self.call("GET", path, **headers)

    def post(self, path: str, json: Any = None, **headers: Any) -> Reply:
        return self.call("POST", path, json, **headers)

    def data(self, path: str) -> Any:
        """Read something that must be there; not recorded."""
        reply = self.ask("GET", path)
        assert reply.status == 200, reply.body
        return reply.json["data"]

    def until_seen(self, text: str) -> None:
        """Wait until a text stands in the transactions, after a command has written it."""
        path = "/v1/transactions"
        self.net.until(lambda: text in self.ask("GET", path).body.decode(), text)

    def plan(self, called: str) -> str:
        """Return the id of a plan by its name or what the network calls it; not recorded."""
        plans = self.data("/v1/plans?per_page=100")["data"]
        return str(
            next(each["id"] for each in plans if called in {each["name"], each["provider_plan_id"]})
        )

    def buy(self, called: str = "Germany 3 GB", **body: Any) -> dict[str, Any]:
        """Buy a link and return it; not recorded."""
        reply = self.ask("POST", "/v1/links", {"plan_id": self.plan(called), **body})
        assert reply.status == 201, reply.body
        found: dict[str, Any] = reply.data
        return found

    def look_up(self, number: str = "+14155552671") -> dict[str, Any]:
        """Look a number up and return the whole reply; not recorded."""
        reply = self.ask("POST", "/number-lookup", {"phone_number": number})
        assert reply.status == 200, reply.body
        found: dict[str, Any] = reply.json
        return found

    def job(self, *numbers: str) -> dict[str, Any]:
        """Create a job and wait for its end; not recorded."""
        reply = self.ask("POST", "/number-lookup/bulk", {"phone_numbers": numbers})
        assert reply.status == 202, reply.body
        path = f"/number-lookup/bulk/{reply.data['job_id']}"
        self.net.until(lambda: self.data(path)["finished_at"], "the end of the job")
        found: dict[str, Any] = self.data(path)
        return found


class Receiver(ScriptedServer):
    """Listens for webhooks and keeps what comes; `status` is what it answers."""

    status = 200

    def __init__(self) -> None:
        super().__init__()
        self.route("told", "POST", ".*", lambda _: (self.status, None, {}))

    def came(self, path: str, count: int) -> list[Request]:
        """Wait until so much has come to a path, and return it."""

        def come() -> list[Request]:
            found = [each for each in self.asked("told") if each.path == path]
            return found if len(found) >= count else []

        return wait_until(come, PATIENCE_S, f"{count} webhooks")

    def record(self, net: Net, path: str, count: int, *secrets: str) -> None:
        """Wait until so much has come to a path, and record it by its place in the log."""
        for sent in sorted(self.came(path, count), key=lambda each: _place(each.body)):
            told = {name: value for name, value in sent.headers.items() if name != "host"}
            given, fits = signed_by(sent, *secrets)
            checked = f"signatures: {given}, of the secrets {fits}"
            net.note(
                f"a webhook to {path}",
                told_headers(told.items()),
                told_json(sent.body.decode(), net.masks),
                checked,
            )


def signed_by(sent: Request, *secrets: str) -> tuple[int, list[bool]]:
    """Return how many signatures a webhook has, and whether each secret made one of them."""
    headers = sent.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + sent.body
    given = headers["webhook-signature"].split(" ")
    keys = [base64.b64decode(each.removeprefix("whsec_")) for each in secrets]
    digests = [base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys]
    return len(given), [f"v1,{each}" in given for each in digests]


def _place(body: bytes) -> tuple[int, str]:
    told = json.loads(body)
    return told["data"].get("position", 0), told["type"]


def _read(response: HTTPResponse) -> Reply:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Reply(response.status, headers, response.read())


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(body: bytes | None) -> str:
    """Return a body that is not JSON, cut where it is long."""
    text = (body or b"").decode("utf-8", "backslashreplace")
    return text if len(text) <= 500 else f"{text[:60]}… ({len(body or b'')} bytes)"
