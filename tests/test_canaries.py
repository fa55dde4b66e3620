"""The check of all tests' log lines really finds what must not be logged."""

import logging
from typing import Any

import pytest

from tests.canaries import WATCH, canaries_in, no_canary_is_logged, watched_logging

__all__ = ["no_canary_is_logged", "watched_logging"]

NUMBER = "+971508245977"
logger = logging.getLogger("app.somewhere")


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


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_number_is_found_wherever_a_line_has_it(
    monkeypatch: pytest.MonkeyPatch, *, is_shown: bool
) -> None:
    monkeypatch.setattr(logger, "propagate", is_shown)
    lines: list[tuple[str, dict[str, Any]]] = [
        (f"asked for {NUMBER}", {}),
        ("asked", {"extra": {"about": {"number": NUMBER}}}),
        ("failed", {"exc_info": ValueError(NUMBER)}),
    ]
    for text, more in lines:
        logger.warning(text, **more)
        assert WATCH.take(), text
