"""How large a scenario is: small on every run, in full with `SCALE=full`."""

from __future__ import annotations

import os

FULL = os.environ.get("SCALE") == "full"


def scaled(small: int, full: int) -> int:
    """The size of this run."""
    return full if FULL else small
