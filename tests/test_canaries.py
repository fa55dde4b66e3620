"""The check of all tests' log lines really finds what must not be logged."""

import logging
import sys
from collections.abc import Iterator

import pytest

from tests.canaries import WATCH, canaries_in, no_canary_is_logged, watched_logging

__all__ = ["no_canary_is_logged", "watched_logging"]

NUMBER = "+971508245977"
logger = logging.getLogger("app.somewhere")


@pytest.fixture
def found() -> Iterator[list[str]]:
    """What has been found; taken away, so that these tests do not fail by it."""
    seen: list[str] = []
    yield seen
    assert seen, "nothing was found"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (NUMBER, "phone"),
        ("%2B971508245977", "phone"),
        ("8988247000000000017", "iccid"),
        ("LPA:1$rsp.example$X", "lpa"),
        ("Bearer abcdefgh", "token"),
        ("cls_0123456789012345678901", "secret"),
        ("postgresql://me:hidden@host/db", "password"),
    ],
)
def test_a_canary_is_recognised(text: str, kind: str) -> None:
    assert canaries_in(f"x {text} y") == {kind}
    assert not canaries_in("postgresql://me:********@host/db 1c4b6ba5-57d4-426c-9ab3-0d018a73d8e3")


def test_a_number_in_a_message_is_found(found: list[str]) -> None:
    logger.info("asked for %s", NUMBER)
    found += WATCH.take()


def test_a_number_in_a_field_is_found(found: list[str]) -> None:
    logger.info("asked", extra={"about": {"number": NUMBER}})
    found += WATCH.take()


def test_a_number_in_an_exception_is_found(found: list[str]) -> None:
    error = ValueError(NUMBER)
    try:
        raise error
    except ValueError:
        logger.warning("failed", exc_info=sys.exc_info())
    found += WATCH.take()


def test_a_line_that_no_handler_shows_is_seen(
    found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logger, "propagate", False)
    logger.info(NUMBER)
    found += WATCH.take()
