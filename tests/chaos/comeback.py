"""Brings a server back that a fault has ended."""

from __future__ import annotations

import asyncio
import time

from workers.dev.embedded import Server

READY_SECONDS = 60.0
POLL_SECONDS = 0.02


async def bring_back(server: Server) -> None:
    """Starts it as often as it needs: a killed postmaster leaves its backends to end. Raises `TimeoutError`."""
    end = time.monotonic() + READY_SECONDS
    server.spawn()
    while not server.is_ready():
        if time.monotonic() > end:
            raise TimeoutError(f"{server.name} does not come back: {server.log_tail()}")
        if server.process.poll() is not None:
            server.spawn()
        await asyncio.sleep(POLL_SECONDS)
