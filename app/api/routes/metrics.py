"""Prometheus metrics: this process, and what the database knows of all of them at the moment of the scrape."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.api.access import UseDatabase, UseSettings
from app.domain.explain import Fleet
from app.store.gauges import Gauges
from app.usecases.health import depths

BOUNDED = "counts stop at 10,000; queues that no worker serves and no kind goes to are one"

router = APIRouter(tags=["health"])


@router.get("/metrics")
async def metrics(db: UseDatabase, settings: UseSettings) -> Response:
    """Answers 200 while PostgreSQL is away too, with `outlast_database_up 0` and no depths."""
    registry = CollectorRegistry()
    registry.register(_Moment(await depths(db, settings)))
    return Response(generate_latest(REGISTRY) + generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _Moment(Collector):
    """The gauges of one scrape."""

    def __init__(self, found: tuple[Fleet, Gauges] | None) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("outlast_database_up", "PostgreSQL answers", value=float(self._found is not None))
        if self._found is not None:
            fleet, gauges = self._found
            yield from _fleet(fleet)
            yield from _depths(gauges)


def _fleet(fleet: Fleet) -> Iterator[Metric]:
    yield GaugeMetricFamily("outlast_workers", "live worker processes", value=fleet.workers)
    yield GaugeMetricFamily("outlast_worker_slots", "slots of live workers that do not drain", value=fleet.slots)
    yield GaugeMetricFamily("outlast_relays", "live relay processes", value=fleet.relays)
    yield GaugeMetricFamily("outlast_relay_leader", "a live relay leads", value=float(fleet.leader))
    if fleet.broker_ok is not None:
        yield GaugeMetricFamily("outlast_broker_up", "every live process reaches the broker", value=fleet.broker_ok)


def _depths(gauges: Gauges) -> Iterator[Metric]:
    waiting = GaugeMetricFamily("outlast_jobs_waiting", f"due jobs; {BOUNDED}", labels=["queue"])
    running = GaugeMetricFamily("outlast_jobs_running", f"leased jobs; {BOUNDED}", labels=["queue"])
    oldest = GaugeMetricFamily("outlast_oldest_due_seconds", "how long the oldest job is due", labels=["queue"])
    for depth in gauges.queues:
        waiting.add_metric([depth.queue], depth.waiting)
        running.add_metric([depth.queue], depth.running)
        oldest.add_metric([depth.queue], depth.oldest_seconds or 0)
    dead = GaugeMetricFamily("outlast_dead_letters", "dead jobs of the newest 10,000", labels=["reason"])
    for reason, count in gauges.dead.items():
        dead.add_metric([reason], count)
    broken = GaugeMetricFamily(
        "outlast_audit_findings", "broken invariants among jobs of the last 2 minutes", labels=["invariant"]
    )
    for invariant, count in gauges.broken.items():
        broken.add_metric([invariant], count)
    yield from (waiting, running, oldest, dead, broken)
    if gauges.audited_at is not None:
        yield GaugeMetricFamily("outlast_audit_timestamp_seconds", "when that was looked at", value=gauges.audited_at)
    yield GaugeMetricFamily("outlast_jobs_deferred", "jobs not due yet; counts stop at 10,000", value=gauges.deferred)
