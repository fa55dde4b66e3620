"""`serve`: everything in one process."""

import json
from dataclasses import asdict, replace

import click

from app.bootstrap.container import Container
from app.cli.import_files import read_plan_file
from app.cli.installation import installation
from app.cli.output import as_json_option, show, watched
from app.http.edge.request import current_request_id
from app.processes.demo import PLANS, Demo, prepare_demo
from app.processes.doctor import announce
from app.processes.migrate import migrate
from app.processes.serve import serve
from app.settings import Settings
from app.watch.logging import configure_logging
from domain.catalogue.matching import PlanEntry


@click.command(name="serve")
@click.option("--demo", is_flag=True, help="Make a demo organization and print its credentials.")
@as_json_option
def command(*, demo: bool, as_json: bool) -> None:
    """Serve HTTP and do all the work in this one process.

    Migrates first. With --demo it serves a sandbox: at the first start it creates an organization,
    a wallet with 100.00, a client and the sample plans. The client's credentials are kept in a file
    beside the database and printed at each start; a new secret is made only if that file is gone.
    """
    settings = _demo_settings if demo else Settings.load
    with installation(migrated=False, settings=settings) as container:
        container.role = "serve"
        configure_logging(container.settings.log_format, current_request_id)
        announce(container)
        with watched("Building read models") as progress:
            migrate(container, progress)
        # After the port is taken, because a second `serve` must not change the secret.
        serve(container, lambda: _introduce(container, as_json=as_json) if demo else None)


def _demo_settings() -> Settings:
    return replace(Settings.load(demo=True), sandbox=True)


def _introduce(container: Container, *, as_json: bool) -> None:
    demo = prepare_demo(container, sample_plans(container.settings.currency))
    show(asdict(demo), as_json=as_json)
    if not as_json:
        click.echo(_first_steps(demo, container.settings))


def sample_plans(currency: str) -> list[PlanEntry]:
    """Return the sample plans; a demo in another currency has the same figures."""
    samples = json.loads(PLANS.read_bytes())["plans"]
    plans = [{**plan, "currency": currency} for plan in samples]
    return read_plan_file(json.dumps({"plans": plans}).encode(), currency)


def _first_steps(demo: Demo, settings: Settings) -> str:
    bearer = '-H "Authorization: Bearer $TOKEN"'
    bulk = f"{settings.numbers}/number-lookup/bulk"
    return f"""
Copy these lines into another terminal, in this folder.

# A token
TOKEN=$(curl -s -u {demo.client_id}:{demo.client_secret} \\
  -d grant_type=client_credentials {settings.auth}/auth/token \\
  | python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')

# The carrier of a phone number
curl -s -X POST {bearer} \\
  "{settings.numbers}/number-lookup?phone_number=%2B447400123456"; echo

# A job over 1000 numbers of 50 countries, and what it has come to
JOB=$(curl -s {bearer} -H 'Content-Type: application/json' \\
  -d @tests/data/numbers.json {bulk} \\
  | python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["job_id"])')
curl -s {bearer} {bulk}/$JOB | head -c 600; echo

# An eSIM with a plan that works in France; `lpa_profile` is what a QR code for a phone holds
PLAN=$(curl -s {bearer} "{settings.base}/v1/plans?country=FR" \\
  | python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["data"][0]["id"])')
curl -s {bearer} -H 'Content-Type: application/json' \\
  -d '{{"plan_id": "'$PLAN'", "name": "Trip to Paris"}}' {settings.base}/v1/links; echo

# The wallet that paid for all of it, and its transactions
curl -s {bearer} {settings.base}/v1/wallet; echo
curl -s {bearer} "{settings.base}/v1/transactions?per_page=5"; echo

Every operation, field and error: {settings.public}/docs
"""
