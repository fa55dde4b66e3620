"""What one logger has said. Threads that an earlier test has left may say something as well."""

import logging

import pytest


def records_of(caplog: pytest.LogCaptureFixture, name: str) -> list[logging.LogRecord]:
    return [each for each in caplog.records if each.name == name]


def said_by(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    return [each.getMessage() for each in records_of(caplog, name)]
