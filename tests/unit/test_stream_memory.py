"""What the relay remembers of a stream: one live entry a row, and patience with rows that come back."""

from __future__ import annotations

from uuid import UUID

from app.transport.base import Delivery
from workers.relaying.stream_memory import INTERVAL_SECONDS_MAX, Fence, StreamMemory

REPUBLISH = 5.0


def fence(number: int, attempt: int = 0) -> Fence:
    return UUID(int=number), attempt


def entry(number: int, receipt: str, attempt: int = 0) -> Delivery:
    return Delivery("default", UUID(int=number), attempt, receipt)


def memory_of(count: int, now: float = 0) -> StreamMemory:
    """Rows 1..count were published with the receipts 1-1..count-1."""
    memory = StreamMemory(REPUBLISH)
    memory.published([fence(n) for n in range(1, count + 1)], [f"{n}-1" for n in range(1, count + 1)], now)
    return memory


def test_a_row_with_a_live_entry_needs_none_however_long_it_waits() -> None:
    memory = memory_of(1)
    assert not memory.may_publish(fence(1), 1_000_000)


def test_another_attempt_of_the_same_job_is_another_row() -> None:
    memory = memory_of(1)
    assert memory.may_publish(fence(1, 1), 0)


def test_everything_before_the_oldest_entry_has_departed() -> None:
    memory = memory_of(3)
    assert memory.departed("3-1") == 2
    assert len(memory) == 1
    assert memory.departed(None) == 1
    assert len(memory) == 0


def test_receipts_are_compared_as_numbers() -> None:
    memory = StreamMemory(REPUBLISH)
    memory.published([fence(1), fence(2)], ["9-9", "10-1"], 0)
    assert memory.departed("9-10") == 1


def test_a_row_whose_entry_was_taken_rests_and_then_twice_as_long() -> None:
    memory = memory_of(1)
    memory.departed(None)
    assert not memory.may_publish(fence(1), 4.9)
    assert memory.may_publish(fence(1), 5)
    memory.published([fence(1)], ["2-1"], 5)
    memory.departed(None)
    assert not memory.may_publish(fence(1), 14.9)
    assert memory.may_publish(fence(1), 15)


def test_the_interval_stops_growing() -> None:
    memory, now = memory_of(1), 0.0
    for number in range(2, 40):
        memory.departed(None)
        now += INTERVAL_SECONDS_MAX
        assert memory.may_publish(fence(1), now)
        memory.published([fence(1)], [f"{number}-1"], now)


def test_resting_rows_that_nobody_saw_waiting_are_dropped_and_the_others_keep_their_interval() -> None:
    memory = memory_of(2)
    memory.departed(None)
    memory.may_publish(fence(1), 1)
    memory.purge(6)
    memory.published([fence(1), fence(2)], ["3-1", "4-1"], 6)
    memory.departed(None)
    assert not memory.may_publish(fence(1), 15.9)
    assert memory.may_publish(fence(2), 11)


def test_what_was_taken_out_unhandled_is_published_at_once() -> None:
    memory = memory_of(3)
    memory.departed("2-1")
    memory.forget(["1-1", "2-1"])
    assert [memory.may_publish(fence(n), 0) for n in (1, 2, 3)] == [True, True, False]


def test_only_old_entries_are_doubted_and_the_missing_ones_rest() -> None:
    memory = memory_of(2)
    assert memory.doubtful(4.9) == []
    assert memory.doubtful(5) == ["1-1", "2-1"]
    memory.rest(["1-1"])
    assert memory.may_publish(fence(1), 5)
    assert not memory.may_publish(fence(2), 5)


def test_what_a_reading_of_the_stream_does_not_show_was_lost_and_is_published_at_once() -> None:
    memory = memory_of(2)
    memory.learn([entry(2, "2-1"), entry(7, "3-1")], 1)
    assert [memory.may_publish(fence(n), 1) for n in (1, 2, 7)] == [True, False, False]
    assert memory.departed("3-1") == 1


def test_a_quick_purge_drops_what_came_to_rest_first_and_leaves_the_rest_to_a_whole_one() -> None:
    memory = StreamMemory(REPUBLISH)
    for number, now in ((1, 0), (2, 3), (3, 0)):
        memory.published([fence(number)], [f"{number}-1"], now)
    memory.departed(None)

    memory.purge(6, whole=False)

    # What is forgotten begins with the first interval again, what is not with twice that.
    memory.published([fence(1), fence(3)], ["4-1", "5-1"], 6)
    memory.departed(None)
    assert memory.may_publish(fence(1), 6 + REPUBLISH)
    assert not memory.may_publish(fence(3), 6 + REPUBLISH)
    assert not memory.may_publish(fence(2), 7)
    memory.purge(6 + 4 * REPUBLISH)
    memory.purge(6 + 4 * REPUBLISH + 1)
    assert memory.may_publish(fence(3), 7)
