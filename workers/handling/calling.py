"""How functions of handler authors are called: on the loop or in a thread, with a derived key or without."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, partial, wraps
from hashlib import sha256
from types import CodeType, FunctionType
from typing import Any, TypeGuard, cast
from uuid import UUID

from app.domain.errors import CallLate, Permanent
from workers.handling.threads import Threads

Function = Callable[..., Any]

Place = tuple[str, int]

KEY_PARAMETER = "idempotency_key"
KEY_HEX = 40
ANNOTATIONS_MAX = 1_024
ENDS_PROCESS = (SystemExit, KeyboardInterrupt)


class Caller:
    """Calls foreign functions; blocking ones in `threads`."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def call(self, key: str, function: Function, args: tuple[Any, ...], derived_key: Callable[[], str]) -> Any:
        """What `function(*args)` comes to, called for the effect `key`.

        The function gets `derived_key` where it has a parameter `idempotency_key`. Raises as `run`.
        """
        keywords = {KEY_PARAMETER: derived_key()} if takes_key(function) else {}
        return await self.run(f"effect {key}", function, *args, **keywords)

    async def run(self, what: str, function: Function, *args: Any, **keywords: Any) -> Any:
        """What `function(*args, **keywords)` comes to, awaited where it is a coroutine.

        Raises what it raises, and `Permanent` in place of an exit: one job does not end a process that
        runs others.
        """
        try:
            if is_async(function):
                return await function(*args, **keywords)
            value = await self._threads.run(partial(function, *args, **keywords))
            return await value if inspect.isawaitable(value) else value
        except ENDS_PROCESS as error:
            raise Permanent(f"{what} asked the process to exit: {type(error).__name__}({error})") from error


def timely(function: Function, may_begin: Callable[[], bool]) -> Function:
    """The function, but where it runs in a thread it asks there whether it may begin, and raises `CallLate` if not."""
    if is_async(function):
        return function

    @wraps(function)
    def begin(*args: Any, **keywords: Any) -> Any:
        if not may_begin():
            raise CallLate
        return function(*args, **keywords)

    return begin


def idempotency_key(job_id: UUID, key: str) -> str:
    """The key an outside service gets for an effect: the same for every attempt, worker and replay (hex)."""
    return sha256(job_id.bytes + key.encode()).hexdigest()[:KEY_HEX]


def is_async(function: Function) -> bool:
    """Whether calling the function gives a coroutine."""
    if _is_bare(function):
        return bool(function.__code__.co_flags & inspect.CO_COROUTINE)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def takes_key(function: Function) -> bool:
    """Whether the function has a parameter `idempotency_key`."""
    if _is_bare(function):
        code = function.__code__
        return KEY_PARAMETER in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    try:
        return KEY_PARAMETER in inspect.signature(function).parameters
    except (ValueError, TypeError):  # some builtins have no signature
        return False


def returned_type(function: Function) -> Any:
    """The type the function is annotated to return; `Any` where it says none, or none that can be found."""
    inner = _innermost(function)
    annotation = getattr(inner, "__annotations__", {}).get("return", Any)
    if not isinstance(annotation, str):
        return annotation
    try:
        # The author's own annotation.
        return eval(_compiled(annotation), getattr(inner, "__globals__", {}))  # noqa: S307
    except NameError:
        return Any


def place_of(function: Function) -> Place:
    """Where the function's code is, its file and line: the same for every closure made there."""
    code = getattr(_innermost(function), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else (repr(type(function)), 0)


@lru_cache(ANNOTATIONS_MAX)
def _compiled(annotation: str) -> CodeType:
    return compile(annotation, "<annotation>", "eval")


def _is_bare(function: Function) -> TypeGuard[FunctionType]:
    """A `def` or `lambda`, wrapped in nothing: all there is to know of it stands in its code."""
    return type(function) is FunctionType and not function.__dict__


def _innermost(function: Function) -> Function:
    if _is_bare(function):
        return function
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    function = inspect.unwrap(function)
    if inspect.ismethod(function):
        return function.__func__
    return function if inspect.isfunction(function) or inspect.isbuiltin(function) else type(function).__call__
