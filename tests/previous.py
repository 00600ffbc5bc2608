"""The code as it was before the newest revision of the schema, out of this checkout's history."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from app.store.revision import HEAD
from tests.processes import ROOT

CODE = ("app", "workers", "migrations", "outlast.py")
GIT_SECONDS = 60.0


def unpack_previous(folder: Path, parts: Sequence[str] = CODE) -> bool:
    """Puts these parts of it into `folder`; False where the history does not reach that far, or there is none."""
    added = _git("log", "--format=%H", "--diff-filter=A", "--", f"migrations/versions/{HEAD}_*.py").decode().split()
    if not added:
        return False
    tree = _git("archive", "--format=tar", f"{added[-1]}^", *parts)
    if not tree:
        return False
    with tarfile.open(fileobj=BytesIO(tree)) as tar:
        tar.extractall(folder, filter="data")
    return True


def _git(*words: str) -> bytes:
    """What git prints; nothing when it fails or does not exist."""
    try:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, timeout=GIT_SECONDS).stdout
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return b""
