"""When to try again: capped exponential back-off with full jitter."""

from __future__ import annotations

from math import isfinite

# Beyond it the cap holds whatever the base: 2**40 seconds are 35,000 years.
DOUBLINGS_MAX = 40
RETRY_AFTER_MAX_SECONDS = 86_400.0


def backoff_seconds(
    tries: int, base_seconds: float, cap_seconds: float, *, random: float, retry_after: float | None = None
) -> float:
    """How long to wait after `tries` earlier failures; `random` is in [0, 1).

    Full jitter: anywhere between 0 and `min(cap, base * 2**tries)`. What a provider asked for comes on
    top, so that those it turned away together do not come back together; it counts up to a day.
    """
    ceiling = min(cap_seconds, base_seconds * 2.0 ** min(tries, DOUBLINGS_MAX))
    return asked_seconds(retry_after) + random * ceiling


def asked_seconds(retry_after: float | None) -> float:
    """A `Retry-After` made harmless: nonsense counts as 0, more than a day as a day."""
    if retry_after is None or not isfinite(retry_after):
        return 0.0
    return min(max(retry_after, 0.0), RETRY_AFTER_MAX_SECONDS)
