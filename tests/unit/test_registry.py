"""How functions become handlers."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from app.domain.errors import HandlersRefused
from outlast import Context, SyncContext, task
from workers.registry import Registry, load, task_of


class Ticket(BaseModel):
    body: str


def test_a_declared_function_stays_what_it_was_and_is_known_with_its_types() -> None:
    class Local(BaseModel):
        n: int

    @task("registry.local", timeout_seconds=5, max_retries=1, version="7", queue="slow", priority=0)
    async def handler(ctx: Context, ticket: Ticket) -> Local:
        raise NotImplementedError

    known = task_of(handler)
    assert known.function is handler
    assert known.is_async
    kind = known.kind()
    assert (kind.name, kind.version) == ("registry.local", "7")
    assert (kind.defaults.timeout_seconds, kind.defaults.max_retries) == (5, 1)
    assert (kind.defaults.queue, kind.defaults.priority) == ("slow", 0)
    assert kind.input_schema["required"] == ["body"]
    assert kind.output_schema["properties"] == {"n": {"title": "N", "type": "integer"}}


def test_what_cannot_be_a_handler_is_refused_where_it_is_declared() -> None:
    for wrong in ("Upper", "", "-x", "a" * 101, "a b", "é"):
        with pytest.raises(HandlersRefused):
            task(wrong)
    for options in ({"timeout_seconds": 0}, {"max_retries": 6}, {"priority": 10}, {"queue": "No"}, {"version": ""}):
        with pytest.raises(HandlersRefused):
            task("registry.wrong", **options)  # type: ignore[arg-type]  # each is wrong on purpose
    with pytest.raises(HandlersRefused, match="context and an input"):

        @task("registry.wrong")
        async def one_argument(ctx: Context) -> None: ...

    with pytest.raises(HandlersRefused, match="in its annotations"):

        @task("registry.wrong")
        async def unknown_type(ctx: Context, value: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(HandlersRefused, match="not declared"):
        task_of(Ticket)


def test_one_kind_has_one_handler() -> None:
    @task("registry.twice")
    async def first(ctx: Context, value: Any) -> None: ...

    with pytest.raises(HandlersRefused, match="declared twice"):

        @task("registry.twice")
        async def second(ctx: Context, value: Any) -> None: ...


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, empty; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


DECLARES = """
from outlast import Context, task

@task("{kind}")
async def handler(ctx: Context, value: int) -> int:
    return value
"""


def test_modules_are_loaded_from_the_working_directory_with_the_tasks_they_declare(modules: Path) -> None:
    package = modules / "desk_handlers"
    package.mkdir()
    (package / "__init__.py").write_text("from desk_handlers import one\n")
    (package / "one.py").write_text(DECLARES.format(kind="desk.one"))
    (modules / "two_handlers.py").write_text(DECLARES.format(kind="desk.two"))
    (modules / "borrowed_handlers.py").write_text("from two_handlers import handler\n")

    registry = load(["desk_handlers", "two_handlers"])
    assert registry.names() == ["desk.one", "desk.two"]
    assert registry.get("desk.one") is not None
    assert registry.get("desk.three") is None
    assert [kind.name for kind in registry.published()] == ["desk.one", "desk.two"]
    assert load(["borrowed_handlers"]).names() == ["desk.two"]


def test_a_handler_without_annotations_takes_and_gives_any_json(modules: Path) -> None:
    source = "from outlast import task\n\n@task('registry.untyped')\ndef handler(ctx, value):\n    return value\n"
    (modules / "untyped_handlers.py").write_text(source)
    known = load(["untyped_handlers"]).get("registry.untyped")
    assert known is not None
    assert not known.is_async
    assert (known.kind().input_schema, known.kind().output_schema) == ({}, {})


def test_a_module_that_cannot_be_used_is_named(modules: Path) -> None:
    (modules / "broken_handlers.py").write_text("import nothing_of_this_name\n")
    (modules / "empty_handlers.py").write_text("")
    for name in ("broken_handlers", "empty_handlers", "absent_handlers"):
        with pytest.raises(HandlersRefused, match=name):
            load([name])


def test_a_type_that_cannot_be_validated_is_refused_where_it_is_declared() -> None:
    class Opaque:
        """Nothing pydantic knows."""

    with pytest.raises(HandlersRefused):

        @task("registry.opaque")
        async def handler(ctx: SyncContext, value: Opaque) -> None: ...


def test_a_type_without_a_json_schema_is_refused_when_kinds_are_published() -> None:
    @task("registry.no-schema")
    async def handler(ctx: Context, value: Callable[[], int]) -> None: ...

    with pytest.raises(HandlersRefused, match="no JSON Schema"):
        Registry([task_of(handler)]).published()


def test_a_function_that_yields_cannot_be_a_handler() -> None:
    async def asynchronous(ctx: Context, value: int) -> AsyncIterator[int]:
        yield value

    def blocking(ctx: SyncContext, value: int) -> Iterator[int]:
        yield value

    for function in (asynchronous, blocking):
        with pytest.raises(HandlersRefused, match="yields"):
            task("registry.yields")(function)


def test_an_empty_registry_knows_nothing() -> None:
    assert Registry().names() == []
