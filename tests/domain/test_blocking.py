"""Threads that must not wait: whatever would wait raises, and other threads are not affected."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from domain.accounts.wallet import Wallet, wallet_id
from domain.blocking import WouldBlock, forbid_blocking, may_block
from tests.domain.build import ORGANIZATION, lookup, open_wallet
from tests.domain.writers import Writer, everything


def test_only_the_thread_in_the_block_must_not_wait() -> None:
    with ThreadPoolExecutor(1) as pool:
        with forbid_blocking():
            pool.submit(may_block).result()
            with pytest.raises(WouldBlock):
                may_block()
        may_block()


def test_a_block_that_fails_ends_too() -> None:
    with pytest.raises(WouldBlock), forbid_blocking():
        may_block()
    may_block()


def test_the_log_is_neither_read_nor_written(writer: Writer) -> None:
    open_wallet(writer.log, writer.committer, "1.00", ORGANIZATION)
    before = everything(writer.log)
    with forbid_blocking():
        with pytest.raises(WouldBlock):
            writer.log.find(Wallet, wallet_id(ORGANIZATION))
        with pytest.raises(WouldBlock):
            writer.log.append(lookup())
    assert everything(writer.log) == before
