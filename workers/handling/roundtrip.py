"""Values of handlers and effects on their way through JSON.

A value counts only as what its type reads back from JSON, so a fresh one and a recorded one are the
same to whoever gets it. What JSON would turn into something else (a set, a Decimal or bytes under no
annotation, NaN) is refused instead of changed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import lru_cache
from hashlib import sha256
from types import NoneType
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from app.domain import jsontext
from app.domain.errors import JsonRefused, NotRecordable, TooLarge
from app.domain.jsontext import JsonValue
from app.domain.request import canonical
from workers.handling.plain import is_plain, written

Adapter = TypeAdapter[Any]

ADAPTERS_MAX = 1_024
AS_THEY_ARE = {str, bool, NoneType}
UNFINISHED = (Iterator, AsyncIterator, Coroutine)


@lru_cache(ADAPTERS_MAX)
def adapter_of(annotation: Any) -> Adapter:
    """The validator and serializer of a type. Raises pydantic's errors for what is none."""
    return TypeAdapter(annotation)


def encode(adapter: Adapter, value: object, *, bytes_max: int) -> tuple[str, Any]:
    """JSON text of the value, by field names, and the value its type reads back from it.

    Raises `JsonRefused` for what is not JSON or is not itself afterwards, pydantic's `ValidationError`
    for what is not of the type, `TooLarge` for text over `bytes_max` bytes of UTF-8.
    """
    return _short(adapter, value, bytes_max) or _long(adapter, value, bytes_max)


def _short(adapter: Adapter, value: object, bytes_max: int) -> tuple[str, Any] | None:
    short = written(adapter, value) if is_plain(adapter) else None
    return short if short is not None and _size(short[0]) <= bytes_max else None


def _long(adapter: Adapter, value: object, bytes_max: int) -> tuple[str, Any]:
    name = type(value).__name__
    if isinstance(value, UNFINISHED):
        raise JsonRefused(f"a {name} is no value: it may be without end, or was not awaited")
    given = adapter.validate_python(value)
    try:
        plain = adapter.dump_python(given, mode="json", round_trip=True, warnings="none")
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise JsonRefused(f"not JSON ({type(error).__name__})") from error
    _refuse_vast(plain, bytes_max)
    text = jsontext.dump(plain)
    _check_size(text, bytes_max)
    read = decode(adapter, text)
    if not _same(given, read):
        raise JsonRefused("JSON would change the value; say its type")
    return text, read


def decode(adapter: Adapter, text: str) -> Any:
    """The value that JSON text written by `encode` stands for. Raises `ValidationError`."""
    return adapter.validate_json(text, by_alias=False, by_name=True)


def published(adapter: Adapter, value: object, *, bytes_max: int) -> str:
    """JSON text of a handler's result as callers see it: checked by its type, written under its aliases.

    A model that nothing announced is its own type. Raises as `encode`.
    """
    if isinstance(value, BaseModel) and adapter.core_schema["type"] == "any":
        adapter = adapter_of(type(value))
    short = _short(adapter, value, bytes_max)
    if short is not None:
        return short[0]
    _, read = _long(adapter, value, bytes_max)
    text = jsontext.dump(adapter.dump_python(read, mode="json", by_alias=True, warnings="none"))
    _check_size(text, bytes_max)
    return text


def _refuse_vast(plain: JsonValue, bytes_max: int) -> None:
    """Refuses what is too large at a glance: to write it down first would block the event loop for seconds."""
    size = 0
    rest = [plain]
    while rest and size <= bytes_max:
        value = rest.pop()
        match value:
            case str():
                size += len(value) + 2
            case list():
                size += 2 * len(value)
                rest += value if size <= bytes_max else []
            case dict():
                size += 5 * len(value)
                rest += value.values() if size <= bytes_max else []
            case _:
                pass
    if size > bytes_max:
        raise TooLarge(size, bytes_max)


def _check_size(text: str, bytes_max: int) -> None:
    size = _size(text)
    if size > bytes_max:
        raise TooLarge(size, bytes_max)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def fingerprint(args: Sequence[object]) -> bytes:
    """SHA-256 over the canonical JSON of the arguments. Raises `NotRecordable`: one has no JSON form."""
    try:
        return sha256(_canonical_row(args)).digest()
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise NotRecordable(f"an argument has no JSON form ({error}); it belongs in a closure") from error


def _canonical_row(args: Sequence[object]) -> bytes:
    if all(type(arg) in AS_THEY_ARE for arg in args):
        return to_json(args)  # the same, sooner
    return canonical([_jsonable(arg) for arg in args]).encode()


def _jsonable(value: object) -> JsonValue:
    """The JSON form of an argument. Sets are sorted: their order differs from process to process."""
    match value:
        case BaseModel():
            return {name: _jsonable(getattr(value, name)) for name in type(value).model_fields}
        case dict():
            items = cast("dict[object, object]", value).items()
            return {str(to_jsonable_python(key)): _jsonable(item) for key, item in items}
        case list() | tuple():
            return [_jsonable(item) for item in cast("Sequence[object]", value)]
        case set() | frozenset():
            return sorted((_jsonable(item) for item in cast("Set[object]", value)), key=canonical)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: _jsonable(getattr(value, field.name)) for field in fields(value)}
        case _:
            return to_jsonable_python(value, bytes_mode="base64")


def _same(given: object, read: object) -> bool:
    """Whether JSON gave the value back. What has a type of its own was read back by that type."""
    match given:
        case BaseModel():
            kept = [name for name, field in type(given).model_fields.items() if not field.exclude]
            return type(given) is type(read) and all(_same(getattr(given, name), getattr(read, name)) for name in kept)
        case dict():
            return isinstance(read, dict) and _same_items(
                cast("dict[object, object]", given), cast("dict[object, object]", read)
            )
        case list() | tuple():
            return isinstance(read, list | tuple) and _same_row(
                cast("Sequence[object]", given), cast("Sequence[object]", read)
            )
        case str() | int() | float():
            return given == read
        case _ if is_dataclass(given) and not isinstance(given, type):
            names = [field.name for field in fields(given)]
            return type(given) is type(read) and all(_same(getattr(given, name), getattr(read, name)) for name in names)
        case _:
            # A SecretStr, say, comes back as its stars. What cannot be compared is taken at its type's word.
            comparable = type(given).__eq__ is not object.__eq__
            return type(given) is type(read) and (given == read or not comparable)


def _same_items(given: dict[object, object], read: dict[object, object]) -> bool:
    return given.keys() == read.keys() and all(_same(item, read[key]) for key, item in given.items())


def _same_row(given: Sequence[object], read: Sequence[object]) -> bool:
    return len(given) == len(read) and all(map(_same, given, read))
