"""Complete rewrites of a log are found, by the log itself or by a checkpoint that somebody kept."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from app.security.checkpoint_keys import CheckpointKeys
from domain.cause import utc_now
from domain.log.log import Stored
from projections.audit.auditor import check_log
from projections.audit.checkpoint import Checkpoint, verifier_key
from projections.audit.export import Export
from projections.audit.report import Failure
from projections.audit.tree import CompactRange, leaf_hash
from projections.audit.witnesses import Claim, Claims
from tests.docs.verifier import verify
from tests.projections.crimes.facts import FACTS, Fact
from tests.projections.crimes.rewrites import REWRITES, UNSEEN, Rewrite
from tests.projections.forgery import Paper
from tests.projections.link_forgery import LinkForger
from tests.projections.rewriting import Rewriting, write_everything


class Judges:
    """A log that was honest, and two who judge what somebody has made of it."""

    def __init__(self, folder: Path) -> None:
        write_everything(forger := LinkForger())
        self.honest, self.file = forger.log.rows, folder / "log.jsonl"
        tree = CompactRange()
        for row in self.honest:
            tree.append(leaf_hash(*row))
        self.kept = Checkpoint("kept", tree.size, tree.root(), row.position, utc_now())
        keys = CheckpointKeys(folder / "keys", utc_now)
        (folder / "note").write_text(keys.sign(self.kept).note, "utf-8")
        self.options = ["--checkpoint", str(folder / "note"), "--key"]
        self.options.append(verifier_key("kept", keys.newest().public_key))

    def rewritten(self, rewrite: Rewrite) -> list[Stored]:
        log = Rewriting.of(self.honest)
        rewrite(log)
        return log.settle().stored()

    def audit(self, rows: list[Stored], *, with_note: bool = False) -> list[Failure]:
        """Return what `audit verify` says of a log of these rows."""
        log = Paper()
        log.rows = rows
        witnesses = [Claims([Claim("note", self.kept)])] if with_note else []
        return check_log(log, witnesses=witnesses).failures

    def verify(self, rows: list[Stored], *, with_note: bool = False) -> list[str]:
        """Return what the verifier finds wrong in an export of these rows."""
        lines = Export.__new__(Export)
        lines._rows = lambda _: iter(rows)  # type: ignore[method-assign]  # noqa: SLF001  # The log may not hold them.
        lines.tree, lines.position, lines.events, lines._until = CompactRange(), 0, 0, 0  # noqa: SLF001  # As above.
        self.file.write_bytes(b"".join(lines.lines()))
        with redirect_stdout(told := StringIO()):
            status = verify.main([str(self.file), *(self.options if with_note else [])])
        failed = [each for each in told.getvalue().splitlines() if each.startswith("FAILED")]
        assert status == bool(failed)
        return failed


@pytest.fixture(scope="module")
def judges(tmp_path_factory: pytest.TempPathFactory) -> Judges:
    return Judges(tmp_path_factory.mktemp("rewritten"))


def test_what_nobody_has_rewritten_is_right_for_both(judges: Judges) -> None:
    for rows in (judges.honest, judges.rewritten(lambda _: None)):
        assert (judges.audit(rows), judges.verify(rows)) == ([], [])
    assert judges.audit(judges.honest, with_note=True) == []
    assert judges.verify(judges.honest, with_note=True) == []


def test_each_complete_rewrite_is_found(judges: Judges) -> None:
    for rewrite, reason in REWRITES.items():
        found = judges.audit(judges.rewritten(rewrite))
        assert any(reason in each.reason for each in found), (rewrite.__name__, found)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: " ".join(fact[:3]))
def test_a_fact_that_is_another_one_is_found_where_it_stands(judges: Judges, fact: Fact) -> None:
    log = Rewriting.of(judges.honest)
    position = fact.falsify(log)
    found = judges.audit(log.settle().stored())
    assert found
    assert found[0].position == position
    assert any(each.position == position and fact.reason in each.reason for each in found), found


WHOLE = {
    "wallet.charged": "amount_micros balance_micros sequence",
    "wallet.spending_limited": "limit_micros",
    "deposit.made": "amount_micros",
    "bulk_job.created": "item_price_micros total_count",
    "bulk_job.cancelled": "count",
    "link.requested": "price_micros",
    "plan_change.requested": "price_micros",
    "monthly_fee.due": "fee_micros",
    "number_lookup.answered": "amount_micros",
}


@pytest.mark.parametrize("topic", WHOLE)
def test_a_number_that_is_not_whole_makes_no_sense(judges: Judges, topic: str) -> None:
    at = next(n for n, row in enumerate(judges.honest) if row.topic == topic)
    for name in WHOLE[topic].split():
        rows = [*judges.honest]
        state = re.sub(rb'("%b": ?\d+)' % name.encode(), rb"\1.0", rows[at].state)
        rows[at] = rows[at]._replace(state=state)
        assert f"a {topic} that makes no sense" in "".join(judges.verify(rows)), name


@pytest.mark.parametrize("rewrite", UNSEEN, ids=lambda each: each.__name__)
def test_what_nobody_can_see_is_convicted_by_a_kept_checkpoint(
    judges: Judges, rewrite: Rewrite
) -> None:
    rows = judges.rewritten(rewrite)
    assert (judges.audit(rows), judges.verify(rows)) == ([], [])
    assert judges.audit(rows, with_note=True) != []
    assert judges.verify(rows, with_note=True) != []
