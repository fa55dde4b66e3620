"""Makes the pictures of the README from the product and a demo: `python -m tests.docs.pictures`."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from tests.app.cli.shell import ROOT, Shell
from tests.app.http.test_samples import COMMANDS, walk
from tests.docs import link_states
from tests.house.running import Served
from tests.servers.browser import Browser

PICTURE = ROOT / "docs/finance.png"


def main() -> None:
    """Draw the way of a link; go the walk of the README, and look at it as finance does."""
    link_states.PAGE.write_text(link_states.page(), "utf-8")
    with tempfile.TemporaryDirectory() as home:
        serving, browser = Served(Shell(Path(home))), Browser()
        secrets = {each.upper(): str(serving.demo[each]) for each in ("client_id", "client_secret")}
        command = [*COMMANDS["bash"], "-c", walk(serving.url)]
        subprocess.run(command, cwd=ROOT, env={**os.environ, **secrets}, check=True)
        with serving.shell.start("finance", "--port", 0, "--json") as finance:
            assert finance.stdout is not None
            with browser.page(1280, 700) as page:
                page.open(json.loads(finance.stdout.readline())["url"])
                PICTURE.write_bytes(page.picture())
            finance.terminate()
        browser.close()
        serving.stop()


if __name__ == "__main__":
    main()
