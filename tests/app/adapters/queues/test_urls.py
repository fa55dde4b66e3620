"""What a BROKER_URL may say, and that no password of it gets out."""

import logging
import ssl
from typing import Any

import pytest
from dramatiq.errors import ConnectionClosed

from app.adapters.queues.rabbitmq import DurableBroker, parameters
from app.settings import WrongSetting
from tests.log_lines import said_by


def test_a_url_is_given_time_limits_and_what_it_says_itself_stands() -> None:
    read = parameters("amqp://host")
    assert (read.host, read.port, read.virtual_host, read.heartbeat) == ("host", 5672, "/", 15)
    assert (read.socket_timeout, read.blocked_connection_timeout) == (5, 5)
    read = parameters("amqp://u:p@host:1234/a%2Fb?heartbeat=7&socket_timeout=2")
    assert (read.port, read.virtual_host, read.heartbeat) == (1234, "a/b", 7)
    assert (read.socket_timeout, read.blocked_connection_timeout) == (2, 5)


def test_tls_checks_the_certificate_and_its_name() -> None:
    options = parameters("amqps://u:p@broker.example/vhost").ssl_options
    assert options is not None
    assert options.context.verify_mode is ssl.CERT_REQUIRED
    assert options.context.check_hostname


@pytest.mark.parametrize(
    "url",
    [
        "amqp://user:hush/hush@host/v",
        "amqp://user:hush@host:port/v",
        "amqp://user:hush@host/v?unknown=1",
        "amqp://user:hush@host/v?heartbeat=often",
        "amqp://user:hush@[host/v",
        "amqp://user:hush@host..example/v",
        "amqps://host/v?ssl_options={'password':'hush'",  # As cut at a comma of its own.
        "amqps://host/v?ssl_options=['hush']",
        "amqps://host/v?ssl_options={'ca_certs':'/nowhere/hush.pem'}",
        "amqp://host/v?client_properties=hush hush",
        "amqp://host/v?tcp_options={hush",
    ],
)
def test_a_wrong_url_is_refused_without_a_word_of_it(url: str) -> None:
    with pytest.raises(WrongSetting) as refused:
        DurableBroker([url], quorum=False)
    assert "hush" not in str(refused.value)
    assert "BROKER_URL" in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(
    "given", [(), {"delay": 1}, (ConnectionClosed("gone"),), ("of x", ConnectionClosed("gone"), 1)]
)
def test_a_lost_connection_is_said_once_whatever_the_library_says_with_it(
    given: Any, caplog: pytest.LogCaptureFixture
) -> None:
    broker = DurableBroker(["amqp://host"], quorum=False)
    lost = logging.makeLogRecord({"msg": "a connection error: %s", "args": given})
    other = logging.makeLogRecord({"msg": "anything else"})
    is_other = broker._is_other  # noqa: SLF001  # As the logger of a consumer calls it.
    assert [is_other(each) for each in (lost, lost, other)] == [False, False, True]
    (line,) = said_by(caplog, "projections.engine.complaint")
    assert line.startswith("the connection to RabbitMQ failed: Connection")
