"""Waits until an API says that all of it is ready.

python compose/ready.py http://127.0.0.1:8080/readyz 120      exit code 0 or 1, and on stdout what it said last
"""

from __future__ import annotations

import json
import sys
import time
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import urlopen

LOOK_SECONDS = 0.5
ANSWER_SECONDS = 5.0


def said(url: str) -> tuple[bool, str]:
    """Whether it is ready, relay and workers included, and its words."""
    try:
        with urlopen(url, timeout=ANSWER_SECONDS) as answer:
            text = answer.read().decode()
            return json.loads(text).get("status") == "ok", text
    except HTTPError as error:
        return False, f"{error.code} {error.read().decode(errors='replace')}"
    except (OSError, HTTPException, ValueError) as error:
        return False, f"{type(error).__name__}: {error}"


def main(url: str, seconds: str) -> int:
    end = time.monotonic() + float(seconds)
    ready, text = said(url)
    while not ready and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
        ready, text = said(url)
    print(f"{url}: {text}")
    return 0 if ready else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
