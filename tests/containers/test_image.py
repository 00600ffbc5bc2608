"""The image: small, the same whenever it is built, without rights, and healthy in every role."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tarfile

from tests.containers.builds import AGAIN, OURS
from tests.containers.docker_cli import docker
from tests.containers.site import Crew, Ground

BYTES_MAX = 200_000_000
# What an engine puts into any container.
OF_THE_ENGINE = re.compile(r"(?:dev|proc|sys)/|\.dockerenv$|etc/(?:hostname|hosts|mtab|resolv\.conf)$")
TOOLS = re.compile(r"(?:^|/)s?bin/(?:gcc|g\+\+|cc|c\+\+|clang|ld|as|make|uv|strip)(?:-[\d.]+)?$|/\.cache/")


def files_of(tag: str) -> dict[str, tuple[int, str]]:
    """Mode and SHA-256 (of a link, its target) of every file of an image, without bytecode."""
    container = docker("create", tag).strip()
    found: dict[str, tuple[int, str]] = {}
    try:
        export = subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE)
        with export, tarfile.open(fileobj=export.stdout, mode="r|") as tar:
            for entry in tar:
                if not OF_THE_ENGINE.match(entry.name) and not entry.name.endswith(".pyc"):
                    found[entry.name] = entry.mode, digest(tar, entry)
    finally:
        docker("rm", container)
    return found


def digest(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> str:
    content = tar.extractfile(entry) if entry.isreg() else None
    return entry.linkname if content is None else hashlib.sha256(content.read()).hexdigest()


def test_two_builds_have_the_same_files_and_no_tools_in_them(ground: Ground) -> None:
    first, second = files_of(OURS), files_of(AGAIN)
    print(f"{len(first)} files")
    assert {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)} == set()
    assert [name for name in first if TOOLS.search(name)] == []
    assert [name for name in first if name.startswith("opt/outlast/") and "/pip/" in name] == []


def test_the_image_is_small_and_its_user_is_nobody(ground: Ground) -> None:
    [image] = json.loads(docker("image", "inspect", OURS))
    assert image["Size"] < BYTES_MAX
    assert image["Config"]["User"] == "10001:10001"
    assert image["Config"]["Entrypoint"] == ["outlast"]


def test_every_role_is_healthy_on_a_file_system_that_cannot_be_written_to(crew: Crew) -> None:
    for box in crew.boxes:
        box.until_healthy()
        assert box.run("python", "-c", "import os; print(os.getuid())").stdout.strip() == "10001"
        assert box.run("python", "-c", "open('x', 'w')").returncode != 0


def test_an_api_that_anybody_could_reach_wants_a_token(ground: Ground) -> None:
    refused = subprocess.run(["docker", "run", "--rm", OURS, "api"], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 3, refused.stderr
    assert "OUTLAST_API_TOKEN" in refused.stderr
