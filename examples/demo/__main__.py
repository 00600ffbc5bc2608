"""`python -m examples.demo`: exits 0 only if everything it promises held.

--keep      keeps the folder with data and logs (it is kept anyway when something did not hold)
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import httpx

from examples.demo.failures import DemoFailed
from examples.demo.screen import Screen
from examples.demo.story import tell

OK, BROKEN, INTERRUPTED = 0, 1, 130


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT):  # a shell's background job has SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    screen = Screen()
    folder = Path(tempfile.mkdtemp(prefix="outlast-demo-"))
    code = run(screen, folder)
    if code == OK and not arguments.keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        screen.say(f"data and logs are in {folder}")
    return code


def run(screen: Screen, folder: Path) -> int:
    """Tells the story and shows what held. The exit code."""
    try:
        checks = tell(screen, folder)
    except (DemoFailed, httpx.HTTPError) as failed:
        screen.say(f"the demonstration cannot go on: {failed}")
        return BROKEN
    except KeyboardInterrupt:
        screen.say("interrupted; everything is stopped")
        return INTERRUPTED
    screen.step("What was promised")
    screen.checks(checks)
    broken = sum(not check.held for check in checks)
    screen.say(f"{len(checks)} promises, {broken} broken")
    return BROKEN if broken else OK


if __name__ == "__main__":
    sys.exit(main())
