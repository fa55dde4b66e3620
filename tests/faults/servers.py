"""PostgreSQL and RabbitMQ of a system under test, and what can befall them.

As root PostgreSQL lies on a small file system of its own, in memory, so that its disk can be full.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pika
import psycopg

from tests.servers.fixtures import started
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitServer
from tests.servers.running import newest
from workers.routes import QUEUES

DATABASE = "faults"
DISK_BYTES = 1 << 30
CHUNK = bytes(1 << 20)
LEFT_BYTES = 256 << 10  # So little is left to the database when its disk is full.


class Servers:
    """Two private servers, and the file system that PostgreSQL has for itself."""

    def __init__(self, disk: Path | None) -> None:
        self.disk = disk
        with _temporary_files_in(disk):
            self.postgres = started(PostgresServer, "PostgreSQL", "nothing else: it is killed")
        self.rabbitmq = started(RabbitServer, "RabbitMQ", "nothing else: it is killed")
        self.broker_url = self.rabbitmq.new_vhost()

    def new_database(self) -> str:
        with psycopg.connect(self.postgres.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        return self.postgres.url(DATABASE)

    def checkpoint(self) -> None:
        """Let PostgreSQL use the space of its old write-ahead log again."""
        with psycopg.connect(self.postgres.url(), autocommit=True) as connection:
            connection.execute("CHECKPOINT")

    def purge(self) -> int:
        """Lose every message that waits; return how many."""
        with pika.BlockingConnection(pika.URLParameters(self.broker_url)) as connection:
            channel = connection.channel()
            return sum(int(channel.queue_purge(queue).method.message_count) for queue in QUEUES)

    def waiting(self) -> int:
        """Count the messages that wait for a worker."""
        with pika.BlockingConnection(pika.URLParameters(self.broker_url)) as connection:
            channel = connection.channel()
            declared = [channel.queue_declare(queue, passive=True) for queue in QUEUES]
            return sum(int(each.method.message_count) for each in declared)

    def fill_disk(self) -> Path:
        """Leave PostgreSQL hardly a byte; return the file to remove."""
        assert self.disk is not None
        ballast = self.disk / "ballast"
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(CHUNK)
        os.truncate(ballast, max(0, ballast.stat().st_size - LEFT_BYTES))
        return ballast

    def is_database_up(self) -> bool:
        """Tell whether PostgreSQL answers; one that has given up is started again."""
        if not self.postgres.is_running():
            self.postgres.start()
        try:
            psycopg.connect(self.postgres.url(), connect_timeout=2).close()
        except psycopg.Error:
            return False
        return True

    def close(self) -> None:
        self.rabbitmq.close()
        self.postgres.close()


@contextmanager
def private_servers() -> Iterator[Servers]:
    with small_disk() as disk:
        servers = Servers(disk)
        try:
            yield servers
        finally:
            servers.close()


@contextmanager
def small_disk() -> Iterator[Path | None]:
    """Mount a file system in memory; None where that is not allowed."""
    disk = Path(tempfile.mkdtemp(prefix="small-disk-"))
    options = f"size={DISK_BYTES},mode=755"
    if not _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", disk):
        disk.rmdir()
        yield None
        return
    try:
        yield disk
    finally:
        _run("umount", "--lazy", disk)
        disk.rmdir()


def program(name: str) -> Path:
    """Return a program of the newest PostgreSQL release."""
    return newest(f"usr/lib/postgresql/*/bin/{name}")


@contextmanager
def _temporary_files_in(directory: Path | None) -> Iterator[None]:
    before = tempfile.tempdir
    tempfile.tempdir = str(directory) if directory is not None else before
    try:
        yield
    finally:
        tempfile.tempdir = before


def _run(*command: str | Path) -> bool:
    with suppress(FileNotFoundError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False
