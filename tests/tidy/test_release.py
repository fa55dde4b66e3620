"""A release is made of what the change logs name, and never of what broke."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import release

FILES = {
    "CHANGELOG.md": "# Log\n\n## 1.0.0\n",
    "docs/partners/changelog.md": "# API\n\n## 1.0.0\n",
    "docs/deployment.md": "## Upgrade and roll back\n\n1. Back up.\n\n### Roll back\n\nNever.\n",
    "app/http/edge/openapi.py": 'FACTS = {"version": "1.0.0"}\n',
    "tests/golden/events/link.ended.1.json": "{}\n",
}
BEFORE = {"GET /v1/links", "name"}
AFTER = {*BEFORE, "GET /v1/plans", "LINK_BUSY", "notices"}
NOTES = "## Unreleased\n\n- `GET /v1/plans` with `notices`, 409 `LINK_BUSY`.\n\n## 1.0.0\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of which 1.0.0 is the last release; the document has got three words since."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "Release 1.0.0"]):
        command = ["git", *arguments]
        subprocess.run(command, cwd=tmp_path, check=True)
    for name in ("CHANGELOG.md", "docs/partners/changelog.md"):
        (tmp_path / name).write_text(NOTES)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "FACTS", {"version": "1.0.0"})
    monkeypatch.setattr(release, "_pair", lambda _: (BEFORE, AFTER))
    return tmp_path


def test_it_writes_the_version_and_prints_notes_and_the_order(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release.main("1.1.0")
    told = capsys.readouterr().out
    assert told.startswith("## 1.1.0 (20")
    assert "LINK_BUSY" in told
    assert told.endswith("1. Back up.\n\n")
    assert '"version": "1.1.0"' in (root / "app/http/edge/openapi.py").read_text()
    for name in ("CHANGELOG.md", "docs/partners/changelog.md"):
        assert "Unreleased" not in (root / name).read_text()


def test_words_are_operations_members_values_and_codes() -> None:
    schema = {"properties": {"status": {"enum": ["active"]}}}
    operation = {"parameters": [{"in": "query", "name": "page"}], "x-error-codes": ["NOT_FOUND"]}
    paths = {"/v1/links": {"get": {**operation, "schema": schema}, "parameters": []}}
    assert release.words({"paths": paths}) == {
        *("GET /v1/links", "status", "active", "page", "NOT_FOUND"),
    }


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_text(text)


BROKEN: list[tuple[Callable[[Path], object], str]] = [
    (write("tests/golden/events/link.ended.1.json", "[]\n"), "link.ended.1.json: a stored form"),
    (write("CHANGELOG.md", NOTES.replace("plans", "plan")), "/v1/plans: CHANGELOG.md does not"),
    (write("docs/partners/changelog.md", NOTES.replace("LINK_BUSY", "BUSY")), "LINK_BUSY: docs/"),
    (write("docs/partners/changelog.md", NOTES.replace("`notices`", "it")), "notices: docs/partn"),
]


@pytest.mark.parametrize(("break_it", "why"), BROKEN)
def test_it_refuses_what_broke_and_what_nobody_named(
    root: Path, break_it: Callable[[Path], object], why: str
) -> None:
    break_it(root)
    with pytest.raises(SystemExit, match=why):
        release.main("1.1.0")
    assert '"version": "1.0.0"' in (root / "app/http/edge/openapi.py").read_text()


@pytest.mark.usefixtures("root")
def test_it_refuses_a_document_that_has_lost_a_word_and_a_version_that_is_none_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for version in ("", "1.0.0", "1.1", "0.9.9"):
        with pytest.raises(SystemExit, match="no version after 1"):
            release.main(version)
    monkeypatch.setattr(release, "_pair", lambda _: ({*BEFORE, "DELETE /v1/links"}, AFTER))
    with pytest.raises(SystemExit, match="DELETE /v1/links: clients use it"):
        release.main("1.1.0")
    monkeypatch.setattr(release, "FACTS", {"version": "1.0.9"})
    with pytest.raises(SystemExit, match="needed"):
        release.main("1.1.0")
