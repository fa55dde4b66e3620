"""The search for links: a part of what they are called, whatever its case, and nothing else."""

from uuid import UUID, uuid4

import pytest

from projections.models.links import LinkFilter
from tests.installation import Process
from tests.projections.link_steps import LinkSteps, bought
from tests.projections.looking import link_page

pytestmark = pytest.mark.each_database

NAMES = {
    "van": "Van 7",
    "percent": "100% sure",
    "underscore": "snake_case",
    "backslash": "back\\slash",
    "slash": "and/or",
    "street": "Große Straße",
    "turkish": "İstanbul",
    "greek": "ΟΔΥΣΣΕΥΣ",
    "quote": 'O\'Hara "Bob"',
    "accent": "Cafe\u0301",
    "nameless": None,
}
FOUND: dict[str, set[str]] = {
    "Van 7": {"van"},
    "vAN": {"van"},
    "n 7": {"van"},
    "van  7": set(),
    "%": {"percent"},
    "0% S": {"percent"},
    "1%e": set(),
    "_": {"underscore"},
    "snake?case": set(),
    "snakescase": set(),
    "\\": {"backslash"},
    "\\%": set(),
    "/": {"slash"},
    "//": set(),
    "GROSSE STRASSE": {"street"},
    "straße": {"street"},
    "STRAẞE": {"street"},
    "İSTANBUL": {"turkish"},
    "café": {"accent"},
    "i̇stanbul": {"turkish"},
    "stanbul": {"turkish"},
    "οδυσσευς": {"greek"},
    "ΟΔΥΣΣΕΎΣ": set(),
    "o'hara": {"quote"},
    '"BOB"': {"quote"},
    "';--": set(),
    "*": set(),
    "[a-z]": set(),
    "PLAIN": set(NAMES),
    "": set(NAMES),
    " 7\n": set(),
}


@pytest.fixture
def links(process: Process) -> dict[str, LinkSteps]:
    """One link for each name, all of one organization and of one plan."""
    organization_id = process.organization()
    return {
        key: LinkSteps(process, organization_id, name, bought("Plain")).activate()
        for key, name in NAMES.items()
    }


def find(process: Process, organization_id: UUID, wanted: LinkFilter) -> set[UUID]:
    found, total = link_page(process, organization_id, wanted)
    assert total == len(found)
    return {each.id for each in found}


def keys(process: Process, links: dict[str, LinkSteps], wanted: LinkFilter) -> set[str]:
    found = find(process, links["van"].organization_id, wanted)
    return {key for key, life in links.items() if life.id in found}


def test_a_part_of_a_name_finds_its_link_and_no_other(
    process: Process, links: dict[str, LinkSteps]
) -> None:
    assert {text: keys(process, links, LinkFilter(search=text)) for text in FOUND} == FOUND


def test_only_a_plan_that_is_on_the_link_now_finds_it(process: Process) -> None:
    organization_id = process.organization()
    life = LinkSteps(process, organization_id, None, bought("Grüezi Schweiz")).activate()
    other = LinkSteps(process, organization_id, None, bought("Europe")).activate()

    def found(search: str) -> set[UUID]:
        return find(process, organization_id, LinkFilter(search=search))

    assert found("GRÜEZI") == {life.id}
    first = life.link.current_activations[0].id
    change = life.change([first], [bought("Maß für Maß")])
    assert found("mass") == set()
    change.do().do()
    assert found("MASS FÜR") == {life.id}
    assert found("grüezi") == set()
    assert found("europe") == {other.id}


def test_more_links_than_a_page_holds_may_match_elsewhere(process: Process) -> None:
    organization_id = process.organization()
    life = LinkSteps(process, organization_id).activate()
    many = [life.id, *(uuid4() for _ in range(20_000))]
    assert find(process, organization_id, LinkFilter(search="nothing", also=many)) == {life.id}
