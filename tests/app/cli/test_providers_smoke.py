"""`providers check` changes nothing; `providers smoke` buys one thing and keeps no secret of it."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from app.bootstrap.providers import LOOKUPS, NETWORKS
from app.processes import providers as checks
from app.processes.providers import NEVER_RUN
from domain.cause import utc_now
from tests.app.cli.shell import ROOT, Shell
from tests.support.providers.airalo import CLIENT_ID, CLIENT_SECRET, AiraloServer
from tests.support.providers.esimgo import KEY, EsimGoServer
from tests.support.providers.lookups import ScriptedLookups
from tests.support.providers.server import FaultKind
from tests.support.providers.telnyx import ScriptedTelnyx
from tests.support.providers.twilio import ScriptedTwilio


@pytest.fixture
def far() -> Iterator[EsimGoServer]:
    with EsimGoServer(utc_now) as server:
        server.offer("esim_cheap", "2.50")
        server.offer("esim_dear", "9.00")
        yield server


@pytest.fixture
def sold(shell: Shell, far: EsimGoServer) -> Shell:
    return shell.having(
        NETWORK_PROVIDER="simulated,esimgo",
        ESIMGO_URL=far.url,
        ESIMGO_API_KEY=KEY,
        ESIMGO_REFUNDS="true",
    )


def test_check_says_what_works_and_was_never_tried(sold: Shell, far: EsimGoServer) -> None:
    rows = {each["provider"]: each for each in sold.json("providers", "check")["data"]}
    assert set(rows) == {"offline", "simulated", "esimgo"}
    assert rows["esimgo"]["balance"] == "1000.00 USD"
    assert rows["esimgo"]["verified"] == NEVER_RUN
    assert rows["offline"]["verified"] == "in this process"
    assert {each.method for each in far.requests} == {"GET"}
    sold.json("providers", "drain", "esimgo")
    (row,) = sold.json("providers", "check", "esimgo")["data"]
    assert (row["up"], row["circuit"], row["drained"]) == (True, "closed", True)
    told = {each["message"] for each in sold.json("doctor", status=1)["data"]}
    assert f"esimgo was {NEVER_RUN}: python -m app providers smoke" in told
    far.fault(FaultKind.SERVER_ERROR, times=99)
    (row,) = sold.json("providers", "check", "esimgo", status=1)["data"]
    assert (row["up"], row["balance"]) == (False, None)
    assert sold.refusal("providers", "check", "twilly").startswith("twilly is not configured")


def test_smoke_buys_reads_and_gives_back(sold: Shell, far: EsimGoServer, tmp_path: Path) -> None:
    command = ("providers", "smoke", "esimgo", "--transcripts", tmp_path, "--spend-max")
    done = sold.json(*command, "3")
    assert [each["step"] for each in done["steps"] if not each["ok"]] == []
    (sale,) = far.sales
    assert (sale.offer.name, sale.given_back) == ("esim_cheap", True)
    assert (done["spent"], done["currency"], done["given_back"]) == ("2.50", "USD", True)
    assert done["reference"] == sale.reference
    assert far.balance == Decimal("1000.00")
    kept = Path(done["transcript"]).read_text("utf-8")
    assert json.loads(kept)["ok"]
    for secret in (KEY, sale.iccid, sale.reference, far.esims[sale.iccid].matching_id):
        assert secret not in kept
    (row,) = sold.json("providers", "check", "esimgo", "--transcripts", tmp_path)["data"]
    assert row["verified"] == f"on {utc_now():%Y-%m-%d}"


def test_smoke_keeps_neither_the_login_nor_the_token_of_a_network(
    shell: Shell, tmp_path: Path
) -> None:
    with AiraloServer(utc_now) as server:
        server.offer("brand-7days-1gb", "2.30")
        sold = shell.having(
            NETWORK_PROVIDER="simulated,airalo",
            AIRALO_URL=server.url,
            AIRALO_CLIENT_ID=CLIENT_ID,
            AIRALO_CLIENT_SECRET=CLIENT_SECRET,
        )
        command = ("providers", "smoke", "airalo", "--transcripts", tmp_path, "--spend-max", "3")
        done = sold.json(*command)
        (sale,) = server.sales
        kept = Path(done["transcript"]).read_text("utf-8")
    assert (done["spent"], done["given_back"], done["reference"]) == ("2.30", False, sale.code)
    assert "/v2/token" in kept
    for secret in (CLIENT_ID, CLIENT_SECRET, *server.tokens, sale.iccid, sale.description):
        assert secret not in kept


def test_a_transcript_that_cannot_be_read_is_a_problem_that_is_told(
    sold: Shell, tmp_path: Path
) -> None:
    (tmp_path / "esimgo-2026-01-02.json").write_text('{"ok": true}', "utf-8")
    for broken in ('{"ok": tr', "[]", "{}", '{"ok": "\\xff"}'):
        (tmp_path / "esimgo-2026-01-03.json").write_text(broken, "utf-8")
        command = ("providers", "check", "esimgo", "--transcripts", tmp_path)
        (row,) = sold.json(*command)["data"]
        told = "its transcript esimgo-2026-01-03.json cannot be read"
        assert (row["up"], row["verified"], row["problem"]) == (True, "on 2026-01-02", told)
        assert checks.trials("esimgo", tmp_path)[0] == "on 2026-01-02"


def test_smoke_refuses_what_costs_more(sold: Shell, far: EsimGoServer, tmp_path: Path) -> None:
    command = ("providers", "smoke", "esimgo", "--transcripts", tmp_path, "--spend-max")
    assert "costs 2.50 USD, more than" in sold.refusal(*command, "2.49")
    assert "costs 9.00 USD, more than" in sold.refusal(*command, "8", "--plan", "esim_dear")
    assert "no plan of esimgo" in sold.refusal(*command, "8", "--plan", "esim_gone")
    assert "COST_PER_LOOKUP" in sold.refusal("providers", "smoke", "offline", "--spend-max", "1")
    assert far.sales == []
    assert [*tmp_path.glob("*.json")] == []


def test_a_lost_reply_is_looked_up_and_told(sold: Shell, far: EsimGoServer, tmp_path: Path) -> None:
    far.fault(FaultKind.RESET_AFTER, on="order")
    command = ("providers", "smoke", "esimgo", "--transcripts", tmp_path, "--spend-max", "3")
    done = sold.json(*command, status=1)
    steps = [(each["step"], each["ok"]) for each in done["steps"]]
    assert steps == [("order", False), ("list orders", True)]
    assert done["given_back"] is False
    (row,) = sold.json("providers", "check", "esimgo", "--transcripts", tmp_path)["data"]
    assert row["verified"] == NEVER_RUN


@pytest.mark.parametrize("kind", [ScriptedTwilio, ScriptedTelnyx])
def test_smoke_of_a_remote_lookup_is_known_by_its_call_and_keeps_no_secret(
    shell: Shell, kind: type[ScriptedLookups], tmp_path: Path
) -> None:
    with kind() as server:
        far = shell.having(**server.settings, COST_PER_LOOKUP=f"{server.name}=0.008 USD")
        (row,) = far.json("providers", "check", server.name)["data"]
        command = ("providers", "smoke", server.name, "--transcripts", tmp_path)
        number = "+34612345678"
        done = far.json(*command, "--spend-max", "0.01", "--number", number)
        asked = server.asked("look up")[-1]
    assert (row["balance"], row["verified"]) == ("10.00 USD", NEVER_RUN)
    assert (done["ok"], done["spent"], server.charged) == (True, "0.008", 1)
    assert asked.parts["number"] == number
    assert done["reference"]
    kept = Path(done["transcript"]).read_text("utf-8")
    assert number[1:] not in kept
    assert "secret" not in kept


REMOTE = sorted({*LOOKUPS, *NETWORKS} - {"offline", "simulated"})


@pytest.mark.parametrize("name", REMOTE)
def test_every_provider_has_a_page_that_says_whether_it_was_tried(name: str) -> None:
    tried = checks.trials(name, checks.TRANSCRIPTS)[0] != NEVER_RUN
    page = (ROOT / f"docs/providers/{name}.md").read_text("utf-8")
    index = (ROOT / "docs/providers/README.md").read_text("utf-8")
    (row,) = [line for line in index.splitlines() if line.startswith(f"| [`{name}`]({name}.md) ")]
    for text in (page, row):
        assert (NEVER_RUN in text.lower()) is not tried


def test_smoke_buys_nothing_where_no_price_can_be_read(sold: Shell, far: EsimGoServer) -> None:
    far.fault(FaultKind.SERVER_ERROR, times=99)
    told = sold.refusal("providers", "smoke", "esimgo", "--spend-max", "3")
    assert told.startswith("the network esimgo does not give its catalogue: the API of esimgo")
    assert far.sales == []
