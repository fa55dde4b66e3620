"""Reads by Flask's own client: the whole edge, but no socket."""

from flask import Flask

from app.bootstrap.container import Container
from app.http.application import create_app
from domain.accounts.organization import SCOPES
from tests.bench.partners import Partner


class Reader:
    """Reads with a token; any answer but 200 ends the measurement."""

    def __init__(self, app: Flask, token: str = "") -> None:
        self._client = app.test_client()
        self._headers = {"Authorization": f"Bearer {token}"}

    def read(self, path: str) -> bytes:
        reply = self._client.get(path, headers=self._headers)
        assert reply.status_code == 200, reply.data
        body: bytes = reply.data
        return body


def reader_of(container: Container, partner: Partner) -> Reader:
    """Return what reads from an installation as a partner does."""
    container.keys.ensure()
    token = container.issuer.issue(partner.client_id, partner.organization, SCOPES)
    return Reader(create_app(container), token)
