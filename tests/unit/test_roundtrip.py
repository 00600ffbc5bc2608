"""Values on their way through JSON: the same on both sides, or refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from subprocess import run
from sys import executable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr, ValidationError, computed_field

from app.domain.errors import JsonRefused, NotRecordable, TooLarge
from app.domain.jsontext import JsonValue
from app.domain.request import canonical
from workers.handling.roundtrip import adapter_of, decode, encode, fingerprint, published

LIMIT = 1_000


class Colour(StrEnum):
    RED = "red"


class Reply(BaseModel):
    text: str = Field(alias="Text", default="")
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    tags: set[int] = set()
    anything: Any = None

    model_config = {"populate_by_name": True}

    @computed_field
    @property
    def length(self) -> int:
        return len(self.text)


@dataclass
class Point:
    x: int
    y: Decimal


KEPT: list[tuple[Any, Any]] = [
    (Any, {"a": [1, 2.5, None, True, "é", 10**30, {"b": []}]}),
    (Reply, Reply(Text="hi", tags={3, 1}, anything=[1])),
    (Point, Point(1, Decimal("1.50"))),
    (set[int], {1, 2}),
    (dict[int, bytes], {1: b"x"}),
    (Colour, Colour.RED),
    (type(None), None),
    (tuple[int, str], (1, "a")),
]


@pytest.mark.parametrize(("kind", "value"), KEPT, ids=str)
def test_a_value_comes_back_as_its_type_reads_it(kind: Any, value: object) -> None:
    adapter = adapter_of(kind)
    text, fresh = encode(adapter, value, bytes_max=LIMIT)
    assert fresh == value
    assert decode(adapter, text) == value
    assert type(decode(adapter, text)) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        Decimal("1.5"),
        datetime.now(UTC),
        {1, 2},
        b"bytes",
        {1: "a key that is no text"},
        {"deep": [{"er": {1}}]},
        Reply(),
        object(),
        "\0",
        "\ud800",
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_would_change_or_cannot_hold_is_refused_not_changed(value: object) -> None:
    with pytest.raises(JsonRefused):
        encode(adapter_of(Any), value, bytes_max=LIMIT)


def test_an_untyped_corner_of_a_model_is_looked_into() -> None:
    with pytest.raises(JsonRefused):
        encode(adapter_of(Reply), Reply(anything={"x": {1, 2}}), bytes_max=LIMIT)


def test_a_value_whose_type_hides_it_is_refused() -> None:
    with pytest.raises(JsonRefused):
        encode(adapter_of(SecretStr), SecretStr("the value"), bytes_max=LIMIT)


def test_nesting_without_end_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(JsonRefused):
        encode(adapter_of(Any), deep, bytes_max=LIMIT)
    with pytest.raises(NotRecordable):
        fingerprint([deep])


def test_a_value_of_another_type_than_declared_is_refused() -> None:
    with pytest.raises(ValidationError):
        encode(adapter_of(Reply), "text", bytes_max=LIMIT)
    with pytest.raises(ValidationError):
        encode(adapter_of(Reply), Reply.model_construct(at="no time at all"), bytes_max=LIMIT)


def test_callers_see_a_result_under_its_aliases_with_its_defaults_and_computed_fields() -> None:
    assert (
        published(adapter_of(Reply), {"Text": "hi"}, bytes_max=LIMIT)
        == '{"Text":"hi","at":"2026-01-01T00:00:00Z","tags":[],"anything":null,"length":2}'
    )


def test_a_model_that_no_annotation_announced_is_published_as_what_it_is() -> None:
    untyped = published(adapter_of(Any), Reply(Text="hi"), bytes_max=LIMIT)
    assert untyped == published(adapter_of(Reply), Reply(Text="hi"), bytes_max=LIMIT)


def test_equal_arguments_have_one_fingerprint_and_others_another() -> None:
    assert fingerprint([{"b": 1, "a": Reply(Text="x")}]) == fingerprint([{"a": Reply(Text="x"), "b": 1}])
    assert fingerprint([1]) == fingerprint([1.0])
    assert len({fingerprint([value]) for value in (1, "1", True, [1], None, 2, b"1\xff")}) == 7
    assert fingerprint(["a", "b"]) != fingerprint([["a", "b"]])


def test_a_set_has_one_fingerprint_in_every_process(tmp_path: Path) -> None:
    script = tmp_path / "print_fingerprint.py"
    script.write_text(
        "from workers.handling.roundtrip import fingerprint\n"
        "print(fingerprint([{'ab', 'cd', 'ef', 'gh'}, {'k': {'x', 'y'}}]).hex())\n"
    )
    prints = {
        run(
            [executable, str(script)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path.cwd())},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(prints) == 1


def test_an_argument_without_a_json_form_is_refused() -> None:
    with pytest.raises(NotRecordable, match="belongs in a closure"):
        fingerprint([object()])


def test_the_limit_is_in_bytes_of_the_text_and_what_is_far_over_it_is_refused_before_it_is_walked() -> None:
    adapter = adapter_of(Any)
    assert encode(adapter, "x" * 98, bytes_max=100)[0] == f'"{"x" * 98}"'
    for value in ("x" * 99, "\u00e9" * 50, ["x" * 99], ["\ud800", "x" * 1_000]):
        with pytest.raises((TooLarge, JsonRefused)):
            encode(adapter, value, bytes_max=100)
    # The walk goes a hundred levels deep and would refuse this as nested too deeply.
    with pytest.raises(TooLarge):
        encode(adapter, nested("x" * 1_000, 150), bytes_max=100)


def nested(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = [value]
    return value


async def test_what_gives_values_one_by_one_or_was_not_awaited_is_no_value() -> None:
    async def answer() -> int:
        return 1

    async def answers() -> AsyncIterator[int]:
        yield 1

    forgotten = answer()
    for value in (itertools.count(), (n for n in range(3)), answers(), forgotten):
        for adapter in (adapter_of(Any), adapter_of(list[int])):
            with pytest.raises(JsonRefused, match="no value"):
                encode(adapter, value, bytes_max=LIMIT)
    forgotten.close()


@given(st.lists(st.text() | st.integers() | st.booleans() | st.none()))
def test_plain_arguments_have_the_fingerprint_of_their_canonical_json(args: list[JsonValue]) -> None:
    assert fingerprint(args) == sha256(canonical(args).encode()).digest()


@pytest.mark.parametrize("arg", [10**5_000, "\ud800", math.nan, object()], ids=["long", "surrogate", "nan", "object"])
def test_an_argument_that_is_not_json_has_no_fingerprint(arg: object) -> None:
    with pytest.raises(NotRecordable):
        fingerprint(["text", arg])
