"""The timeline of a link: every event about it, with what operators need and no activation code."""

import json
from base64 import b64encode
from uuid import UUID

from tests.installation import Process
from tests.projections.link_steps import CODE, LPA, LinkSteps
from tests.projections.looking import timeline


def test_an_activation_code_is_told_of_but_never_shown(
    process: Process, organization_id: UUID
) -> None:
    stored = LinkSteps(process, organization_id).activate(lpa=None).store_lpa()
    assert timeline(process, stored.id)[-1].what == "link.lpa_stored"
    whole = LinkSteps(process, organization_id).activate()
    facts = [each.facts for life in (stored, whole) for each in timeline(process, life.id)]
    text = json.dumps(facts).replace("2026-03-01T", "")
    assert "endpoint_id" in text
    for part in ("lpa", LPA.month, b64encode(CODE).decode(), CODE.decode()):
        assert part not in text
