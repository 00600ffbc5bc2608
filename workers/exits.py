"""How a worker process ends: its exit codes, and how long past the grace it may take. Loads nothing of the worker."""

from __future__ import annotations

EXIT_DRAINED = 0
EXIT_RELEASED_LATE = 1
EXIT_FAILED = 70  # EX_SOFTWARE of sysexits(3)
EXIT_HANDLERS_REFUSED = 78  # EX_CONFIG of sysexits(3)

WRITE_SECONDS = 5.0  # for what must still be written, twice: what ended, and what is given back
