"""Who buys links."""

import pytest

from tests.app.http.buying import Buyer, buyer
from tests.app.http.service import Service


@pytest.fixture(scope="module")
def acme(service: Service) -> Buyer:
    """One that the tests of a module share."""
    return buyer(service)


@pytest.fixture
def shop(service: Service) -> Buyer:
    """One of a test's own."""
    return buyer(service)
