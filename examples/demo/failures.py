"""Why the demonstration stops early."""

from __future__ import annotations


class DemoFailed(Exception):
    """The demonstration cannot go on; the message says what did not happen."""
