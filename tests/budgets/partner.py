"""An organization and what it asks for: each operation that has a budget."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count

from werkzeug.test import TestResponse

from tests.app.http.buying import BASIC, MORE, Buyer
from tests.budgets.crew import Crew
from tests.budgets.tally import Statement


class Partner(Buyer):
    """An organization that knows its plans, whose requests never bring what came before."""

    def __init__(self, crew: Crew) -> None:
        super().__init__(crew.service.tenant("1000.00"))
        crew.settle()
        self._new = count(0)
        self.a_link = self.link()
        self.a_webhook = self.webhook()
        self.spare = [self.link() for _ in range(2 * RUNS)]
        self.a_job = self.create_job(self.new_numbers(1000)).json["data"]["job_id"]
        crew.settle()

    def new_numbers(self, how_many: int) -> list[str]:
        return [f"+1415{next(self._new):07d}" for _ in range(how_many)]

    def new_name(self) -> str:
        return f"Van {next(self._new)}"

    @staticmethod
    def path_of(link: Mapping[str, str]) -> str:
        return f"/v1/links/{link['id']}"

    def new_key(self) -> dict[str, str]:
        return {"Idempotency-Key": f"key-{next(self._new)}"}


RUNS = 3  # How often each operation is run.
JOBS = "/number-lookup/bulk"
Operation = Callable[[Partner], object]

OPERATIONS: Mapping[str, Operation] = {
    "token": lambda it: it.service.token(it.client_id),
    "lookup": lambda it: it.look_up(*it.new_numbers(1)),
    "lookup with a key": lambda it: it.look_up(*it.new_numbers(1), **it.new_key()),
    "replay of a lookup": lambda it: it.look_up("+14155550000", **{"Idempotency-Key": "again"}),
    "job of 1": lambda it: it.create_job(it.new_numbers(1)),
    "job of 1000": lambda it: it.create_job(it.new_numbers(1000)),
    "read of a job": lambda it: it.get(f"{JOBS}/{it.a_job}"),
    "wallet": lambda it: it.get("/v1/wallet"),
    "account": lambda it: it.get("/v1/account"),
    "transactions": lambda it: it.get("/v1/transactions"),
    "link": lambda it: it.create(BASIC),
    "link with a key": lambda it: it.create(BASIC, next(iter(it.new_key().values()))),
    "read of a link": lambda it: it.read(it.a_link),
    "list of links": lambda it: it.get("/v1/links"),
    "top-up": lambda it: it.change(it.a_link, add=[MORE]),
    "webhook": lambda it: it.webhook(),
    "list of webhooks": lambda it: it.get("/v1/webhooks"),
    "page of events": lambda it: it.get("/v1/events"),
    "page of two types": lambda it: it.get("/v1/events?types=wallet.deposited,job.finished"),
    "list of deliveries": lambda it: it.get(f"/v1/webhooks/{it.a_webhook}/deliveries"),
    "rename": lambda it: it.open("PATCH", it.path_of(it.a_link), json={"name": it.new_name()}),
    "end of a link": lambda it: it.open("DELETE", it.path_of(it.spare.pop())),
    "cancellation": lambda it: it.post(f"{it.path_of(it.spare.pop())}/cancel"),
    "QR code": lambda it: it.get(f"{it.path_of(it.a_link)}/qr"),
    "results of a job": lambda it: it.get(f"{JOBS}/{it.a_job}/results"),
    "list of jobs": lambda it: it.get(f"{JOBS}?status=completed"),
}


def run_once(crew: Crew, partner: Partner, run: Operation) -> Sequence[Statement]:
    """Run an operation and all that it brings about; return what was asked for it."""
    crew.tally.take()
    reply = run(partner)
    assert not isinstance(reply, TestResponse) or reply.status_code < 300, reply.text
    crew.settle()
    return crew.tally.take()
