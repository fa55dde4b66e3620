"""`python -m app …`: the command line."""

import gc
import sys

from app.cli.root import main

if __name__ == "__main__":
    status = main()
    gc.freeze()  # Or Python looks for garbage once more when it ends, for a quarter of a second.
    sys.exit(status)
