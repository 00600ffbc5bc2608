"""An SQS of a test process: moto's, over HTTP, in a process of its own; or any other, by `OUTLAST_TEST_SQS_URL`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from tests.processes import wait_until
from workers.dev.embedded import free_port
from workers.dev.guard import spawn

GIVEN = "OUTLAST_TEST_SQS_URL"
START_SECONDS_MAX = 60.0
# Where boto looks for them; moto takes any.
CALLER = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "eu-central-1"}


@contextmanager
def sqs_server(folder: Path, *, port: int | None = None) -> Iterator[str]:
    """The URL of an empty SQS, and in the environment what a caller of it needs."""
    for name, value in CALLER.items():
        os.environ.setdefault(name, value)
    if GIVEN in os.environ:
        yield os.environ[GIVEN]
        return
    port = port or free_port()
    with (folder / f"moto-{port}.log").open("ab") as log:
        words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = spawn(words, signal.SIGKILL, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: _answers(process, url), START_SECONDS_MAX, what="moto's server")
        yield url
    finally:
        process.kill()
        process.wait(10)


def _answers(process: subprocess.Popen[bytes], url: str) -> bool:
    assert process.poll() is None, "moto's server ended"
    try:
        with urlopen(f"{url}/moto-api/data.json", timeout=2):
            return True
    except (OSError, HTTPException):
        return False
