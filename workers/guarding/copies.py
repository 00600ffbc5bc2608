"""What becomes of a worker that a handler copied with `os.fork`.

A copy shares every connection of the worker and stands in the middle of its code. It may run what it was made for and
end by `exec` or `os._exit`, as `multiprocessing` does. Where it comes back into our code instead it is ended at once:
one byte that it wrote, or read, on a connection to PostgreSQL would be the worker's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")

EXIT_COPY = 71  # EX_OSERR of sysexits(3)

_is_copy = False


def _notice() -> None:
    global _is_copy
    _is_copy = True


os.register_at_fork(after_in_child=_notice)


def end_copies() -> None:
    """Ends this process if it is a copy; nothing else."""
    if _is_copy:
        os._exit(EXIT_COPY)


@coroutine
def in_original(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Awaits `work`, and ends a copy that `work` made as soon as it awaits, returns or raises."""
    step: Callable[[Any], Any] = work.send
    sent: Any = None
    while True:
        try:
            awaited: Any = step(sent)
        except StopIteration as end:
            end_copies()
            return end.value
        except BaseException:
            end_copies()
            raise
        end_copies()
        try:
            sent = yield awaited
            step = work.send
        except GeneratorExit:
            work.close()
            raise
        except BaseException as error:
            sent, step = error, work.throw
