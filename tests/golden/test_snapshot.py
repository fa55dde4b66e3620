"""The wallet snapshot keeps its shape as long as it keeps its topic."""

import msgspec

from domain.wallet_snapshot import restore, take
from tests.golden.examples import SNAPSHOT_STATE, snapshot_of
from tests.golden.files import SNAPSHOT_FILE


def test_a_snapshot_is_written_as_exactly_these_bytes() -> None:
    wallet = restore(snapshot_of(msgspec.json.encode(SNAPSHOT_STATE)))
    assert wallet is not None
    assert take(wallet) == snapshot_of(SNAPSHOT_FILE.read_bytes())


def test_a_snapshot_reads_as_the_wallet_that_it_was() -> None:
    wallet = restore(snapshot_of(SNAPSHOT_FILE.read_bytes()))
    assert wallet is not None
    row = snapshot_of(b"")
    assert (wallet.id, wallet.version) == (row.originator_id, row.originator_version)
    for name, value in msgspec.structs.asdict(SNAPSHOT_STATE).items():
        assert getattr(wallet, name) == value
    assert not wallet.pending_events
