"""`outlast doctor`: settings with their sources, and whether servers and processes are fit for them."""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict, dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from pydantic import SecretStr

from app.cli.exits import ExitCode
from app.cli.formats import Format, Row, show_rows
from app.domain.errors import BrokerAway, DatabaseAway, SharedSession
from app.domain.views import dump
from app.settings import Settings
from app.store.checkup import Checkup, checkup
from app.store.database import Database, connect
from app.store.revision import HEAD
from app.transport.connect import publisher
from app.usecases.health import readiness

TITLES = ("check", "status", "detail")
SERVER_VERSION_MIN = 140_000
WEEKS_AHEAD_MIN = 1
WARNING_DAYS = 7
HIDDEN = "***"


class Status(StrEnum):
    """`BROKEN` is exit 8, `AWAY` exit 9; a warning is none."""

    OK = "ok"
    SET = "set"
    WARNING = "warning"
    BROKEN = "broken"
    AWAY = "away"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the check-up."""

    check: str
    status: Status
    detail: str


def run(settings: Settings, output: Format) -> int:
    """Prints the check-up. 0: fit; 8: something is broken; 9: a dependency is away."""
    checks = [*_settings(settings), *_failpoints(settings), *asyncio.run(_look(settings))]
    rows = [Row(one.check, dump(asdict(one)), (one.check, one.status, one.detail)) for one in checks]
    show_rows(output, TITLES, rows)
    found = {one.status for one in checks}
    if Status.BROKEN in found:
        return ExitCode.INVARIANT_BROKEN
    return ExitCode.DEPENDENCY_AWAY if Status.AWAY in found else ExitCode.OK


def _settings(settings: Settings) -> list[Check]:
    return [_setting(name, getattr(settings, name)) for name in Settings.model_fields]


def _setting(name: str, value: object) -> Check:
    variable = f"OUTLAST_{name.upper()}"
    given = variable in {known.upper() for known in os.environ}
    source = "from the environment" if given else "by default"
    return Check(variable, Status.SET, f"{_shown(value)} {source}")


def _shown(value: object) -> str:
    """A setting without its secret: of a URL the password is hidden, of anything else all of it."""
    if not isinstance(value, SecretStr):
        return str(value)
    url = urlsplit(value.get_secret_value())
    if not url.hostname:
        return HIDDEN
    user = f"{url.username}:{HIDDEN}@" if url.password else f"{url.username}@" if url.username else ""
    return f"{url.scheme}://{user}{url.hostname}{f':{url.port}' if url.port else ''}{url.path}"


def _failpoints(settings: Settings) -> list[Check]:
    return [Check("failpoints", Status.WARNING, "armed: for tests alone")] if settings.failpoints else []


async def _look(settings: Settings) -> list[Check]:
    db = await Database.open(settings, "doctor", size_max=2)
    try:
        return [*await _database(db, settings), *await _broker(settings), *await _processes(db, settings)]
    finally:
        await db.close()


async def _database(db: Database, settings: Settings) -> list[Check]:
    try:
        found = await checkup(db, settings.dead_retention_days, WARNING_DAYS)
    except DatabaseAway as away:
        return [Check("database", Status.AWAY, str(away))]
    return [_server(found), await _sessions(settings), _schema(found), _partitions(found), _retention(found)]


def _server(found: Checkup) -> Check:
    fit = found.server_version >= SERVER_VERSION_MIN
    status = Status.OK if fit else Status.BROKEN
    return Check("database", status, f"PostgreSQL {found.server_version // 10_000}")


async def _sessions(settings: Settings) -> Check:
    try:
        session = await connect(settings, "doctor")
    except SharedSession as shared:
        return Check("sessions", Status.BROKEN, str(shared))
    except DatabaseAway as away:
        return Check("sessions", Status.AWAY, str(away))
    session.terminate()
    return Check("sessions", Status.OK, "are our own")


def _schema(found: Checkup) -> Check:
    fit = found.revision == HEAD
    detail = f"revision {found.revision}" if fit else f"revision {found.revision}, not {HEAD}: run outlast migrate"
    return Check("schema", Status.OK if fit else Status.BROKEN, detail)


def _partitions(found: Checkup) -> Check:
    fit = found.weeks_ahead >= WEEKS_AHEAD_MIN and not found.default_used
    detail = f"{found.weeks_ahead} weeks ahead" + (", and jobs in the default partition" if found.default_used else "")
    return Check("partitions", Status.OK if fit else Status.WARNING, detail)


def _retention(found: Checkup) -> Check:
    detail = f"{found.dead_leaving} dead letters go within {WARNING_DAYS} days"
    return Check("dead letters", Status.WARNING if found.dead_leaving else Status.OK, detail)


async def _broker(settings: Settings) -> list[Check]:
    if settings.transport == "pg":
        return [Check("broker", Status.OK, "none is used")]
    broker = publisher(settings)
    try:
        queues = await broker.queues()
    except BrokerAway as away:
        return [Check("broker", Status.AWAY, str(away))]
    finally:
        await broker.close()
    return [Check("broker", Status.OK, f"{len(queues)} queues")]


async def _processes(db: Database, settings: Settings) -> list[Check]:
    loops = (await readiness(db, settings)).loops
    return [Check(name, Status.OK if word == "ok" else Status.WARNING, word) for name, word in loops.items()]
