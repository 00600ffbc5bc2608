"""Deploys under load: every service restarted, and the schema and then the code upgraded, and nothing is charged."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.store.revision import HEAD, REVISIONS
from tests.containers.books import close
from tests.containers.box import Box
from tests.containers.builds import PREVIOUS
from tests.containers.callers import Callers
from tests.containers.docker_cli import until
from tests.containers.site import Crew, Ground

pytestmark = pytest.mark.timeout(300)

PER_SECOND = 100
MIGRATORS = 3
PREVIOUS_CODE = f"/srv/{PREVIOUS}"


def test_every_service_restarted_under_load_fails_no_submit_and_charges_nothing(crew: Crew) -> None:
    with Callers(crew, "rolling") as callers:
        with callers.steadily(PER_SECOND):
            for box in (*crew.workers, *crew.relays, *crew.apis):
                assert box.stop() == 0, box.log()
                box.start()
                crew.until_ok()
        close(callers).nothing_charged()


def test_an_upgrade_from_the_schema_and_the_code_before_charges_nothing(ground: Ground, logs: Path) -> None:
    """Old containers run on while several replicas migrate, and are then replaced one by one."""
    if os.environ["CONTAINERS_PREVIOUS"] != "True":
        pytest.skip("this checkout has no history, so there is no code of before to upgrade from")
    old = Crew(ground, logs / "upgrade", database="upgraded", mark="old-", environment={"PYTHONPATH": PREVIOUS_CODE})
    with old as crew:
        assert revision(crew) == REVISIONS[-2]
        assert all(runs_previous_code(box) for box in crew.boxes)
        with Callers(crew, "upgraded", effects=2, pause_seconds=0.05) as callers:
            with callers.steadily(25):
                until(lambda: len(callers.accepted) > 50, 60, what="errands of the old crew")
                crew.environment.pop("PYTHONPATH")
                with ThreadPoolExecutor(MIGRATORS) as replicas:
                    migrations = [replicas.submit(crew.migrate) for _ in range(MIGRATORS)]
                    assert [one.result(120) for one in migrations]
                assert revision(crew) == HEAD
                seen = len(callers.accepted)
                until(lambda: len(callers.accepted) > seen + 50, 60, what="old code on the new schema")
                for box in (*crew.workers, *crew.relays, *crew.apis):
                    crew.replace(box)
                    crew.until_ok()
            close(callers).nothing_charged()
        assert not any(runs_previous_code(box) for box in crew.boxes)


def runs_previous_code(box: Box) -> bool:
    return box.run("python", "-c", "import app; print(app.__file__)").stdout.startswith(PREVIOUS_CODE)


def revision(crew: Crew) -> str:
    return crew.sql("SELECT version_num FROM alembic_version")[0][0]
