"""`python -m app …`: the command line."""

import sys

from app.cli.root import main

if __name__ == "__main__":
    sys.exit(main())
