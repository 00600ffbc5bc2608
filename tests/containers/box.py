"""One container of a stack, and everything that may happen to it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from testcontainers.core.container import DockerContainer
from testcontainers.core.exceptions import ContainerStartException
from testcontainers.core.network import Network

from tests.containers.docker_cli import docker, until

LABEL = "outlast.tests"
GRACE_SECONDS = 40
HEALTHY_SECONDS = 60.0
LOCKED_DOWN = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}


class Box:
    """A container under a name that is also its address on its network, and the host that its processes give."""

    def __init__(
        self,
        name: str,
        image: str,
        network: Network,
        *,
        words: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        ports: dict[int, int] | None = None,
        entrypoint: Sequence[str] = (),
        ours: bool = True,
    ) -> None:
        """`ports` maps the container's to fixed ones of this machine: one that is chosen changes at a restart."""
        self.name = name
        self.network = network
        self._container = DockerContainer(image, env=environment, network=network, network_aliases=[name])
        more = LOCKED_DOWN if ours else {}
        self._container.with_kwargs(hostname=name, labels={LABEL: "1"}, entrypoint=list(entrypoint) or None, **more)
        self._container.with_command(list(words))
        for inside, outside in (ports or {}).items():
            self._container.with_bind_ports(inside, outside)

    def create(self) -> None:
        """Starts it for the first time."""
        self._container.start()

    def remove(self) -> None:
        self._container.stop()

    @property
    def id(self) -> str:
        return self._container.get_container_id()

    @property
    def state(self) -> str:
        """`running`, `paused`, `exited` …"""
        return self._inspect("{{.State.Status}}")

    @property
    def exit_code(self) -> int:
        return int(self._inspect("{{.State.ExitCode}}"))

    def until_healthy(self) -> None:
        """Waits until its health check says so."""
        until(
            lambda: self._inspect("{{.State.Health.Status}}") == "healthy", HEALTHY_SECONDS, what=f"a sound {self.name}"
        )

    def kill(self) -> int:
        """SIGKILL to all of it; its exit code."""
        docker("kill", "--signal", "KILL", self.id)
        until(lambda: self.state == "exited", 20, what=f"the end of {self.name}")
        return self.exit_code

    def stop(self) -> int:
        """As a deploy stops it; its exit code."""
        docker("stop", "--time", str(GRACE_SECONDS), self.id, seconds=GRACE_SECONDS + 30)
        return self.exit_code

    def start(self) -> None:
        docker("start", self.id)

    def restart(self) -> None:
        docker("restart", "--time", str(GRACE_SECONDS), self.id, seconds=GRACE_SECONDS + 30)

    def pause(self) -> None:
        docker("pause", self.id)

    def unpause(self) -> None:
        docker("unpause", self.id)

    def cut_off(self) -> None:
        """Takes it off its network; connections that are open hear nothing of it."""
        docker("network", "disconnect", self.network.name, self.id)

    def connect(self) -> None:
        docker("network", "connect", "--alias", self.name, self.network.name, self.id)

    def run(self, *words: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """Runs a command in it, to its end."""
        return subprocess.run(
            ["docker", "exec", self.id, *words], capture_output=True, text=True, timeout=seconds, check=False
        )

    def log(self) -> str:
        """What it wrote on stdout and stderr; nothing of one that was never started."""
        try:
            out, err = self._container.get_logs()
        except ContainerStartException:
            return ""
        return (out + err).decode(errors="replace")

    def mend(self) -> None:
        """Whatever was done to it, it runs again and is on its network."""
        if self.state == "paused":
            self.unpause()
        if self.state != "running":
            self.start()
        if self.network.name not in self._inspect("{{json .NetworkSettings.Networks}}"):
            self.connect()

    def _inspect(self, template: str) -> str:
        return docker("inspect", "--format", template, self.id).strip()
