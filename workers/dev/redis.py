"""Embedded Valkey or Redis."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import ClassVar

from workers.dev.binaries import redis_server
from workers.dev.embedded import Address, Launch, Server

PROBE_SECONDS = 0.5


class Redis(Server):
    """Valkey or Redis on 127.0.0.1 with a random password; never evicts."""

    name: ClassVar[str] = "redis"
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    orphan_signal: ClassVar[signal.Signals] = signal.SIGKILL  # nothing in it is the record

    @property
    def url(self) -> str:
        return f"redis://:{self.address.password}@127.0.0.1:{self.address.port}/0"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def prepare(self) -> None:
        self.data.mkdir(exist_ok=True)

    def launch(self, address: Address) -> Launch:
        lines = (
            "bind 127.0.0.1",
            f"port {address.port}",
            f"requirepass {address.password}",
            "daemonize no",
            'save ""',
            f"appendonly {'yes' if self.durable else 'no'}",
            "appendfsync everysec",
            "maxmemory-policy noeviction",
        )
        self._write("redis.conf", "\n".join(lines) + "\n")
        return Launch([redis_server(), self.folder / "redis.conf"], cwd=self.data)

    def is_ready(self) -> bool:
        """Asks PING; a foreign server on the port would refuse the password."""
        secret = self.address.password
        commands = f"*2\r\n$4\r\nAUTH\r\n${len(secret)}\r\n{secret}\r\nPING\r\n".encode()
        try:
            with socket.create_connection(("127.0.0.1", self.address.port), PROBE_SECONDS) as connection:
                connection.sendall(commands)
                with connection.makefile("rb") as replies:
                    return replies.readline() == b"+OK\r\n" and replies.readline() == b"+PONG\r\n"
        except OSError:
            return False
