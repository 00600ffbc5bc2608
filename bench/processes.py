"""CPU seconds of a tree of processes, by what each is for (Linux)."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
ROLES = (
    ("worker", re.compile(r"workers\.child|workers\.main worker")),
    ("relay", re.compile(r"workers\.main relay")),
    ("api", re.compile(r"workers\.main api")),
    ("postgres", re.compile(r"^postgres:|/postgres ")),
    ("redis", re.compile(r"redis-server|valkey-server|valkey")),
)


def cpu_seconds(root: int) -> Mapping[str, float]:
    """Seconds of processor time that `root` and everything below it have used, by role; ended children count too."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for pid in tree(root):
        try:
            fields = _stat(pid)
            role = role_of(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # ended since; its parent counts it
        seconds[role] += sum(map(int, fields[11:15])) / TICKS_PER_SECOND
    return seconds


def tree(root: int) -> list[int]:
    """`root` and all processes below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(int(_stat(int(entry.name))[1]), []).append(int(entry.name))
            except OSError:
                continue
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def role_of(command: str) -> str:
    """What a process is for, by its command line."""
    return next((role for role, pattern in ROLES if pattern.search(command)), "other")


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from `state` on: `ppid` is 1, `utime` to `cstime` are 11 to 14 (proc(5))."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
