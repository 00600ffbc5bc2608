"""Nothing of the machine it was written on is in the tree, and the lock names only the public index."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture import tree

PUBLIC_INDEX = {"pypi.org", "files.pythonhosted.org"}
FILE_BYTES_MAX = 700_000
LOCK = tree.ROOT / "uv.lock"
LOCKS = [LOCK, *sorted((tree.ROOT / "bench" / "peers").glob("*/uv.lock"))]

HOMES = "root|home|Users|work|workspace|builds"
MACHINE_PATH = re.compile(rf"(?<![\w.:/}}-])/(?:{HOMES})/[\w.-]+")
OTHER_INDEX = re.compile(r"(?:extra-)?index-url|find-links|UV_INDEX|PIP_INDEX|artifactory|simple/?\"", re.IGNORECASE)


@pytest.mark.parametrize("lock", LOCKS, ids=tree.name)
def test_a_lock_names_only_the_public_index(lock: Path) -> None:
    hosts = set(re.findall(r'"https?://([^/"]+)', lock.read_text(encoding="utf-8")))
    assert hosts == PUBLIC_INDEX


def test_the_lock_knows_every_dependency_of_the_project() -> None:
    project = tomllib.loads((tree.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = {re.split(r"[\[><=;]", line)[0].strip() for line in wanted}
    locked = {package["name"] for package in tomllib.loads(LOCK.read_text(encoding="utf-8"))["package"]}
    assert names - locked == set()


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    found = [
        f"{tree.name(path)}: {match[0]}"
        for path, text in _texts()
        for match in MACHINE_PATH.finditer(text)
        if path not in LOCKS
    ]
    assert found == []


def test_no_file_configures_another_package_index() -> None:
    found = [
        f"{tree.name(path)}: {match[0]}"
        for path, text in _texts()
        for match in OTHER_INDEX.finditer(text)
        if path.name not in {"uv.lock", "test_tree.py"}
    ]
    assert found == []


def test_no_large_file_slipped_in() -> None:
    large = [tree.name(path) for path in tree.files() if path.stat().st_size > FILE_BYTES_MAX and path != LOCK]
    assert large == []


def _texts() -> list[tuple[Path, str]]:
    return [(path, path.read_text(encoding="utf-8", errors="replace")) for path in tree.files()]
