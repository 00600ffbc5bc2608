"""Wall clocks that are wrong for whole processes, by a small library that is preloaded into them (Linux, with `cc`)."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
import time
from functools import cache
from pathlib import Path

SHIFT = "SHIFTED_CLOCK"
COMPILER = "cc"
LIBRARY = "shifted_clock.so"
SOURCE = Path(__file__).with_name("shifted_clock.c")


class ShiftedClock:
    """A wall clock that is `seconds` off for every process started with its `environment`, and can be set back.

    Raises `RuntimeError` without a C compiler.
    """

    def __init__(self, folder: Path, name: str, seconds: float) -> None:
        self._library = folder / LIBRARY
        self._file = folder / f"{name}.clock"
        if not self._library.exists():
            _compile(self._library)
        self._seconds = seconds
        self._file.write_bytes(struct.pack("d", seconds))

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), SHIFT: str(self._file)}

    def step_back(self, seconds: float) -> None:
        """Sets the clock back by so much, in the processes that run already too."""
        self._seconds -= seconds
        with self._file.open("r+b", buffering=0) as file:
            file.write(struct.pack("d", self._seconds))


def has_compiler() -> bool:
    return shutil.which(COMPILER) is not None


def _compile(library: Path) -> None:
    if not has_compiler():
        raise RuntimeError(f"shifting clocks takes a C compiler: there is no {COMPILER} on the path")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O2", "-o", library, SOURCE, "-ldl"], check=True)


def is_shifted(pid: int) -> bool:
    """Whether the library is in force in this process."""
    return LIBRARY in Path(f"/proc/{pid}/maps").read_text()


def true_time() -> tuple[float, float]:
    """The time of day, and by how much the clock of this process is off, whether or not it is shifted."""
    while True:
        shift = _shift()
        at = time.time() - shift
        if _shift() == shift:
            return at, shift


def _shift() -> float:
    return 0.0 if (page := _page()) is None else struct.unpack("d", page[:8])[0]


@cache
def _page() -> mmap.mmap | None:
    path = os.environ.get(SHIFT)
    if path is None:
        return None
    with Path(path).open("rb") as file:
        return mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
