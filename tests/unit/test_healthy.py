"""The health check of a container: which process it looks at, and when that is no longer any good."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.processes import wait_until
from workers.healthy import address_of, role_of, trouble


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("outlast api", "api"),
        ("/sbin/docker-init -- outlast worker --processes 2", "worker"),
        ("python /opt/outlast/bin/outlast relay", "relay"),
        ("python -m examples.sink", None),
    ],
)
def test_the_role_is_the_command_whatever_stands_before_it(line: str, role: str | None) -> None:
    assert role_of(line.split()) == role


@pytest.mark.parametrize(
    ("line", "environment", "address"),
    [
        ("outlast api", {}, ("127.0.0.1", 8080)),
        ("outlast api", {"OUTLAST_API_HOST": "0.0.0.0", "OUTLAST_API_PORT": "9000"}, ("127.0.0.1", 9000)),
        ("outlast api --port 9001 --host=10.0.0.7", {"OUTLAST_API_PORT": "9000"}, ("10.0.0.7", 9001)),
    ],
)
def test_an_api_is_asked_where_it_was_told_to_listen(
    line: str, environment: dict[str, str], address: tuple[str, int]
) -> None:
    assert address_of(line.split(), environment) == address


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_an_api_is_healthy_when_it_answers(status: int, healthy: bool) -> None:
    with answering(status) as port:
        assert (trouble(["outlast", "api", "--port", str(port)], {}) == "") is healthy
    assert trouble(["outlast", "api", "--port", str(port)], {}) != "", "nobody listens any more"


def test_a_stopped_process_is_not_healthy() -> None:
    # A word of its own, so that no other process of this machine is taken for it.
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "migrate"])
    try:
        wait_until(lambda: trouble(["outlast", "migrate"], {}) == "", what="a process that is seen")
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: trouble(["outlast", "migrate"], {}) != "", what="a process that is seen to be stopped")
    finally:
        process.kill()
        process.wait()


def test_a_container_without_a_role_is_not_called_healthy() -> None:
    assert "no role" in trouble(["sleep", "60"], {})


@contextmanager
def answering(status: int) -> Iterator[int]:
    """A server that answers so; its port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            del format, args

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
