"""Handlers: how a function becomes one, and which of them this process knows."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from app.domain.errors import HandlersRefused
from app.domain.kinds import (
    DEFAULT_MAX_RETRIES,
    DEFAULT_TIMEOUT_SECONDS,
    MAX_RETRIES_CAP,
    PRIORITY_MAX,
    TIMEOUT_SECONDS_MAX,
    Defaults,
    Kind,
    is_name,
)

Handler = TypeVar("Handler", bound=Callable[..., Any])

VERSION_CHARS_MAX = 100

_TASK = "__outlast_task__"
_declared: dict[str, Task] = {}


@dataclass(frozen=True, slots=True)
class Task:
    """A kind together with the function that handles it.

    `function(context, input)` is an `async def` where `is_async`, else a `def` that runs in a thread.
    `input` and `output` are the types of its annotations, `Any` where there are none.
    """

    name: str
    version: str
    function: Callable[[Any, Any], Any]
    is_async: bool
    input: TypeAdapter[Any]
    output: TypeAdapter[Any]
    defaults: Defaults

    def kind(self) -> Kind:
        """What is published of this task. Raises `HandlersRefused`: a type without a JSON Schema."""
        try:
            return Kind(
                name=self.name,
                version=self.version,
                input_schema=self.input.json_schema(mode="validation"),
                output_schema=self.output.json_schema(mode="serialization"),
                defaults=self.defaults,
            )
        except PydanticUserError as error:
            raise HandlersRefused(f"{self.name}: no JSON Schema: {error.message}") from error


class Registry:
    """The tasks of one process by kind."""

    def __init__(self, tasks: Sequence[Task] = ()) -> None:
        self._tasks = {task.name: task for task in tasks}

    def names(self) -> list[str]:
        """The kinds this process can run, sorted."""
        return sorted(self._tasks)

    def get(self, kind: str) -> Task | None:
        return self._tasks.get(kind)

    def published(self) -> list[Kind]:
        """The kinds as the table `kinds` keeps them, sorted by name. Raises `HandlersRefused`."""
        return [self._tasks[name].kind() for name in self.names()]


def task(
    name: str,
    *,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    max_retries: int = DEFAULT_MAX_RETRIES,
    version: str = "1",
    queue: str | None = None,
    priority: int | None = None,
) -> Callable[[Handler], Handler]:
    """Makes the function below the handler of the kind `name`; the function itself stays as it is.

    `timeout_seconds` bounds one attempt, `max_retries` (0 to 5) counts those after the first, `priority`
    is 0 (first) to 9. Raises `HandlersRefused`.
    """
    defaults = Defaults(timeout_seconds=timeout_seconds, max_retries=max_retries, queue=queue, priority=priority)
    _refuse_if(not is_name(name), f"{name!r} cannot name a kind")
    _refuse_if(not 0 < len(version) <= VERSION_CHARS_MAX, f"{name}: version has 1 to {VERSION_CHARS_MAX} characters")
    _check_defaults(name, defaults)
    scope = _scope_of(inspect.currentframe())

    def declare(function: Handler) -> Handler:
        declared = _read(name, version, function, defaults, scope)
        known = _declared.get(name)
        if known is not None and _place(known.function) != _place(function):
            raise HandlersRefused(f"{name} is declared twice: {_place(known.function)} and {_place(function)}")
        _declared[name] = declared
        setattr(function, _TASK, declared)
        return function

    return declare


def task_of(handler: Callable[..., Any]) -> Task:
    """The task that `@task` made of the function. Raises `HandlersRefused`: it made none."""
    found = getattr(handler, _TASK, None)
    if not isinstance(found, Task):
        raise HandlersRefused(f"{_place(handler)} is not declared with @task")
    return found


def load(modules: Sequence[str]) -> Registry:
    """Imports the modules, the working directory first on the path, and gives the tasks they declare.

    A package brings the tasks of every submodule it imports, and any module those it imports by name.
    Raises `HandlersRefused`: a module cannot be imported, or declares nothing.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    found: dict[str, Task] = {}
    for name in modules:
        tasks = _tasks_of(_imported(name))
        _refuse_if(not tasks, f"{name} declares no task")
        found.update(tasks)
    return Registry(list(found.values()))


def _scope_of(frame: FrameType | None) -> Mapping[str, Any]:
    """The local names where `task` is called: annotations may name classes of the enclosing function."""
    return frame.f_back.f_locals if frame is not None and frame.f_back is not None else {}


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except HandlersRefused:
        raise
    except Exception as error:
        raise HandlersRefused(f"{name} cannot be imported: {type(error).__name__}: {error}") from error


def _tasks_of(module: ModuleType) -> dict[str, Task]:
    inside = module.__name__ + "."
    own = [known for known in _declared.values() if f"{known.function.__module__}.".startswith(inside)]
    named = [getattr(value, _TASK, None) for value in vars(module).values() if inspect.isfunction(value)]
    return {one.name: one for one in (*own, *named) if isinstance(one, Task)}


def _read(name: str, version: str, function: Callable[..., Any], defaults: Defaults, scope: Mapping[str, Any]) -> Task:
    try:
        signature = inspect.signature(function, locals=dict(scope), eval_str=True)
    except NameError as error:
        raise HandlersRefused(f"{name}: {error} in its annotations") from error
    parameters = list(signature.parameters.values())
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    keywords = [one for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    endless = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    _refuse_if(endless, f"{name}: a handler returns its result once; this one yields")
    _refuse_if(len(positional) != 2 or bool(keywords), f"{name}: a handler takes a context and an input")
    return Task(
        name=name,
        version=version,
        function=function,
        is_async=inspect.iscoroutinefunction(function),
        input=_adapter(name, positional[1].annotation),
        output=_adapter(name, signature.return_annotation),
        defaults=defaults,
    )


def _adapter(name: str, annotation: object) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(Any if annotation is inspect.Signature.empty else cast("Any", annotation))
    except PydanticUserError as error:
        raise HandlersRefused(f"{name}: {error.message}") from error


def _check_defaults(name: str, defaults: Defaults) -> None:
    _refuse_if(
        not 0 < defaults.timeout_seconds <= TIMEOUT_SECONDS_MAX,
        f"{name}: timeout_seconds is above 0, at most {TIMEOUT_SECONDS_MAX:g}",
    )
    _refuse_if(not 0 <= defaults.max_retries <= MAX_RETRIES_CAP, f"{name}: max_retries is 0 to {MAX_RETRIES_CAP}")
    _refuse_if(defaults.queue is not None and not is_name(defaults.queue), f"{name}: {defaults.queue!r} is no queue")
    _refuse_if(
        defaults.priority is not None and not 0 <= defaults.priority <= PRIORITY_MAX,
        f"{name}: priority is 0 to {PRIORITY_MAX}",
    )


def _refuse_if(wrong: bool, why: str) -> None:
    if wrong:
        raise HandlersRefused(why)


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
