"""The JSON we keep: exact integers and text, finite numbers, bounded nesting.

Integers to 4,300 digits, text and key order survive exactly; other numbers are IEEE doubles; of
duplicate keys the last counts. NaN, infinities (1e400 too), U+0000, lone surrogates and nesting
over 100 are refused, in inputs, results, effects and error texts alike.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import TypeAlias, cast

from pydantic_core import from_json, to_json

from app.domain.errors import JsonRefused

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, JsonValue]

DEPTH_MAX = 100
DIGITS_MAX = 4_300

_INTEGER_BOUND = 10**DIGITS_MAX


def read(data: bytes | str) -> JsonValue:
    """The value that JSON text (RFC 8259, UTF-8) stands for, with only its syntax checked.

    Raises `JsonRefused`: for what a lenient reader would take (NaN, a lone surrogate, too many digits) with the
    place of it, else with line and column.
    """
    try:
        return cast("JsonValue", from_json(data, allow_inf_nan=False))
    except (ValueError, TypeError) as error:
        fault = _lenient_fault(data)
        raise (JsonRefused(*fault) if fault else JsonRefused(f"not JSON: {error}")) from error


def parse(data: bytes | str, *, depth_max: int = DEPTH_MAX) -> JsonValue:
    """The value that JSON text stands for, fit to be kept. Raises `JsonRefused`."""
    value = read(data)
    check(value, depth_max=depth_max)
    return value


def check(value: object, *, pointer: str = "", depth_max: int = DEPTH_MAX) -> None:
    """Refuses a Python value that is not JSON we keep.

    `pointer` is where the value stands in its document. Raises `JsonRefused`.
    """
    fault = _fault(value, depth_max)
    if fault is not None:
        why, place = fault
        raise JsonRefused(why, pointer + place)


def dump(value: object) -> str:
    """JSON text of a value, compact, not escaped beyond need. Raises `JsonRefused`."""
    check(value)
    return dump_checked(value)


def dump_checked(value: object) -> str:
    """As `dump`, of a value that `check` or `parse` has let through."""
    return to_json(value).decode()


def token(key: str | int) -> str:
    """One step of a JSON pointer (RFC 6901), with its slash."""
    return "/" + str(key).replace("~", "~0").replace("/", "~1")


def _lenient_fault(data: bytes | str) -> tuple[str, str] | None:
    """What is wrong, and where, with text that a lenient reader takes; None when it does not."""
    try:
        text = data if isinstance(data, str) else data.decode()
        value: object = json.loads(text, parse_int=_bounded_int)
        return _fault(value, DEPTH_MAX + 1)
    except (ValueError, RecursionError):
        return None


def _bounded_int(digits: str) -> int:
    """The number; of one with too many digits, which Python does not read, one that is refused as well."""
    return int(digits) if len(digits.lstrip("-")) <= DIGITS_MAX else _INTEGER_BOUND


def _fault(value: object, depth_left: int) -> tuple[str, str] | None:
    """What is wrong with the value and where; the pointer grows on the way out."""
    if not isinstance(value, dict | list | tuple):
        return _scalar_fault(value)
    if depth_left == 0:
        return ("nested too deeply", "")
    if isinstance(value, dict):
        return _object_fault(cast("dict[object, object]", value), depth_left - 1)
    for index, item in enumerate(cast("list[object]", value)):
        fault = _fault(item, depth_left - 1)
        if fault is not None:
            return fault[0], token(index) + fault[1]
    return None


def _scalar_fault(value: object) -> tuple[str, str] | None:
    if isinstance(value, str):
        return _text_fault(value)
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return None if -_INTEGER_BOUND < value < _INTEGER_BOUND else (f"more than {DIGITS_MAX} digits", "")
    if isinstance(value, float):
        return None if isfinite(value) else ("a number that is not finite", "")
    return (f"{type(value).__name__} is not JSON", "")


def _object_fault(value: dict[object, object], depth_left: int) -> tuple[str, str] | None:
    for key, item in value.items():
        if type(key) is str and type(item) is str and item.isascii() and key.isascii() and "\0" not in key + item:
            continue  # nearly every member
        if not isinstance(key, str):
            return (f"a key of type {type(key).__name__}", "")
        key_fault = _text_fault(key)
        if key_fault is not None:
            return f"a key with {key_fault[0]}", ""
        fault = _fault(item, depth_left)
        if fault is not None:
            return fault[0], token(key) + fault[1]
    return None


def _text_fault(text: str) -> tuple[str, str] | None:
    if text.isascii():
        return ("the character U+0000", "") if "\0" in text else None
    if "\0" in text:
        return ("the character U+0000", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return ("a lone surrogate", "")
    return None
