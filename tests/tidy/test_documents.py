"""What the documents point at is there."""

import re

import pytest

from tests.tidy.source import PACKAGES, ROOT

ROOMS = "|".join((*PACKAGES, "tests"))
NAMED = re.compile(rf"`((?:{ROOMS})/[\w./-]*|[A-Z]+\.md|[\w.-]+\.(?:cfg|toml|in|lock))`", re.ASCII)
DOCUMENTS = sorted(path.name for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_a_document_names_exists(document: str) -> None:
    named = set(NAMED.findall((ROOT / document).read_text("utf-8")))
    assert sorted(path for path in named if not (ROOT / path).exists()) == []
