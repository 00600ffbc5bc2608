"""When a job is tried again."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.retry import RETRY_AFTER_MAX_SECONDS, backoff_seconds

fractions = st.floats(min_value=0, max_value=1, exclude_max=True)


@given(tries=st.integers(0, 10_000), random=fractions)
def test_the_wait_is_anywhere_between_nothing_and_a_capped_exponential(tries: int, random: float) -> None:
    wait = backoff_seconds(tries, 1.0, 300.0, random=random)
    assert wait == pytest.approx(random * min(300.0, 2.0 ** min(tries, 40)))
    assert 0 <= wait < 300


@given(retry_after=st.floats(), random=fractions)
def test_what_a_provider_asks_for_is_the_least_and_cannot_park_a_job_for_ever(
    retry_after: float, random: float
) -> None:
    wait = backoff_seconds(0, 1.0, 300.0, random=random, retry_after=retry_after)
    assert math.isfinite(wait)
    assert 0 <= wait <= RETRY_AFTER_MAX_SECONDS + 1
    if math.isfinite(retry_after):
        assert wait >= min(retry_after, RETRY_AFTER_MAX_SECONDS)


def test_jobs_turned_away_together_do_not_come_back_together() -> None:
    waits = {backoff_seconds(0, 1.0, 300.0, random=random, retry_after=30) for random in (0.0, 0.5, 0.9)}
    assert len(waits) == 3
