"""`outlast dev`: all of it on this machine, for as long as the command runs.

Every process is a child that the kernel ends with this one, so a killed `outlast dev` leaves nothing running, and the
next one in the same folder carries on with the same data, addresses and passwords.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import SecretStr

from app.cli.exits import ExitCode, say
from app.settings import Settings
from workers import migration
from workers.dev.embedded import free_port, is_taken
from workers.dev.failures import DevFailed
from workers.dev.layout import Layout
from workers.dev.servers import Servers, running
from workers.dev.stack import DevStack

PORT_WAIT_SECONDS = 2.0
POLL_SECONDS = 0.05


def run(settings: Settings, *, port: int, data: Path, workers: int, handlers: Sequence[str]) -> int:
    """Runs the stack until SIGINT or SIGTERM; prints `ready URL` on stdout once it accepts work. The exit code.

    `data` holds everything it keeps. Servers that the settings name by URL are used, the others are embedded.
    Raises `DatabaseAway`, and `KeyboardInterrupt` for a signal while the servers still start.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell starts background jobs with it ignored
        signal.signal(number, signal.default_int_handler)
    layout = Layout(data.resolve())
    try:
        with layout.owned():
            api_port = _usable(port) if port else free_port()
            with running(settings, layout.root) as servers:
                _serve(settings, layout, servers, port=api_port, supervisors=workers, handlers=handlers)
    except DevFailed as failed:
        say(f"outlast: {failed}")
        return ExitCode.ERROR
    return ExitCode.OK


def _usable(port: int) -> int:
    """The port, once the API of an `outlast dev` that was just killed has let go of it.

    Asked before anything starts: whoever answers on a port of ours would be taken for our own API.
    Raises `DevFailed`.
    """
    end = time.monotonic() + PORT_WAIT_SECONDS
    while is_taken(port):
        if time.monotonic() > end:
            raise DevFailed(f"port {port} is taken; choose another with --port, 0 for any free one")
        time.sleep(POLL_SECONDS)
    return port


def _serve(
    settings: Settings, layout: Layout, servers: Servers, *, port: int, supervisors: int, handlers: Sequence[str]
) -> None:
    api_url = f"http://127.0.0.1:{port}"
    exports = _exports(servers, api_url)
    os.environ.update(exports)
    if handlers:
        os.environ["OUTLAST_HANDLERS"] = ",".join(handlers)
    ours = settings.model_copy(update={"database_url": SecretStr(servers.database_url)})
    migration.run(ours, [] if supervisors else handlers)  # the kinds that no worker of ours will publish
    layout.write_env(exports)

    def announce() -> None:
        sys.stdout.write(f"ready {api_url}\n")
        sys.stdout.flush()
        say(f"logs and pids are in {layout.root}; clients: . {layout.env}")

    stack = DevStack(ours, layout, servers, port=port, supervisors=supervisors)
    asyncio.run(stack.run(announce))


def _exports(servers: Servers, api_url: str) -> Mapping[str, str]:
    """What clients and the processes of the stack need to find it."""
    urls = {"DATABASE_URL": servers.database_url, "REDIS_URL": servers.redis_url, "API_URL": api_url}
    return {f"OUTLAST_{name}": url for name, url in urls.items() if url is not None}
