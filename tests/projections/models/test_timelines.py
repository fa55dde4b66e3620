"""The timeline of a link: every event about it, with what operators need and no activation code."""

import json
from base64 import b64encode
from uuid import UUID

import pytest

from projections.models.timelines import TimelineEntry
from tests.installation import Process
from tests.projections.link_steps import CODE, LPA, LinkSteps


def timeline(process: Process, link_id: UUID) -> list[TimelineEntry]:
    process.projector.catch_up()
    with process.views.reading() as connection:
        return process.timelines.of_link(connection, link_id)


def topics(process: Process, link_id: UUID) -> list[str]:
    return [each.what for each in timeline(process, link_id)]


@pytest.mark.any_database
def test_an_activation_code_is_told_of_but_never_shown(
    process: Process, organization_id: UUID
) -> None:
    stored = LinkSteps(process, organization_id).activate(lpa=None).store_lpa()
    assert topics(process, stored.id)[-1] == "link.lpa_stored"
    whole = LinkSteps(process, organization_id).activate()
    facts = [each.facts for life in (stored, whole) for each in timeline(process, life.id)]
    text = json.dumps(facts).replace("2026-03-01T", "")
    assert "endpoint_id" in text
    for part in ("lpa", LPA.month, b64encode(CODE).decode(), CODE.decode()):
        assert part not in text
