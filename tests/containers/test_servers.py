"""Redis off the network, PostgreSQL started again, an API killed: nothing is lost and nothing is charged."""

from __future__ import annotations

import time

import pytest

from tests.containers.books import COUNT, close
from tests.containers.callers import Callers
from tests.containers.docker_cli import until
from tests.containers.site import Crew

pytestmark = pytest.mark.timeout(240)

AWAY_SECONDS = 20.0


def test_redis_off_the_network_for_20_seconds_stops_nothing(crew: Crew) -> None:
    with Callers(crew, "redis-away", effects=2, pause_seconds=0.05) as callers:
        with callers.steadily(20):
            until(lambda: len(callers.accepted) > 50, 60, what="some errands")
            crew.ground.redis.cut_off()
            back = time.monotonic() + AWAY_SECONDS
            accepted = len(callers.accepted)
            until(
                lambda: int(crew.sql(COUNT, "redis-away-")[0][0]) > accepted + 40, AWAY_SECONDS, what="work without it"
            )
            until(lambda: time.monotonic() > back, 2 * AWAY_SECONDS, what="the end of the outage")
            crew.ground.redis.connect()
            crew.until_ok()
        close(callers).nothing_charged()


def test_postgresql_started_again_charges_nothing(crew: Crew) -> None:
    with Callers(crew, "restarted", effects=2, pause_seconds=0.2) as callers:
        with callers.steadily(40):
            until(lambda: len(callers.accepted) > 200, 60, what="some errands")
            crew.ground.postgres.restart()
            crew.until_ok()
        assert callers.retried > 0, "nobody noticed that it was away"
        close(callers).nothing_charged()


def test_callers_of_a_killed_api_send_their_keys_to_the_other(crew: Crew) -> None:
    victim = crew.apis[0]
    with Callers(crew, "api-killed") as callers:
        with callers.steadily(60):
            until(lambda: len(callers.accepted) > 150, 60, what="some errands")
            assert victim.kill() == 128 + 9
            seen = len(callers.accepted)
            until(lambda: len(callers.accepted) > seen + 150, 60, what="errands through the other")
        assert callers.retried > 0, "nobody noticed that it was away"
        close(callers).nothing_charged()
