"""Threads that must not wait: whatever would wait raises, and other threads are not affected."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from domain.accounts.wallet import Wallet, wallet_id
from domain.at_once import WouldWait, at_once, may_wait
from tests.domain.build import ORGANIZATION, lookup, open_wallet
from tests.domain.writers import Writer, everything


def test_only_the_thread_in_the_block_must_not_wait() -> None:
    with ThreadPoolExecutor(1) as pool:
        with at_once():
            pool.submit(may_wait).result()
            with pytest.raises(WouldWait):
                may_wait()
        may_wait()


def test_a_block_that_fails_ends_too() -> None:
    with pytest.raises(WouldWait), at_once():
        may_wait()
    may_wait()


def test_the_log_is_neither_read_nor_written(writer: Writer) -> None:
    open_wallet(writer.log, writer.committer, "1.00", ORGANIZATION)
    before = everything(writer.log)
    with at_once():
        with pytest.raises(WouldWait):
            writer.log.find(Wallet, wallet_id(ORGANIZATION))
        with pytest.raises(WouldWait):
            writer.log.append(lookup())
    assert everything(writer.log) == before
