"""How many entries a stream may hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.window import LEAST, MOST, window


@pytest.mark.parametrize(
    ("slots", "departed", "entries"),
    [
        (0, 0, 2),
        (1, 0, 2),
        (10, 0, 20),
        (10, 40, 20),
        (10, 200, 50),
        (10, 10_000, 64),
        (100, 10_000, 200),
        (9_999, 0, 4_096),
    ],
)
def test_a_window_is_twice_the_slots_or_a_quarter_second_of_quick_jobs(slots: int, departed: int, entries: int) -> None:
    assert window(slots, departed) == entries


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_window_is_never_without_bounds(slots: int, departed: int) -> None:
    assert LEAST <= window(slots, departed) <= MOST
