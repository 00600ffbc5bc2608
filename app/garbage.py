"""How often this process looks for garbage in cycles.

Python does after every 700 new objects, and a batch of jobs is tens of thousands of them, none of them garbage: with
its own thresholds a fifth of the processor time of submitting many jobs at once is spent looking.
"""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 10_000


def look_seldom(young_objects: int = YOUNG_OBJECTS) -> None:
    """Called once, when everything is imported: what is there by now stays, and is not looked through again.

    After that it is looked through what was made lately whenever `young_objects` more have been made than let go.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(young_objects)
