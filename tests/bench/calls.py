"""How many functions of Python a warm request calls: `python -m tests.bench.calls`.

Counted is the real way, on the loop, in a thread of Flask and in the committer, each up to where it
last wrote or woke another, without functions of C. Of fifty requests the one with the median is
shown, by thread and by file or library. DATABASE=postgresql counts there: a lookup has no thread.
"""

import http.client
import os
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from urllib.parse import quote

from app.http.edge.request import current_request_id
from app.watch.logging import configure_logging
from tests.app.http.buying import Buyer
from tests.app.http.over_http import HOST, serving
from tests.app.http.service import Service
from tests.bench.engine import database_url
from tests.bench.numbers import real_numbers
from tests.seeds import make_tables
from tests.tidy.source import PACKAGES, ROOT

ROOTED = f"{ROOT}/"
EACH = 20  # Of the thousand numbers, twenty are of a country.
BEGINS = "data_received"  # With it the loop begins with a request.
TELLS = {"Connection.write", "soon", "Outcome.succeed"}  # Of loop, threads and committer.
KINDS = {"loop", "http", "committer", "Thread"}  # The last are workers; others run beside.
SMALL = 4  # What has no more calls is not listed.

Calls = Counter[tuple[str, str]]  # By the kind of thread, and by file or library.


class Recorder:
    """Notes which functions those threads call that start from now on."""

    def __init__(self) -> None:
        self._calls: dict[str, list[str]] = defaultdict(list)  # Files, by the name of a thread.
        self._before: dict[str, int] = {}  # How many came before it told another.
        threading.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>":
            calls = self._calls[name := threading.current_thread().name]
            if code.co_name == BEGINS:
                calls.clear()
            calls.append(code.co_filename)
            if code.co_qualname in TELLS:
                self._before[name] = len(calls)

    def files_of(self, run: Callable[[], object]) -> Mapping[str, Sequence[str]]:
        """Run; return the file of each call, as it stands in the tree, by thread."""
        for calls in self._calls.values():
            calls.clear()
        self._before.clear()
        run()
        found = {name: [*calls] for name, calls in self._calls.items()}
        return {name: [each.removeprefix(ROOTED) for each in it] for name, it in found.items()}

    def calls_of(self, run: Callable[[], object], kinds: set[str] = KINDS) -> Calls:
        """Run; return what threads have called before they told another the last time."""
        calls = Calls()
        for name, files in self.files_of(run).items():
            if (kind := name.replace("-", "_").partition("_")[0]) in kinds:
                calls.update((kind, _place(each)) for each in files[: self._before.get(name)])
        return calls


def _place(file: str) -> str:
    """Name a file of a library by the library."""
    _, is_library, inside = file.rpartition("site-packages/")
    return (
        inside.partition("/")[0] if is_library else file if file.startswith(PACKAGES) else "Python"
    )


class House:
    """A service behind its server, and a partner with a link."""

    def __init__(self, directory: Path, url: str, stack: ExitStack) -> None:
        self.recorder = Recorder()
        told = {"DATABASE_URL": url, "SANDBOX": "false", "METRICS_PORT": "1"}
        service = Service(directory, migrated=False, **told)
        service.container.keys.ensure()
        service.container.webhook_key.ensure()
        stack.callback(service.start().stop)
        service.container.listen()
        is_web = url.startswith("postgresql")  # Or `serve`.
        self._beside = {"Thread"} if is_web else set[str]()
        self.port = stack.enter_context(serving(service.container, many=is_web))
        self.buyer = Buyer(service.tenant("1000.00"))
        self._connection = http.client.HTTPConnection(HOST, self.port, timeout=30)
        self.link = f"/v1/links/{self.buyer.link()['id']}"

    def lookup(self) -> Calls:
        """Return the calls of a lookup; on PostgreSQL no worker answers it, they run beside."""
        paths = [f"/number-lookup?phone_number={quote(each)}" for each in real_numbers()]
        for path in paths[1::EACH]:  # At first what a process does only once.
            self._ask("POST", path)
        return self._median("POST", paths[::EACH], KINDS - self._beside)

    def read(self, path: str) -> Calls:
        """Return the calls of a read."""
        return self._median("GET", [path] * EACH)

    def item(self) -> Calls:
        """Return the calls of an item of a job: by how much fifty more take more."""
        numbers = real_numbers()
        some = [numbers[3:4], numbers[4:5], numbers[2::EACH] + numbers[5:6]]
        _, few, many = (self.recorder.calls_of(partial(self.buyer.finished_job, it)) for it in some)
        return Calls({each: count // 50 for each, count in (many - few).items()})

    def _median(self, method: str, paths: Sequence[str], kinds: set[str] = KINDS) -> Calls:
        self._ask(method, paths[0])
        found = [self.recorder.calls_of(partial(self._ask, method, each), kinds) for each in paths]
        return sorted(found, key=Counter.total)[len(found) // 2]

    def _ask(self, method: str, path: str) -> None:
        self._connection.request(method, path, headers=self.buyer.headers)
        reply = self._connection.getresponse()
        assert (reply.status, reply.read()) > (200, b""), path


def told(name: str, calls: Calls) -> str:
    """Return the sum of a request, and where most of its calls are."""
    kinds = {kind: sum(n for (it, _), n in calls.items() if it == kind) for kind, _ in calls}
    most = [f"\n{n:8}  {kind:9}  {it}" for (kind, it), n in calls.most_common() if n > SMALL]
    return f"{name}: {calls.total()} {kinds}{''.join(most)}"


def main(given: Sequence[str]) -> None:
    """Count all on a new database, or a lookup on one that is `given`."""
    sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # Log lines cost what they cost.
    configure_logging("json", current_request_id)
    with TemporaryDirectory(prefix="bench-") as directory, ExitStack() as stack:
        make_tables(url := given[0] if given else database_url(Path(directory)))
        house = House(Path(directory), url, stack)
        print(told("lookup", house.lookup()))
        if given:
            return
        print(told("link read", house.read(house.link)))
        print(told("wallet read", house.read("/v1/wallet")))
        print(told("job item", house.item()))


if __name__ == "__main__":
    main(sys.argv[1:])
