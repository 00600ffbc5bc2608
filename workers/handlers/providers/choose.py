"""Which provider this process asks, from its environment.

`OUTLAST_TRIAGE_PROVIDER` names it (`offline` is the default and the only one built in);
`OUTLAST_TRIAGE_SCRIPT` is a file of misbehaviour to lay over it (see `scripted.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from outlast import Permanent
from workers.handlers.providers.base import Provider
from workers.handlers.providers.offline import OfflineProvider
from workers.handlers.providers.scripted import ScriptedProvider

PROVIDERS: Mapping[str, Callable[[], Provider]] = {"offline": OfflineProvider}


def provider_from(environment: Mapping[str, str]) -> Provider:
    """Raises `Permanent` for a name nobody knows: no retry can help until the worker is set up properly."""
    name = environment.get("OUTLAST_TRIAGE_PROVIDER", "offline")
    make = PROVIDERS.get(name)
    if make is None:
        raise Permanent(f"OUTLAST_TRIAGE_PROVIDER names no provider; there are: {', '.join(sorted(PROVIDERS))}")
    script = environment.get("OUTLAST_TRIAGE_SCRIPT")
    return ScriptedProvider(make(), Path(script)) if script else make()
