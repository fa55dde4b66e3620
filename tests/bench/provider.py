"""Scripted providers of lookups in a process of their own, which answer after a while.

`python -m tests.bench.provider SECONDS` prints the settings that lead to them, and ends with its
standard input.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.bench.numbers import real_numbers
from tests.support.providers.telnyx import ScriptedTelnyx, carrier
from tests.support.providers.twilio import ScriptedTwilio, line


@contextmanager
def providers(delay_s: float) -> Iterator[Mapping[str, str]]:
    """Run Twilio and Telnyx; yields their settings."""
    command = [sys.executable, "-m", __name__, str(delay_s)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as running:
        assert running.stdout is not None
        yield json.loads(running.stdout.readline())
        assert running.stdin is not None
        running.stdin.close()


def main(delay_s: float) -> None:
    with ScriptedTwilio() as twilio, ScriptedTelnyx() as telnyx:
        for number in real_numbers():
            twilio.know(number, line_type_intelligence=line("mobile", "Bench Mobile"))
            telnyx.know(number, carrier=carrier("mobile", "Bench Mobile"))
        twilio.delay_s = telnyx.delay_s = delay_s
        print(json.dumps({**twilio.settings, **telnyx.settings}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(float(sys.argv[1]))
