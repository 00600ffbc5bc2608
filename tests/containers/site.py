"""The whole of it in containers: servers and the help desk once, and crews of our own image on them."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import asyncpg
import httpx
from testcontainers.core.network import Network

from tests.containers.box import LABEL, Box
from tests.containers.builds import STOCKED
from tests.containers.docker_cli import docker, until
from workers.dev.embedded import free_port

APIS = 2
COUNTS = {"api": APIS, "relay": 2, "worker": 3}
MODULE = "tests.containers.handlers"
START_SECONDS = 90.0
HEARD_SECONDS = 2.0
AUDIT_SECONDS = 40.0
PASSWORD = secrets.token_hex(16)
# Deaths are noticed within seconds; long enough that a busy machine is none.
CLOCKS = {
    "OUTLAST_LEASE_SECONDS": "4",
    "OUTLAST_SUSPECT_SECONDS": "2",
    "OUTLAST_HEARTBEAT_SECONDS": "0.4",
    "OUTLAST_SWEEP_SECONDS": "0.1",
    "OUTLAST_REPUBLISH_SECONDS": "2",
    "OUTLAST_BACKOFF_BASE_SECONDS": "0.1",
    "OUTLAST_BACKOFF_CAP_SECONDS": "1",
    "OUTLAST_SHUTDOWN_SECONDS": "30",
    "OUTLAST_WORKER_CONCURRENCY": "20",
}


class Ground:
    """A network, PostgreSQL, Redis and the help desk. What is on it is removed with it, last first."""

    def __init__(self, postgres: str, redis: str) -> None:
        self.network = Network(docker_network_kw={"labels": {LABEL: "1"}})
        self.postgres_port, self.desk_port = free_port(), free_port()
        account = {"POSTGRES_USER": "outlast", "POSTGRES_DB": "outlast", "POSTGRES_PASSWORD": PASSWORD}
        ports = {5432: self.postgres_port}
        self.postgres = Box("postgres", postgres, self.network, environment=account, ports=ports, ours=False)
        self.redis = Box("redis", redis, self.network, ours=False)
        self.desk = Box(
            "desk",
            STOCKED,
            self.network,
            entrypoint=["python", "-m", "examples.sink"],
            words=["--host", "0.0.0.0", "--port", "8090"],
            ports={8090: self.desk_port},
        )
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.network)
            for box in (self.postgres, self.redis, self.desk):
                stack.callback(box.remove)
                box.create()
            until(self._is_up, START_SECONDS, what="PostgreSQL and the desk")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def filings(self, prefix: str) -> Counter[str]:
        """How many filings the desk has for each ticket of this prefix, of different keys."""
        found = self._counts()["filings_by_ticket"]
        return Counter({ticket: count for ticket, count in found.items() if ticket.startswith(prefix)})

    def repeated_calls(self) -> int:
        """Calls of the desk beyond the first of their key, up to now."""
        return int(self._counts()["duplicates"])

    def sql(self, statement: str, *args: Any, database: str = "outlast") -> list[asyncpg.Record]:
        """All rows of a statement. Raises what asyncpg raises while PostgreSQL is away."""

        async def fetch() -> list[asyncpg.Record]:
            url = f"postgresql://outlast:{PASSWORD}@127.0.0.1:{self.postgres_port}/{database}"
            connection = await asyncpg.connect(url, timeout=5)
            try:
                return list(await connection.fetch(statement, *args))
            finally:
                await connection.close()

        return asyncio.run(fetch())

    def _counts(self) -> dict[str, Any]:
        return httpx.get(f"http://127.0.0.1:{self.desk_port}/counts", timeout=10).raise_for_status().json()

    def _is_up(self) -> bool:
        try:
            return bool(self.sql("SELECT 1")) and "calls" in self._counts()
        except (OSError, httpx.HTTPError, asyncpg.PostgresError):
            return False


class Crew:
    """Two APIs, two relays and three workers of one database. What they log is in `logs` once they are gone."""

    def __init__(
        self,
        ground: Ground,
        logs: Path,
        *,
        database: str = "outlast",
        mark: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`mark` goes before the names of its containers, `environment` is for all of them."""
        self.ground = ground
        self.logs = logs
        self.database = database
        self.token = secrets.token_hex(16)
        self.environment = {
            **CLOCKS,
            "OUTLAST_DATABASE_URL": f"postgresql://outlast:{PASSWORD}@postgres:5432/{database}",
            "OUTLAST_REDIS_URL": f"redis://redis:6379/{0 if database == 'outlast' else 1}",
            "OUTLAST_HANDLERS": MODULE,
            "OUTLAST_SINK_URL": "http://desk:8090",
            "OUTLAST_API_TOKEN": self.token,
            **(environment or {}),
        }
        ports = [free_port() for _ in range(APIS)]
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        names = [(role, f"{mark}{role}-{n}") for role, count in COUNTS.items() for n in range(1, count + 1)]
        self._roles = {name: role for role, name in names}
        self._ports = {f"{mark}api-{n}": {8080: port} for n, port in enumerate(ports, 1)}
        self._boxes = {name: self._box(name) for name in self._roles}

    @property
    def boxes(self) -> list[Box]:
        return list(self._boxes.values())

    @property
    def apis(self) -> list[Box]:
        return self._of("api")

    @property
    def relays(self) -> list[Box]:
        return self._of("relay")

    @property
    def workers(self) -> list[Box]:
        return self._of("worker")

    def __enter__(self) -> Self:
        """Makes the database, migrates it, starts all of it, and waits until it is ready."""
        try:
            if not self.ground.sql("SELECT FROM pg_database WHERE datname = $1", self.database):
                self.ground.sql(f"CREATE DATABASE {self.database}")
            self.migrate()
            for box in self.boxes:
                box.create()
            self.until_ok()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._write_logs()
        for box in reversed(self.boxes):
            box.remove()

    def replace(self, box: Box) -> None:
        """As a deploy does it: stopped and gone, another in its place with what is the environment now."""
        assert box.stop() == 0, box.log()
        box.remove()
        self._boxes[box.name] = self._box(box.name)
        self._boxes[box.name].create()

    def migrate(self) -> str:
        """`outlast migrate` in a container of its own, to its end; what it said."""
        words = [word for name in self.environment for word in ("--env", f"{name}={self.environment[name]}")]
        words += ["--network", self.ground.network.name, "--label", f"{LABEL}=1", STOCKED, "migrate"]
        return docker("run", "--rm", "--read-only", *words)

    def until_ok(self) -> None:
        """Waits until each API calls all of it ready and every process is heard of."""
        until(self._is_ok, START_SECONDS, what=f"{self.database} ready")

    def mend(self) -> None:
        """Whatever was done to it, all of it runs again."""
        for box in (self.ground.redis, self.ground.postgres, *self.boxes):
            box.mend()
        self.until_ok()

    def sql(self, statement: str, *args: Any) -> list[asyncpg.Record]:
        return self.ground.sql(statement, *args, database=self.database)

    def leases(self, box: Box) -> int:
        """How many jobs the processes of a worker's container hold."""
        counted = "SELECT count(*) FROM leases l JOIN workers w ON w.id = l.worker_id WHERE w.host = $1"
        return int(self.sql(counted, box.name)[0][0])

    def audit(self) -> None:
        """Waits until `outlast audit` finds nothing: what a broker still holds may take a moment to be cleared."""
        last = ""

        def clean() -> bool:
            nonlocal last
            done = self.relays[0].run("outlast", "audit", "-o", "json")
            last = f"exit {done.returncode}: {done.stdout} {done.stderr}"
            return done.returncode == 0

        try:
            until(clean, AUDIT_SECONDS, what="a clean audit")
        except TimeoutError:
            raise AssertionError(f"the audit found something: {last}") from None

    def _of(self, role: str) -> list[Box]:
        return [box for name, box in self._boxes.items() if self._roles[name] == role]

    def _box(self, name: str) -> Box:
        words, ports = [self._roles[name]], self._ports.get(name)
        return Box(name, STOCKED, self.ground.network, words=words, environment=self.environment, ports=ports)

    def _write_logs(self) -> None:
        self.logs.mkdir(parents=True, exist_ok=True)
        for box in (self.ground.postgres, self.ground.redis, self.ground.desk, *self.boxes):
            (self.logs / f"{box.name}.log").write_text(box.log())

    def _is_ok(self) -> bool:
        heard = "SELECT role, count(DISTINCT host) FROM workers WHERE left_at IS NULL"
        heard += " AND heartbeat_at > clock_timestamp() - make_interval(secs => $1) GROUP BY role"
        try:
            roster = {row[0]: row[1] for row in self.sql(heard, HEARD_SECONDS)}
            answers = [httpx.get(f"{url}/readyz", timeout=5) for url in self.urls]
            ready = all(json.loads(answer.text)["status"] == "ok" for answer in answers)
        except (OSError, httpx.HTTPError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        return ready and all(roster.get(role) == COUNTS[role] for role in ("relay", "worker"))
