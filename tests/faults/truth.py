"""Whether every promise is still true: asked over HTTP, and compared with the log."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from uuid import UUID

from domain.accounts.wallet import Wallet, wallet_id
from domain.money import format_amount, parse_amount
from tests.faults.debtors import PAID_IN, months_owed
from tests.faults.ledger import Promise
from tests.faults.load import DEPOSIT, Load
from tests.faults.observer import Observer
from tests.faults.partner import Partner
from tests.house.partner import NUMBER_PATH, Reply
from tests.installation import PRICE_MICROS

FEES_PATH = "/v1/transactions?kind=monthly_link_fee"
ASKING = 6  # Threads that ask again for everything that was promised.


@dataclass
class Findings:
    """What is lost or doubled, with the moment at which it was promised."""

    lost: list[tuple[float, str]] = field(default_factory=list)
    doubled: list[tuple[float, str]] = field(default_factory=list)
    asked: int = 0
    _lock: Lock = field(default_factory=Lock)

    def expect(self, promise: Promise, what: str, *, held: bool) -> None:
        with self._lock:
            self.asked += 1
            if not held:
                self.lost.append((promise.began_at, f"{promise.kind} {promise.key}: {what}"))

    def all(self) -> list[str]:
        return [what for _, what in [*self.lost, *self.doubled]]


class Truth:
    """Checks the promises of one load, when all work has ended."""

    def __init__(self, load: Load, observer: Observer) -> None:
        self._load = load
        self._observer = observer
        self._findings = Findings()

    def check(self) -> Findings:
        """Ask again for everything; return what is not as it was promised."""
        ledger = self._load.ledger
        checks = [
            (self._check_lookup, ledger.of("lookup", "unkeyed lookup")),
            (self._check_job, ledger.of("job")),
            (self._check_link, ledger.of("link")),
            (self._check_change, ledger.of("topup", "removal")),
            (self._check_fees, ledger.of("fees")),
        ]
        with ThreadPoolExecutor(ASKING) as pool:
            for check, promises in checks:
                list(pool.map(check, promises))
        self._check_money()
        return self._findings

    def _check_lookup(self, promise: Promise) -> None:
        keyed = promise.kind == "lookup"
        partner = self._load.partner if keyed else self._load.other
        path = f"/v1/transactions/{promise.transaction_id}"
        entry = partner.ask("GET", path).json.get("data", {})
        told = (entry.get("kind"), entry.get("amount"), entry.get("reference", {}).get("id"))
        wanted = ("lookup", format_amount(promise.amount_micros), promise.id)
        charged = len(self._observer.charges[promise.transaction_id])
        self._expect(promise, told == wanted and charged == 1, f"charged {charged} times: {told}")
        if keyed:
            again = self._again(
                promise, "POST", NUMBER_PATH + str(promise.request).replace("+", "%2B")
            )
            same = again.json.get("meta", {}).get("lookup_id") == promise.id
            self._expect(promise, again.replayed and same, f"not replayed: {again.status}")

    def _check_job(self, promise: Promise) -> None:
        again = self._again(promise, "POST", "/number-lookup/bulk", promise.request)
        same = again.json.get("data", {}).get("job_id") == promise.id
        self._expect(promise, again.replayed and same, f"not replayed: {again.status}")
        job = self._load.partner.ask("GET", f"/number-lookup/bulk/{promise.id}").json["data"]
        is_cancelled = any(each.id == promise.id for each in self._load.ledger.of("cancel"))
        wanted = "cancelled" if is_cancelled else "completed"
        ended = job["processed_count"] + job["cancelled_count"] == job["total_count"]
        held = job["status"] == wanted and ended
        self._expect(promise, held, f"{job['status']}, {job['processed_count']} processed")
        answered = job["processed_count"] - job["failed_count"]
        promise.amount_micros = answered * PRICE_MICROS

    def _check_link(self, promise: Promise) -> None:
        again = self._again(promise, "POST", "/v1/links", promise.request)
        same = again.status == 201 and again.json["data"]["id"] == promise.id
        self._expect(promise, again.replayed and same, f"not replayed: {again.status}")
        link = self._load.partner.ask("GET", f"/v1/links/{promise.id}")
        wanted = self._load.statuses.get(promise.id)
        found = link.json.get("data", {}).get("status")
        held = link.status == 200 and (wanted is None or wanted == found)
        self._expect(promise, held, f"{link.status}, {found} instead of {wanted}")

    def _check_change(self, promise: Promise) -> None:
        again = self._again(promise, "PUT", promise.id, promise.request)
        paid = again.json.get("data", {}).get("amount_charged")
        same = again.status == 200 and parse_amount(str(paid)) == promise.amount_micros
        self._expect(promise, again.replayed and same, f"{again.status}, {paid} paid")

    def _check_fees(self, promise: Promise) -> None:
        """A debtor has paid for each month once, and nothing else."""
        partner = self._load.partner_of(UUID(promise.id))
        entries = partner.ask("GET", FEES_PATH).json["data"]["data"]
        months = sorted(entry["metadata"]["month"] for entry in entries)
        owed = months_owed(months[-1]) if months else []
        balance = parse_amount(PAID_IN) - len(owed) * promise.amount_micros
        told = parse_amount(partner.ask("GET", "/v1/wallet").json["data"]["balance"])
        held = months == owed and told == balance
        self._expect(promise, held, f"{months} instead of {owed}, {told} left")

    def _again(self, promise: Promise, method: str, path: str, body: object = None) -> Reply:
        return self._load.partner.ask(method, path, body, promise.key)

    def _check_money(self) -> None:
        """Compare what was taken with what was promised: more of it was charged twice."""
        ledger, keyed = self._load.ledger, self._load.keyed
        for kinds, promises in (
            (["lookup"], ledger.of("lookup")),
            (["bulk_lookup"], ledger.of("job")),
            (["activation"], ledger.of("link")),
            (["topup"], ledger.of("topup")),
        ):
            self._compare(keyed, kinds, sum(each.amount_micros for each in promises))
        self._compare_unkeyed()
        paid = ledger.of("lookup", "job", "link", "topup")
        deposits = sum(each.amount_micros for each in ledger.of("deposit"))
        balance = parse_amount(DEPOSIT) + deposits - sum(each.amount_micros for each in paid)
        self._expect_balance(self._load.partner, keyed, balance)

    def _compare(self, organization_id: UUID, kinds: list[str], promised: int) -> None:
        taken = self._observer.net_micros(organization_id, *kinds)
        if taken > promised:
            self._findings.doubled.append((0.0, f"{kinds}: {taken} taken, {promised} promised"))
        elif taken < promised:
            self._findings.lost.append((0.0, f"{kinds}: {taken} taken, {promised} promised"))

    def _compare_unkeyed(self) -> None:
        """Without a key a lost reply may have been charged, but nothing beyond that."""
        ledger = self._load.ledger
        promised = sum(each.amount_micros for each in ledger.of("unkeyed lookup"))
        taken = self._observer.net_micros(self._load.unkeyed, "lookup")
        if not promised <= taken <= promised + ledger.unknown_lookups * PRICE_MICROS:
            found = f"unkeyed: {taken} taken, {promised} promised, {ledger.unknown_lookups} unknown"
            self._findings.doubled.append((0.0, found))

    def _expect_balance(self, partner: Partner, organization_id: UUID, micros: int) -> None:
        told = parse_amount(partner.ask("GET", "/v1/wallet").json["data"]["balance"])
        wallet = self._load.outside.log.get(Wallet, wallet_id(organization_id))
        if not told == wallet.balance_micros == micros:
            found = (
                f"balance: {micros} by promises, {wallet.balance_micros} by the log, {told} told"
            )
            self._findings.lost.append((0.0, found))

    def _expect(self, promise: Promise, held: bool, what: str) -> None:  # noqa: FBT001  # Told, then why.
        self._findings.expect(promise, what, held=held)
