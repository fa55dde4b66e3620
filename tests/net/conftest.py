"""The fixtures of the net: the house that most scenarios share, and the scenario itself."""

from collections.abc import Generator, Iterator

import pytest

from tests.net.house import House, house
from tests.net.net import Net, Partner, Receiver
from tests.net.recording import RECORDINGS
from tests.seeds import Seed


@pytest.fixture(scope="session")
def main_house(tmp_path_factory: pytest.TempPathFactory, migrated: Seed) -> Iterator[House]:
    """A demo installation whose clock nobody moves, on each database in turn."""
    with house(tmp_path_factory.mktemp("net"), migrated) as made:
        yield made.start()


@pytest.fixture(name="house")
def house_of_most(main_house: House) -> House:
    """The house of a scenario; a file whose scenarios need another one has its own fixture."""
    return main_house


@pytest.fixture
def net(request: pytest.FixtureRequest, house: House) -> Net:
    """A scenario, which is compared with its recording when the test is over."""
    noun = request.path.stem.removeprefix("test_")
    scenario = request.function.__name__.removeprefix("test_")
    return Net(house, RECORDINGS / noun / f"{scenario}.txt")


@pytest.fixture
def acme(net: Net) -> Partner:
    return net.partner()


@pytest.fixture
def rival(net: Net) -> Partner:
    return net.partner(name="Rival")


@pytest.fixture
def receiver(net: Net) -> Iterator[Receiver]:
    """A receiver of webhooks, which recordings call `<receiver>`."""
    with Receiver() as made:
        net.masks.plain[made.url] = "receiver"
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Compare what a scenario has recorded, also when it could not go on to its end."""
    scenario: Net | None = pyfuncitem.funcargs.get("net")
    if scenario is None:
        return (yield)
    try:
        result = yield
    except Exception as error:
        stopped = f"The scenario stopped: {error!r}\nSo far:\n{scenario.recording.difference()}"
        raise AssertionError(stopped) from error
    if found := scenario.recording.check():
        pytest.fail(found, pytrace=False)
    return result
