"""A creation that is only asked about, or not waited for: how a request says so."""

from app.http.links.input import is_waited_for

SAYS_SO = [
    "respond-async",
    "Respond-Async; foo",
    "handling=lenient, respond-async, wait=10",
    'foo="a, b", respond-async',
]
SAYS_NOTHING = ["wait=10", 'foo="x, respond-async, y"', "respond-asynchronously", "", ',,;="']


def test_a_preference_is_read_as_rfc_7240_has_it() -> None:
    assert [each for each in SAYS_SO if is_waited_for(each)] == []
    assert [each for each in SAYS_NOTHING if not is_waited_for(each)] == []
