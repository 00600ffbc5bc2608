"""An engine that runs containers: the one that answers, or, for root on Debian, one of our own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from workers.dev.guard import spawn

ANSWER_SECONDS = 20.0
INSTALL_SECONDS = 240.0
START_SECONDS = 60.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.2
LOG_TAIL_CHARS = 1_500
BRIDGE = "docker0"
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")


class NoEngine(Exception):
    """No engine can be had here."""


@contextmanager
def engine() -> Iterator[Mapping[str, str]]:
    """The environment in which `docker` reaches an engine. One that was started here is gone afterwards.

    Raises `NoEngine` with the reason.
    """
    if answers({}):
        yield {}
        return
    if os.geteuid() != 0:
        raise NoEngine("no engine answers, and only root can start one")
    install()
    if answers({}):  # a package may start what it installs
        yield {}
        return
    folder = tempfile.TemporaryDirectory(prefix="outlast-engine-", ignore_cleanup_errors=True)
    with folder as path, own(Path(path)) as host:
        yield {"DOCKER_HOST": host}


def answers(environment: Mapping[str, str]) -> bool:
    """Whether an engine answers there."""
    if shutil.which("docker") is None:
        return False
    words = ["docker", "version", "--format", "{{.Server.Version}}"]
    with suppress(subprocess.TimeoutExpired):
        asked = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, timeout=ANSWER_SECONDS)
        return asked.returncode == 0
    return False


def install() -> None:
    """Debian's package of it, unless there is an engine to start. Raises `NoEngine`."""
    if shutil.which("dockerd") is None:
        if shutil.which("apt-get") is None:
            raise NoEngine("no engine answers, there is no dockerd, and no apt-get to install one")
        print("installing docker.io and docker-compose", flush=True)
        _apt("update", "-qq")
        _apt("install", "-qq", "--yes", "--no-install-recommends", "docker.io", "docker-compose")
    if shutil.which("docker") is None:
        _apt("install", "-qq", "--yes", "--no-install-recommends", "docker-cli")


@contextmanager
def own(folder: Path) -> Iterator[str]:
    """An engine with all it has in `folder`; its address. Stopped by its pid, with what it did to the network."""
    host = f"unix://{folder}/docker.sock"
    log = folder / "log"
    words = ["dockerd", "--host", host, "--log-level", "warn"]
    for option, name in (("data-root", "data"), ("exec-root", "exec"), ("pidfile", "pid")):
        words += [f"--{option}", str(folder / name)]
    before = Network.now()
    with log.open("wb") as out:
        process = spawn(words, signal.SIGTERM, stdout=out, stderr=out)
    try:
        _until_it_answers(process, host, log)
        print(f"an engine of our own, pid {process.pid}", flush=True)
        yield host
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        before.restore()


class Network:
    """What an engine changes of this machine's network and leaves behind."""

    def __init__(self, bridge: bool, tables: str, forwarding: str) -> None:
        self._bridge = bridge
        self._tables = tables
        self._forwarding = forwarding

    @classmethod
    def now(cls) -> Network:
        return cls(Path("/sys/class/net", BRIDGE).exists(), _output("iptables-save"), FORWARDING.read_text())

    def restore(self) -> None:
        """As it was. Tables of rules that did not exist are emptied."""
        if not self._bridge:
            _output("ip", "link", "delete", BRIDGE)
        with suppress(OSError):
            FORWARDING.write_text(self._forwarding)
        missing = [line for line in _output("iptables-save").splitlines() if line.startswith("*")]
        empty = "".join(f"{table}\n{_open_chains(table)}COMMIT\n" for table in missing if table not in self._tables)
        _output("iptables-restore", text=self._tables + empty)


def _open_chains(table: str) -> str:
    """The chains that every table of this name has, letting everything through."""
    chains = {"*filter": ("INPUT", "FORWARD", "OUTPUT"), "*nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING")}
    return "".join(f":{chain} ACCEPT [0:0]\n" for chain in chains.get(table, ()))


def _output(*words: str, text: str = "") -> str:
    """What a command prints; nothing when it fails or does not exist."""
    with suppress(FileNotFoundError, subprocess.TimeoutExpired):
        return subprocess.run(words, input=text, capture_output=True, text=True, timeout=ANSWER_SECONDS).stdout
    return ""


def _until_it_answers(process: subprocess.Popen[bytes], host: str, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not answers({"DOCKER_HOST": host}):
        if process.poll() is not None or time.monotonic() > end:
            raise NoEngine(f"dockerd does not start here: {log.read_text(errors='replace')[-LOG_TAIL_CHARS:]}")
        time.sleep(POLL_SECONDS)


def _apt(*words: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _run(["apt-get", *words], environment)


def _run(words: Sequence[str], environment: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise NoEngine(f"{' '.join(words)}: no end within {INSTALL_SECONDS:g} s") from None
    if done.returncode != 0:
        raise NoEngine(f"{' '.join(words)}: {done.stderr.strip()[-LOG_TAIL_CHARS:]}")
