"""What is filled by COPY is what the service would have made itself of such a log."""

from uuid import UUID

import psycopg
import pytest

from projections.engine.verify import differences
from tests.bench import grown
from tests.bench.filling import fill
from tests.servers.databases import Databases

COPIES = 3


@pytest.mark.soak
def test_read_models_of_the_copies_are_what_their_log_says(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grown, "EVENTS_EACH", 80)
    monkeypatch.setattr(grown, "LINKS_EACH", 3)
    url = databases.new()
    fill(url, grown.make(url), COPIES)
    with grown.playing(url) as crew:
        parts = crew.web
        # Copies have names sealed for another link, and bodies of messages with other ids.
        models = [it for it in parts.models if it.name not in {"links", "webhook_messages"}]
        found = [differences(parts.source, it) for it in models]
        assert not any(found), found
        with psycopg.connect(url) as server:
            rows = server.execute(
                "SELECT r.link_id, r.organization_id, r.msisdn FROM network_readings AS r"
                " JOIN links AS l ON l.id = r.link_id"
            ).fetchall()
        assert len(rows) == (1 + COPIES) * 3
        for link, organization, number in rows:
            assert parts.readings.with_msisdn(organization, number[-9:], 2) == [UUID(str(link))]
