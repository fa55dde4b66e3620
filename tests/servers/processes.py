"""`--processes N`: N processes run the tests, forked from the one that has collected them all.

To collect them takes six seconds of a processor, which each process would spend anew.

Each is given a share of the tests and asks for another before the last one that it has, so it knows
which fixtures nobody needs any longer. Reports go to the process that has collected: it alone
prints, counts and writes down how the run ended. A process that dies is an error of the whole run.
"""

import os
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

import pytest

from tests.servers.scheduling import shares_of


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=0, help="fork so many to run the tests")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = session.config.option.processes
    if not count or session.testsfailed or session.config.option.collectonly:
        return None
    running: dict[Connection, int] = {}
    for number in range(count):
        ours, theirs = Pipe()
        if not (pid := os.fork()):
            for each in (ours, *running):
                each.close()  # So that the end of a process is seen by who waits for it.
            _Runner(session, theirs, number).run()
            return True
        theirs.close()
        running[ours] = pid
    try:
        _give(session, running)
    finally:
        for each, pid in running.items():
            each.close()
            os.waitpid(pid, 0)
    return True


def _give(session: pytest.Session, running: dict[Connection, int]) -> None:
    """Give shares to the processes, and report what they say, until all have ended."""
    shares = iter(shares_of(session.items))
    hook, failed = session.config.hook, set[Connection]()
    while running:
        for process in wait([*running]):
            try:
                said = process.recv()
            except EOFError:
                _, status = os.waitpid(running.pop(process), 0)
                assert os.waitstatus_to_exitcode(status) == (process in failed), "it died"
                continue
            if said is None:
                process.send(next(shares, []))
                continue
            report = hook.pytest_report_from_serializable(config=session.config, data=said)
            failed |= {process} if report.failed else set()
            hook.pytest_runtest_logreport(report=report)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)


class _Runner:
    """In a process that runs tests: what it was given, and the reports of it."""

    def __init__(self, session: pytest.Session, parent: Connection, number: int) -> None:
        self._session, self._parent, self._config = session, parent, session.config
        self._config.workerinput = {
            "workerid": str(number)
        }  # By which plugins know such a process.
        self._config.pluginmanager.unregister(name="terminalreporter")
        self._config.pluginmanager.register(self)
        capture = self._config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()  # Its files are those of all processes.
        capture.start_global_capturing()

    def run(self) -> None:
        given = self._shares()
        item = next(given, None)
        while item and not (self._session.shouldfail or self._session.shouldstop):
            following = next(given, None)
            self._config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following

    def _shares(self) -> Iterator[pytest.Item]:
        """Yield what is given; whoever looks for the next item has the last one still to run."""
        while self._say(None) and (share := self._parent.recv()):
            yield from (self._session.items[place] for place in share)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._say(
            self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        )

    def _say(self, said: object) -> bool:
        try:
            self._parent.send(said)
        except BrokenPipeError:
            self._session.shouldstop = "nobody hears"
            return False
        return True
