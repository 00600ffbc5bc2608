"""What the health check of a container runs: whether the process of this container still does anything.

    python -m workers.healthy       exit code 0 or 1, and why on stderr

It asks that process and nobody else. A worker whose PostgreSQL is away waits, and is healthy: to put another in its
place would help nobody. Whether work can be done at all is what `/readyz` says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path

ROLES = ("api", "relay", "worker", "migrate")
CHILD = "workers.child"
INIT = 1
ANSWER_SECONDS = 3.0
DEFAULT_PORT = "8080"
EVERYWHERE = {"", "0.0.0.0", "::"}  # noqa: S104  # compared with, not bound
# proc(5): stopped, traced, a zombie, dead.
LIFELESS = frozenset("TtZX")


def trouble(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """What is wrong with the container whose first process was started with these words; empty when nothing is."""
    role = role_of(words)
    if role == "api":
        return _unanswered(*address_of(words, environment))
    looked_for = CHILD if role == "worker" else role
    if looked_for is None:
        return f"no role of outlast among {' '.join(words)}"
    return "" if _runs(looked_for) else f"no running process is {looked_for}"


def role_of(words: Sequence[str]) -> str | None:
    """The command of `outlast` among the words of a process, whatever stands before it."""
    return next((word for word in words if word in ROLES), None)


def address_of(words: Sequence[str], environment: Mapping[str, str]) -> tuple[str, int]:
    """Where an API that was started so can be reached from within its container."""
    host = _option(words, "--host") or environment.get("OUTLAST_API_HOST", "")
    port = _option(words, "--port") or environment.get("OUTLAST_API_PORT", DEFAULT_PORT)
    return "127.0.0.1" if host in EVERYWHERE else host, int(port)


def main() -> int:
    wrong = trouble(_words(Path("/proc/1")), os.environ)
    if wrong:
        sys.stderr.write(f"{wrong}\n")
    return 1 if wrong else 0


def _option(words: Sequence[str], name: str) -> str | None:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == name:
            return following
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


def _unanswered(host: str, port: int) -> str:
    connection = HTTPConnection(host, port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        return f"/healthz: {type(error).__name__}: {error}"
    finally:
        connection.close()
    return "" if status == HTTPStatus.OK else f"/healthz answered {status}"


def _runs(word: str) -> bool:
    """Whether a process with this word is alive. An init has the words of what it started, and counts only alone."""
    states = {pid: state for pid, words, state in _processes() if word in words}
    if len(states) > 1:
        states.pop(INIT, None)
    return any(state not in LIFELESS for state in states.values())


def _processes() -> Iterator[tuple[int, list[str], str]]:
    """Pid, words and state of every process that can be seen."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            yield int(folder.name), _words(folder), state
        except (FileNotFoundError, PermissionError, ProcessLookupError, IndexError):
            continue


def _words(folder: Path) -> list[str]:
    return (folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")


if __name__ == "__main__":
    sys.exit(main())
