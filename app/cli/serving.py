"""`serve` and `finance`: what needs the web framework, which other commands spare."""

import json
from dataclasses import replace
from urllib.parse import urlsplit

import click
from sqlalchemy.exc import SQLAlchemyError

from app.cli.import_files import read_plan_file
from app.cli.operation import Subject
from app.cli.output import Said, show, watched
from app.cli.session import Session
from app.http.edge.request import current_request_id
from app.processes.demo import PLANS, Demo, prepare_demo
from app.processes.doctor import announce
from app.processes.finance import serve_finance
from app.processes.migrate import migrate
from app.processes.serve import serve
from app.settings import Settings
from app.watch import tracing
from app.watch.logging import configure_logging
from app.watch.trouble import NOT_MIGRATED, trouble_of
from domain.catalogue.commands import PlanEntry

PORT = 8090
PORT_MAX = 65_535

subject = Subject()


@subject.command("finance", right=None, on="anything")
@click.option(
    "--port",
    type=click.IntRange(0, PORT_MAX),
    default=PORT,
    show_default=True,
    help="The port on 127.0.0.1; 0 for any.",
)
def show_finance(session: Session, port: int) -> None:
    """Show wallets and sums in the browser, read-only.

    Prints an address that opens the pages once, in one browser, and serves on 127.0.0.1 until
    Ctrl-C. From another machine: ssh -L 8090:127.0.0.1:8090 HOST, then open the address there.
    It reads through FINANCE_DATABASE_URL, or DATABASE_URL in a session that can only read.
    """
    container = session.container
    configure_logging(container.settings.log_format)
    if not container.settings.finance_database_url and not container.persistence.exists():
        raise click.ClickException(NOT_MIGRATED)

    def introduce(url: str) -> None:
        text = f"Open this address; it opens once. Ctrl-C ends the pages.\n\n    {url}\n"
        show(Said({"url": url, "port": urlsplit(url).port}, [text]), as_json=session.as_json)

    try:
        serve_finance(container, port, introduce)
    except SQLAlchemyError as error:
        if not container.settings.finance_database_url:
            raise
        raise click.ClickException(f"FINANCE_DATABASE_URL: {trouble_of(error, 'it')}") from error


@subject.command("serve", right=None, on="anything")
@click.option("--demo", is_flag=True, help="Make a demo organization and print its credentials.")
def serve_all(session: Session, *, demo: bool) -> None:
    """Serve HTTP and do all the work in this one process.

    Migrates first. With --demo it serves a sandbox: at the first start it creates an organization,
    a wallet with 100.00, a client and the sample plans. The client's credentials are kept in a file
    beside the database and printed at each start; a new secret is made only if that file is gone.
    """
    if demo:
        session.load_settings = lambda: replace(Settings.load(demo=True), sandbox=True)
    container = session.container
    container.role = "serve"
    configure_logging(container.settings.log_format, current_request_id)
    tracing.start(container.settings, "serve")
    announce(container)
    with watched("Building read models") as progress:
        migrate(container, progress)

    def introduce() -> None:
        made = prepare_demo(container, sample_plans(container.settings.currency))
        said = Said(made, [made, _first_steps(made, container.settings)])
        show(said, as_json=session.as_json)

    # After the port is taken, because a second `serve` must not change the secret.
    serve(container, introduce if demo else lambda: None)


def sample_plans(currency: str) -> list[PlanEntry]:
    """Return the sample plans; a demo in another currency has the same figures."""
    samples = json.loads(PLANS.read_bytes())["plans"]
    plans = [{**plan, "currency": currency} for plan in samples]
    return read_plan_file(json.dumps({"plans": plans}).encode(), currency)


def _first_steps(demo: Demo, settings: Settings) -> str:
    return f"""
Copy these lines into another terminal; README.md goes on from there.

# A token
TOKEN=$(curl -s -u {demo.client_id}:{demo.client_secret} \\
  -d grant_type=client_credentials {settings.auth}/auth/token \\
  | python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')

# The carrier of a phone number, and the wallet that paid for it
curl -s -X POST -H "Authorization: Bearer $TOKEN" \\
  "{settings.numbers}/number-lookup?phone_number=%2B447400123456"; echo
curl -s -H "Authorization: Bearer $TOKEN" {settings.base}/v1/wallet; echo

Every operation, field and error: {settings.public}/docs
"""
