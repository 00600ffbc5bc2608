"""Whatever becomes of the broker or the road to it, the same worker process goes on, quietly."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from uuid import uuid4

import pytest
from pydantic import SecretStr

from app.settings import Settings
from app.transport import keys
from app.transport.connect import publisher, subscriber
from app.transport.redis_client import REPLY_SECONDS
from tests.chaos.proxy import Proxy
from tests.chaos.taps import PlainTap
from tests.fundamentals.scale import scaled
from tests.processes import wait_until
from tests.scenarios.premises import STREAM, Premises

pytestmark = pytest.mark.timeout(600)  # processes start, several a test

AWAY_SECONDS = scaled(3, 20)
IDLE_SECONDS = scaled(3, 90)
TROUBLE = ("broker_away", "not_acknowledged", '"error"', "Traceback")
QUEUES = ("default", "second", "third")

Lose = Callable[[Premises], None]
Trouble = Callable[[Premises], AbstractContextManager[None]]


def said(premises: Premises) -> dict[str, int]:
    """How many lines of each kind workers and relays have written."""
    text = "".join(process.stderr for process in [*premises.workers, *premises.relays])
    words = ("NOGROUP", "group_made", *TROUBLE)
    return {word: text.count(word) for word in words}


def _everything(premises: Premises) -> None:
    premises.broker("FLUSHALL")


def _stream_without_group(premises: Premises) -> None:
    premises.broker("EVAL", f"redis.call('FLUSHALL') redis.call('XADD', '{STREAM}', '*', 'x', 'y')", 0)


def _only_the_group_lost(premises: Premises) -> None:
    premises.broker("XGROUP", "DESTROY", STREAM, keys.GROUP)


@pytest.mark.parametrize("loss", [_everything, _stream_without_group, _only_the_group_lost])
def test_a_lost_group_is_made_again_without_a_restart_a_storm_or_a_word(premises: Premises, loss: Lose) -> None:
    """Redis was emptied: every poll failed at once, thousands a second, until somebody restarted the consumers."""
    premises.work()
    premises.until_reading()
    before, pids = said(premises), {one.id for one in premises.heard("worker")}
    premises.broker("CONFIG", "RESETSTAT")

    loss(premises)
    began = time.monotonic()
    time.sleep(2)  # idle: a storm would show in the count of reads
    reads = premises.calls("xreadgroup")
    seconds = time.monotonic() - began
    ids = premises.submit(1)

    premises.until_done(ids)
    premises.performed_once(ids)
    premises.until_ready()
    assert reads <= 5 + 2 * seconds / premises.settings.block_seconds * len(premises.workers)
    new = {word: count - before[word] for word, count in said(premises).items()}
    assert new["NOGROUP"] + sum(new[word] for word in TROUBLE) == 0
    assert new["group_made"] <= 2
    assert {one.id for one in premises.heard("worker")} == pids


def test_a_worker_that_comes_before_any_stream_waits_for_it(premises: Premises) -> None:
    """A worker started on an empty store, with its sweep first, failed on the group that was not there."""
    premises.stop_workers()
    premises.broker("FLUSHALL")
    worker = premises.worker(SWEEP_SECONDS="0.01")
    premises.until_ready()

    ids = premises.submit(3)

    premises.until_done(ids)
    assert [word for word in (*TROUBLE, "NOGROUP") if word in worker.stderr] == []


def test_an_idle_worker_says_nothing_and_keeps_its_connections(premises: Premises) -> None:
    """The socket's time-out also covered the read that is meant to wait: idle workers logged errors and reconnected."""
    premises.work()
    premises.until_ready()
    before = said(premises)
    connected = int(premises.fact("stats", "total_connections_received"))

    time.sleep(IDLE_SECONDS)  # idleness is the point
    ids = premises.submit(1)

    premises.until_done(ids)
    assert {word: said(premises)[word] - before[word] for word in TROUBLE} == dict.fromkeys(TROUBLE, 0)
    # Each process opens five at most, when it first needs them; ours, to ask, come and go.
    made = int(premises.fact("stats", "total_connections_received")) - connected
    assert made <= 5 * (len(premises.workers) + len(premises.relays)) + 2


async def test_a_read_may_wait_longer_than_any_other_reply_also_on_a_slow_road(settings: Settings) -> None:
    """A blocking read as long as the time-out of the socket died of it each time nothing came."""
    url = settings.redis_url.get_secret_value()
    port = url.rpartition(":")[2].partition("/")[0]
    proxy = Proxy(int(port), PlainTap)
    proxy.delay_seconds = 0.2
    slow = SecretStr(url.replace(f":{port}/", f":{await proxy.start()}/"))
    blocks = (REPLY_SECONDS - 0.5, REPLY_SECONDS, REPLY_SECONDS + 1)
    try:
        await asyncio.gather(
            *(
                _wait_in_vain_and_then_not(settings.model_copy(update={"block_seconds": block, "redis_url": slow}), q)
                for block, q in zip(blocks, QUEUES, strict=True)
            )
        )
    finally:
        await proxy.close()


async def _wait_in_vain_and_then_not(settings: Settings, queue: str) -> None:
    reader, relay = subscriber(settings, uuid4(), [queue]), publisher(settings)
    try:
        assert await reader.read(1, settings.block_seconds) == []
        row = (uuid4(), 0)
        waiting = asyncio.create_task(reader.read(1, settings.block_seconds))
        await relay.read_all(queue, 10)
        await relay.publish(queue, [row], 10)
        assert [(one.job_id, one.attempt) for one in await waiting] == [row]
    finally:
        await reader.close()
        await relay.close()


@contextmanager
def connections_cut(premises: Premises) -> Iterator[None]:
    for _ in range(5):
        premises.broker("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        time.sleep(0.5)
    yield


@contextmanager
def stopped(premises: Premises) -> Iterator[None]:
    premises.stop_redis()
    try:
        premises.until_ready("degraded")
        time.sleep(AWAY_SECONDS)
        yield
    finally:
        premises.start_redis()


@contextmanager
def frozen(premises: Premises) -> Iterator[None]:
    premises.redis.process.send_signal(signal.SIGSTOP)
    try:
        premises.until_ready("degraded")
        yield
    finally:
        premises.redis.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("trouble", [connections_cut, stopped, frozen])
def test_the_same_worker_takes_jobs_again_after_its_broker_comes_back(premises: Premises, trouble: Trouble) -> None:
    """ "Reconnected", said the log, and no job was taken any more: one of the loops had ended, and nobody looked."""
    premises.work()
    premises.until_ready()
    pids = {one.id for one in premises.heard("worker")}
    held = premises.submit(5, hold=True)
    premises.until_held(5)

    with trouble(premises):
        during = premises.submit(5)
    premises.until_ready()
    after = premises.submit(5)
    premises.go_on()

    premises.until_done(held + during + after)
    premises.until_empty()
    premises.performed_once(held + during + after)
    assert {one.id for one in premises.heard("worker")} == pids


def test_jobs_arrive_through_the_broker_again_once_it_is_back(premises: Premises) -> None:
    """After an outage everything went the slow way round for ever, because nobody tried the broker again."""
    premises.work()
    premises.stop_redis()
    premises.until_ready("degraded")
    premises.start_redis()
    premises.until_ready()
    premises.broker("CONFIG", "RESETSTAT")

    ids = premises.submit(10)

    premises.until_done(ids)
    wait_until(lambda: premises.calls("xadd") > 0, what="an entry")
