#!/bin/sh
# Makes what compose.yaml reads, once: new passwords in secrets/, and settings.env.
set -eu
cd "$(dirname "$0")/.."
if [ -e secrets ]; then
  echo "secrets/ is there: the data of the volumes has its passwords" >&2
  exit 1
fi
password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
umask 077
draft=$(mktemp -d secrets.XXXXXX)
owner=$(password) service=$(password) broker=$(password)
password >"$draft/postgres_password"
echo "postgresql://carrier_owner:$owner@postgres/carrier" >"$draft/owner_database_url"
echo "postgresql://carrier:$service@postgres/carrier" >"$draft/database_url"
echo "amqp://carrier:$broker@rabbitmq/" >"$draft/broker_url"
printf 'default_user = carrier\ndefault_pass = %s\n' "$broker" >"$draft/rabbitmq.conf"
cat >"$draft/roles.sql" <<SQL
CREATE ROLE carrier_owner LOGIN PASSWORD '$owner';
CREATE ROLE carrier LOGIN PASSWORD '$service';
GRANT carrier TO carrier_owner;
GRANT pg_read_all_stats TO carrier;
CREATE DATABASE carrier OWNER carrier_owner ENCODING 'UTF8' TEMPLATE template0;
SQL
# Users of containers read them, each mounted alone; on this machine nobody else gets past secrets/.
chmod 444 "$draft"/*
mkdir -m 755 "$draft/settings"
[ -e settings.env ] || cat >settings.env <<SETTINGS
# NAME=value; docker compose run --rm web settings lists all.
PUBLIC_URL=http://localhost:8080
SETTINGS
mv "$draft" secrets
