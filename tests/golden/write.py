"""Write the golden files that are missing: `python -m tests.golden.write`.

A file that exists is never changed. One that differs from its example is named, and the exit
status is 1: stored bytes are final, so a new shape needs a new `class_version`.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.golden.files import canonical_files


def write_missing(files: Mapping[Path, bytes]) -> list[Path]:
    """Write what is missing; return the files that exist with other bytes."""
    differing = []
    for path, content in files.items():
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        elif path.read_bytes() != content:
            differing.append(path)
    return differing


def main() -> int:
    differing = write_missing(canonical_files())
    for path in differing:
        sys.stderr.write(f"{path.name} differs from its example and stays as it is\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
