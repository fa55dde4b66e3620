"""Personal data opens for its own subject only, and for nobody once its key is erased."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import text

from domain.accounts.operator_acts import Part
from domain.blocking import forbid_blocking
from domain.errors import ServiceUnavailable
from domain.personal import Sealed, open_text
from projections.stores import personal_keys
from projections.stores.personal_keys import CACHE_S, PACKED, PersonalKeys
from tests.installation import Installation, Process, sqlite_only, wait_until
from tests.support.erasing import erase_months

pytestmark = pytest.mark.each_database

ORGANIZATION = UUID("0d9c8f3e-58f5-4f0c-9c3e-2a4b8f1d7e60")
SUBJECT = UUID("3f1f7a5e-8c6d-4f0c-9c3e-2a4b8f1d7e60")
CLEAR = b"+14155550100"
SCHEDULING_S = 0.5  # What a busy machine may add to the time that a key is held.
MARCH, APRIL = "2026-03", "2026-04"


@pytest.fixture
def sealed(process: Process) -> Sealed:
    return process.vault.seal(ORGANIZATION, MARCH, SUBJECT, CLEAR)


def test_what_was_sealed_opens_in_every_process(
    installation: Installation, process: Process, sealed: Sealed
) -> None:
    for vault in (process.vault, installation.process().vault):
        assert vault.open(ORGANIZATION, SUBJECT, sealed) == CLEAR


@pytest.mark.any_database
def test_a_box_shows_nothing_of_what_is_in_it(process: Process, sealed: Sealed) -> None:
    again = process.vault.seal(ORGANIZATION, MARCH, SUBJECT, CLEAR)
    assert sealed.month == f"{MARCH}.0001"
    assert CLEAR not in sealed.box
    assert again.box != sealed.box


@pytest.mark.any_database
def test_a_box_opens_as_it_was_sealed_and_for_its_own_stream_only(
    process: Process, sealed: Sealed
) -> None:
    """A text that does not belong to its stream is absent, and stops nothing else."""
    other, vault = uuid4(), process.vault
    vault.seal(other, MARCH, SUBJECT, CLEAR)
    vault.seal(ORGANIZATION, APRIL, SUBJECT, CLEAR)
    changed = [bytearray(sealed.box) for _ in range(4)]
    for place, box in zip((0, 11, 12, -1), changed, strict=True):
        box[place] ^= 1
    for owner, subject, month, box in (
        (ORGANIZATION, uuid4(), sealed.month, sealed.box),
        (other, SUBJECT, sealed.month, sealed.box),
        (ORGANIZATION, SUBJECT, f"{APRIL}.0001", sealed.box),
        *((ORGANIZATION, SUBJECT, sealed.month, bytes(each)) for each in changed),
        *((ORGANIZATION, SUBJECT, sealed.month, sealed.box[:at]) for at in (0, 5, 12, 20)),
    ):
        with pytest.raises(ValueError, match=r"was not sealed for it|Nonce") as refused:
            vault.open(owner, subject, Sealed(month, box))
        assert CLEAR.decode() not in str(refused.value)
        assert open_text(vault, owner, subject, Sealed(month, box)) is None
    assert open_text(vault, ORGANIZATION, SUBJECT, sealed) == CLEAR.decode()


LONG = b'{"facts": [' + b'{"valid": true}, ' * 1_000 + b"]}"


def test_whatever_was_sealed_opens(process: Process) -> None:
    marked = [PACKED, PACKED + b"text", PACKED + LONG]
    for clear in (b"", b"x", LONG, *marked, bytes(range(256)) * 8):
        box = process.vault.seal(ORGANIZATION, MARCH, SUBJECT, clear)
        assert process.vault.open(ORGANIZATION, SUBJECT, box) == clear


@pytest.mark.any_database
def test_what_is_long_is_packed_and_what_an_earlier_release_sealed_still_opens(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = process.vault.seal(ORGANIZATION, MARCH, SUBJECT, LONG)
    assert len(packed.box) < len(LONG) / 8
    monkeypatch.setattr(personal_keys, "_pack", bytes)
    plain = process.vault.seal(ORGANIZATION, MARCH, SUBJECT, LONG)
    assert len(plain.box) > len(LONG)
    assert process.vault.open(ORGANIZATION, SUBJECT, plain) == LONG


def test_many_first_boxes_of_a_month_share_one_key(installation: Installation) -> None:
    vaults = [installation.process().vault for _ in range(3)]

    def seal(number: int) -> Sealed:
        return vaults[number % 3].seal(ORGANIZATION, MARCH, SUBJECT, CLEAR)

    with ThreadPoolExecutor(6) as pool:
        boxes = list(pool.map(seal, range(12)))
    for box in boxes:
        assert installation.process().vault.open(ORGANIZATION, SUBJECT, box) == CLEAR


def test_an_erased_month_opens_no_more_and_others_do(process: Process, sealed: Sealed) -> None:
    """Those of one organization, or of all."""
    vault, other = process.vault, uuid4()
    april = vault.seal(ORGANIZATION, APRIL, SUBJECT, CLEAR)
    theirs = vault.seal(other, MARCH, SUBJECT, CLEAR)
    assert erase_months(vault, APRIL, ORGANIZATION) == 1
    assert vault.open(ORGANIZATION, SUBJECT, sealed) is None
    assert vault.open(other, SUBJECT, theirs) == CLEAR
    assert [erase_months(vault, APRIL) for _ in range(2)] == [1, 0]
    assert vault.open(other, SUBJECT, theirs) is None
    assert vault.open(ORGANIZATION, SUBJECT, april) == CLEAR


@pytest.mark.any_database
def test_a_key_that_was_erased_seals_no_more_and_its_month_goes_on_with_another(
    installation: Installation, process: Process, sealed: Sealed
) -> None:
    erase_months(process.vault, APRIL)
    for vault in (process.vault, installation.process().vault):
        with pytest.raises(ValueError, match=MARCH):
            vault.seal(ORGANIZATION, sealed.month, SUBJECT, CLEAR, exactly=True)
        assert vault.open(ORGANIZATION, SUBJECT, sealed) is None
        again = vault.seal(ORGANIZATION, MARCH, SUBJECT, CLEAR)
        assert (again.month, vault.open(ORGANIZATION, SUBJECT, again)) == (f"{MARCH}.0002", CLEAR)


def test_an_erasure_elsewhere_is_seen_within_a_second(
    installation: Installation, process: Process, sealed: Sealed
) -> None:
    elsewhere = installation.process()
    assert process.vault.open(ORGANIZATION, SUBJECT, sealed) == CLEAR
    erase_months(elsewhere.vault, APRIL)
    wait_until(
        lambda: process.vault.open(ORGANIZATION, SUBJECT, sealed) is None,
        timeout_s=CACHE_S + SCHEDULING_S,
    )
    with pytest.raises(ValueError, match=MARCH):
        process.vault.seal(ORGANIZATION, sealed.month, SUBJECT, CLEAR, exactly=True)


@pytest.mark.any_database
def test_a_key_is_read_anew_before_it_ends_and_an_erased_one_goes_with_that(
    installation: Installation, process: Process, sealed: Sealed, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = list[Callable[[], object]]()
    assert process.vault.open(ORGANIZATION, SUBJECT, sealed) == CLEAR
    erase_months(installation.process().vault, APRIL)
    monkeypatch.setattr(personal_keys, "AHEAD_S", 60.0)
    monkeypatch.setattr(personal_keys, "CACHE_S", 60.0)
    with forbid_blocking(lambda _, read: due.append(read)):
        process.vault.open(ORGANIZATION, SUBJECT, sealed)
    for read in due:
        read()
    assert process.vault.open(ORGANIZATION, SUBJECT, sealed) is None


@sqlite_only("PostgreSQL keeps its files to itself: what was erased goes with VACUUM and the WAL")
def test_an_erased_key_is_in_no_file_any_more(installation: Installation, process: Process) -> None:
    for subject in range(50):
        process.vault.seal(uuid4(), MARCH, UUID(int=subject), CLEAR)
    with process.vault.database.reading() as connection:
        keys = connection.execute(text("SELECT key FROM personal_keys")).scalars().all()
    assert erase_months(process.vault, APRIL) == 50
    assert process.vault.database.wipe()
    stored = b"".join(each.read_bytes() for each in installation.directory.glob("service.db*"))
    assert [key for key in keys if key in stored] == []


def test_a_lost_key_store_is_no_erasure(process: Process, sealed: Sealed) -> None:
    with process.vault.database.writing() as connection:
        connection.execute(text("ALTER TABLE personal_keys RENAME TO elsewhere"))
    process.vault.__dict__["_cache"].clear()
    with pytest.raises(ServiceUnavailable) as refused:
        process.vault.open(ORGANIZATION, SUBJECT, sealed)
    assert refused.value.retryable
    with pytest.raises(ServiceUnavailable):
        process.vault.seal(ORGANIZATION, APRIL, SUBJECT, CLEAR)


STREAMS = [UUID(int=number * 0x1_0000_0001) for number in range(1, 9)]


def seal_all(process: Process) -> dict[UUID, Sealed]:
    return {each: process.vault.seal(ORGANIZATION, MARCH, each, CLEAR) for each in STREAMS}


def readable(process: Process, boxes: dict[UUID, Sealed]) -> list[UUID]:
    opened = {each: process.vault.open(ORGANIZATION, each, box) for each, box in boxes.items()}
    assert set(opened.values()) <= {CLEAR, None}
    return [each for each, clear in opened.items() if clear is not None]


def test_one_stream_is_forgotten_and_every_other_one_stays(
    installation: Installation, process: Process
) -> None:
    boxes, name = seal_all(process), f"{MARCH}.0001"
    for number, stream in enumerate(STREAMS[:3]):
        assert process.vault.erase(ORGANIZATION, [Part(name, [stream])]) == 1
        assert process.vault.erase(ORGANIZATION, [Part(name, [stream])]) == 0
        assert not process.vault.has(ORGANIZATION, name, stream)
        for each in (process, installation.process()):
            assert readable(each, boxes) == STREAMS[number + 1 :]
    assert process.vault.has(ORGANIZATION, name)
    late = process.vault.seal(ORGANIZATION, name, STREAMS[5], CLEAR, exactly=True)
    assert process.vault.open(ORGANIZATION, STREAMS[5], late) == CLEAR
    with pytest.raises(ValueError, match=MARCH):
        process.vault.seal(ORGANIZATION, name, STREAMS[0], CLEAR, exactly=True)
    assert process.vault.seal(ORGANIZATION, MARCH, STREAMS[0], CLEAR).month == f"{MARCH}.0002"
    assert process.vault.erase(ORGANIZATION, [Part(name)]) == 1
    assert readable(process, boxes) == []
    assert process.vault.erase(ORGANIZATION, [Part(name)]) == 0


@pytest.mark.any_database
def test_what_is_sealed_with_a_key_in_memory_while_it_is_opened_out_stays_readable(
    installation: Installation, process: Process
) -> None:
    boxes = seal_all(process)
    elsewhere, name = installation.process(), f"{MARCH}.0001"
    assert elsewhere.vault.erase(ORGANIZATION, [Part(name, STREAMS[:1])]) == 1
    new = UUID(int=99)
    sealed = process.vault.seal(ORGANIZATION, MARCH, new, CLEAR)  # It holds the key for a second.
    assert sealed.month == name
    assert elsewhere.vault.open(ORGANIZATION, new, sealed) == CLEAR
    assert readable(elsewhere, boxes) == STREAMS[1:]


def test_two_who_erase_at_once_leave_what_neither_names(
    installation: Installation, process: Process
) -> None:
    boxes, name = seal_all(process), f"{MARCH}.0001"
    vaults = [installation.process().vault for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        erased = pool.map(
            lambda at: vaults[at].erase(ORGANIZATION, [Part(name, STREAMS[at : at + 4])]), range(4)
        )
    assert sum(erased) == 7
    assert readable(installation.process(), boxes) == STREAMS[7:]


def test_what_an_earlier_release_sealed_opens_until_its_month_is_erased(process: Process) -> None:
    key = bytes(range(32))
    box = bytes(12) + AESGCM(key).encrypt(bytes(12), CLEAR, SUBJECT.bytes)
    with process.vault.database.writing() as connection:
        row = {"organization": ORGANIZATION.hex, "key": key}
        if connection.dialect.name == "postgresql":
            row["organization"] = str(ORGANIZATION)
        connection.execute(
            text("INSERT INTO personal_keys VALUES (:organization, '2026-03', :key)"), row
        )
    old = Sealed(MARCH, box)
    assert process.vault.open(ORGANIZATION, SUBJECT, old) == CLEAR
    new = process.vault.seal(ORGANIZATION, MARCH, SUBJECT, CLEAR)
    assert new.month == MARCH  # Processes of that release may still have to open it.
    assert AESGCM(key).decrypt(new.box[:12], new.box[12:], SUBJECT.bytes) == CLEAR
    assert process.vault.erase(ORGANIZATION, [Part(MARCH)]) == 1
    assert [process.vault.open(ORGANIZATION, SUBJECT, each) for each in (old, new)] == [None, None]
    new = process.vault.seal(ORGANIZATION, MARCH, SUBJECT, CLEAR)
    assert new.month == f"{MARCH}.0001"
    assert process.vault.open(ORGANIZATION, SUBJECT, new) == CLEAR


def test_whoever_seals_while_streams_are_forgotten_loses_nothing(
    installation: Installation, process: Process
) -> None:
    seal_all(process)
    sealers = [installation.process().vault for _ in range(2)]
    sealed: list[tuple[UUID, Sealed]] = []

    def seal(vault: PersonalKeys) -> None:
        for _ in range(150):
            stream = uuid4()
            sealed.append((stream, vault.seal(ORGANIZATION, MARCH, stream, CLEAR)))

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(seal, each) for each in sealers]
        wait_until(lambda: len(sealed) > 10)
        gone = [sealed[at] for at in range(0, 10, 2)]
        for stream, box in gone:
            assert process.vault.erase(ORGANIZATION, [Part(box.month, [stream])]) == 1
        for each in running:
            each.result()
    fresh = installation.process().vault
    left = [each for each in sealed if fresh.open(ORGANIZATION, *each) is None]
    assert sorted(left, key=str) == sorted(gone, key=str)
