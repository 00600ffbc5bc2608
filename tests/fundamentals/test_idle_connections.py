"""A caller that pauses finds its connection as it left it."""

from __future__ import annotations

import time
from http.client import HTTPConnection
from urllib.parse import urlsplit

from tests.processes import Stack

PAUSE_SECONDS = 6  # clients and load balancers keep idle connections for longer; many servers do not


def test_the_server_is_not_the_one_who_closes_an_idle_connection(stack: Stack) -> None:
    """Had it closed it, a request that is already on its way would be cut, and nobody could tell what became of it."""
    stack.api()
    connection = HTTPConnection(urlsplit(stack.api_url).netloc)
    connection.request("GET", "/healthz")
    connection.getresponse().read()
    kept = connection.sock
    time.sleep(PAUSE_SECONDS)  # the pause is the point
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    assert connection.sock is kept
    connection.close()
