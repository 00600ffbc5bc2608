"""Which JSON is kept, and that it is kept exactly."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import JsonRefused
from app.domain.jsontext import JsonValue, check, dump, parse, token

text = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=20)


@given(values)
def test_every_value_we_keep_comes_back_the_same(value: JsonValue) -> None:
    again = parse(dump(value))
    assert again == value
    assert json.dumps(again) == json.dumps(value)


@pytest.mark.parametrize("number", ["9007199254740993", "1" + "0" * 30, "18446744073709551617", "-" + "9" * 4300])
def test_integers_keep_their_digits(number: str) -> None:
    assert dump(parse(number)) == number


def test_key_order_survives_and_of_duplicate_keys_the_last_counts() -> None:
    assert dump(parse('{"b": 1, "a": 2, "b": 3}')) == '{"b":3,"a":2}'


def test_the_six_characters_backslash_u0000_are_text_like_any_other() -> None:
    assert parse('"\\\\u0000"') == "\\u0000"


@pytest.mark.parametrize(
    "refused",
    [
        "",
        "nope",
        "[1] 2",
        "NaN",
        '{"a": -Infinity}',
        "1e400",
        "-1e400",
        '"\\u0000"',
        '{"\\u0000": 1}',
        '"\\ud800"',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        "[" * 101 + "]" * 101,
        "[" * 100_000,
        "1" * 4_301,
    ],
)
def test_what_is_not_kept_is_refused(refused: str | bytes) -> None:
    with pytest.raises(JsonRefused):
        parse(refused)


def test_nesting_of_one_hundred_is_kept() -> None:
    assert parse("[" * 100 + "]" * 100) is not None


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, "\ud800", {"\0": 1}, {1: 2}, {1, 2}, b"bytes", 1j, 10**4300, object()],
    ids=lambda value: type(value).__name__,
)
def test_python_values_that_are_not_json_are_refused(value: object) -> None:
    with pytest.raises(JsonRefused):
        dump(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    ring: list[object] = []
    ring.append(ring)
    with pytest.raises(JsonRefused, match="nested too deeply"):
        dump(ring)


def test_the_pointer_says_where() -> None:
    with pytest.raises(JsonRefused) as caught:
        check({"a/b": [0, {"c~": math.inf}]}, pointer="/input")
    assert caught.value.pointer == "/input/a~1b/1/c~0"
    assert token("a/b") == "/a~1b"
