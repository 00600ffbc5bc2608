"""`python -m tests.chaos.planted [words of a name ...]`: does a run under faults catch what is planted in the product?

Prints each fault with the rule that caught it. Exit 1 when one escaped; its logs are kept. `SEED=n` does the same
again; `SOUND=1` plants nothing, and then nothing may be found.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.planted.copies import plant
from tests.chaos.planted.flaws import FLAWS, Flaw

ONE_SECONDS_MAX = 240.0


def caught_by(number: int, flaw: Flaw, seed: int, folder: Path, *, sound: bool) -> Counter[str]:
    """The rules that were broken, and how often each."""
    tree = folder / "tree"
    plant([] if sound else flaw.edits, tree)
    words = [sys.executable, "-m", "tests.chaos.planted.one", str(number), str(seed), str(folder / "run")]
    try:
        ran = subprocess.run(words, cwd=tree, capture_output=True, text=True, timeout=ONE_SECONDS_MAX, check=False)
        out, err = ran.stdout, ran.stderr if ran.returncode else ""
    except subprocess.TimeoutExpired:
        out, err = "", "did not end in time"
    (folder / "findings").write_text(out + err)
    found = Counter(str(json.loads(line)[0]) for line in out.splitlines())
    return found + Counter({"no run": 1} if err else {})


def main(words: Sequence[str]) -> int:
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1_000_000))
    sound = bool(os.environ.get("SOUND"))
    base = Path(tempfile.mkdtemp(prefix="outlast-planted-"))
    print(f"seed {seed}; logs in {base}", flush=True)
    escaped = 0
    for number, flaw in enumerate(FLAWS):
        if words and not any(word in flaw.name for word in words):
            continue
        began, folder = time.monotonic(), base / str(number)
        folder.mkdir()
        found = caught_by(number, flaw, seed, folder, sound=sound)
        right = not found if sound else bool(flaw.rules & found.keys())
        escaped += not right
        told = ", ".join(f"{rule} {count}" for rule, count in found.most_common(4)) or "nothing found"
        word = "" if right else "  <- wrong" if sound else "  <- escaped"
        print(f"{flaw.name:60} {told}  {time.monotonic() - began:.0f} s{word}", flush=True)
        if right:
            shutil.rmtree(folder)
    return 1 if escaped else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
