"""CPU seconds of a tree of processes, by what each is for (Linux)."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
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
            role = _role(pid)
        except OSError:
            continue  # ended since; its parent counts it
        seconds[role] += sum(map(int, fields[11:15])) / TICKS_PER_SECOND
    return seconds


def memory_mb(root: int) -> Mapping[str, float]:
    """Resident memory of each process below `root`, in MB: of each role the largest. PostgreSQL's shares are not."""
    largest: defaultdict[str, float] = defaultdict(float)
    for pid in tree(root):
        try:
            role = _role(pid)
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except OSError:
            continue
        largest[role] = max(largest[role], pages * PAGE_BYTES / 1_048_576)
    return largest


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


def _role(pid: int) -> str:
    return role_of(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from `state` on: `ppid` is 1, `utime` to `cstime` are 11 to 14 (proc(5))."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
