"""The tables of the plain service, and its customers: those of an installation of ours."""

from collections.abc import Iterable
from uuid import UUID

import psycopg

from domain.money import parse_amount
from tests.bench.installation import DEPOSIT

TABLES = """
CREATE TABLE organizations (
    id uuid PRIMARY KEY,
    status text NOT NULL,
    price_micros bigint,
    lookup_enabled boolean NOT NULL
);
CREATE TABLE api_clients (
    client_id text PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    revoked boolean NOT NULL
);
CREATE TABLE wallets (
    organization_id uuid PRIMARY KEY REFERENCES organizations,
    balance_micros bigint NOT NULL CHECK (balance_micros >= 0),
    currency text NOT NULL
);
CREATE TABLE transactions (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    kind text NOT NULL,
    amount_micros bigint NOT NULL,
    balance_micros bigint NOT NULL,
    reference_type text NOT NULL,
    reference_id uuid NOT NULL,
    description text NOT NULL,
    request_id text NOT NULL,
    created_at timestamptz NOT NULL,
    key text,
    answer bytea
);
CREATE INDEX ON transactions (organization_id, created_at);
CREATE UNIQUE INDEX transactions_key ON transactions (organization_id, key) WHERE key IS NOT NULL;
"""


def make(url: str, customers: Iterable[tuple[UUID, str]]) -> None:
    """Make the tables, with an organization and a full wallet for each client."""
    with psycopg.connect(url) as connection:
        connection.execute(TABLES)
        for organization, client_id in customers:
            add(connection, organization, client_id)


def add(connection: psycopg.Connection, organization: UUID, client_id: str) -> None:
    """Add a customer who may look numbers up."""
    connection.execute(
        "INSERT INTO organizations VALUES (%s, 'active', NULL, true)", [organization]
    )
    connection.execute("INSERT INTO api_clients VALUES (%s, %s, false)", [client_id, organization])
    row = [organization, parse_amount(DEPOSIT)]
    connection.execute("INSERT INTO wallets VALUES (%s, %s, 'USD')", row)
