"""Names of databases on a test's server."""

from __future__ import annotations


def in_database(url: str, name: str) -> str:
    """The same server, another database."""
    return f"{url.rpartition('/')[0]}/{name}"
